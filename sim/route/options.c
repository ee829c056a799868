#include "sim/route/options.h"

#include <argp.h>
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
    KEY_FILE,
    KEY_TRACE,
    KEY_SYSTEM,
    KEY_ALL,
    KEY_SKIP_BAD,
    KEY_PROFILE,
    KEY_GENERATE,
    KEY_THRESHOLD,
    KEY_MAX_PATHS,
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

static const struct argp_option option_list[] = {
    {0, 0, 0, 0, "Network:", 1},
    {"topology", KEY_TOPOLOGY, "NET", 0, "32tx32t (torus), 8x8 (mesh), 1 to 3 dimensions, or tree:K,N; default 32tx32t",
     1},
    {"link-gbps", KEY_LINK, "G", 0, "link rate (1)", 1},
    {"hop-ns", KEY_HOP, "N", 0, "router and wire, per hop (220)", 1},
    {"buffer", KEY_BUFFER, "BYTES", 0, "memory of a router, half input, half output (2097152)", 1},
    {"store-forward", KEY_SAF, 0, 0, "packets move on when their tail has arrived, not their head", 1},
    {"no-avoidance", KEY_NO_AVOIDANCE, 0, 0, "without the deadlock avoidance queue", 1},
    {0, 0, 0, 0, "Traffic:", 2},
    {"pattern", KEY_PATTERN, "NAME", 0, "uniform, transpose, complement, hotspot or neighbor", 2},
    {"load", KEY_LOAD, "SHARE", 0, "of the bisection bound of uniform traffic (0.05)", 2},
    {"rate", KEY_RATE, "G", 0, "instead of --load: Gbps per endpoint", 2},
    {"sizes", KEY_SIZES, "LIST", 0, "packet sizes in bytes, equally likely (256,512,1024,2048)", 2},
    {"ack", KEY_ACK, "BYTES", 0, "size of an acknowledgement (32; 0: none)", 2},
    {"poisson", KEY_POISSON, 0, 0, "exponential times between messages instead of constant ones", 2},
    {0, 0, 0, 0, "Method:", 3},
    {"method", KEY_METHOD, "NAME", 0, "dor, single, ft (the paper's), ft-perm or ft-plus", 3},
    {"threshold", KEY_THRESHOLD, "N", 0, "notifications that make a fault permanent (3)", 3},
    {"max-paths", KEY_MAX_PATHS, "N", 0, "paths per destination at most, 1 to 8 (4)", 3},
    {0, 0, 0, 0, "Failures:", 4},
    {"failures", KEY_FAILURES, "N", 0, "break N random cables", 4},
    {"permanent", KEY_PERMANENT, 0, 0, "they stay broken; otherwise each is repaired", 4},
    {"onset", KEY_ONSET, "SHARE", 0, "they break within this first share of the time (1)", 4},
    {"lasting", KEY_LASTING, "SHARE", 0,
     "non-permanent: longest, as a share of the time (1); with --trace or --profile: factor on the lengths (1)", 4},
    {"allow-cut", KEY_ALLOW_CUT, 0, 0, "random failures may cut the network in two", 4},
    {"failure-file", KEY_FILE, "FILE", 0, "lines start_us,end_us,router,port; empty end: permanent", 4},
    {"trace", KEY_TRACE, "FILE", 0, "Los Alamos or PNNL failure log, or an extract of one; .xz is unpacked", 4},
    {"system", KEY_SYSTEM, "N", 0, "Los Alamos log: this system only", 4},
    {"all-failures", KEY_ALL, 0, 0, "whole logs: not only failures of the network", 4},
    {"skip-bad", KEY_SKIP_BAD, 0, 0, "leave out malformed rows and count them", 4},
    {"profile", KEY_PROFILE, "NAME", 0,
     "generated with the statistics of lanl12, lanl18, lanl19, pnnl, lanl12-all, ...", 4},
    {0, 0, 0, 0, "Run:", 5},
    {"time", KEY_TIME, "MS", 0, "simulated milliseconds in which messages are made (100)", 5},
    {"warmup", KEY_WARMUP, "MS", 0, "messages made before are not measured (a tenth of the time)", 5},
    {"drain", KEY_DRAIN, "MS", 0, "time for messages under way at the end (as the time)", 5},
    {"reps", KEY_REPS, "N", 0, "repetitions with different seeds (30)", 5},
    {"threads", KEY_THREADS, "N", 0, "runs at a time (one per processor); changes no result", 5},
    {"seed", KEY_SEED, "N", 0, "of everything random (1)", 5},
    {"check", KEY_CHECK, "N", 0, "check every invariant every N events", 5},
    {0, 0, 0, 0, "Output:", 6},
    {"json", KEY_JSON, 0, 0, "results as JSON", 6},
    {"csv", KEY_CSV, 0, 0, "results as CSV, one line per repetition", 6},
    {"heat", KEY_HEAT, 0, 0, "map of link load with broken links, on the terminal", 6},
    {"heat-image", KEY_HEAT_IMAGE, "FILE", 0, "the same as a picture, .png or .svg", 6},
    {"out", KEY_OUT, "DIR", 0, "folder for figures (figures)", 6},
    {"generate", KEY_GENERATE, 0, 0, "trace: write a generated log of --profile", 6},
    {"progress", KEY_PROGRESS, 0, 0, "progress bar also where standard error is no terminal", 6},
    {"no-progress", KEY_NO_PROGRESS, 0, 0, "no progress bar", 6},
    {0},
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
    struct options *o = p->o;
    struct sim_config *c = &o->config;
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
    case KEY_METHOD:
        p->method = sim_method_parse(arg);
        if (p->method < 0)
            cli_die("there is no method '%.60s' (dor, single, ft, ft-perm, ft-plus)", arg);
        return true;
    case KEY_THRESHOLD:
        p->threshold = cli_whole(arg, "--threshold", 1, 1000000);
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
        return true;
    case KEY_CHECK:
        o->config.check_every = (uint32_t)cli_whole(arg, "--check", 1, INT32_MAX);
        return true;
    case KEY_JSON:
        o->output = OUTPUT_JSON;
        return true;
    case KEY_CSV:
        o->output = OUTPUT_CSV;
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
    if (parse_network(p, key, arg) || parse_failures(p->o, key, arg) || parse_run(p, key, arg))
        return 0;
    return ARGP_ERR_UNKNOWN;
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
    if ((o->failures > 0) + (o->failure_file != NULL) + (o->trace_file != NULL) + (o->profile != NULL) > 1)
        cli_die("give one of --failures, --failure-file, --trace and --profile");
}

