/* Repetitions of several configurations, run by a pool of threads. Results do not depend on the number of threads: a
 * run is a pure function of its cell and the number of its repetition. Repetition r uses the same traffic and the same
 * failures in every cell, so differences between cells are differences of pairs. */
#ifndef KEEL_SIM_ROUTE_BATCH_H
#define KEEL_SIM_ROUTE_BATCH_H
#include "sim/route/sim.h"
#include "sim/route/trace.h"

struct batch_cell {
    struct sim_config config;     /* seed, outages, stop and permille are set by the batch */
    struct outage_random random;  /* count 0: no random failures */
    const struct trace *trace;    /* or NULL */
    double lasting;               /* of the trace */
    bool at_once;                 /* its failures are all out from the begin */
    const struct outages *fixed;  /* or NULL: the same failures in every repetition */
    const struct flow_plan *best; /* NULL; or search the best ways round the permanent failures and take those */
    int reference;                /* cell with which degradations compare, or -1 */
    double x;                     /* position in a figure */
    const char *series;           /* line in a figure; static storage */
};

struct batch {
    struct batch_cell *cell;
    int ncells;
    int reps, threads;
    uint64_t seed;
    bool show_progress;
    const atomic_bool *stop; /* set from outside to end early; finished runs are kept */
    /* results */
    struct sim_result *result; /* [cell * reps + rep] */
    bool *done;
    uint64_t events;
    double cpu_seconds, wall_seconds;
    int finished;
};

/* returns NULL, or a constant text: no memory, or what a run says is wrong. The caller ends with batch_fini. */
const char *batch_run(struct batch *b);
void batch_fini(struct batch *b);

/* The failures of one repetition of a cell. returns NULL or what is wrong. */
const char *batch_outages(const struct batch_cell *c, uint64_t seed, int rep, struct outages *o);

/* Mean and half-width of its 95 % confidence interval (Student's t) over the finished repetitions. */
struct batch_mean {
    double mean, half;
    int n;
};
/* One repetition of a cell by itself, with the load of each link (shares of time, fabric_links() of them). */
const char *batch_run_one(const struct batch_cell *c, uint64_t seed, int rep, const struct outages *o,
                          struct sim_result *r, float *link_busy);

/* Repetitions that are finished. */
int batch_runs(const struct batch *b, int cell);

/* returns NAN where the run has no such value: it does not count in means, then. */
typedef double batch_value(const struct sim_result *r);
struct batch_mean batch_mean(const struct batch *b, int cell, batch_value *value);
/* The same for 100 * (value / value in the reference cell - 1), pair by pair. */
struct batch_mean batch_degradation(const struct batch *b, int cell, batch_value *value);
/* And against any other cell. */
struct batch_mean batch_against(const struct batch *b, int cell, int reference, batch_value *value);

/* values */
double batch_measured(const struct sim_result *r, double value); /* NAN when no message was measured */
double batch_latency_us(const struct sim_result *r);
double batch_hops(const struct sim_result *r);
double batch_delivered(const struct sim_result *r); /* share of messages made, percent */
double batch_accepted(const struct sim_result *r);  /* Gbps per endpoint */
#endif
