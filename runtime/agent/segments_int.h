/* Between segments.c and segments_known.c. */
#ifndef KEEL_AGENT_SEGMENTS_INT_H
#define KEEL_AGENT_SEGMENTS_INT_H

#include "runtime/agent/segments.h"

/* An allocation that came to nothing at all ranks: a restarted rank that repeats it gets the same answer. */
struct refused {
    struct refused *next;
    uint32_t seg;
    uint64_t number; /* of the allocation */
    keel_status status;
};

/* segments.c: what an allocation was refused with; KEEL_OK: it was not. */
keel_status segments_refused(const struct segment_book *s, uint32_t seg);
/* segments_known.c: all that live are told of it, and asked. False: no memory. */
bool segments_announce(struct agent *a, struct store_segment *s);
/* To who asked. */
void segments_answer(struct agent *a, int node, uint32_t seg, keel_status status);
/* All that live hear that it is here after all. */
void segments_here(struct agent *a, const struct store_segment *s);
#endif
