/* The output of a program that runs several times side by side: it is shown once, and compared. Pure.
 *
 * What a rank writes to a stream is a row of bytes, and a place in it is the same in each set. Those of the leading
 * set, the lowest in which the rank lives, are shown as they come. What another set has written further than that is
 * kept: when the leading set is retired, or has lost the rank where it goes on without, the next one leads, and its
 * bytes are shown from the place on where the others had come to, whether they have been here already or not. What a
 * set writes at a place where another one has been is compared with that, and the first byte that differs is told, once
 * for each stream of a rank.
 *
 * A set that was retired and has begun anew begins at the place where its rank was when it joined, which it says. Its
 * bytes wait until another set has come there.
 *
 * At most REPLICA_KEPT_MAX bytes are kept. Of what is beyond that nothing is compared, and if it should have been
 * shown, how much of it is lost is told. */
#ifndef KEEL_PM_REPLICA_OUTPUT_H
#define KEEL_PM_REPLICA_OUTPUT_H

#include "runtime/base/replica.h"

#include <stdint.h>

enum { REPLICA_KEPT_MAX = 256 << 20 };

struct replica_output;

struct replica_output_events {
    void *user;
    void (*show)(void *user, int rank, int stream, const uint8_t *data, size_t len);
    /* Byte `at` of the stream, counted from 0, is another one in that set than in another. */
    void (*differs)(void *user, int rank, int stream, int set, uint64_t at);
    /* So many bytes from `at` on will not be shown. */
    void (*lost)(void *user, int rank, int stream, uint64_t at, uint64_t bytes);
};

/* stream 0: standard output, 1: standard error. The map outlives it. */
struct replica_output *replica_output_create(const struct replica_map *map, const struct replica_output_events *events,
                                             size_t kept_max);
void replica_output_destroy(struct replica_output *o);
/* A native rank has written that. */
void replica_output_take(struct replica_output *o, int native, int stream, const uint8_t *data, size_t len);
/* The set ends: nothing of it counts any more, but of a rank that lives in no other. */
void replica_output_retire(struct replica_output *o, int set);
/* Its set has begun anew, and is whole: the next byte that the native rank has written is that one. */
void replica_output_join(struct replica_output *o, int native, int stream, uint64_t at);
/* The same of one process, whose set goes on without it. */
void replica_output_lose(struct replica_output *o, int native);
/* Nothing more comes: what still waits for another set's bytes is shown without them. */
void replica_output_settle(struct replica_output *o);
/* All sets that are whole have come to their end: who of them has written less than another? Told as a difference at
 * the byte that it lacks. */
void replica_output_finish(struct replica_output *o);
#endif
