/* Random sampling: sequences of failures, and the collisions after each failure of each sequence.
 *
 * A case is one map: the state after the f-th failure of a sequence, with the messages on every link counted. A run of
 * `cases` cases with sequences of `failures` failures has ceil(cases / failures) sequences. Sequence i depends on the
 * seed and i alone, and results are integer sums, so the outcome does not depend on the number of threads, on
 * interruptions or on resumption. */
#ifndef KEEL_SIM_PLACE_SAMPLE_H
#define KEEL_SIM_PLACE_SAMPLE_H
#include <stdatomic.h>

#include "sim/place/setup.h"

enum draw {
    DRAW_JOB,    /* any node that held a slot at launch and is alive: the same sequence for every method */
    DRAW_ANY,    /* any node that is alive, spares included: the same sequence for every method */
    DRAW_ACTIVE, /* any node that holds a slot at that moment: every failure needs a substitution */
};

enum { SAMPLE_LINK_LOADS = 256, SAMPLE_MAX_TODO = 4096 };

/* Sums over all cases with this many failures. */
struct sample_row {
    int64_t cases;
    int64_t collisions;            /* sum; the mean is collisions / cases */
    int64_t collisions_sq;         /* sum of squares */
    int64_t worst, best;           /* valid when cases > 0 */
    int64_t mean_load;             /* sum of load_mean in millionths */
    int64_t moves;                 /* slots moved by this failure */
    int64_t idle;                  /* the node held no slot */
    int64_t cannot;                /* sequences that ended here: no method could */
    int64_t step[PLACE_MAX_STEPS]; /* substitutions by each step of the method; behind them by 0D for a bound */
};

struct sample_config {
    struct setup setup;
    const int32_t *dead; /* nodes dead at launch */
    int32_t ndead;
    uint64_t seed;
    int64_t cases;
    int32_t failures; /* length of a sequence; 0: as many as there are spares */
    int threads;
    enum draw draw;
    bool links;        /* also the distribution of messages over links */
    const char *state; /* file that an interrupted run leaves and --resume reads; NULL for none */
    bool resume;
    bool keep_state;   /* also when the run is complete: resumed, it gives the same result at once */
    bool progress;     /* bar on stderr when that is a terminal */
    const char *label; /* in front of the bar */
};

struct sample_result {
    int32_t failures;
    struct sample_row *row;                   /* [failures + 1], row[0] is the launch */
    int64_t (*link_loads)[SAMPLE_LINK_LOADS]; /* [failures + 1] links with that many messages; the last also has more */
    int64_t sequences, done;                  /* asked for and finished */
    int64_t cases;                            /* in this run, without what was resumed */
    double seconds;
    bool interrupted;
    const char *unsaved; /* why the state could not be written in the end; NULL when it was */
};

/* Runs until done or until *stop is set (cli_stop).
 * returns   NULL, or what went wrong (constant text). The result is the caller's to sample_free. blocks. */
const char *sample_run(const struct sample_config *c, const atomic_bool *stop, struct sample_result *r);
void sample_free(struct sample_result *r);

/* Reads and writes r->row, r->done and the list of unfinished sequences below r->done; see sample_state.c. */
struct sample_pending {
    int64_t next;  /* first sequence nobody has taken */
    int64_t *todo; /* sequences below next that are not finished */
    int32_t ntodo;
};
const char *sample_state_save(const struct sample_config *c, const struct sample_result *r,
                              const struct sample_pending *p);
const char *sample_state_load(const struct sample_config *c, struct sample_result *r, struct sample_pending *p);
#endif
