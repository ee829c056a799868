#include "sim/route/figure.h"

#include "sim/route/heat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

FILE *figure_open(const struct options *o, const char *name, const char *ext)
{
    char path[1024];
    if (strchr(o->out_dir, '\'') || strlen(o->out_dir) > 900)
        cli_die("--out: the name of the folder is too long or holds a quote");
    if (mkdir(o->out_dir, 0777) && errno != EEXIST)
        cli_die("--out %s: %s", o->out_dir, strerror(errno));
    snprintf(path, sizeof path, "%s/%s.%s", o->out_dir, name, ext);
    FILE *out = fopen(path, "w");
    if (!out)
        cli_die("%s: %s", path, strerror(errno));
    return out;
}

void figure_script_begin(FILE *gp, const char *name, const char *title)
{
    (void)name;
    fprintf(gp, "set datafile separator ','\nset key font ',9'\nset grid\nset title '%s'\n", title);
}

/* Two scripts of one line each load the common one, for the two kinds of picture. */
const char *figure_plot(const struct options *o, const char *name)
{
    static const struct {
        const char *ext, *terminal;
    } kind[] = {{"png", "png size 940,560"}, {"svg", "svg size 1000,600 font 'sans,11'"}};
    const char *wrong = NULL;
    for (int i = 0; i < 2 && !wrong; i++) {
        char picture[1024];
        snprintf(picture, sizeof picture, "%s/%s.%s", o->out_dir, name, kind[i].ext);
        FILE *run = heat_script();
        if (!run)
            return "the script for gnuplot cannot be written";
        fprintf(run, "set terminal %s\nset output '%s'\nload '%s/%s.gp'\n", kind[i].terminal, picture, o->out_dir,
                name);
        wrong = heat_gnuplot(run);
        fclose(run);
        if (wrong)
            remove(picture); /* what there is of it */
    }
    return wrong;
}

static double value_p99(const struct sim_result *r)
{
    return batch_measured(r, r->p99_ns / 1000);
}

static double value_lost(const struct sim_result *r)
{
    return (double)(r->lost + r->undeliverable);
}

static double value_deadlock(const struct sim_result *r)
{
    return r->deadlock_ns || r->stuck ? 100 : 0;
}

static double value_exchanges(const struct sim_result *r)
{
    return (double)(r->exchanges + r->bypasses);
}

static double value_escapes(const struct sim_result *r)
{
    return (double)r->escapes / (r->created ? (double)r->created : 1);
}

/* A mean and its interval; nothing where there is no value. */
static void write_mean(FILE *out, struct batch_mean m)
{
    if (m.n)
        fprintf(out, "%.4f,%.4f,", m.mean, m.half);
    else
        fputs(",,", out);
}

/* A run in which no message was measured counts as well: it may say that everything stands still. */
static void write_row(FILE *out, const struct batch *b, int i)
{
    const struct batch_cell *c = &b->cell[i];
    struct batch_mean acc = batch_mean(b, i, batch_accepted), dead = batch_mean(b, i, value_deadlock);
    struct batch_mean deg = {.n = 1}, thr = {.n = 1}, p99 = batch_mean(b, i, value_p99);
    double bound = fabric_bisection_bound(c->config.fabric) * c->config.link_gbps / 100;
    if (!batch_runs(b, i))
        return;
    if (c->reference >= 0) {
        deg = batch_degradation(b, i, batch_latency_us);
        thr = batch_degradation(b, i, batch_accepted);
    }
    double slower = 1 + deg.mean / 100;
    fprintf(out, "\"%s\",%g,%d,", c->series, c->x, batch_runs(b, i));
    write_mean(out, batch_mean(b, i, batch_latency_us));
    write_mean(out, deg);
    write_mean(out, batch_mean(b, i, batch_delivered));
    write_mean(out, batch_mean(b, i, batch_hops));
    write_mean(out, (struct batch_mean){acc.mean / bound, acc.half / bound, acc.n});
    write_mean(out, (struct batch_mean){100 / slower, deg.half / slower / slower, deg.n});
    write_mean(out, (struct batch_mean){100 + thr.mean, thr.half, thr.n});
    fprintf(out, "%.2f,%.2f,", dead.mean, dead.half);
    (p99.n ? (void)fprintf(out, "%.2f,", p99.mean) : (void)fputc(',', out));
    fprintf(out, "%.2f,%.4f,%.2f\n", batch_mean(b, i, value_lost).mean, batch_mean(b, i, value_escapes).mean,
            batch_mean(b, i, value_exchanges).mean);
}

static const char nothing_measured[] = "no message was measured; give it more --time";

const char *figure_try(const struct batch_cell *cell, uint64_t seed)
{
    struct sim_result *r = malloc(sizeof *r);
    const struct outages none = {0};
    struct batch_cell plain = *cell;
    plain.config.stop = &cli_stop;
    const char *wrong = r ? batch_run_one(&plain, seed, 0, &none, r, NULL) : "out of memory";
    if (!wrong && !r->measured && !r->stopped)
        wrong = nothing_measured;
    free(r);
    return wrong;
}

