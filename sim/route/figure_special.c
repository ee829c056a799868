/* Figures that are no means over repetitions of one number against another: latency by hops, what cut cables leave of a
 * network, how latency goes down as sources learn, and where ft-plus gains over ft. */
#include "sim/route/figure.h"

#include <math.h>
#include <stdlib.h>

const char *figure_latency(struct options *o)
{
    static const enum sim_pattern pattern[] = {SIM_UNIFORM, SIM_TRANSPOSE, SIM_COMPLEMENT};
    char *rows = NULL; /* the file is written when all runs are done */
    size_t len = 0;
    FILE *csv = open_memstream(&rows, &len);
    struct sim_result *r = malloc(sizeof *r);
    const char *wrong = r && csv ? NULL : "out of memory";
    for (int i = 0; i < 3 && !wrong; i++) {
        struct sim_config c = o->config;
        sim_method_apply(&c, SIM_FT);
        c.pattern = pattern[i];
        c.rate_gbps = 0.002 * fabric_bisection_bound(&o->fabric) * c.link_gbps;
        c.time_ns = 500000000;
        c.warmup_ns = 1000000;
        c.drain_ns = c.time_ns;
        c.seed = o->seed;
        c.stop = &cli_stop;
        wrong = sim_run(&c, r, NULL);
        if (!wrong && r->stopped)
            wrong = FIGURE_NOTHING_YET;
        for (int h = 1; h < SIM_HOPS_MAX && !wrong; h++)
            if (r->n_by_hops[h])
                fprintf(csv, "%s,%d,%llu,%.2f,%.0f\n", sim_pattern_name(pattern[i]), h,
                        (unsigned long long)r->n_by_hops[h], r->lat_by_hops[h] / (double)r->n_by_hops[h],
                        (h + 2) * (double)c.hop_ns);
        if (!wrong)
            printf("%s: mean distance %.3f hops over %llu messages\n", sim_pattern_name(pattern[i]), r->hops,
                   (unsigned long long)r->measured);
    }
    free(r);
    if (csv && fclose(csv) != 0)
        wrong = "out of memory";
    if (!wrong) {
        csv = figure_open(o, "latency", "csv");
        fprintf(csv, "pattern,hops,messages,head_ns,expected_ns\n%s", rows);
        fclose(csv);
    }
    free(rows);
    if (wrong)
        return wrong;
    FILE *gp = figure_open(o, "latency", "gp");
    figure_script_begin(gp, "latency", "Latency of a head at 0.2 % load: hops + 2 links, each at the cost of a hop");
    fprintf(gp, "set xlabel 'hops between routers'\nset ylabel 'ns'\nset key top left\nplot ");
    for (int i = 0; i < 3; i++)
        fprintf(gp, "'%s/latency.csv' using (strcol(1) eq '%s' ? $2 : NaN):4 with points pt %d title '%s', ",
                o->out_dir, sim_pattern_name(pattern[i]), i + 4, sim_pattern_name(pattern[i]));
    fprintf(gp, "(x + 2) * %u title 'configured cost'\n", o->config.hop_ns);
    fclose(gp);
    return figure_plot(o, "latency");
}

