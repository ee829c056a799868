/* A program that runs two or three times side by side: what its sets are, and what must be true of them.
 *
 * Each rank of the program draws what it does from a stream of its own, the same in each set, and each set does it in
 * its own time. What an atomic has found, and what lies in the sets' memory when nothing goes on, must be the same. */
#ifndef KEEL_TESTS_SIM_DATA_REPLICAS_H
#define KEEL_TESTS_SIM_DATA_REPLICAS_H

#include "runtime/client/api/calls.h"
#include "tests/sim/data/program_int.h"

enum {
    REPLICA_SEGMENTS = 2,
    REPLICA_OWN = 96,               /* bytes in each part that one rank puts to */
    REPLICA_WORDS = 3,              /* of atomics in each part; behind them */
    REPLICA_HALVES = REPLICA_WORDS, /* one of atomics on its halves, */
    REPLICA_BELL,                   /* one that all signal to, */
    REPLICA_CHAIN,                  /* one that the rank before signals to, */
    REPLICA_NUMBER,                 /* one that whole numbers are accumulated to, */
    REPLICA_LOCKED,                 /* one that who has the mutex adds one to, by a get and a put, */
    REPLICA_DOUBLES,                /* and doubles */
    REPLICA_STEPS = 4096,
};

struct replica_segment_plan {
    keel_redundancy redundancy;
    size_t doubles, bytes;
    int64_t index[REPLICAS_MAX]; /* the runtime's number of it in each set, -1: not yet */
};

struct replica_found {
    bool is;
    int set; /* that was told first */
    int64_t value;
    /* where partners act, as each brings it to sets of others: its place in the history, from 1; it has been told */
    size_t place;
    bool told;
};

struct replicas {
    struct replica_map map;
    struct replica_segment_plan segment[REPLICA_SEGMENTS];
    int segments;
    struct replica_found *found[RANKS_MAX]; /* [REPLICA_STEPS] by rank of the program */
    /* of each set; where partners act the first is that of all */
    struct history history[REPLICAS_MAX][REPLICA_SEGMENTS][RANKS_MAX][REPLICA_WORDS];
    bool locked[REPLICAS_MAX];   /* a rank of the set has its mutex */
    int64_t drawn[REPLICAS_MAX]; /* tasks of its pool */
    uint64_t orders;             /* entries that were compared */
    /* the bit that flips: in that set, at that put of that rank; it has flipped; somebody has said that sets differ */
    int flip_set, flip_rank, flip_put;
    bool flipped, told;
    int begun;  /* processes that have allocated all that they want, */
    bool early; /* and somebody died before all had */
};

/* What a rank's process has in mind. */
struct replica_out {
    keel_handle handle;
    uint8_t *bytes;
};
enum { REPLICA_OUT = 12 };
struct replica_program {
    struct program p;
    struct replicas *all;
    struct rng rng;
    const struct api_calls *calls;
    int rank, set, steps, puts;
    int64_t chained; /* stages in which it has signalled to the next rank */
    /* letters to each rank and of each, ever, and those to each in this stage */
    uint64_t written[RANKS_MAX], read[RANKS_MAX], fresh[RANKS_MAX];
    keel_group *group;
    keel_mutexes *mutexes; /* where the program has a wrapper: one of each rank */
    keel_taskpool *pool;   /* of more tasks than are drawn */
    int64_t locks;         /* of the mutex of rank 0, so far */
    keel_segment *seg[REPLICA_SEGMENTS];
    struct replica_out out[REPLICA_OUT];
    int outs;
    /* what it has put and added so far, all of it complete at a gate */
    uint8_t own[REPLICA_SEGMENTS][RANKS_MAX][REPLICA_OWN];
    int64_t added[REPLICA_SEGMENTS][RANKS_MAX], signalled[REPLICA_SEGMENTS][RANKS_MAX];
};

static inline size_t replica_own_at(int writer)
{
    return (size_t)writer * REPLICA_OWN;
}
/* i: of the words, then of those behind them. */
static inline size_t replica_word_at(const struct replicas *s, int i)
{
    return (size_t)s->map.ranks * REPLICA_OWN + 8 * (size_t)i;
}

/* Who is who, before the agents begin; what the program does. False: no memory. */
bool replicas_init(struct world *w);
void replicas_fini(struct world *w);
void replicas_plan(struct world *w);
/* The scenario: sets, and where they run. */
void replicas_place(struct setup *s, struct rng *rng);

/* program_replicas.c */
void replicas_run(struct runner *r);

/* program_letters.c: a letter, as long as it likes; and each rank says to all how many it has sent to them in this
 * stage, and reads what it was sent. */
keel_status replicas_write(struct replica_program *q, int to);
keel_status replicas_read_letters(struct replica_program *q);

/* Its set has lost somebody, or is about to: what its processes are told is of no account. */
bool replicas_is_hit(const struct world *w, int set);
/* May that node, or that rank, be lost? One set stays. */
bool replicas_may_lose_node(const struct world *w, int node);
bool replicas_may_lose_rank(const struct world *w, int rank);
bool replicas_may_lose_both(const struct world *w, int a, int b);
/* The model has another view. */
void replicas_view(struct world *w);
/* An agent has another view: what is left of sets that are retired is ended, as keeld does. */
void replicas_committed(struct node *n);
/* A process writes a line for people, or ends its set with one. */
void replicas_told(struct runner *r, const char *text);
/* A bit has flipped, and it was in what that (native) rank put. */
bool replicas_has_flipped(const struct world *w, int rank);
/* A bit that has flipped was told. */
void replicas_check_told(struct world *w, const char *when);
/* A bit of what it has put lies there otherwise. */
void replicas_flip(const struct replica_program *q, int segment, int target, size_t at);
/* Do its replicas do each other's part? */
bool replicas_act(const struct world *w);
/* An atomic is called, by this replica: its place in the history of its word. And: it has returned. */
size_t replicas_call(struct replica_program *q, struct history *all, const struct history_op *op);
void replicas_return(const struct replica_program *q, struct history *all, size_t at, int64_t result);
/* Of its word, by this replica. */
struct history *replicas_history(const struct replica_program *q, int segment, int target, int word);
/* An atomic of that step has found this. */
void replicas_found(struct world *w, const struct replica_program *q, int64_t value);
/* The logs of all sets that live. */
void replicas_check(struct world *w, const char *when);
/* Nothing goes on: memory is the same, and what was put and added is there. */
void replicas_check_quiet(struct world *w);
/* Of each word in each set. */
void replicas_check_end(struct world *w);
#endif
