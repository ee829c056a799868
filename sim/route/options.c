#include "sim/route/options.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void parse_sizes(struct sim_config *c, const char *text)
{
    c->nsizes = 0;
    for (const char *p = text;;) {
        char item[16];
        size_t n = strcspn(p, ",");
        if (n >= sizeof item || c->nsizes == SIM_MAX_SIZES)
            cli_die("--sizes must be 1 to %d sizes of 8 to 65535 bytes, not '%.60s'", SIM_MAX_SIZES, text);
        memcpy(item, p, n);
        item[n] = '\0';
        c->size[c->nsizes++] = (uint32_t)cli_whole(item, "a packet size", 8, 65535);
        if (!p[n])
            return;
        p += n + 1;
    }
}

struct parse {
    struct options *o;
    const char *topology;
    double rate, warmup_ms, drain_ms;
    int method;
    int64_t threshold, max_paths;
    bool needs_name;
};

static uint64_t ms(const char *text, const char *what)
{
    return (uint64_t)(cli_number(text, what, 0, 1e9) * 1e6);
}

static bool parse_failures(struct options *o, int key, char *arg)
{
    switch (key) {
    case KEY_FAILURES:
        o->failures = (int32_t)cli_whole(arg, "--failures", 0, INT32_MAX);
        o->has_failures = true;
        return true;
    case KEY_PERMANENT:
        o->permanent = true;
        return true;
    case KEY_ALLOW_CUT:
        o->allow_cut = true;
        return true;
    case KEY_ONSET:
        o->onset = cli_number(arg, "--onset", 0, 1);
        return true;
    case KEY_LASTING:
        o->lasting = cli_number(arg, "--lasting", 0, 1e9);
        o->has_lasting = true;
        return true;
    case KEY_LENGTH:
        o->length_ns = (uint64_t)(cli_number(arg, "--length", 0.001, 1e12) * 1e3);
        return true;
    case KEY_FILE:
        o->failure_file = arg;
        return true;
    case KEY_TRACE:
        o->trace_file = arg;
        return true;
    case KEY_SYSTEM:
        o->trace.system = (int)cli_whole(arg, "--system", 1, 1000000);
        return true;
    case KEY_ALL:
        o->trace.all = true;
        return true;
    case KEY_SKIP_BAD:
        o->trace.skip_bad = true;
        return true;
    case KEY_PROFILE:
        if (!trace_profile_find(arg))
            cli_die("there is no profile '%.60s' (lanl12, lanl18, lanl19, lanl12-all, lanl18-all, lanl19-all, pnnl)",
                    arg);
        o->profile = arg;
        return true;
    case KEY_GENERATE:
        o->generate = true;
        return true;
    }
    return false;
}

static bool parse_network(struct parse *p, int key, char *arg)
{
    struct sim_config *c = &p->o->config;
    switch (key) {
    case KEY_TOPOLOGY:
        p->topology = arg;
        return true;
    case KEY_LINK:
        c->link_gbps = cli_number(arg, "--link-gbps", 1e-6, 1e6);
        return true;
    case KEY_HOP:
        c->hop_ns = (uint32_t)cli_whole(arg, "--hop-ns", 1, 1000000);
        return true;
    case KEY_BUFFER:
        c->buffer_bytes = (uint32_t)cli_whole(arg, "--buffer", 1, UINT32_MAX);
        return true;
    case KEY_SAF:
        c->store_forward = true;
        return true;
    case KEY_NO_AVOIDANCE:
        c->avoidance = false;
        return true;
    }
    return false;
}

static bool parse_traffic(struct parse *p, int key, char *arg)
{
    struct options *o = p->o;
    struct sim_config *c = &o->config;
    switch (key) {
    case KEY_PATTERN: {
        int v = sim_pattern_parse(arg);
        if (v < 0)
            cli_die("there is no pattern '%.60s' (uniform, transpose, complement, hotspot, neighbor)", arg);
        c->pattern = (enum sim_pattern)v;
        return true;
    }
    case KEY_LOAD:
        o->load = cli_number(arg, "--load", 1e-6, 1000);
        o->has_load = true;
        return true;
    case KEY_RATE:
        p->rate = cli_number(arg, "--rate", 1e-9, 1e6);
        return true;
    case KEY_SIZES:
        parse_sizes(c, arg);
        return true;
    case KEY_ACK:
        c->ack_bytes = (uint32_t)cli_whole(arg, "--ack", 0, 65535);
        return true;
    case KEY_POISSON:
        c->poisson = true;
        return true;
    }
    return false;
}