const char *figure_run(struct batch *b)
{
    const char *wrong = batch_run(b);
    if (!wrong && !b->finished)
        return FIGURE_NOTHING_YET;
    bool any = wrong;
    for (int i = 0; i < b->ncells && !any; i++)
        any = batch_mean(b, i, batch_latency_us).n;
    return any ? wrong : nothing_measured;
}

/* Series by series, as gnuplot joins only rows that follow each other. */
static void write_csv(FILE *out, const struct batch *b)
{
    fprintf(
        out,
        "series,x,reps,latency_us,latency_ci,degradation_pct,degradation_ci,delivered_pct,delivered_ci,hops,hops_ci,"
        "accepted_pct,accepted_ci,latency_ratio_pct,latency_ratio_ci,accepted_ratio_pct,accepted_ratio_ci,"
        "deadlock_pct,deadlock_ci,p99_us,lost,escapes_per_message,avoidance_moves\n");
    for (int i = 0; i < b->ncells; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = strcmp(b->cell[j].series, b->cell[i].series) == 0;
        for (int j = i; j < b->ncells && !seen; j++)
            if (strcmp(b->cell[j].series, b->cell[i].series) == 0)
                write_row(out, b, j);
    }
}

/* Sixteen colours that differ; there are not more series. */
const char *figure_color(int i)
{
    static const char *const color[] = {"#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#7b4fa3", "#00a5a5",
                                        "#8c564b", "#e377c2", "#5f6b6d", "#9acd32", "#000000", "#ff7f0e",
                                        "#87ceeb", "#006400", "#c5b0d5", "#800000"};
    return color[(i - 1) % (int)(sizeof color / sizeof *color)];
}

/* Every series but the references; those that lose messages have no degradation worth showing. */
static void plot_panel(FILE *gp, const struct options *o, const struct figure *f, int panel, const struct batch *b)
{
    const char *column = f->panel[panel].column;
    const char *unit = strrchr(column, '_'); /* in whose place its confidence interval has "_ci" */
    char ci[64];
    snprintf(ci, sizeof ci, "%.*s_ci", unit ? (int)(unit - column) : 40, column);
    const char *only = f->panel[panel].only ? f->panel[panel].only : "";
    bool of_delivering = strstr(column, "degradation") != NULL, any = false;
    int color = 0;
    const char *style = f->xtics ? "yerrorbars" : "yerrorlines"; /* what lies between two categories is nothing */
    const char *set = f->panel[panel].set ? f->panel[panel].set : "";
    const char *room = strstr(set, "logscale") ? "0, 0" : "graph 0.08, graph 0.02"; /* there offsets would be decades */
    fprintf(gp, "unset logscale\nset offsets graph 0.03, graph 0.03, %s\nset ylabel '%s'\n%s\nplot ", room,
            f->panel[panel].label, set);
    for (int i = 0; i < b->ncells; i++) {
        const struct batch_cell *c = &b->cell[i];
        bool seen = strstr(c->series, "no failures") || strncmp(c->series, only, strlen(only)) != 0;
        for (int j = 0; j < i && !seen; j++)
            seen = strcmp(b->cell[j].series, c->series) == 0;
        if (seen)
            continue;
        color++;
        if (of_delivering && !c->config.escape)
            continue;
        fprintf(gp,
                "%s'%s/%s.csv' using (of('%s', 'x') + %g):(of('%s', '%s')):(column('%s')) "
                "with %s lc rgb '%s' pt %d ps 0.8 title '%s'",
                any ? ", \\\n  " : "", o->out_dir, f->name, c->series, f->xtics ? 0.05 * (color - 3) : 0, c->series,
                column, ci, style, figure_color(color), color, c->series + strlen(only));
        any = true;
    }
    fputc('\n', gp);
}

void figure_script(const struct options *o, const struct figure *f, const struct batch *b)
{
    FILE *gp = figure_open(o, f->name, "gp");
    figure_script_begin(gp, f->name, f->title);
    fprintf(gp,
            "set datafile columnheaders\nset xlabel '%s'\n"
            "of(series, name) = strcol('series') eq series ? column(name) : NaN\n",
            f->xlabel);
    if (f->xtics)
        fprintf(gp, "set xtics %s\n", f->xtics);
    if (f->set)
        fprintf(gp, "%s\n", f->set);
    fprintf(gp,
            "set multiplot layout 1,2 title '%s'\nunset title\nset key bmargin center horizontal maxcols 2 width -4\n",
            f->title);
    for (int panel = 0; panel < 2; panel++)
        plot_panel(gp, o, f, panel, b);
    fprintf(gp, "unset multiplot\n");
    fclose(gp);
}

/* Ends the program where there is nothing to draw; what is drawn already stays. */
static void figure_failed(const char *name, const char *wrong)
{
    if (wrong && strcmp(wrong, FIGURE_NOTHING_YET) != 0)
        cli_die("figure %s: %s", name, wrong);
    if (!wrong)
        return;
    fprintf(stderr, "keel-route: figure %s: %s\n", name, wrong);
    exit(130);
}

