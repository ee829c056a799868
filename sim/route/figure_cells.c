/* What each figure runs. Series that share a name are one line of the plot. */
#include "sim/route/figure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Add a cell of a series; failures 0 makes none. Returns it for further settings. */
static struct batch_cell *figure_cell(struct figure_plan *p, const struct options *o, enum sim_method method,
                                      const char *series, double x, int reference)
{
    if (p->n == FIGURE_MAX_CELLS)
        abort(); /* a figure has more cells than the plan has room for: our bug */
    struct batch_cell *c = &p->cell[p->n++];
    *c = (struct batch_cell){.config = o->config, .reference = reference, .x = x, .series = series, .lasting = 1};
    sim_method_apply(&c->config, method);
    return c;
}

/* Failures begin within the share `onset` of a run: "failures appear randomly during system operation" is the whole. */
static void set_random(struct batch_cell *c, int count, bool permanent, double onset)
{
    c->random = (struct outage_random){
        .count = count, .permanent = permanent, .onset = onset, .lasting = 1, .keep_connected = true};
}

struct series {
    const char *name;
    enum sim_method method;
    bool permanent;
};

/* The best routes known, as optimise finds them: with every pair of the network; in a small one also whole routes left;
 * with fixed partners longer ones, too. */
static const struct flow_plan best_cut = {.sweeps = 3, .seed = 1},
                              best_all = {.sweeps = 10, .all_move = true, .seed = 1},
                              best_map = {.sweeps = 16, .all_move = true, .longer = true, .seed = 1};

static void set_best(struct batch_cell *c, const struct flow_plan *best, int count, double onset)
{
    set_random(c, count, true, onset);
    c->best = best;
}

/* All failures out from the begin, and measured once the sources have had time to learn of them. */
static const char *cells_uniform(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const struct series series[] = {
        {"permanent: dor", SIM_DOR, true},         {"permanent: single", SIM_SINGLE, true},
        {"permanent: ft", SIM_FT, true},           {"permanent: ft-plus", SIM_FT_PLUS, true},
        {"permanent: ft-plan", SIM_FT_PLAN, true}, {"non-permanent: ft-perm", SIM_FT_PERM, false},
        {"non-permanent: ft", SIM_FT, false},      {"non-permanent: ft-plus", SIM_FT_PLUS, false}};
    figure_cell(p, o, SIM_FT, "no failures", 0, -1);
    for (size_t s = 0; s < sizeof series / sizeof *series; s++)
        for (int n = 100; n <= 200; n += 100)
            set_random(figure_cell(p, o, series[s].method, series[s].name, n, 0), n, series[s].permanent, 0);
    for (int n = 100; n <= 200; n += 100)
        set_best(figure_cell(p, o, SIM_FT, "permanent: best known", n, 0), &best_cut, n, 0);
    return NULL;
}

/* What the paper leaves open, one thing after the other: how long a run lasts, when failures begin, how packets move
 * and how much traffic there is. Runs five times as long are measured in their second half. */
static const char *cells_readings(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const struct {
        double onset, load, longer;
        bool store_forward;
    } reading[] = {{0, 1, 5, false}, {0, 1, 1, false},   {1, 1, 1, false},  {1, 1, 5, false},
                   {1, 1, 1, true},  {1, 0.4, 1, false}, {1, 0.2, 1, false}};
    static const struct series series[] = {{"permanent: ft", SIM_FT, true},
                                           {"permanent: ft-plus", SIM_FT_PLUS, true},
                                           {"permanent: ft-plan", SIM_FT_PLAN, true},
                                           {"non-permanent: ft", SIM_FT, false},
                                           {"non-permanent: ft-plus", SIM_FT_PLUS, false}};
    for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
        struct options at = *o;
        struct sim_config *c = &at.config;
        c->store_forward = reading[i].store_forward;
        c->rate_gbps *= reading[i].load;
        c->time_ns = (uint64_t)((double)c->time_ns * reading[i].longer);
        c->warmup_ns = c->time_ns / (reading[i].longer > 1 ? 2 : 10);
        int reference = p->n;
        figure_cell(p, &at, SIM_FT, "no failures", (double)i, -1);
        for (size_t s = 0; s < sizeof series / sizeof *series; s++)
            set_random(figure_cell(p, &at, series[s].method, series[s].name, (double)i, reference), 200,
                       series[s].permanent, reading[i].onset);
        set_best(figure_cell(p, &at, SIM_FT, "permanent: best known", (double)i, reference), &best_cut, 200,
                 reading[i].onset);
    }
    return NULL;
}

