#include "sim/route/options_int.h"

#include <string.h>
#include <unistd.h>

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
    struct argp_option list[OPTIONS_MAX];
    options_list(c->bit, list);
    o->config = sim_config_default(&none);
    o->config.time_ns = 100000000;
    struct parse p = {
        .o = o, .topology = "32tx32t", .warmup_ms = -1, .drain_ms = -1, .method = SIM_FT, .needs_name = c->needs_name};
    const struct argp argp = {.options = list, .parser = parse_option};
    error_t error = argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &p);
    if (error)
        cli_die("an option is unknown to %s or lacks its value (keel-route %s --help lists them)", c->name, c->name);
    options_apply(o, &p);
}

void options_fini(struct options *o)
{
    fabric_fini(&o->fabric);
}
