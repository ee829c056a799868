/* Parts of a rank's program (program.c): its calls and what is outstanding, its operations, its segments. */
#ifndef KEEL_TESTS_SIM_DATA_PROGRAM_INT_H
#define KEEL_TESTS_SIM_DATA_PROGRAM_INT_H

#include "tests/sim/data/model.h"

/* An operation that was started and not waited for. */
struct outstanding {
    struct outstanding *next;
    keel_handle handle;
    bool implicit, strong;
    struct pending *pending; /* a put; NULL: a get */
    struct region *region;
    size_t offset, len;
    uint64_t changes;
    uint8_t *base;
    uint8_t bytes[];
};

struct program {
    struct runner *r;
    struct world *w;
    struct program *next;    /* of the rank's threads, its own first */
    struct process *process; /* what runs it */
    int thread;              /* 0: the rank's own */
    int actions;             /* of another one */
    uint64_t call_at;        /* it is in a call since then, 0: it is not */
    const char *call;
    keel_segment *seg[SEGMENTS_MAX];
    keel_taskpool *pool[SEGMENTS_MAX];
    keel_mutexes *mutexes;
    int mutexes_at; /* of the plan */
    struct outstanding *out;
    int outstanding, outstanding_max;
    bool over; /* the job is lost for this process */
};

/* program_out.c. Around each call: its time is limited, or not, and a status may be the end. */
void program_begin(struct program *p, const char *call);
void program_ended(struct program *p, keel_status status, bool limited);
/* Such an operation is over. */
void program_out_ended(struct program *p, struct outstanding *o, keel_status status);
void program_out_wait(struct program *p, struct outstanding *o);
/* All implicit ones to the rank (-1: to any) are over. */
void program_implicit_ended(struct program *p, int rank, keel_status status);
void program_fence(struct program *p, int rank);
void program_wait_all(struct program *p);

/* program_ops.c. One action, whatever the dice say. */
void program_action(struct program *p);
struct sched *program_random(const struct program *p);

/* program_thread.c. A stage's other threads: started, and when all have ended. */
void program_threads_start(struct program *p, int actions);
void program_threads_join(struct program *p);

/* program_segments.c. What is made and freed at the beginning of a stage; false: this process has come to its end. */
bool program_change_segments(struct program *p, int stage);
/* Something that only lost data excuse. */
bool program_data_lost(struct program *p, keel_status status, const char *call);
#endif