static bool parse_method(struct parse *p, int key, char *arg)
{
    struct options *o = p->o;
    switch (key) {
    case KEY_METHOD:
        p->method = sim_method_parse(arg);
        if (p->method < 0)
            cli_die("there is no method '%.60s' (dor, single, ft, ft-perm, ft-plus, ft-plan)", arg);
        return true;
    case KEY_THRESHOLD:
        p->threshold = cli_whole(arg, "--threshold", 1, 1000000);
        return true;
    case KEY_SWEEPS:
        o->best.sweeps = (int)cli_whole(arg, "--sweeps", 1, 1000);
        return true;
    case KEY_ALL_MOVE:
        o->best.all_move = true;
        return true;
    case KEY_LONGER:
        o->best.longer = true;
        return true;
    case KEY_MAX_PATHS:
        p->max_paths = cli_whole(arg, "--max-paths", 1, DETOUR_MAX_PATHS);
        return true;
    }
    return false;
}

static bool parse_run(struct parse *p, int key, char *arg)
{
    struct options *o = p->o;
    switch (key) {
    case KEY_TIME:
        o->config.time_ns = ms(arg, "--time");
        o->has_time = true;
        return true;
    case KEY_WARMUP:
        p->warmup_ms = (double)ms(arg, "--warmup");
        return true;
    case KEY_DRAIN:
        p->drain_ms = (double)ms(arg, "--drain");
        return true;
    case KEY_REPS:
        o->reps = (int)cli_whole(arg, "--reps", 1, 100000);
        o->has_reps = true;
        return true;
    case KEY_THREADS:
        o->threads = (int)cli_whole(arg, "--threads", 1, 1024);
        return true;
    case KEY_SEED:
        o->seed = (uint64_t)cli_whole(arg, "--seed", 0, INT64_MAX);
        o->has_seed = true;
        return true;
    case KEY_CHECK:
        o->config.check_every = (uint32_t)cli_whole(arg, "--check", 1, INT32_MAX);
        return true;
    case KEY_JSON:
    case KEY_CSV:
        if (o->output != OUTPUT_TEXT && o->output != (key == KEY_JSON ? OUTPUT_JSON : OUTPUT_CSV))
            cli_die("give one of --json and --csv");
        o->output = key == KEY_JSON ? OUTPUT_JSON : OUTPUT_CSV;
        return true;
    case KEY_HEAT:
        o->heat = true;
        return true;
    case KEY_HEAT_IMAGE:
        o->heat_image = arg;
        return true;
    case KEY_OUT:
        o->out_dir = arg;
        return true;
    case KEY_PROGRESS:
        o->progress = true;
        return true;
    case KEY_NO_PROGRESS:
        o->progress = false;
        return true;
    }
    return false;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct parse *p = state->input;
    if (key == ARGP_KEY_ARG) {
        if (p->o->name || !p->needs_name)
            cli_die("there is an argument too many: '%.60s'", arg);
        p->o->name = arg;
        return 0;
    }
    if (parse_network(p, key, arg) || parse_traffic(p, key, arg) || parse_method(p, key, arg) ||
        parse_failures(p->o, key, arg) || parse_run(p, key, arg))
        return 0;
    return ARGP_ERR_UNKNOWN;
}

/* Before the runs, not after them: can the picture be made and written? */
static void check_picture(const struct options *o)
{
    size_t len = strlen(o->heat_image);
    const char *end = len > 4 ? o->heat_image + len - 4 : "";
    if (strcmp(end, ".png") != 0 && strcmp(end, ".svg") != 0)
        cli_die("--heat-image %.80s: the name of a picture ends in .png or .svg", o->heat_image);
    if (o->fabric.kind != FABRIC_GRID || o->fabric.grid.ndims != 2)
        cli_die("--heat-image: a heat picture needs a network of two dimensions");
    if (strchr(o->heat_image, '\''))
        cli_die("--heat-image %.80s: the name of a picture may not hold a quote", o->heat_image);
    bool is_new = access(o->heat_image, F_OK) != 0;
    FILE *out = fopen(o->heat_image, "ab");
    if (!out)
        cli_die("--heat-image %.80s: %s", o->heat_image, strerror(errno));
    fclose(out);
    if (is_new)
        unlink(o->heat_image);
}

