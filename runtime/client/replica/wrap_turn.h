/* Turns that are words of the set's: what mutexes (wrap_turn.c) and task pools (wrap_task.c) share. */
#ifndef KEEL_CLIENT_REPLICA_WRAP_TURN_H
#define KEEL_CLIENT_REPLICA_WRAP_TURN_H

#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

enum { TURNS_WORD = sizeof(int64_t) };

/* A segment of the set, in the part of each of whose ranks there are so many bytes. Who asks for what cannot be takes
 * part: the others would wait. */
keel_status turns_allocate(bool able, size_t bytes_of_each, keel_segment **out);
keel_status turns_free(keel_segment *segment);
/* Before what all ranks do together. */
keel_status turns_meet_apart(enum replica_call call);
/* And all ranks of the set have given that number; -1: what cannot be. */
keel_status turns_meet_alike(enum replica_call call, int64_t number);
keel_status turns_wait_for(keel_segment *segment, int rank, size_t offset, int64_t value, enum wait_call call);
#endif
