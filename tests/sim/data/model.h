/* What must be true, computed beside the system: the model knows what every rank has asked for and been told, looks
 * straight into the agents' memory, and holds the two against each other.
 *
 *   region    bytes that only one rank writes: what completed puts left (base), and the puts that may be there
 *             (pending: in
 *             progress; in doubt: their writer died, left or gave up). Each aligned word of each whole copy is base, or
 *             base and some of those puts; a torn word in one copy needs another copy that is not torn there (G1)
 *   sum       an array of doubles that everybody accumulates to: what completed, and what may have taken effect (G3)
 *   word      a 64-bit word of atomics and strong gets, or of one rank's puts and everybody's strong gets: its history
 *             is
 *             checked for linearizability (history.h)
 *   pool      tasks, each of which adds to doubles of its own: once a round (G4)
 *
 * What a copyset held when all its whole copies died is excused from then on; nothing else is. */
#ifndef KEEL_TESTS_SIM_DATA_MODEL_H
#define KEEL_TESTS_SIM_DATA_MODEL_H

#include "tests/sim/data/history.h"
#include "tests/sim/data/world.h"

/* VAST: bytes of a part for which a node may have no memory; in such a run no other copy is as large as VAST_COPY, and
 * each of such parts is, whose slots have three ranks at most. */
enum { VAST = 3 * 1024 * 1024, VAST_COPY = VAST / 3 };
enum { SEGMENTS_MAX = 10, STAGES_MAX = 24, TASK_STEPS = 3, WORDS_PER_RANK = 3 };

enum pending_state { PENDING_RUNS, PENDING_DOUBT };

struct pending {
    struct pending *next;
    struct region *region;
    size_t offset, len; /* in the region */
    enum pending_state state;
    int rank;
    uint32_t incarnation;
    bool known; /* in doubt: a view says that its writer is dead */
    bool plain; /* a store that only the copy of its writer's node has, until a flush */
    bool told;  /* and was made within an update: until that has ended */
    /* all copies but one died while it was written in chunks: that one is whole when the writer has repeated
     * it; or there is one copy only */
    bool may_tear;
    uint8_t *hidden; /* [len], or NULL: bytes that a later completed put covered */
    uint8_t bytes[];
};

/* A copy is as it may be as long as nothing was written and nothing has changed. */
struct looked {
    int64_t memory; /* its handle */
    uint64_t all;   /* a check in which all blocks were well, 0: none is known */
    uint64_t *well; /* [blocks]: the last check in which every word was as it may be, 0: none was */
};

struct region {
    struct region *next;
    int number;
    int segment, rank; /* rank whose part it is in */
    size_t offset, len;
    int writer;       /* -1: who has the mutex */
    uint64_t changes; /* puts begun or ended */
    struct pending *pending;
    bool stored; /* plainly, by the rank whose part it is in */
    uint8_t *base;
    /* [blocks + 1]: the number of the check that came next when a put there began or ended, and the last of
     * these numbers */
    uint64_t *changed;
    struct looked looked[NODES_MAX];
};
enum { LOOK_BLOCK = 16 * 1024 };
static inline size_t look_blocks(size_t len)
{
    return (len + LOOK_BLOCK - 1) / LOOK_BLOCK;
}

/* What a sum is for: everybody's accumulates, everybody's signals, or the signals of the rank before its own. */
enum bell { BELL_NONE, BELL_OF_ALL, BELL_OF_ONE };

struct adding {
    struct adding *next;
    struct sum *sum;
    size_t first, n;
    double value;
    int rank;
    uint32_t incarnation;
    bool doubt, by_timeout;
};

struct sum {
    struct sum *next;
    int segment, rank;
    keel_type type;
    enum bell bell;
    size_t offset, n;
    double *done;      /* [n] of each element, which is a whole number; the real part of a complex one */
    uint8_t *expected; /* the same as it is in memory */
    uint64_t *changed; /* as a region's: when something became complete there */
    struct looked looked[NODES_MAX];
    struct adding *adding;
};

struct word {
    struct word *next;
    bool half; /* 32 bits of it */
    int segment, rank;
    size_t offset;
    struct history history;
};

struct pool {
    int segment;   /* where its results are */
    size_t offset; /* in each rank's part */
    int64_t tasks;
    uint64_t begun;    /* the highest round (from 1) that anybody is in */
    uint64_t complete; /* and that is over */
};

/* A segment of the program: the same for all ranks. */
struct planned {
    size_t bytes;
    keel_redundancy redundancy;
    int alloc_at, free_at; /* stages; free_at -1: never */
    keel_type sum_type;
    size_t own, wide, sum_n; /* sum_n: words */
    size_t *part;            /* [ranks] of different sizes, bytes and more each, 0: no part; NULL: bytes */
    bool of_group;           /* of those first processes that lived when it was made; others have no part */
    bool is_pool;
    bool tracked;         /* ranks store plainly into their parts */
    int mutexes;          /* per rank: it is a keel_mutexes */
    struct pool pool;     /* is_pool: results are in the segment before it */
    int64_t index;        /* the runtime's number, -1: not yet allocated */
    bool begun;           /* somebody has begun to allocate it */
    bool lost[NODES_MAX]; /* [slots]: all whole copies died */
    bool freed;           /* somebody has begun to free it */
    bool made, refused;   /* what first processes were told of its allocation */
    bool vast;            /* nobody uses it, and a node may have no memory for it */
};

