/* The options of keel-route, and what --help says of them. */
#include <stdio.h>

#include "sim/route/options_int.h"

/* Every option, and the commands that take it: one that has no effect on a command is refused there. */
static const struct {
    unsigned commands;
    struct argp_option option;
} option_list[] = {
    {ALL, {0, 0, 0, 0, "Network:", 1}},
    {SIMULATE | OPTIMISE,
     {"topology", KEY_TOPOLOGY, "NET", 0,
      "32tx32t (torus), 8x8 (mesh), 1 to 3 dimensions, or tree:K,N; default 32tx32t", 1}},
    {SIMULATE | OPTIMISE, {"link-gbps", KEY_LINK, "G", 0, "link rate (1)", 1}},
    {SIMULATE | OPTIMISE, {"hop-ns", KEY_HOP, "N", 0, "router and wire, per hop (220)", 1}},
    {SIMULATE | OPTIMISE,
     {"buffer", KEY_BUFFER, "BYTES", 0, "memory of a router, half input, half output (2097152)", 1}},
    {SIMULATE | OPTIMISE,
     {"store-forward", KEY_SAF, 0, 0, "packets move on when their tail has arrived, not their head", 1}},
    {SIMULATE | OPTIMISE, {"no-avoidance", KEY_NO_AVOIDANCE, 0, 0, "without the deadlock avoidance queue", 1}},
    {ALL, {0, 0, 0, 0, "Traffic:", 2}},
    {SIMULATE | OPTIMISE,
     {"pattern", KEY_PATTERN, "NAME", 0, "uniform, transpose, complement, hotspot or neighbor", 2}},
    {SIMULATE | OPTIMISE | FIGURE,
     {"load", KEY_LOAD, "SHARE", 0, "of the bisection bound of uniform traffic (0.05)", 2}},
    {SIMULATE | OPTIMISE, {"rate", KEY_RATE, "G", 0, "instead of --load: Gbps per endpoint", 2}},
    {SIMULATE | OPTIMISE,
     {"sizes", KEY_SIZES, "LIST", 0, "packet sizes in bytes, equally likely (256,512,1024,2048)", 2}},
    {SIMULATE | OPTIMISE, {"ack", KEY_ACK, "BYTES", 0, "size of an acknowledgement (32; 0: none)", 2}},
    {SIMULATE | OPTIMISE,
     {"poisson", KEY_POISSON, 0, 0, "exponential times between messages instead of constant ones", 2}},
    {ALL, {0, 0, 0, 0, "Method:", 3}},
    {SIMULATE, {"method", KEY_METHOD, "NAME", 0, "dor, single, ft (the paper's), ft-perm, ft-plus or ft-plan", 3}},
    {SIMULATE, {"threshold", KEY_THRESHOLD, "N", 0, "notifications that make a fault permanent (3)", 3}},
    {SIMULATE, {"max-paths", KEY_MAX_PATHS, "N", 0, "paths per destination at most, 1 to 8 (4)", 3}},
    {OPTIMISE, {"sweeps", KEY_SWEEPS, "N", 0, "times that every route is looked for again (3)", 3}},
    {OPTIMISE, {"all-move", KEY_ALL_MOVE, 0, 0, "whole static routes may be left, too", 3}},
    {OPTIMISE, {"longer", KEY_LONGER, 0, 0, "ways longer than the shortest may be taken, too", 3}},
    {ALL, {0, 0, 0, 0, "Failures:", 4}},
    {SIMULATE | OPTIMISE, {"failures", KEY_FAILURES, "N", 0, "break N random cables", 4}},
    {SIMULATE, {"permanent", KEY_PERMANENT, 0, 0, "they stay broken; otherwise each is repaired", 4}},
    {SIMULATE,
     {"onset", KEY_ONSET, "SHARE", 0,
      "they break within this first share of the time (0: all at its begin; with --length 1)", 4}},
    {SIMULATE,
     {"lasting", KEY_LASTING, "SHARE", 0,
      "non-permanent: longest, as a share of the time (1); with --trace or --profile: factor on the lengths (1)", 4}},
    {SIMULATE, {"length", KEY_LENGTH, "US", 0, "each lasts exactly this long; a cable may break several times", 4}},
    {SIMULATE | OPTIMISE, {"allow-cut", KEY_ALLOW_CUT, 0, 0, "random failures may cut the network in two", 4}},
    {SIMULATE | OPTIMISE,
     {"failure-file", KEY_FILE, "FILE", 0, "lines start_us,end_us,router,port; empty end: permanent", 4}},
    {SIMULATE | FIGURE,
     {"trace", KEY_TRACE, "FILE", 0, "Los Alamos or PNNL failure log, or an extract of one; .xz is unpacked", 4}},
    {SIMULATE | TRACE, {"system", KEY_SYSTEM, "N", 0, "Los Alamos log: this system only", 4}},
    {SIMULATE | TRACE, {"all-failures", KEY_ALL, 0, 0, "whole logs: not only failures of the network", 4}},
    {SIMULATE | TRACE, {"skip-bad", KEY_SKIP_BAD, 0, 0, "leave out malformed rows and count them", 4}},
    {SIMULATE | TRACE,
     {"profile", KEY_PROFILE, "NAME", 0,
      "generated with the statistics of lanl12, lanl18, lanl19, pnnl, lanl12-all, ...", 4}},
    {ALL, {0, 0, 0, 0, "Run:", 5}},
    {SIMULATE | OPTIMISE | FIGURE,
     {"time", KEY_TIME, "MS", 0, "simulated milliseconds in which messages are made (100)", 5}},
    {SIMULATE | OPTIMISE,
     {"warmup", KEY_WARMUP, "MS", 0, "messages made before are not measured (a tenth of the time)", 5}},
    {SIMULATE | OPTIMISE, {"drain", KEY_DRAIN, "MS", 0, "time for messages under way at the end (as the time)", 5}},
    {SIMULATE | OPTIMISE | FIGURE, {"reps", KEY_REPS, "N", 0, "repetitions with different seeds (30)", 5}},
    {SIMULATE | OPTIMISE | FIGURE,
     {"threads", KEY_THREADS, "N", 0, "runs at a time (one per processor); changes no result", 5}},
    {SIMULATE | OPTIMISE | FIGURE | TRACE, {"seed", KEY_SEED, "N", 0, "of everything random (1)", 5}},
    {SIMULATE | OPTIMISE | FIGURE, {"check", KEY_CHECK, "N", 0, "check every invariant every N events", 5}},
    {ALL, {0, 0, 0, 0, "Output:", 6}},
    {SIMULATE | OPTIMISE | TRACE, {"json", KEY_JSON, 0, 0, "results as JSON", 6}},
    {SIMULATE | OPTIMISE | TRACE, {"csv", KEY_CSV, 0, 0, "results as CSV, one line per repetition", 6}},
    {SIMULATE | OPTIMISE, {"heat", KEY_HEAT, 0, 0, "map of link load with broken links, on the terminal", 6}},
    {SIMULATE | OPTIMISE, {"heat-image", KEY_HEAT_IMAGE, "FILE", 0, "the same as a picture, .png or .svg", 6}},
    {FIGURE, {"out", KEY_OUT, "DIR", 0, "folder for figures (figures)", 6}},
    {TRACE, {"generate", KEY_GENERATE, 0, 0, "trace: write a generated log of --profile", 6}},
    {SIMULATE | OPTIMISE | FIGURE,
     {"progress", KEY_PROGRESS, 0, 0, "progress bar also where standard error is no terminal", 6}},
    {SIMULATE | OPTIMISE | FIGURE, {"no-progress", KEY_NO_PROGRESS, 0, 0, "no progress bar", 6}},
};

enum { OPTIONS = sizeof option_list / sizeof *option_list };
_Static_assert((int)OPTIONS < (int)OPTIONS_MAX, "and the end");

void options_list(unsigned commands, struct argp_option list[OPTIONS_MAX])
{
    int n = 0;
    for (int i = 0; i < OPTIONS; i++) {
        bool group = option_list[i].option.name == NULL;
        if (n && group && list[n - 1].name == NULL)
            n--;
        if (option_list[i].commands & commands)
            list[n++] = option_list[i].option;
    }
    list[n] = (struct argp_option){0};
}

void options_help(const struct command *c)
{
    struct argp_option list[OPTIONS_MAX];
    options_list(c->bit, list);
    char name[40], doc[1024];
    snprintf(name, sizeof name, "keel-route %s", c->name);
    snprintf(doc, sizeof doc, "%s\vkeel-route(1) says more.", c->doc);
    const struct argp argp = {.options = list, .args_doc = c->args, .doc = doc};
    argp_help(&argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
}