const char *figure_connectivity(struct options *o)
{
    enum { STEP = 50, STEPS = 9 };
    int reps = o->has_reps ? o->reps : 30;
    FILE *csv = NULL; /* opened when there is a first line */
    for (int step = 0; step < STEPS; step++) {
        struct outage_connectivity sum = {0};
        int whole = 0, n = 0;
        for (int rep = 0; rep < reps && !atomic_load(&cli_stop); rep++, n++) {
            struct outages out = {0};
            struct outage_connectivity c;
            struct rng rng;
            rng_seed(&rng, o->seed * 100003u + (uint64_t)(step * 1000 + rep));
            const struct outage_random random = {.count = step * STEP, .permanent = true, .time_ns = 1};
            const char *wrong = outages_random(&out, &o->fabric, &random, &rng);
            if (!wrong && !outages_connectivity(&out, &o->fabric, &c))
                wrong = "out of memory";
            outages_fini(&out);
            if (wrong) {
                if (csv)
                    fclose(csv);
                return wrong;
            }
            whole += c.pairs_connected >= 1.0;
            sum.pairs_connected += c.pairs_connected;
            sum.pairs_static += c.pairs_static;
            sum.mean_hops += c.mean_hops;
        }
        if (n && !csv) {
            csv = figure_open(o, "connectivity", "csv");
            fprintf(csv, "cables,samples,pairs_connected_pct,samples_whole_pct,pairs_static_pct,mean_hops\n");
        }
        if (n)
            fprintf(csv, "%d,%d,%.4f,%.1f,%.4f,%.4f\n", step * STEP, n, 100 * sum.pairs_connected / n,
                    100.0 * whole / n, 100 * sum.pairs_static / n, sum.mean_hops / n);
    }
    if (!csv)
        return FIGURE_NOTHING_YET;
    fclose(csv);
    FILE *gp = figure_open(o, "connectivity", "gp");
    figure_script_begin(gp, "connectivity", "Cables cut at random for good");
    fprintf(
        gp,
        "set xlabel 'cables cut'\nset ylabel 'pairs of endpoints, %%'\nset yrange [0:102]\nset y2label 'mean hops'\n"
        "set y2tics\nset y2range [15:18]\nset key at graph 0.97, graph 0.85 right\n"
        "plot '%s/connectivity.csv' using 1:3 with linespoints title 'with a path', "
        "'' using 1:5 with linespoints title 'with their dimension-order route whole', "
        "'' using 1:6 axes x1y2 with linespoints title 'mean shortest path (right)'\n",
        o->out_dir);
    fclose(gp);
    return figure_plot(o, "connectivity");
}

static const char *run_cells(struct options *o, const char *name, struct batch *b)
{
    b->reps = o->has_reps ? o->reps : b->reps;
    b->threads = o->threads;
    b->seed = o->seed;
    b->show_progress = o->progress;
    b->stop = &cli_stop;
    const char *wrong = figure_run(b);
    if (!wrong)
        fprintf(stderr, "%s: %d runs, %llu events, %.1f s\n", name, b->finished, (unsigned long long)b->events,
                b->wall_seconds);
    return wrong;
}

/* Mean latency of the messages made in one part of a run, in microseconds; NAN where none was. */
static double latency_then(const struct batch *b, int cell, int bin)
{
    double sum = 0, n = 0;
    for (int rep = 0; rep < b->reps; rep++) {
        const struct sim_result *r = &b->result[cell * b->reps + rep];
        if (!b->done[cell * b->reps + rep])
            continue;
        sum += r->lat_by_time[bin];
        n += (double)r->n_by_time[bin];
    }
    return n > 0 ? sum / n / 1000 : (double)NAN;
}

/* 200 permanent failures at once: latency against the time since. */
const char *figure_learning(struct options *o)
{
    static const struct {
        const char *name;
        enum sim_method method;
    } line[] = {{"no failures", SIM_FT},
                {"ft", SIM_FT},
                {"ft-plus", SIM_FT_PLUS},
                {"ft-plan", SIM_FT_PLAN},
                {"best known", SIM_FT}};
    static const struct flow_plan best = {.sweeps = 3, .seed = 1};
    enum { LINES = sizeof line / sizeof *line };
    struct batch_cell cell[LINES];
    for (int i = 0; i < LINES; i++) {
        cell[i] = (struct batch_cell){.config = o->config, .reference = -1, .series = line[i].name};
        struct sim_config *c = &cell[i].config;
        sim_method_apply(c, line[i].method);
        c->time_ns = o->has_time ? c->time_ns : 400000000;
        c->drain_ns = c->time_ns;
        c->warmup_ns = 0;
        if (i > 0)
            cell[i].random = (struct outage_random){.count = 200, .permanent = true, .keep_connected = true};
        cell[i].best = i == LINES - 1 ? &best : NULL;
    }
    struct batch b = {.cell = cell, .ncells = LINES, .reps = 10};
    const char *wrong = o->has_time ? figure_try(&cell[0], o->seed) : NULL;
    if (!wrong)
        wrong = run_cells(o, "learning", &b);
    if (wrong)
        return wrong;
    FILE *csv = figure_open(o, "learning", "csv");
    fprintf(csv, "ms,reps");
    for (int i = 0; i < LINES; i++)
        fprintf(csv, ",%s", line[i].name);
    for (int bin = 0; bin < SIM_BINS; bin++) {
        fprintf(csv, "\n%g,%d", (bin + 0.5) * (double)cell[0].config.time_ns / 1e6 / SIM_BINS, batch_runs(&b, 0));
        for (int i = 0; i < LINES; i++) {
            double us = latency_then(&b, i, bin);
            (isnan(us) ? (void)fputc(',', csv) : (void)fprintf(csv, ",%.4f", us));
        }
    }
    fputc('\n', csv);
    fclose(csv);
    batch_fini(&b);
    FILE *gp = figure_open(o, "learning", "gp");
    figure_script_begin(gp, "learning", "32x32 torus, uniform traffic, 200 cables out for good from time 0");
    fprintf(gp, "set xlabel 'time since the failures, ms'\nset ylabel 'latency, us'\nset key top right\nplot ");
    for (int i = 0; i < LINES; i++)
        fprintf(gp, "%s'%s/learning.csv' using 1:%d with lines lw 2 lc rgb '%s' title '%s'", i ? ", " : "", o->out_dir,
                i + 3, figure_color(i + 1), line[i].name);
    fputc('\n', gp);
    fclose(gp);
    return figure_plot(o, "learning");
}

