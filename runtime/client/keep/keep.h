/* The public calls of keel/keep.h on an instance: memory of a rank's own that its next life finds again.
 *   layout.h   where it lies in the segment of kept memory, and which version counts; pure
 *   keep.c     what is registered
 *   commit.c   a version is made
 *   restore.c  a version is gone back to, or read by others
 *   save.c, load.c  files
 *   sets.c     the parts of these calls that a set of replicas makes
 * docs/adr/0177 has the protocol. Of one thread at a time; not under the lock. */
#ifndef KEEL_CLIENT_KEEP_KEEP_H
#define KEEL_CLIENT_KEEP_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;
struct keep_table;

keel_status keep_room(struct client *c, size_t bytes_per_rank);
keel_status keep_range(struct client *c, const char *name, void *address, size_t bytes);
keel_status keep_commit(struct client *c, uint64_t version);
keel_status keep_restore(struct client *c, uint64_t *version, uint64_t *since);
keel_status keep_rollback(struct client *c, uint64_t *version);
keel_status keep_get(struct client *c, int rank, const char *name, size_t offset, void *dst, size_t len,
                     uint64_t *version);
keel_status keep_save(struct client *c, uint64_t version, const char *folder);
/* Gives back what the process has for it. */
void keep_end(struct client *c);

/* ---- where ranks that keep are the set of a program with replicas: what a rank does on both sides of a meeting, which
 * is one of the set's group. `collectives`: how many of the set are complete. ---- */

/* False: there is room already. *bytes: of each part; 0: that cannot be. */
bool keep_wants_room(struct client *c, size_t bytes_per_rank, size_t *bytes);
/* segment: with a part of so many bytes for each rank of the set. */
void keep_has_room(struct client *c, keel_segment *segment, size_t bytes_per_rank);
/* Nothing is kept before keel_keep_restore: this process goes on for another one. */
void keep_must_restore(struct client *c);
keel_status keep_may_restore(const struct client *c);
/* The own part of that segment, which is as another process has left it in its commit of that version, the last of
 * those collectives: the memory becomes that of the version. */
keel_segment *keep_segment_of(const struct client *c);
keel_status keep_take_over(struct client *c, uint64_t version, uint64_t collectives);
/* May the version be made? */
keel_status keep_may_commit(const struct client *c, uint64_t version);
/* The table and the ranges that are registered: *address and *bytes of the n-th, from 0. False: there are no more. */
const struct keep_table *keep_registered(const struct client *c);
bool keep_registered_range(const struct client *c, uint64_t n, void **address, size_t *bytes);
/* What is registered is written, as the version of which the set's next collective says that it counts. */
keel_status keep_write(struct client *c, uint64_t version, uint64_t collectives);
/* All ranks of the set have met: the version counts, or not. */
void keep_met(struct client *c, uint64_t version, uint64_t collectives, bool counts);
/* This rank's memory becomes that of its last version, if there is one. */
keel_status keep_go_back(struct client *c, uint64_t *version);
keel_status keep_get_behind(struct client *c, uint64_t collectives, int rank, const char *name, size_t offset,
                            void *dst, size_t len, uint64_t *version);
#endif
