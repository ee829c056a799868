/* Between options.c, options_list.c and options_check.c. */
#ifndef KEEL_SIM_ROUTE_OPTIONS_INT_H
#define KEEL_SIM_ROUTE_OPTIONS_INT_H

#include <argp.h>

#include "sim/route/options.h"

enum key {
    KEY_TOPOLOGY = 't',
    KEY_PATTERN = 'p',
    KEY_METHOD = 'm',
    KEY_LOAD = 'l',
    KEY_FAILURES = 'f',
    KEY_REPS = 'r',
    KEY_SEED = 's',
    KEY_THREADS = 'j',
    KEY_OUT = 'o',
    KEY_RATE = 0x100,
    KEY_SIZES,
    KEY_BUFFER,
    KEY_LINK,
    KEY_HOP,
    KEY_ACK,
    KEY_TIME,
    KEY_WARMUP,
    KEY_DRAIN,
    KEY_PERMANENT,
    KEY_ALLOW_CUT,
    KEY_ONSET,
    KEY_LASTING,
    KEY_LENGTH,
    KEY_FILE,
    KEY_TRACE,
    KEY_SYSTEM,
    KEY_ALL,
    KEY_SKIP_BAD,
    KEY_PROFILE,
    KEY_GENERATE,
    KEY_THRESHOLD,
    KEY_MAX_PATHS,
    KEY_SWEEPS,
    KEY_ALL_MOVE,
    KEY_LONGER,
    KEY_NO_AVOIDANCE,
    KEY_SAF,
    KEY_POISSON,
    KEY_CHECK,
    KEY_JSON,
    KEY_CSV,
    KEY_HEAT,
    KEY_HEAT_IMAGE,
    KEY_PROGRESS,
    KEY_NO_PROGRESS,
};

/* What is given, until all of it is known. */
struct parse {
    struct options *o;
    const char *topology;
    double rate, warmup_ms, drain_ms;
    int method;
    int64_t threshold, max_paths;
    bool needs_name;
};

enum { OPTIONS_MAX = 64 };
/* options_list.c: the options of one command, ended by an empty one; a group without any is left out. */
void options_list(unsigned commands, struct argp_option list[OPTIONS_MAX]);
/* options_check.c: what was given makes sense together, and goes where it belongs; else one line, and exit code 2. */
void options_apply(struct options *o, const struct parse *p);
#endif
