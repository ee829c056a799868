/* Counters: what each process of a job did, in numbers that keelctl(1) shows. The list below is the only one. A new
 * counter is one row of it, and counter_add or counter_most where it happens.
 *
 * A *block* has a word for each counter, on cache lines of its own. Each block has one writer at a time, which stores
 * its words with no lock and no read-modify-write of the processor; who sums reads them at any time, each word whole
 * and none too late for long. A rank's blocks are shared memory that its agent maps (wire/note.h): the agent reads them
 * while the rank runs, and after its death. An agent has blocks of its own. */
#ifndef KEEL_BASE_COUNTERS_H
#define KEEL_BASE_COUNTERS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a word means, and how those of several blocks become one. */
enum counter_kind {
    COUNTER_COUNT, /* events; added */
    COUNTER_BYTES, /* added */
    COUNTER_TIME,  /* ns; added */
    COUNTER_MOST,  /* the greatest value there was; the greatest of all */
    COUNTER_SAME,  /* events of the job, which each agent counts; added, and of several agents the greatest */
};

enum counter_owner { COUNTER_RANK, COUNTER_AGENT, COUNTER_BOTH };

/* C(name, kind, who counts, help). A name ends with its unit unless it is a number of events. "here": by the caller's
 * own loads and stores; "away": by way of an agent. Behind a number of operations comes the number of their bytes
 * (counters_near). */
#define COUNTERS(C)                                                                                                    \
    C(puts_here, COUNT, RANK, "contiguous pieces put by stores of the caller's own")                                   \
    C(puts_here_bytes, BYTES, RANK, "and their bytes")                                                                 \
    C(gets_here, COUNT, RANK, "contiguous pieces got by loads of the caller's own")                                    \
    C(gets_here_bytes, BYTES, RANK, "and their bytes")                                                                 \
    C(accumulates_here, COUNT, RANK, "contiguous pieces added by the caller itself")                                   \
    C(accumulates_here_bytes, BYTES, RANK, "and their bytes")                                                          \
    C(atomics_here, COUNT, RANK, "atomic operations by the caller itself")                                             \
    C(puts_away, COUNT, RANK, "contiguous pieces put by way of agents, each once however many copies")                 \
    C(puts_away_bytes, BYTES, RANK, "and their bytes")                                                                 \
    C(gets_away, COUNT, RANK, "contiguous pieces got from agents")                                                     \
    C(gets_away_bytes, BYTES, RANK, "and their bytes")                                                                 \
    C(accumulates_away, COUNT, RANK, "contiguous pieces added by agents, each once")                                   \
    C(accumulates_away_bytes, BYTES, RANK, "and their bytes")                                                          \
    C(atomics_away, COUNT, RANK, "atomic operations by agents, each once")                                             \
    C(row_bytes, BYTES, RANK,                                                                                          \
      "moved away or here by way of agents, on a grid of nodes: next slots in its first dimension")                    \
    C(star_bytes, BYTES, RANK, "the same, next slots in another dimension")                                            \
    C(box_bytes, BYTES, RANK, "the same, next slots across a corner")                                                  \
    C(ring_bytes, BYTES, RANK, "the same, the slot with the next number or the one before, where they are not beside") \
    C(far_bytes, BYTES, RANK, "the same, other slots")                                                                 \
    C(requests, COUNT, RANK, "messages of operations to agents, with those that were sent again")                      \
    C(requests_most, MOST, RANK, "most messages that waited for their answers at once")                                \
    C(retries, COUNT, RANK, "answers of an agent that it is not the right one now")                                    \
    C(doubts, COUNT, RANK, "operations given up that may still take effect")                                           \
    C(messages, COUNT, RANK, "messages of the program's own to other ranks (keel_message_send)")                       \
    C(inspected, COUNT, RANK, "ranges that agents looked at after replicas had put them")                              \
    C(connections, COUNT, BOTH, "connections made, each time that one was")                                            \
    C(damaged, COUNT, AGENT, "messages of replicas that came otherwise than they were sent, and were sent again")      \
    C(forwards, COUNT, AGENT, "results passed on to a further copy")                                                   \
    C(filled_bytes, BYTES, AGENT, "bytes that arrived here to fill a new copy")                                        \
    C(scrubbed_bytes, BYTES, AGENT, "bytes of copies that the scrubber read here")                                     \
    C(scrub_mismatches, COUNT, AGENT, "copies that the scrubber found to have changed by themselves")                  \
    C(scrub_mended, COUNT, AGENT, "those of them that it mended")                                                      \
    C(views, SAME, AGENT, "views committed")                                                                           \
    C(suspicions, COUNT, AGENT, "times that this node's detector suspected another")                                   \
    C(node_deaths, SAME, AGENT, "deaths of nodes in these views")                                                      \
    C(rank_deaths, SAME, AGENT, "deaths of processes of ranks in these views")

