/* What the figures of means run and how they are drawn, without running them: the cells of each, and its script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/route/figure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/keel-figure-XXXXXX";

/* A figure as a batch of cells; figure_script and the caller's checks need no results. */
struct drawing {
    struct options o;
    struct figure_plan *plan;
    struct batch batch;
};

static void drawing_init(struct drawing *d, const struct figure *f)
{
    struct options *o = &d->o;
    *o = (struct options){.seed = 1, .out_dir = folder, .trace_file = folder, .lasting = 1};
    assert_null(fabric_parse(&o->fabric, "32tx32t"));
    o->config = sim_config_default(&o->fabric);
    o->config.time_ns = (uint64_t)(f->time_ms * 1e6);
    o->config.drain_ns = o->config.time_ns;
    o->config.warmup_ns = o->config.time_ns / 10;
    o->config.rate_gbps = f->load * fabric_bisection_bound(&o->fabric);
    d->plan = calloc(1, sizeof *d->plan);
    assert_non_null(d->plan);
    assert_null(f->cells(f, o, d->plan));
    for (int i = 0; i < d->plan->n; i++)
        assert_null(sim_config_wrong(&d->plan->cell[i].config));
    d->batch = (struct batch){.cell = d->plan->cell, .ncells = d->plan->n, .reps = 1};
}

static void drawing_fini(struct drawing *d)
{
    for (int i = 0; i < d->plan->ntraces; i++)
        trace_fini(&d->plan->trace[i]);
    fabric_fini(&d->plan->fabric);
    fabric_fini(&d->o.fabric);
    free(d->plan);
}

static char *script_of(const struct figure *f)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.gp", folder, f->name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, in) < 65535);
    fclose(in);
    unlink(path);
    return text;
}

/* Colours and styles of one panel, which ends at `end`. */
static void check_panel(const struct figure *f, const char *panel, const char *end)
{
    char color[32][8];
    int n = 0;
    for (const char *at = strstr(panel, "lc rgb '"); at && (!end || at < end); at = strstr(at + 1, "lc rgb '")) {
        assert_true(n < 32);
        snprintf(color[n], sizeof color[n], "%.7s", at + 8);
        for (int i = 0; i < n; i++)
            if (strcmp(color[i], color[n]) == 0)
                fail_msg("figure %s uses a colour twice: %s", f->name, color[n]);
        n++;
    }
    assert_true(n > 1);
    const char *all = strstr(panel, "):(column('"), *column = f->panel[end ? 0 : 1].column;
    for (; all && (!end || all < end); all = strstr(all + 1, "):(column('")) /* else they stretch the axis */
        if (strncmp(all + 11, column, strlen(column)) == 0 && all[11 + strlen(column)] == '\'')
            fail_msg("figure %s: points of all series count for the range of each", f->name);
    const char *wrong = f->xtics ? "with yerrorlines" : "with yerrorbars"; /* between two categories is nothing */
    const char *found = strstr(panel, wrong);
    if (found && (!end || found < end))
        fail_msg("figure %s: %s", f->name, wrong);
}

static void check_script(const struct figure *f, const struct drawing *d)
{
    figure_script(&d->o, f, &d->batch);
    char *text = script_of(f), *first = strstr(text, "\nplot "), *second = first ? strstr(first + 1, "\nplot ") : NULL;
    if (!first || !second || strstr(second + 1, "\nplot ")) {
        fail_msg("figure %s has not two panels", f->name);
        return;
    }
    check_panel(f, first, second);
    check_panel(f, second, NULL);
    free(text);
}

static void test_figure_has_two_panels_and_no_colour_twice(void **state)
{
    (void)state;
    for (int i = 0; i < nfigures; i++) {
        struct drawing d;
        drawing_init(&d, &figures[i]);
        check_script(&figures[i], &d);
        drawing_fini(&d);
    }
}

/* Names of categories do not run into each other: two half as long as what lies between them, or at an angle. A panel
 * is 340 pixels wide, a letter 9. */
static void test_figure_categories_have_room_for_their_names(void **state)
{
    (void)state;
    for (int i = 0; i < nfigures; i++) {
        const char *names = figures[i].xtics;
        if (!names || strstr(names, "rotate"))
            continue;
        size_t n = 0, longest = 0;
        for (const char *at = strchr(names, '\''), *end; at; at = strchr(end + 1, '\''), n++) {
            end = strchr(at + 1, '\'');
            assert_non_null(end);
            longest = (size_t)(end - at - 1) > longest ? (size_t)(end - at - 1) : longest;
        }
        assert_true(n > 0);
        if (9 * longest * n > 340)
            fail_msg("figure %s: names of %zu letters for %zu categories", figures[i].name, longest, n);
    }
}

/* Best known ways are looked for in networks that the search takes, and compared with a run without failures. */
static int check_best(const struct drawing *d)
{
    int best = 0;
    for (int i = 0; i < d->batch.ncells; i++) {
        const struct batch_cell *cell = &d->batch.cell[i];
        if (!cell->best)
            continue;
        assert_non_null(strstr(cell->series, "best known"));
        assert_true(cell->trace || cell->random.permanent);
        assert_true(cell->reference >= 0 && flow_takes(cell->config.fabric));
        best++;
    }
    return best;
}

static void test_figure_best_known_ways_stand_beside_the_methods(void **state)
{
    (void)state;
    static const char *const with[] = {"uniform", "readings", "patterns", "turn", "load", "tree", "traces"};
    for (int i = 0; i < nfigures; i++) {
        struct drawing d;
        drawing_init(&d, &figures[i]);
        int best = check_best(&d);
        bool expected = false;
        for (size_t w = 0; w < sizeof with / sizeof *with; w++)
            expected = expected || strcmp(with[w], figures[i].name) == 0;
        if (expected != (best > 0))
            fail_msg("figure %s has %d cells of best known ways", figures[i].name, best);
        drawing_fini(&d);
    }
}

/* A log as the figure of real machines reads it. */
static bool write_log(const char *path)
{
    struct trace made = {0};
    struct rng rng;
    rng_seed(&rng, 1);
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    bool ok = trace_generate(&made, trace_profile_find("lanl19"), &rng) && trace_write(&made, out);
    trace_fini(&made);
    return !fclose(out) && ok;
}

int main(void)
{
    char log[64];
    if (!mkdtemp(folder))
        return 1;
    snprintf(log, sizeof log, "%s/lanl19_interconnect.csv", folder);
    if (!write_log(log))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure_has_two_panels_and_no_colour_twice),
        cmocka_unit_test(test_figure_categories_have_room_for_their_names),
        cmocka_unit_test(test_figure_best_known_ways_stand_beside_the_methods),
    };
    int failed = cmocka_run_group_tests_name("figure", tests, NULL, NULL);
    unlink(log);
    rmdir(folder);
    return failed;
}
