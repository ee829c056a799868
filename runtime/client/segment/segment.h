/* Segments: collective allocation, and the mappings of this node's copies. */
#ifndef KEEL_CLIENT_SEGMENT_SEGMENT_H
#define KEEL_CLIENT_SEGMENT_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

struct client;
struct near;

struct keel_segment {
    struct client *client;
    struct keel_segment *next; /* of the client */
    uint32_t index;
    uint64_t unit;        /* what an agent thinks that each rank has: its copies are as large as that needs */
    uint64_t largest;     /* part */
    uint64_t *part_bytes; /* [ranks] */
    uint64_t *part_at;    /* [ranks] where it begins in its slot's copy */
    struct near *near;    /* [ranks] */
    keel_redundancy redundancy;
    uint64_t number;          /* of a program with replicas: its allocation of this process, from 1; */
    bool of_all;              /* all ranks have made it together */
    uint64_t what;            /* 0: the program's own */
    struct keel_group *group; /* whose members made it, NULL: all live ranks */
    uint16_t group_generation;
    bool freed;              /* before this process joined */
    bool retired;            /* freed by this process */
    bool attached;           /* one part of it, which this process has no share in (segment_part.c) */
    _Atomic(uint8_t *) *map; /* [nodes] this node's copy of each slot's part, NULL until mapped */
    size_t *map_bytes;       /* [nodes] without the marks behind */
    _Atomic uint64_t
        *shared;       /* [nodes] 1 + the generation under which the agent adds by the processor's atomics, as we may */
    uint64_t base;     /* of its place in the address range, 0: none */
    uint64_t *slot_at; /* [nodes] where the slot's copy lies from there */
    uint8_t *view;     /* a second mapping of view_slot's copy, the one that the program gets (track.c); NULL: none */
    int view_slot;
};

/* This node's copy of the slot's part, or NULL. *status says why not: KEEL_ERR_DATA_LOST, KEEL_ERR_STATE (not here) or
 * KEEL_IN_PROGRESS (it is being filled). */
uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status);
uint8_t *segment_map_whole(struct keel_segment *s, int slot, keel_status *status);
/* The same of the client's own part, for plain stores: waits until it is the copy that others are made equal to. Before
 * that, what a dead rank left may be made equal from another copy, and take with it what was stored here. Not under
 * the lock. */
uint8_t *segment_map_home(struct keel_segment *s, keel_status *status);
/* For a collective that ends, with the lock: if the process stores plainly into its part, nothing that a dead writer
 * left there is being made equal any more; what is stored from now on stays. */
bool segment_stores_rest(const struct client *c);
void segment_await_rest(struct client *c);
/* Map the copy with the rank's part a second time, for the library; *view is where it was and what the program goes
 * on to get. */
keel_status segment_map_twice(struct keel_segment *s, int rank, uint8_t **view);
keel_status segment_alloc(struct client *c, size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out);
/* For mutexes, kept memory or a pool of so many tasks, which nobody may take for anything else, with as many copies as
 * what the program has allocated before, and two at least; a rank takes part whether it is able to or not: then all get
 * its error. */
enum { SEGMENT_OF_MUTEXES = 1, SEGMENT_OF_KEPT = 2 };
#define SEGMENT_OF_TASKS ((uint64_t)1 << 33)
keel_status segment_alloc_for(struct client *c, keel_status able, uint64_t what, size_t bytes_per_rank,
                              keel_segment **out);
/* Parts of different sizes: bytes [ranks]. */
keel_status segment_alloc_parts(struct client *c, const size_t *bytes, keel_redundancy redundancy, keel_segment **out);
keel_status segment_free(struct client *c, struct keel_segment *segment);
/* The nodes that hold the copies of the rank's part now, the primary first; *n gets their number, 0: it is lost. */
keel_status segment_copies(const keel_segment *s, int rank, int *nodes, int *n);
void segment_release(struct keel_segment *s);
void segment_forget_all(struct client *c);
void *segment_address(keel_segment *s, int rank);
/* The process knows where this node's copy of its own slot is, and may store there unseen, or, seen false, not any more
 * (wire/marks.h). Other slots' are not for plain stores. */
void segment_seen(keel_segment *s, int slot, bool seen);
keel_status segment_locate(struct client *c, int rank, const void *address, keel_segment **segment, size_t *offset);
/* What an allocation is given, the same at all ranks that take part. */
struct segment_want {
    const size_t *parts; /* [ranks], or NULL: bytes each */
    uint64_t bytes;
    keel_redundancy redundancy;
    uint64_t what; /* 0: the program's own */
};
/* Not in the address range yet. NULL: out of memory. */
struct keel_segment *segment_new(struct client *c, uint32_t index, const struct segment_want *want);
/* In its place among the segments of all ranks; parts of one size. */
struct keel_segment *segment_attach(struct client *c, uint32_t index, uint64_t bytes_per_rank,
                                    keel_redundancy redundancy);
/* Lays out its copies. Bytes of the address range that it takes, 0: more than there are. */
uint64_t segment_lay_out(struct keel_segment *s);
/* Zeroed memory of the process for the next allocation; NULL only where all are told that there is none. */
void *segment_zeroed(struct client *c, size_t n, size_t bytes);
/* Another number for other sizes, or something else. */
uint64_t segment_fingerprint(const struct client *c, const struct segment_want *want);
/* What collective_decided is to the last free, or allocation that came to nothing, whose end may still be on its way to
 * some agent: waits for that. Before the next thing that all live ranks do, so that what counts is one cut of the
 * program's order. */
keel_status segment_count_last(struct client *c);
#endif