enum stage_kind { STAGE_BARRIER, STAGE_BCAST, STAGE_SUM, STAGE_RESET, STAGE_FLUSH, STAGE_KEEP, STAGE_BACK };
struct stage {
    enum stage_kind kind;
    int pool;   /* of the plan */
    bool chain; /* each rank signals to the next one, and waits for the one before */
    int gate;   /* 1 + number of the quiet moment that all wait for behind it, 0: none */
};

struct model {
    struct view view; /* of the highest epoch that anybody has committed */
    bool view_made;
    struct slides *slides; /* NULL: the nodes stand on no grid */
    struct planned planned[SEGMENTS_MAX];
    int segments;
    struct stage stage[STAGES_MAX];
    int stages;
    struct region *regions;
    struct sum *sums;
    struct word *words;
    struct lock *locks;
    bool *lost;           /* [copysets]: what was allocated then, and nothing else */
    uint64_t *losing;     /* [copysets]: 0, or the epoch of the view in which it starts again, until that is settled */
    bool dead[NODES_MAX]; /* for the data: killed, or declared dead */
    bool tainted[NODES_MAX]; /* may rightly be declared dead */
    uint64_t checks;
    bool whole; /* this one takes nothing from those before */
    int gates;
    uint64_t commits;
    struct met {     /* what a rank was told of a barrier */
        uint64_t in; /* 1 + the view that it was completed in, 0: not known */
        int rank;
        uint32_t incarnation;
    } met[STAGES_MAX + 1]; /* by collective */
};

bool model_init(struct world *w);
void model_fini(struct world *w);

/* What agents do. */
void model_commit(struct world *w, struct node *n, const struct command *c);
void model_settled(struct world *w, struct node *n, uint64_t epoch);
void model_allocates(struct world *w, int segment);
void model_event(struct world *w, struct node *n, const char *name);
void model_agent_ends(struct world *w, struct node *n, const char *why);
void model_over(struct world *w, struct node *n);
/* What befalls them. */
void model_node_dies(struct world *w, struct node *n);
void model_rank_ends(struct world *w, struct runner *r, bool killed);

/* What ranks do. */
struct pending *model_put(struct world *w, struct runner *r, struct region *region, size_t offset, const void *src,
                          size_t len);
void model_put_done(struct world *w, struct pending *p, keel_status status);
/* What is there is what stays, in all copies: over it lies nothing that is in doubt, and no plain store that began
 * before and is not flushed yet. */
void model_decided(struct region *g, size_t offset, size_t len);
/* A plain store into the rank's own part begins; a flush of its stores into the segment has ended well. */
void model_store(struct world *w, struct runner *r, struct region *region, size_t offset, const void *src, size_t len);
void model_flushed(struct world *w, struct runner *r, int segment);
/* Within an update of the rank's; and the update of these bytes of the region has ended well. */
void model_told(struct world *w, struct runner *r, struct region *region, size_t offset, const void *src, size_t len);
void model_updated(const struct runner *r, struct region *region, size_t offset, size_t len);
/* A plain store that perhaps one copy only has lies over these bytes of the region. */
bool model_is_plain(const struct region *g, size_t offset, size_t len);
struct adding *model_add(struct world *w, struct runner *r, struct sum *s, size_t first, size_t n, double value);
void model_add_done(struct world *w, struct adding *a, keel_status status);
/* What may be in these bytes of the region is not what it was. */
void model_changed(struct world *w, struct region *g, size_t offset, size_t len);
/* Is the status one that a call to that part may have? */
void model_status(struct world *w, struct runner *r, int segment, int rank, keel_status status, const char *call);
bool model_is_zombie(const struct world *w, int rank, uint32_t incarnation);
bool model_is_lost(const struct world *w, int segment, int rank);
/* Are the bytes that a get of part of the region gave possible? before: what was complete there, and changes, when
 * it began. */
void model_got(struct world *w, struct runner *r, struct region *region, size_t offset, const void *got, size_t len,
               const uint8_t *base_before, uint64_t changes_before);

/* The rank has begun its next collective of all live ranks; the last one is over, in: 1 + the view in which, 0: not
 * known. */
void model_enters(struct runner *r);
void model_met(struct world *w, struct runner *r, uint64_t in);

/* So much of an element is complete. */
void sum_done(struct world *w, struct sum *s, size_t i, double value);
/* A number as an element of the type. */
void sum_write(keel_type type, uint8_t *at, double value);
/* An element of a sum as a number. */
double sum_element(const struct sum *s, const uint8_t *part, size_t i);
/* A strong get of them gave this: what it has seen stays. */
void model_got_strong(struct world *w, struct runner *r, struct region *g, size_t offset, const void *got, size_t len,
                      const uint8_t *base_before);

/* What a task adds in one of its steps, each round. */
double task_value(int64_t task, int step);

/* An agent says that redundancy is restored. */
void model_check_restored(struct world *w, const struct node *n);
/* Everything that may be looked at now; of large regions what may differ from what was there at the last look. */
void model_check(struct world *w, const char *when);
/* All of everything. */
void model_check_whole(struct world *w, const char *when);
/* Nothing is going on: all copies are equal, byte for byte, and what was in doubt is decided. False: not yet quiet. */
bool model_is_quiet(const struct world *w, const char **why);
void model_check_quiet(struct world *w);
void model_check_end(struct world *w);
#endif
