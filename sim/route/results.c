#include "sim/route/results.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "runtime/base/plural.h"

struct column {
    const char *name;
    double (*value)(const struct sim_result *r);
};

#define COLUMN(field)                                                                                                  \
    static double get_##field(const struct sim_result *r)                                                              \
    {                                                                                                                  \
        return (double)r->field;                                                                                       \
    }
/* Of the messages that are measured. */
#define MEASURED(field)                                                                                                \
    static double get_##field(const struct sim_result *r)                                                              \
    {                                                                                                                  \
        return batch_measured(r, (double)r->field);                                                                    \
    }
MEASURED(latency_ns)
MEASURED(head_ns)
MEASURED(p50_ns)
MEASURED(p99_ns)
MEASURED(max_ns)
MEASURED(hops)
COLUMN(offered_gbps)
COLUMN(accepted_gbps)
COLUMN(created)
COLUMN(delivered)
COLUMN(lost)
COLUMN(undeliverable)
COLUMN(unfinished)
COLUMN(hit)
COLUMN(escapes)
COLUMN(ack_escapes)
COLUMN(fresh_starts)
COLUMN(dropped_connected)
COLUMN(multistep)
COLUMN(acks)
COLUMN(fault_acks)
COLUMN(rumours)
COLUMN(exchanges)
COLUMN(bypasses)
COLUMN(swaps)
COLUMN(knots)
COLUMN(deadlock_ns)
COLUMN(stuck)
COLUMN(max_in)
COLUMN(max_out)
COLUMN(max_packets)
COLUMN(link_mean)
COLUMN(link_max)
COLUMN(end_ns)
COLUMN(events)
COLUMN(measured)
COLUMN(checks)

#define ENTRY(field)                                                                                                   \
    {                                                                                                                  \
#field, get_##field                                                                                            \
    }