static bool make(const struct figure *f, const struct options *given)
{
    struct options at = *given;
    struct options *o = &at;
    struct figure_plan *p = calloc(1, sizeof *p);
    if (!p)
        cli_die("out of memory");
    if (!o->has_time) {
        o->config.time_ns = (uint64_t)(f->time_ms * 1e6);
        o->config.drain_ns = o->config.time_ns;
    }
    o->config.warmup_ns = o->config.time_ns / (f->learned ? 2 : 10);
    if (!o->has_load)
        o->config.rate_gbps = f->load * fabric_bisection_bound(&o->fabric) * o->config.link_gbps;
    const char *wrong = f->cells(f, o, p);
    for (int i = 0; i < p->n && !wrong; i++)
        wrong = sim_config_wrong(&p->cell[i].config);
    if (!wrong && o->has_time)
        wrong = figure_try(&p->cell[0], o->seed);
    if (wrong)
        cli_die("figure %s: %s", f->name, wrong);
    struct batch b = {.cell = p->cell,
                      .ncells = p->n,
                      .reps = o->has_reps ? o->reps : f->reps,
                      .threads = o->threads,
                      .seed = o->seed,
                      .show_progress = o->progress,
                      .stop = &cli_stop};
    wrong = figure_run(&b);
    figure_failed(f->name, wrong);
    bool whole = b.finished == b.ncells * b.reps;
    FILE *csv = figure_open(o, f->name, "csv");
    write_csv(csv, &b);
    fclose(csv);
    figure_script(o, f, &b);
    wrong = figure_plot(o, f->name);
    if (wrong && !whole) { /* of some lines there may be no point yet */
        fprintf(stderr, "keel-route: figure %s: %s; what is done is in %s/%s.csv\n", f->name, wrong, o->out_dir,
                f->name);
        wrong = NULL;
    }
    fprintf(stderr, "%s%s: %d runs, %" PRIu64 " events, %.3g million events per second and thread, %.1f s\n",
            whole ? "" : "interrupted: ", f->name, b.finished, b.events,
            b.cpu_seconds > 0 ? (double)b.events / b.cpu_seconds / 1e6 : 0, b.wall_seconds);
    batch_fini(&b);
    for (int i = 0; i < p->ntraces; i++)
        trace_fini(&p->trace[i]);
    fabric_fini(&p->fabric);
    free(p);
    if (wrong)
        cli_die("figure %s: %s", f->name, wrong);
    printf("%s/%s.png %s/%s.svg %s/%s.csv\n", o->out_dir, f->name, o->out_dir, f->name, o->out_dir, f->name);
    return whole;
}

/* Of most figures the loads, and of some the length of the runs, are what they show. */
static void check_effect(const struct options *o)
{
    static const char *const with_load[] = {"uniform", "learning", "readings", "patterns", "traces", "tree", "all"};
    bool load = false, time = strcmp(o->name, "latency") != 0 && strcmp(o->name, "connectivity") != 0;
    for (size_t i = 0; i < sizeof with_load / sizeof *with_load; i++)
        load = load || strcmp(o->name, with_load[i]) == 0;
    if (o->has_load && !load)
        cli_die("figure %s: --load changes nothing in it", o->name);
    if (o->has_time && !time)
        cli_die("figure %s: --time changes nothing in it", o->name);
}

static bool make_special(struct options *o, const char *name, const char *(*run)(struct options *))
{
    figure_failed(name, run(o));
    printf("%s/%s.png %s/%s.svg %s/%s.csv\n", o->out_dir, name, o->out_dir, name, o->out_dir, name);
    return !atomic_load(&cli_stop);
}

/* Before the runs, not after them: can the folder be written? */
static void check_folder(const struct options *o)
{
    char path[1024];
    fclose(figure_open(o, o->name, "tmp"));
    snprintf(path, sizeof path, "%s/%s.tmp", o->out_dir, o->name);
    remove(path);
}

int command_figure(struct options *o)
{
    bool all = o->name && strcmp(o->name, "all") == 0, found = all, whole = true;
    if (!o->name)
        cli_die("figure needs a name: " FIGURE_NAMES ", or all");
    static const struct {
        const char *name;
        const char *(*run)(struct options *);
    } special[] = {{"latency", figure_latency},
                   {"connectivity", figure_connectivity},
                   {"learning", figure_learning},
                   {"outages", figure_outages}};
    for (int i = 0; i < 4; i++)
        found = found || strcmp(o->name, special[i].name) == 0;
    for (int i = 0; i < nfigures; i++)
        found = found || strcmp(o->name, figures[i].name) == 0;
    if (!found)
        cli_die("there is no figure '%.40s' (" FIGURE_NAMES ", or all)", o->name);
    check_effect(o);
    check_folder(o);
    for (int i = 0; i < 4 && whole; i++)
        if (all || strcmp(o->name, special[i].name) == 0)
            whole = make_special(o, special[i].name, special[i].run);
    for (int i = 0; i < nfigures && whole; i++)
        if (all || strcmp(o->name, figures[i].name) == 0)
            whole = make(&figures[i], o);
    return whole ? 0 : 130;
}