static const char *cells_patterns(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    enum { SERIES = 8, BEST = SERIES - 1, LASTING = 5 };
    static const char *const name[2][SERIES] = {
        {"complement permanent: dor", "complement permanent: single", "complement permanent: ft",
         "complement permanent: ft-plus", "complement permanent: ft-plan", "complement non-permanent: ft",
         "complement non-permanent: ft-plus", "complement permanent: best known"},
        {"transpose permanent: dor", "transpose permanent: single", "transpose permanent: ft",
         "transpose permanent: ft-plus", "transpose permanent: ft-plan", "transpose non-permanent: ft",
         "transpose non-permanent: ft-plus", "transpose permanent: best known"}};
    static const enum sim_method method[] = {SIM_DOR,     SIM_SINGLE, SIM_FT,      SIM_FT_PLUS,
                                             SIM_FT_PLAN, SIM_FT,     SIM_FT_PLUS, SIM_FT};
    static const char *const none[] = {"complement no failures", "transpose no failures"};
    for (int t = 0; t < 2; t++) {
        enum sim_pattern pattern = t ? SIM_TRANSPOSE : SIM_COMPLEMENT;
        int reference = p->n;
        figure_cell(p, o, SIM_FT, none[t], 0, -1)->config.pattern = pattern;
        for (int s = 0; s < SERIES; s++)
            for (int n = 100; n <= 200; n += 100) {
                struct batch_cell *c = figure_cell(p, o, method[s], name[t][s], n, reference);
                c->config.pattern = pattern;
                set_random(c, n, s < LASTING || s == BEST, 0);
                c->best = s == BEST ? &best_map : NULL;
            }
    }
    return NULL;
}

/* The logs themselves where they are, and logs generated with their statistics. */
static const char *cells_traces(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const char *const file[] = {"lanl12_interconnect.csv", "lanl18_interconnect.csv", "lanl19_interconnect.csv",
                                       "pnnl_qsnet.csv"};
    static const char *const profile[] = {"lanl12", "lanl18", "lanl19", "pnnl"};
    static const struct series series[] = {{"log: dor", SIM_DOR, 0},         {"log: single", SIM_SINGLE, 0},
                                           {"log: ft", SIM_FT, 0},           {"log: ft-plus", SIM_FT_PLUS, 0},
                                           {"log: ft-plan", SIM_FT_PLAN, 0}, {"log: best known", SIM_FT, 0}};
    const char *dir = o->trace_file ? o->trace_file : "../shared/traces";
    figure_cell(p, o, SIM_FT, "no failures", -1, -1);
    for (int t = 0; t < 4; t++) {
        char path[512], what[TRACE_WHAT];
        snprintf(path, sizeof path, "%s/%s", dir, file[t]);
        struct trace *log = &p->trace[p->ntraces++], *made = &p->trace[p->ntraces++];
        struct rng rng;
        rng_seed(&rng, o->seed + (uint64_t)t);
        if (!trace_generate(made, trace_profile_find(profile[t]), &rng))
            return "out of memory";
        struct batch_cell *c = figure_cell(p, o, SIM_FT, "generated: ft", t, 0);
        c->trace = made;
        if (access(path, R_OK) != 0) {
            fprintf(stderr, "keel-route: %s is not there: generated failures only\n", path);
            continue;
        }
        if (!trace_load(log, path, &o->trace, what))
            cli_die("%s", what);
        bool lasting = log->record[0].end_s < 0;
        for (int once = 0; once <= lasting; once++) /* for good: also all out from the begin */
            for (size_t s = 0; s < sizeof series / sizeof *series; s++) {
                c = figure_cell(p, o, series[s].method, series[s].name, t + once, 0);
                c->trace = log;
                c->at_once = once;
                c->best = s == sizeof series / sizeof *series - 1 ? &best_cut : NULL;
            }
        if (log->record[0].end_s >= 0) { /* the same failures, a thousand times as long */
            c = figure_cell(p, o, SIM_FT, "log 1000x as long: ft", t, 0);
            c->trace = log;
            c->lasting = 1000;
        }
    }
    return NULL;
}

/* The comparison with a turn model: 16x16, three failures, up to 90 % of the load the network can carry. Static routes
 * fill their busiest link at 1/2.25 of the link rate here (ties on the ring all go up); acknowledgements take 3 %. */