static const struct column columns[] = {
    ENTRY(latency_ns), ENTRY(head_ns),     ENTRY(p50_ns),       ENTRY(p99_ns),
    ENTRY(max_ns),     ENTRY(hops),        ENTRY(offered_gbps), ENTRY(accepted_gbps),
    ENTRY(created),    ENTRY(delivered),   ENTRY(lost),         ENTRY(undeliverable),
    ENTRY(unfinished), ENTRY(hit),         ENTRY(escapes),      ENTRY(multistep),
    ENTRY(acks),       ENTRY(fault_acks),  ENTRY(exchanges),    ENTRY(bypasses),
    ENTRY(swaps),      ENTRY(knots),       ENTRY(deadlock_ns),  ENTRY(stuck),
    ENTRY(max_in),     ENTRY(max_out),     ENTRY(max_packets),  ENTRY(link_mean),
    ENTRY(link_max),   ENTRY(end_ns),      ENTRY(events),       ENTRY(measured),
    ENTRY(checks),     ENTRY(ack_escapes), ENTRY(fresh_starts), ENTRY(dropped_connected),
    ENTRY(rumours),
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void print_csv(const struct batch *b)
{
    printf("failures,rep");
    for (int i = 0; i < COLUMNS; i++)
        printf(",%s", columns[i].name);
    putchar('\n');
    for (int cell = 0; cell < b->ncells; cell++)
        for (int rep = 0; rep < b->reps; rep++) {
            if (!b->done[cell * b->reps + rep])
                continue;
            printf("%s,%d", b->cell[cell].series, rep);
            for (int i = 0; i < COLUMNS; i++) {
                double v = columns[i].value(&b->result[cell * b->reps + rep]);
                (isnan(v) ? (void)putchar(',') : (void)printf(",%.10g", v));
            }
            putchar('\n');
        }
}

static json_t *json_mean(struct batch_mean m)
{
    return m.n ? json_pack("{s:f,s:f}", "mean", m.mean, "ci95", m.half) : json_null();
}

static const char *method_name(const struct options *o)
{
    return o->optimise ? "optimise" : sim_method_name(o->config.method);
}

static void print_json(const struct options *o, const struct batch *b)
{
    char net[96];
    json_t *cells = json_array();
    for (int cell = 0; cell < b->ncells; cell++) {
        json_t *j = json_object();
        json_object_set_new(j, "failures", json_string(b->cell[cell].series));
        for (int i = 0; i < COLUMNS; i++)
            json_object_set_new(j, columns[i].name, json_mean(batch_mean(b, cell, columns[i].value)));
        if (b->cell[cell].reference >= 0)
            json_object_set_new(j, "degradation_percent", json_mean(batch_degradation(b, cell, batch_latency_us)));
        json_object_set_new(j, "repetitions", json_integer(batch_runs(b, cell)));
        json_array_append_new(cells, j);
    }
    json_t *root =
        json_pack("{s:s,s:s,s:s,s:f,s:f,s:I,s:b,s:o}", "topology", fabric_format(&o->fabric, net, sizeof net),
                  "pattern", sim_pattern_name(o->config.pattern), "method", method_name(o), "rate_gbps",
                  o->config.rate_gbps, "time_ms", (double)o->config.time_ns / 1e6, "seed", (json_int_t)o->seed,
                  "interrupted", b->finished < b->ncells * b->reps, "runs", cells);
    if (root)
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    putchar('\n');
    json_decref(root);
}

static void print_line(const struct batch *b, int cell, const char *label, batch_value *value, double scale,
                       const char *unit)
{
    struct batch_mean m = batch_mean(b, cell, value);
    if (m.n)
        printf("  %-34s %14.6g +- %-10.3g %s\n", label, m.mean * scale, m.half * scale, unit);
    else
        printf("  %-34s %14s\n", label, "none");
}

static double sum_of(const struct batch *b, int cell, batch_value *value)
{
    struct batch_mean m = batch_mean(b, cell, value);
    return m.mean * m.n;
}

static void print_events(const struct batch *b, int cell)
{
    static const struct {
        const char *label;
        batch_value *value;
    } line[] = {{"lost at broken links", get_lost},
                {"undeliverable", get_undeliverable},
                {"still under way at the end", get_unfinished},
                {"met a broken link", get_hit},
                {"escape paths taken", get_escapes},
                {"escape paths of acknowledgements", get_ack_escapes},
                {"beginnings with no known fault", get_fresh_starts},
                {"sent by multi-step paths", get_multistep},
                {"avoidance: exchanges", get_exchanges},
                {"avoidance: bypasses", get_bypasses},
                {"ticks with a closed circle of waiting", get_knots}};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        if (sum_of(b, cell, line[i].value) > 0)
            print_line(b, cell, line[i].label, line[i].value, 1, "");
    int dead = 0, stuck = 0;
    for (int rep = 0; rep < b->reps; rep++) {
        dead += b->done[cell * b->reps + rep] && b->result[cell * b->reps + rep].deadlock_ns;
        stuck += b->done[cell * b->reps + rep] && b->result[cell * b->reps + rep].stuck;
    }
    if (dead)
        printf("  DEADLOCK in %d of %d runs\n", dead, batch_runs(b, cell));
    if (stuck)
        printf("  nothing moves any more in %d of %d runs\n", stuck, batch_runs(b, cell));
}

static void print_text(const struct options *o, const struct batch *b)
{
    char net[96];
    printf("%s, %s traffic, method %s, %.4g Gbps per endpoint, %.4g ms, seed %" PRIu64 "\n",
           fabric_format(&o->fabric, net, sizeof net), sim_pattern_name(o->config.pattern), method_name(o),
           o->config.rate_gbps, (double)o->config.time_ns / 1e6, o->seed);
    for (int cell = 0; cell < b->ncells; cell++) {
        int runs = batch_runs(b, cell);
        printf("%s (%d %s, mean and 95 %% confidence)\n", b->cell[cell].series, runs,
               plural(runs, "repetition", "repetitions"));
        print_line(b, cell, "latency", get_latency_ns, 1e-3, "us");
        print_line(b, cell, "latency, 99th percentile", get_p99_ns, 1e-3, "us");
        print_line(b, cell, "hops", get_hops, 1, "");
        print_line(b, cell, "offered", get_offered_gbps, 1000, "Mbps per endpoint");
        print_line(b, cell, "accepted", get_accepted_gbps, 1000, "Mbps per endpoint");
        print_line(b, cell, "messages", get_created, 1, "");
        print_line(b, cell, "delivered", batch_delivered, 1, "%");
        print_line(b, cell, "dropped though there was a way", get_dropped_connected, 1, "");
        print_line(b, cell, "busiest link", get_link_max, 100, "% of the time");
        print_events(b, cell);
        if (b->cell[cell].reference >= 0) {
            struct batch_mean m = batch_degradation(b, cell, batch_latency_us);
            if (m.n)
                printf("  %-34s %14.4g +- %-10.3g %% of the latency without failures\n", "degradation", m.mean, m.half);
        }
    }
}

void results_print(const struct options *o, const struct batch *b)
{
    if (o->output == OUTPUT_CSV)
        print_csv(b);
    else if (o->output == OUTPUT_JSON)
        print_json(o, b);
    else
        print_text(o, b);
}
