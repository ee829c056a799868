/* keel-route simulate and keel-route trace. */
#include "sim/route/heat.h"
#include "sim/route/options.h"
#include "sim/route/results.h"

#include "runtime/base/plural.h"
#include "runtime/base/user_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void load_trace(const struct options *o, struct trace *t, const char *path)
{
    char what[TRACE_WHAT] = "";
    if (!trace_load(t, path, &o->trace, what))
        cli_die("%s", what);
    if (o->trace.system && t->format != TRACE_LANL)
        cli_die("%.100s: --system is for the whole log of Los Alamos", path);
    if (o->trace.all && t->format != TRACE_LANL && t->format != TRACE_PNNL)
        cli_die("%.100s: --all-failures is for whole logs, not for extracts", path);
}

static void read_failure_file(const struct options *o, struct outages *fixed)
{
    char what[TRACE_WHAT], why[USER_FILE_WHY], *text = user_text_read(o->failure_file, why);
    if (!text)
        cli_die("%s", why);
    FILE *in = fmemopen(text, strlen(text), "r");
    if (!in)
        cli_die("out of memory");
    if (!outages_read(fixed, &o->fabric, in, o->failure_file, what))
        cli_die("%s", what);
    fclose(in);
    free(text);
}

/* The failures the user asked for, into a cell. */
static void load_failures(const struct options *o, struct batch_cell *c, struct trace *trace, struct outages *fixed)
{
    if (o->trace_file) {
        load_trace(o, trace, o->trace_file);
        if (trace->bad)
            fprintf(stderr, "keel-route: %s: %zu malformed %s left out\n", o->trace_file, trace->bad,
                    plural((long long)trace->bad, "row", "rows"));
        c->trace = trace;
    } else if (o->profile) {
        struct rng rng;
        rng_seed(&rng, o->seed);
        if (!trace_generate(trace, trace_profile_find(o->profile), &rng))
            cli_die("out of memory");
        c->trace = trace;
    } else if (o->failure_file) {
        read_failure_file(o, fixed);
        c->fixed = fixed;
    }
    c->lasting = o->lasting;
    c->random = (struct outage_random){.count = o->failures,
                                       .permanent = o->permanent,
                                       .onset = o->onset,
                                       .lasting = o->lasting,
                                       .length_ns = o->length_ns,
                                       .keep_connected = !o->allow_cut};
}

static void print_heat(const struct options *o, const struct batch_cell *c)
{
    struct outages broken = {0};
    struct sim_result *r = malloc(sizeof *r);
    float *load = calloc((size_t)fabric_links(&o->fabric) + 1, sizeof *load);
    const char *wrong = r && load ? batch_outages(c, o->seed, 0, &broken) : "out of memory";
    if (!wrong)
        wrong = batch_run_one(c, o->seed, 0, &broken, r, load);
    if (!wrong && o->heat)
        heat_print(stdout, &o->fabric, load, &broken, isatty(STDOUT_FILENO));
    if (!wrong && o->heat_image)
        wrong = heat_image(o->heat_image, &o->fabric, load, &broken);
    outages_fini(&broken);
    free(load);
    free(r);
    if (wrong)
        cli_die("%s", wrong);
}

/* Did any message count? If not, whoever reads zeros must be told. */
static bool has_measured(const struct batch *b)
{
    bool all = true;
    for (int cell = 0; cell < b->ncells; cell++)
        if (batch_runs(b, cell) && !batch_mean(b, cell, batch_hops).n) {
            fprintf(stderr,
                    "keel-route: %s: no message arrived that was made after the warm-up, so nothing is measured\n",
                    b->cell[cell].series);
            all = false;
        }
    return all;
}