void options_parse(struct options *o, int argc, char **argv, bool needs_name)
{
    *o = (struct options){.onset = 1,
                          .lasting = 1,
                          .reps = 30,
                          .threads = cli_threads(),
                          .seed = 1,
                          .progress = isatty(STDERR_FILENO),
                          .out_dir = "figures",
                          .load = 0.05};
    struct fabric none = {0};
    o->config = sim_config_default(&none);
    o->config.time_ns = 100000000;
    struct parse p = {
        .o = o, .topology = "32tx32t", .warmup_ms = -1, .drain_ms = -1, .method = SIM_FT, .needs_name = needs_name};
    const struct argp argp = {.options = option_list, .parser = parse_option};
    char *usage_name = argv[0];
    error_t error = argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &p);
    (void)usage_name;
    if (error)
        cli_die("an option is unknown or lacks its value (keel-route --help lists them)");
    apply(o, &p);
}

void options_fini(struct options *o)
{
    fabric_fini(&o->fabric);
}

static const char version[] = "keel-route " KEEL_VERSION;

static void usage(FILE *out)
{
    const struct argp argp = {.options = option_list,
                              .args_doc = "simulate\nfigure NAME\ntrace [FILE]",
                              .doc =
                                  "Simulate routing around broken links.\v"
                                  "figure takes one of: uniform readings patterns traces turn load latency saturation "
                                  "connectivity deadlock tree, or all."};
    argp_help(&argp, out, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, (char *)"keel-route");
}

int main(int argc, char **argv)
{
    struct options o;
    cli_name("keel-route");
    if (argc < 2)
        cli_die("say what to do: simulate, figure NAME or trace FILE (keel-route --help)");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0) {
            usage(stdout);
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            puts(version);
            return 0;
        }
    }
    static const struct {
        const char *name;
        int (*run)(struct options *);
        bool needs_name;
    } command[] = {
        {"simulate", command_simulate, false}, {"figure", command_figure, true}, {"trace", command_trace, true}};
    for (size_t i = 0; i < sizeof command / sizeof *command; i++) {
        if (strcmp(argv[1], command[i].name) != 0)
            continue;
        options_parse(&o, argc - 1, argv + 1, command[i].needs_name);
        cli_catch_signals();
        int status = command[i].run(&o);
        options_fini(&o);
        return status;
    }
    cli_die("there is no command '%.60s' (simulate, figure, trace)", argv[1]);
}