/* What says how failures are must find failures of that kind. */
static void check_failures(const struct options *o)
{
    bool logged = o->trace_file || o->profile, ends = o->has_failures && !o->permanent;
    if (o->has_failures + (o->failure_file != NULL) + (o->trace_file != NULL) + (o->profile != NULL) > 1)
        cli_die("give one of --failures, --failure-file, --trace and --profile");
    if (!o->has_failures && (o->permanent || o->allow_cut || o->onset >= 0 || o->length_ns))
        cli_die("--permanent, --allow-cut, --onset and --length are for --failures");
    if (o->length_ns && o->permanent)
        cli_die("--length is for --failures that are not --permanent");
    if (o->has_lasting && !logged && (!ends || o->length_ns))
        cli_die("--lasting is for --trace, --profile, and --failures without --permanent or --length");
}

static void apply(struct options *o, const struct parse *p)
{
    const char *wrong = fabric_parse(&o->fabric, p->topology);
    if (wrong)
        cli_die("--topology %.60s: %s", p->topology, wrong);
    if (o->fabric.kind == FABRIC_GRID && o->fabric.grid.ndims > 3)
        cli_die("--topology %.60s: the simulator takes 1 to 3 dimensions", p->topology);
    struct sim_config *c = &o->config;
    c->fabric = &o->fabric;
    sim_method_apply(c, (enum sim_method)p->method);
    if (p->threshold && p->method != SIM_FT && p->method != SIM_SINGLE)
        cli_die("--threshold is for --method ft and single: the others have none, or one of their own");
    if (p->max_paths && p->method == SIM_DOR)
        cli_die("--max-paths: --method dor has one path");
    if (p->threshold)
        c->detour.threshold = (uint32_t)p->threshold;
    if (p->max_paths)
        c->detour.max_paths = (int)p->max_paths;
    c->rate_gbps = p->rate > 0 ? p->rate : o->load * fabric_bisection_bound(&o->fabric) * c->link_gbps;
    c->warmup_ns = p->warmup_ms >= 0 ? (uint64_t)p->warmup_ms : c->time_ns / 10;
    c->drain_ns = p->drain_ms >= 0 ? (uint64_t)p->drain_ms : c->time_ns;
    wrong = sim_config_wrong(c);
    if (wrong)
        cli_die("%s", wrong);
    if (o->has_load && p->rate > 0)
        cli_die("give one of --load and --rate");
    check_failures(o);
    if (o->onset < 0)
        o->onset = o->length_ns ? 1 : 0;
    if (!p->needs_name && !o->trace_file && (o->trace.system || o->trace.all || o->trace.skip_bad))
        cli_die("--system, --all-failures and --skip-bad are for --trace");
    if (o->heat && o->output != OUTPUT_TEXT)
        cli_die("--heat is for the terminal: neither --json nor --csv goes with it (--heat-image does)");
    if (o->heat_image)
        check_picture(o);
}

enum { OPTIONS = sizeof option_list / sizeof *option_list };

/* The options of one command, ended by an empty one; a group without any is left out. */
static void options_of(unsigned commands, struct argp_option list[OPTIONS + 1])
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

void options_parse(struct options *o, const struct command *c, int argc, char **argv)
{
    *o = (struct options){.onset = -1,
                          .lasting = 1,
                          .reps = 30,
                          .threads = cli_threads(),
                          .seed = 1,
                          .progress = isatty(STDERR_FILENO),
                          .out_dir = "figures",
                          .best = {.sweeps = 3},
                          .load = 0.05};
    struct fabric none = {0};
    struct argp_option list[OPTIONS + 1];
    options_of(c->bit, list);
    o->config = sim_config_default(&none);
    o->config.time_ns = 100000000;
    struct parse p = {
        .o = o, .topology = "32tx32t", .warmup_ms = -1, .drain_ms = -1, .method = SIM_FT, .needs_name = c->needs_name};
    const struct argp argp = {.options = list, .parser = parse_option};
    error_t error = argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &p);
    if (error)
        cli_die("an option is unknown to %s or lacks its value (keel-route %s --help lists them)", c->name, c->name);
    apply(o, &p);
}

void options_fini(struct options *o)
{
    fabric_fini(&o->fabric);
}

void options_help(const struct command *c)
{
    struct argp_option list[OPTIONS + 1];
    options_of(c->bit, list);
    char name[40], doc[1024];
    snprintf(name, sizeof name, "keel-route %s", c->name);
    snprintf(doc, sizeof doc, "%s\vkeel-route(1) says more.", c->doc);
    const struct argp argp = {.options = list, .args_doc = c->args, .doc = doc};
    argp_help(&argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
}
