/* Parts of a rank's program (program.c): its calls and what is outstanding, its operations, its segments. */
#ifndef KEEL_TESTS_SIM_DATA_PROGRAM_INT_H
#define KEEL_TESTS_SIM_DATA_PROGRAM_INT_H

#include "tests/sim/data/model.h"

/* An operation that was started and not waited for. */
struct outstanding {
    struct outstanding *next;
    keel_handle handle;
    bool implicit, strong;
    bool starting;           /* its call has not returned */
    uint64_t born;           /* number of the last fence that was called before it */
    int fences;              /* that cover it and have not returned */
    bool suspect;            /* its error may be what another thread's fence was told */
    struct pending *pending; /* a put; NULL: a get */
    struct region *region;
    size_t offset, len;
    uint64_t changes;
    uint8_t *base;
    uint8_t bytes[];
};

struct kept;

struct program {
    struct runner *r;
    struct world *w;
    struct program *next;    /* of the rank's threads, its own first */
    struct process *process; /* what runs it */
    int thread;              /* 0: the rank's own */
    int actions;             /* of another one */
    int tasks_of;            /* it draws tasks of that pool, for the round */
    uint64_t round;
    uint64_t call_at; /* it is in a call since then, 0: it is not */
    const char *call;
    keel_segment *seg[SEGMENTS_MAX];
    keel_taskpool *pool[SEGMENTS_MAX];
    struct twins *twins[SEGMENTS_MAX]; /* of segments that it stores into plainly */
    keel_mutexes *mutexes;
    int mutexes_at; /* of the plan */
    struct outstanding *out;
    int outstanding, outstanding_max;
    struct kept *kept_memory; /* NULL: it keeps nothing */
    struct lock *kept;        /* a mutex that any thread of the rank gives back */
    bool over;                /* the job is lost for this process */
    int first;                /* stage of this process */
};

/* program_out.c. Around each call: its time is limited, or not, and a status may be the end. */
void program_begin(struct program *p, const char *call);
void program_ended(struct program *p, keel_status status, bool limited);
/* Such an operation is over. */
void program_out_ended(struct program *p, struct outstanding *o, keel_status status);
void program_out_wait(struct program *p, struct outstanding *o);
/* Around a call that completes the implicit operations of all threads to the rank, -1: to any. */
struct fencing {
    uint64_t number;
    int rank;
};
struct fencing program_fence_begins(struct program *p, int rank);
void program_fence_ended(struct program *p, const struct fencing *f, keel_status status);
void program_fence(struct program *p, int rank);
void program_wait_all(struct program *p);

/* program_ops.c. One action, whatever the dice say. */
void program_action(struct program *p);
struct sched *program_random(const struct program *p);

/* program_signal.c. A signal, perhaps behind a put; or a wait for what has come already. */
void program_signal(struct program *p, int segment);
/* The rank behind this one hears that the stage (from 1) has come. */
void program_chain_tell(struct program *p, int stage);
/* Until the rank before this one has come to the stage, or is dead. */
void program_chain_wait(struct program *p, int stage);

/* program_ops.c, too: a put of its own into that rank's part of the segment that is complete at its return; false:
 * it is not. */
bool program_put_to(struct program *p, int segment, int rank);
/* Plain stores into its own part while others flush, or before and behind its own flush. */
void program_stores(struct program *p);
/* A mutex that a thread of the rank has left to the others; false: none. */
bool program_give_back(struct program *p);

/* program_store.c. From now on the rank may store plainly into its part; no more; a store of these bytes, or others, to
 * a region of its own in it; all copies get what was stored: false: this process has come to its end. */
void program_track(struct program *p, int segment);
void program_untrack(struct program *p, int segment);
void program_store(struct program *p, const struct region *g, size_t offset, uint8_t *bytes, size_t len);
bool program_flush(struct program *p);
/* A store within an update, which then has ended or not. */
void program_update(struct program *p, struct region *g, size_t offset, const uint8_t *bytes, size_t len);

/* program_thread.c. A stage's other threads: started, and when all have ended. */
void program_threads_start(struct program *p, int actions);
void program_threads_join(struct program *p);
/* Others that draw tasks as this one is to. */
void program_threads_draw(struct program *p);

/* program.c: until the round's tasks are done; false: this process has come to its end. */
bool program_tasks(struct program *p);

/* program.c, too: waits until nothing goes on anywhere, 0: not; the program has come to its end. */
void program_gate(struct program *p, int gate);
void program_leave(struct program *p);

/* program_segments.c. What is made and freed at the beginning of a stage; false: this process has come to its end. */
bool program_change_segments(struct program *p, int stage);
/* program_keep.c. Room for kept memory, and the version that it begins with; false: this process has come to its end.
 */
bool program_keeps(struct program *p);
keel_status program_commits(struct program *p, uint64_t version);
/* All together go back to the last version. */
keel_status program_rolls_back(struct program *p);
void program_reads_kept(struct program *p);
/* Something that only lost data excuse. */
bool program_data_lost(struct program *p, keel_status status, const char *call);
#endif
