/* The public calls of keel/keep.h on an instance: memory of a rank's own that its next life finds again.
 *   layout.h   where it lies in the segment of kept memory, and which version counts; pure
 *   keep.c     what is registered
 *   commit.c   a version is made
 *   restore.c  a version is gone back to, or read by others
 *   save.c, load.c  files
 * docs/adr/0177 has the protocol. Of one thread at a time; not under the lock. */
#ifndef KEEL_CLIENT_KEEP_KEEP_H
#define KEEL_CLIENT_KEEP_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;

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
#endif
