/* Two figures that are no means over repetitions of one number: latency by hops, and what cut cables leave of a
 * network. */
#include "sim/route/figure.h"

#include <stdlib.h>

const char *figure_latency(struct options *o)
{
    static const enum sim_pattern pattern[] = {SIM_UNIFORM, SIM_TRANSPOSE, SIM_COMPLEMENT};
    FILE *csv = figure_open(o, "latency", "csv");
    struct sim_result *r = malloc(sizeof *r);
    const char *wrong = r ? NULL : "out of memory";
    fprintf(csv, "pattern,hops,messages,head_ns,expected_ns\n");
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
    fclose(csv);
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
    FILE *csv = figure_open(o, "connectivity", "csv");
    fprintf(csv, "cables,samples,pairs_connected_pct,samples_whole_pct,pairs_static_pct,mean_hops\n");
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
                fclose(csv);
                return wrong;
            }
            whole += c.pairs_connected >= 1.0;
            sum.pairs_connected += c.pairs_connected;
            sum.pairs_static += c.pairs_static;
            sum.mean_hops += c.mean_hops;
        }
        if (n)
            fprintf(csv, "%d,%d,%.4f,%.1f,%.4f,%.4f\n", step * STEP, n, 100 * sum.pairs_connected / n,
                    100.0 * whole / n, 100 * sum.pairs_static / n, sum.mean_hops / n);
    }
    fclose(csv);
    FILE *gp = figure_open(o, "connectivity", "gp");
    figure_script_begin(gp, "connectivity", "Cables cut at random for good");
    fprintf(
        gp,
        "set xlabel 'cables cut'\nset ylabel 'pairs of endpoints, %%'\nset yrange [0:102]\nset y2label 'mean hops'\n"
        "set y2tics\nset y2range [15:18]\nset key center right\n"
        "plot '%s/connectivity.csv' using 1:3 with linespoints title 'with a path', "
        "'' using 1:5 with linespoints title 'with their dimension-order route whole', "
        "'' using 1:6 axes x1y2 with linespoints title 'mean shortest path (right)'\n",
        o->out_dir);
    fclose(gp);
    return figure_plot(o, "connectivity");
}
