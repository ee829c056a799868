/* The command line of keel-route, common to its commands. */
#ifndef KEEL_SIM_ROUTE_OPTIONS_H
#define KEEL_SIM_ROUTE_OPTIONS_H
#include "sim/cli/cli.h"
#include "sim/route/batch.h"

#define FIGURE_NAMES                                                                                                   \
    "uniform learning outages readings patterns traces turn load latency saturation connectivity deadlock tree"

enum output { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_CSV };

struct options {
    struct fabric fabric;
    struct sim_config config;
    enum output output;
    /* failures */
    int32_t failures;
    bool permanent, allow_cut;
    double onset, lasting;
    uint64_t length_ns;
    const char *failure_file, *trace_file, *profile;
    struct trace_options trace;
    /* repetitions */
    int reps, threads;
    uint64_t seed;
    bool progress;
    /* outputs */
    bool heat;
    const char *heat_image, *out_dir;
    const char *name; /* of the figure, or the trace file of `trace` */
    bool generate;
    struct flow_plan best; /* of optimise */
    bool optimise;         /* the routes are those, not a method's */
    /* what the user gave, so that figures keep their own values otherwise */
    bool has_time, has_load, has_reps, has_failures, has_lasting, has_seed;
    double load;
};

/* Commands, as bits. */
enum { SIMULATE = 1, OPTIMISE = 2, FIGURE = 4, TRACE = 8, ALL = 15 };

struct command {
    const char *name;
    unsigned bit;
    int (*run)(struct options *);
    bool needs_name;
    const char *args, *doc;
};
/* Parses everything; on a mistake prints one line and ends the program with code 2. */
void options_parse(struct options *o, const struct command *c, int argc, char **argv);
void options_fini(struct options *o);
void options_help(const struct command *c);

int command_simulate(struct options *o);
int command_optimise(struct options *o);
int command_figure(struct options *o);
int command_trace(struct options *o);
#endif