static const char *cells_turn(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const struct series series[] = {{"3 permanent: ft", SIM_FT, true},
                                           {"3 permanent: ft-perm", SIM_FT_PERM, true},
                                           {"3 permanent: ft-plus", SIM_FT_PLUS, true},
                                           {"3 permanent: ft-plan", SIM_FT_PLAN, true}};
    if (fabric_parse(&p->fabric, "16tx16t"))
        return "out of memory";
    for (int step = 5; step <= 9; step++) {
        struct options at = *o;
        at.config.fabric = &p->fabric;
        at.config.rate_gbps = step / 10.0 * at.config.link_gbps / 2.25 / 1.0333;
        int reference = p->n;
        figure_cell(p, &at, SIM_FT, "no failures", step * 10, -1);
        for (size_t s = 0; s < sizeof series / sizeof *series; s++)
            set_random(figure_cell(p, &at, series[s].method, series[s].name, step * 10, reference), 3, true, 0);
        set_best(figure_cell(p, &at, SIM_FT, "3 permanent: best known", step * 10, reference), &best_all, 3, 0);
    }
    return NULL;
}

static const char *cells_load(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const double load[] = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25};
    static const struct series series[] = {{"200 permanent: ft", SIM_FT, true},
                                           {"200 permanent: ft-perm", SIM_FT_PERM, true},
                                           {"200 permanent: ft-plus", SIM_FT_PLUS, true},
                                           {"200 permanent: ft-plan", SIM_FT_PLAN, true}};
    for (size_t i = 0; i < sizeof load / sizeof *load; i++) {
        struct options at = *o;
        at.config.rate_gbps = load[i] * fabric_bisection_bound(&o->fabric) * o->config.link_gbps;
        int reference = p->n;
        figure_cell(p, &at, SIM_FT, "no failures", load[i] * 100, -1);
        for (size_t s = 0; s < sizeof series / sizeof *series; s++)
            set_random(figure_cell(p, &at, series[s].method, series[s].name, load[i] * 100, reference), 200, true, 0);
        set_best(figure_cell(p, &at, SIM_FT, "200 permanent: best known", load[i] * 100, reference), &best_cut, 200, 0);
    }
    return NULL;
}

static const char *cells_saturation(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const struct {
        const char *name;
        enum sim_pattern pattern;
        int failures;
    } line[] = {{"uniform", SIM_UNIFORM, 0},
                {"transpose", SIM_TRANSPOSE, 0},
                {"complement", SIM_COMPLEMENT, 0},
                {"hot-spot", SIM_HOTSPOT, 0},
                {"nearest neighbour", SIM_NEIGHBOR, 0},
                {"uniform with 50 permanent", SIM_UNIFORM, 50}};
    for (size_t s = 0; s < sizeof line / sizeof *line; s++)
        for (int step = 1; step <= 7; step++) {
            struct options at = *o;
            at.config.rate_gbps = step * 0.2 * fabric_bisection_bound(&o->fabric) * o->config.link_gbps;
            at.config.pattern = line[s].pattern;
            at.config.drain_ns = 0;
            struct batch_cell *c = figure_cell(p, &at, SIM_FT, line[s].name, step * 20, -1);
            if (line[s].failures)
                set_random(c, line[s].failures, true, 0.1);
        }
    return NULL;
}

/* Buffers of two packets, failures, and rising load: what happens with and without the avoidance queue. */
static const char *cells_deadlock(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    if (fabric_parse(&p->fabric, "8tx8t"))
        return "out of memory";
    for (int with = 0; with < 2; with++)
        for (int step = 1; step <= 6; step++) {
            struct options at = *o;
            at.config.fabric = &p->fabric;
            at.config.rate_gbps = step * 0.2 * fabric_bisection_bound(&p->fabric) * o->config.link_gbps;
            at.config.buffer_bytes = 2 * 2048 * 2 * 5;
            at.config.avoidance = with;
            at.config.drain_ns = 50 * o->config.time_ns;
            struct batch_cell *c =
                figure_cell(p, &at, SIM_FT, with ? "with the avoidance queue" : "without", step * 20, -1);
            set_random(c, 12, true, 0.1);
        }
    return NULL;
}

static const char *cells_tree(const struct figure *f, struct options *o, struct figure_plan *p)
{
    (void)f;
    static const struct series series[] = {
        {"permanent: dor", SIM_DOR, true},    {"permanent: single", SIM_SINGLE, true},
        {"permanent: ft", SIM_FT, true},      {"permanent: ft-plus", SIM_FT_PLUS, true},
        {"non-permanent: ft", SIM_FT, false}, {"non-permanent: ft-plus", SIM_FT_PLUS, false}};
    if (fabric_parse(&p->fabric, "tree:8,3"))
        return "out of memory";
    struct options at = *o;
    at.config.fabric = &p->fabric;
    at.config.rate_gbps = (o->has_load ? o->load : f->load) * o->config.link_gbps;
    figure_cell(p, &at, SIM_FT, "no failures", 0, -1);
    for (size_t s = 0; s < sizeof series / sizeof *series; s++)
        for (int n = 25; n <= 100; n += 25)
            set_random(figure_cell(p, &at, series[s].method, series[s].name, n, 0), n, series[s].permanent, 0);
    for (int n = 25; n <= 100; n += 25)
        set_best(figure_cell(p, &at, SIM_FT, "permanent: best known", n, 0), &best_all, n, 0);
    return NULL;
}

