/* The segments of a process, in the order of their making. Of the thread that is in what all live ranks do together. */
#ifndef KEEL_CLIENT_SEGMENT_SEGMENTS_H
#define KEEL_CLIENT_SEGMENT_SEGMENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <keel/segment.h>
#include <keel/status.h>

#include "runtime/client/segment/range.h"

struct keel_segment;

/* One more whose end was told to the agent, and does not count here before all agents know it. */
struct uncounted {
    bool any;
    uint32_t seg;
    keel_status agreed; /* KEEL_OK: it was freed */
};

/* An allocation or a free that ended by its time-out, to be gone on with. */
struct unfinished {
    struct keel_segment *segment; /* NULL: none */
    bool frees;
    uint64_t wanted;  /* of an allocation: segment_fingerprint */
    keel_status said; /* by this rank */
    keel_status met;  /* before, by operations */
    bool under_way;
};

struct segments {
    struct keel_segment *first, *system;
    /* A bit for each class of copies: the process stores plainly into its part of such segments. Any thread sets
     * one. */
    _Atomic unsigned stores;
    unsigned retired_n;
    struct keel_segment *retired, *retired_last; /* in the order in which they were freed */
    struct range range;
    uint32_t next, known;        /* numbers: the next one; one below `known` is of before this process joined */
    keel_redundancy most_copies; /* of the segments that all ranks have allocated so far */
    uint64_t instance;           /* allocations and frees of all live ranks that are complete here */
    struct uncounted uncounted;
    struct unfinished unfinished;
};
#endif