/* Length of outages by load by how many are out at a time, each once under ft and once under ft-plus. Those for ever
 * twice: while the sources learn of them, and afterwards, in the second half of a run that is the longer the less
 * traffic there is to learn from. */
enum {
    MAP_LENGTHS = 7,
    MAP_LOADS = 5,
    MAP_COUNTS = 2,
    MAP_REFERENCES = 2, /* runs without failures: short ones and those to learn in */
    MAP_PER_LOAD = MAP_REFERENCES + 2 * MAP_LENGTHS * MAP_COUNTS,
    MAP_CELLS = MAP_LOADS * MAP_PER_LOAD
};
static const double map_us[MAP_LENGTHS] = {20, 50, 200, 1000, 5000, 0, -1}; /* 0: for ever; -1: and learned */
static const double map_load[MAP_LOADS] = {0.01, 0.05, 0.2, 0.4, 0.8};
static const double map_learn[MAP_LOADS] = {30, 16, 8, 4, 2}; /* times as long */
static const int map_count[MAP_COUNTS] = {3, 40};

static int map_cell(int load, int count, int length, int plus)
{
    return load * MAP_PER_LOAD + MAP_REFERENCES + (count * MAP_LENGTHS + length) * 2 + plus;
}

static struct batch_cell map_plain(const struct options *o, const struct fabric *f, int load, bool learned)
{
    struct batch_cell plain = {.config = o->config, .reference = -1, .series = "no failures"};
    struct sim_config *c = &plain.config;
    c->fabric = f;
    c->time_ns = o->has_time ? c->time_ns : 10000000;
    if (learned)
        c->time_ns = (uint64_t)((double)c->time_ns * map_learn[load]);
    c->warmup_ns = c->time_ns / (learned ? 2 : 10);
    c->drain_ns = c->time_ns;
    c->rate_gbps = map_load[load] * fabric_bisection_bound(f) * c->link_gbps;
    sim_method_apply(c, SIM_FT);
    return plain;
}

static void map_fill(const struct options *o, const struct fabric *f, struct batch_cell *cell)
{
    for (int l = 0; l < MAP_LOADS; l++) {
        int reference = l * MAP_PER_LOAD;
        for (int learned = 0; learned < MAP_REFERENCES; learned++)
            cell[reference + learned] = map_plain(o, f, l, learned);
        for (int i = 0; i < MAP_LENGTHS * MAP_COUNTS * 2; i++) {
            int length = i / 2 % MAP_LENGTHS, count = map_count[i / 2 / MAP_LENGTHS], learned = map_us[length] < 0;
            struct batch_cell *c = &cell[reference + MAP_REFERENCES + i];
            *c = cell[reference + learned];
            c->reference = reference + learned;
            sim_method_apply(&c->config, i % 2 ? SIM_FT_PLUS : SIM_FT);
            bool ends = map_us[length] > 0;
            double turns = ends ? (double)c->config.time_ns / 1000 / map_us[length] : 1;
            c->random = (struct outage_random){.count = (int32_t)(count * turns),
                                               .permanent = !ends,
                                               .onset = ends,
                                               .length_ns = ends ? (uint64_t)(map_us[length] * 1000) : 0,
                                               .keep_connected = true};
        }
    }
}