#define DEGRADATION                                                                                                    \
    {                                                                                                                  \
        "degradation_pct", "latency above fault-free, %", NULL, NULL                                                   \
    }
#define DELIVERED                                                                                                      \
    {                                                                                                                  \
        "delivered_pct", "messages delivered, %", "set yrange [0:105]", NULL                                           \
    }

const struct figure figures[] = {
    {"uniform",
     "Uniform traffic, 32x32 torus, all failures out from the begin, second half of the run",
     "failed cables of 2,048",
     30,
     240,
     0.05,
     true,
     NULL,
     NULL,
     {DEGRADATION, DELIVERED},
     cells_uniform},
    {"readings",
     "200 failures, uniform traffic, 32x32 torus: what the paper leaves open",
     "reading",
     30,
     50,
     0.05,
     false,
     "('at the start' 0, 'fifth of the time' 1, 'through the run' 2, '5 times as long' 3, 'store and fwd' 4, "
     "'load 0.02' 5, 'load 0.01' 6) rotate by -25",
     "set xrange [-0.5:6.5]",
     {DEGRADATION, {"hops", "mean hops", NULL, NULL}},
     cells_readings},
    {"patterns",
     "Complement and transpose, 32x32 torus, all failures out from the begin, second half of the run",
     "failed cables of 2,048",
     30,
     320,
     0.05,
     true,
     NULL,
     NULL,
     {{"degradation_pct", "complement: latency above fault-free, %", NULL, "complement "},
      {"degradation_pct", "transpose: latency above fault-free, %", NULL, "transpose "}},
     cells_patterns},
    {"traces",
     "Failures of real machines, 32x32 torus, uniform traffic",
     "failure log",
     30,
     240,
     0.05,
     true,
     "('LANL 12' 0, 'LANL 18' 1, 'LANL 19' 2, 'PNNL' 3, 'PNNL at once' 4) rotate by -25",
     "set xrange [-0.5:4.5]",
     {DEGRADATION, {"delivered_pct", "messages delivered, %", NULL, NULL}},
     cells_traces},
    {"turn",
     "16x16 torus, uniform traffic, 3 failures",
     "load, % of what static routes can carry",
     30,
     160,
     0.05,
     true,
     NULL,
     NULL,
     {{"latency_ratio_pct", "fault-free latency / latency, %", NULL, NULL},
      {"accepted_ratio_pct", "throughput / fault-free throughput, %", "set yrange [90:101]", NULL}},
     cells_turn},
    {"load",
     "200 permanent failures from the begin, 32x32 torus, uniform traffic, second half of the run",
     "load, % of the bisection bound",
     30,
     200,
     0.05,
     true,
     NULL,
     NULL,
     {{"degradation_pct", "latency above fault-free, %", "set logscale y", NULL}, {"hops", "mean hops", NULL, NULL}},
     cells_load},
    {"saturation",
     "Throughput and latency, 32x32 torus, method ft",
     "offered, % of the bisection bound",
     30,
     5,
     0.05,
     false,
     NULL,
     NULL,
     {{"accepted_pct", "accepted, % of the bisection bound", NULL, NULL},
      {"latency_us", "latency, us", "set logscale y", NULL}},
     cells_saturation},
    {"deadlock",
     "8x8 torus, buffers of 2 packets, 12 permanent failures",
     "offered, % of the bisection bound",
     30,
     5,
     0.05,
     false,
     NULL,
     NULL,
     {{"deadlock_pct", "runs that deadlock, %", "set yrange [-5:105]", NULL}, DELIVERED},
     cells_deadlock},
    {"tree",
     "8-ary 3-tree, uniform traffic",
     "failed cables of 1,024",
     30,
     10,
     0.3,
     false,
     NULL,
     NULL,
     {{"degradation_pct", "latency above fault-free, %", "set logscale y", NULL}, DELIVERED},
     cells_tree},
};
const int nfigures = sizeof figures / sizeof *figures;