enum counter {
#define COUNTERS_ID(name, kind, who, help) COUNTER_##name,
    COUNTERS(COUNTERS_ID)
#undef COUNTERS_ID
        COUNTERS_N
};

struct counter_row {
    const char *name;
    enum counter_kind kind;
    enum counter_owner who;
    const char *help;
};
extern const struct counter_row counters[COUNTERS_N];

/* Whole cache lines. */
struct counter_block {
    _Atomic uint64_t count[(COUNTERS_N + 7) / 8 * 8];
};

/* The block's writer only. */
static inline void counter_add(struct counter_block *b, enum counter c, uint64_t n)
{
    atomic_store_explicit(&b->count[c], atomic_load_explicit(&b->count[c], memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* The block's writer only, of a COUNTER_MOST. */
static inline void counter_most(struct counter_block *b, enum counter c, uint64_t value)
{
    if (value > atomic_load_explicit(&b->count[c], memory_order_relaxed))
        atomic_store_explicit(&b->count[c], value, memory_order_relaxed);
}

/* Takes a block, or what was summed elsewhere, into sum[COUNTERS_N]. Any thread. */
void counters_take(uint64_t *sum, const struct counter_block *b);
void counters_sum(uint64_t *sum, const uint64_t *more);

/* ---- the blocks of a rank's process ---- */

enum {
    COUNTER_LOCKED,  /* of whoever holds the client's lock */
    COUNTER_SHARED,  /* of all threads that have none; by the processor's atomics */
    COUNTER_THREADS, /* the first of the threads' own */
    COUNTER_BLOCKS = COUNTER_THREADS + 254
};

struct counter_page {
    _Atomic uint32_t used; /* blocks from the first on; the others were never written to */
    alignas(64) struct counter_block block[COUNTER_BLOCKS];
};

void counters_take_page(uint64_t *sum, const struct counter_page *page);

/* The page whose blocks the threads of this process get, each at its first count; NULL: none any more. Without it all
 * threads count in COUNTER_SHARED. Before other threads count, or when none does. */
void counters_process(struct counter_page *page);

/* This thread's own block of that page; NULL: none yet, or all are taken. */
extern _Thread_local struct counter_block *counter_mine
    __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* This thread has one from now on, if one is free. */
void counters_thread(struct counter_page *page);
void counters_near_first(struct counter_page *page, enum counter c, uint64_t n, uint64_t bytes);

/* n under c, and bytes, if any, under the counter behind it; the block's writer only. */
static inline void counters_own(struct counter_block *b, enum counter c, uint64_t n, uint64_t bytes)
{
    counter_add(b, c, n);
    if (bytes)
        counter_add(b, c + 1, bytes);
}

/* A thread's own loads and stores: n under c, and bytes under the counter behind it. Any thread, no lock. */
static inline void counters_near(struct counter_page *page, enum counter c, uint64_t n, uint64_t bytes)
{
    struct counter_block *b = counter_mine;
    if (__builtin_expect(!b, 0)) {
        counters_near_first(page, c, n, bytes);
        return;
    }
    counters_own(b, c, n, bytes);
}
#endif