static double get_dropped(const struct sim_result *r)
{
    return (double)r->dropped_connected;
}

static void map_write(FILE *csv, const struct batch *b)
{
    fprintf(csv, "at_a_time,length_us,load_pct,reps,ft_pct,ft_ci,ft_plus_pct,ft_plus_ci,ft_plus_against_ft_pct,"
                 "ft_plus_against_ft_ci,dropped_connected\n");
    for (int n = 0; n < MAP_COUNTS; n++)
        for (int i = 0; i < MAP_LENGTHS; i++)
            for (int l = 0; l < MAP_LOADS; l++) {
                int ft = map_cell(l, n, i, 0), plus = map_cell(l, n, i, 1);
                struct batch_mean a = batch_degradation(b, ft, batch_latency_us);
                struct batch_mean c = batch_degradation(b, plus, batch_latency_us);
                struct batch_mean gain = batch_against(b, plus, ft, batch_latency_us);
                if (!a.n || !c.n || !gain.n)
                    continue;
                fprintf(csv, "%d,%g,%g,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%g\n", map_count[n], map_us[i],
                        map_load[l] * 100, a.n, a.mean, a.half, c.mean, c.half, gain.mean, gain.half,
                        batch_mean(b, ft, get_dropped).mean + batch_mean(b, plus, get_dropped).mean);
            }
}

const char *figure_outages(struct options *o)
{
    struct fabric f;
    struct batch_cell *cell = calloc(MAP_CELLS, sizeof *cell);
    if (!cell || fabric_parse(&f, "16tx16t")) {
        free(cell);
        return "out of memory";
    }
    map_fill(o, &f, cell);
    struct batch b = {.cell = cell, .ncells = MAP_CELLS, .reps = 10};
    const char *wrong = run_cells(o, "outages", &b);
    if (!wrong) {
        FILE *csv = figure_open(o, "outages", "csv");
        map_write(csv, &b);
        fclose(csv);
    }
    batch_fini(&b);
    free(cell);
    fabric_fini(&f);
    if (wrong)
        return wrong;
    FILE *gp = figure_open(o, "outages", "gp");
    figure_script_begin(gp, "outages", "");
    fprintf(gp,
            "set multiplot layout 1,2 title '16x16 torus: latency of ft-plus against ft, %%'\nunset key\nunset grid\n"
            "set palette defined (-60 '#1b6ca8', 0 '#ffffff', 60 '#d1495b')\nset cbrange [-60:60]\n"
            "set xlabel 'load, %% of the bisection bound'\nset ylabel 'length of an outage'\n"
            "set xtics ('1' 0, '5' 1, '20' 2, '40' 3, '80' 4)\n"
            "set ytics ('20 us' 0, '50 us' 1, '200 us' 2, '1 ms' 3, '5 ms' 4, 'for ever' 5, 'learned' 6)\n"
            "load(l) = l < 2 ? 0 : l < 10 ? 1 : l < 30 ? 2 : l < 60 ? 3 : 4\n"
            "size(u) = u < 0 ? 6 : u == 0 ? 5 : u < 30 ? 0 : u < 100 ? 1 : u < 500 ? 2 : u < 2000 ? 3 : 4\n");
    for (int n = 0; n < MAP_COUNTS; n++)
        fprintf(
            gp,
            "set title '%d of 512 cables out at a time'\n"
            "plot '%s/outages.csv' every ::1 using ($1==%d ? load($3) : NaN):(size($2)):(0.5):(0.5):9 with boxxyerror "
            "fs solid 1 noborder fc palette, "
            "'' every ::1 using ($1==%d ? load($3) : NaN):(size($2)):(sprintf('%%+.1f', $9)) with labels\n",
            map_count[n], o->out_dir, map_count[n], map_count[n]);
    fprintf(gp, "unset multiplot\n");
    fclose(gp);
    return figure_plot(o, "outages");
}