static int simulate(struct options *o, const struct flow_plan *best)
{
    struct trace trace = {0};
    struct outages fixed = {0};
    struct batch_cell cell[2] = {{.config = o->config, .reference = -1, .series = "without failures"}};
    cell[1] = cell[0];
    cell[1].reference = 0;
    cell[1].series = "with failures";
    cell[1].best = best;
    load_failures(o, &cell[1], &trace, &fixed);
    for (size_t i = 0; best && i < fixed.n; i++)
        if (fixed.list[i].start_ns || fixed.list[i].end_ns != OUTAGE_FOREVER)
            cli_die("%.100s: optimise is for failures that are out from the begin and for good", o->failure_file);
    bool broken = cell[1].trace || cell[1].fixed || o->failures > 0;
    struct batch b = {.cell = cell,
                      .ncells = broken ? 2 : 1,
                      .reps = o->reps,
                      .threads = o->threads,
                      .seed = o->seed,
                      .show_progress = o->progress,
                      .stop = &cli_stop};
    const char *wrong = batch_run(&b);
    if (wrong)
        cli_die("%s", wrong);
    results_print(o, &b);
    bool interrupted = b.finished < b.ncells * b.reps, measured = has_measured(&b);
    fprintf(stderr, "%s%d %s, %" PRIu64 " %s, %.3g million events per second and thread, %.1f s\n",
            interrupted ? "interrupted: " : "", b.finished, plural(b.finished, "run", "runs"), b.events,
            plural((long long)b.events, "event", "events"),
            b.cpu_seconds > 0 ? (double)b.events / b.cpu_seconds / 1e6 : 0, b.wall_seconds);
    if ((o->heat || o->heat_image) && !interrupted)
        print_heat(o, &cell[b.ncells - 1]);
    batch_fini(&b);
    trace_fini(&trace);
    outages_fini(&fixed);
    return interrupted ? 130 : measured ? 0 : 1;
}

int command_simulate(struct options *o)
{
    return simulate(o, NULL);
}

int command_optimise(struct options *o)
{
    if (o->failures == 0 && !o->failure_file)
        cli_die("optimise needs failures: --failures or --failure-file");
    o->permanent = true;
    o->best.seed = o->seed;
    o->optimise = true;
    return simulate(o, &o->best);
}

/* null where there was nothing to fit. */
static json_t *json_fit(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

int command_trace(struct options *o)
{
    struct trace t = {0};
    if (o->generate) {
        if (!o->profile)
            cli_die("--generate needs --profile");
        if (o->name || o->output != OUTPUT_TEXT || o->trace.system || o->trace.all || o->trace.skip_bad)
            cli_die("--generate takes --profile and --seed only: it reads no file, and its log has one form");
        struct rng rng;
        rng_seed(&rng, o->seed);
        bool ok = trace_generate(&t, trace_profile_find(o->profile), &rng) && trace_write(&t, stdout);
        trace_fini(&t);
        return ok ? 0 : 1;
    }
    if (!o->name)
        cli_die("trace needs a file, or --generate --profile NAME");
    if (o->profile || o->has_seed)
        cli_die("--profile and --seed are for --generate");
    load_trace(o, &t, o->name);
    struct trace_statistics s = trace_statistics(&t);
    if (o->output == OUTPUT_JSON) {
        json_t *j = json_pack("{s:s,s:I,s:I,s:I,s:I,s:f,s:o,s:o,s:o,s:o}", "file", o->name, "rows", (json_int_t)t.rows,
                              "bad", (json_int_t)t.bad, "failures", (json_int_t)t.n, "overlap", (json_int_t)s.overlap,
                              "span_h", s.span_h, "weibull_shape", json_fit(s.weibull_shape), "weibull_scale_h",
                              json_fit(s.weibull_scale_h), "repair_mu", json_fit(s.repair_mu), "repair_sigma",
                              json_fit(s.repair_sigma));
        if (!j)
            cli_die("%s: JSON takes names in UTF-8 only", o->name);
        json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(j);
    } else if (o->output == OUTPUT_CSV) {
        trace_write(&t, stdout);
    } else {
        printf("%s: %zu %s, %zu malformed and left out, %zu %s kept\n", o->name, t.rows,
               plural((long long)t.rows, "row", "rows"), t.bad, t.n, plural((long long)t.n, "failure", "failures"));
        bool repaired = s.mean_repair_h > 0;
        printf("  over %.0f h, at most %zu at once", s.span_h, s.overlap);
        if (repaired)
            printf(", mean repair %.2f h\n", s.mean_repair_h);
        else
            puts(", no times of repair");
        if (isnan(s.weibull_shape))
            puts("  between failures: too few times to fit");
        else
            printf("  between failures: Weibull, shape %.3f, scale %.1f h\n", s.weibull_shape, s.weibull_scale_h);
        if (repaired && isnan(s.repair_mu))
            puts("  repair: too few times to fit");
        else if (repaired)
            printf("  repair: lognormal, mu %.3f, sigma %.3f (hours)\n", s.repair_mu, s.repair_sigma);
    }
    trace_fini(&t);
    return 0;
}
