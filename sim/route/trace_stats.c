/* Fits, the generator, and what a trace breaks. */
#include "sim/route/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct trace_profile trace_profiles[] = {
    {"lanl12", 52, 0.671, 237, -0.956, 2.337},
    {"lanl18", 28, 0.531, 650, 1.021, 0.727},
    {"lanl19", 58, 0.396, 114, 0.664, 0.912},
    {"lanl12-all", 259, 0.609, 42, -0.470, 2.637},
    {"lanl18-all", 3997, 0.817, 6.6, 0.099, 1.221},
    {"lanl19-all", 3284, 0.889, 7.4, 0.166, 1.135},
    {"pnnl", 176, 0.452, 150, 0, 0},
};
const size_t trace_nprofiles = sizeof trace_profiles / sizeof *trace_profiles;

const struct trace_profile *trace_profile_find(const char *name)
{
    for (size_t i = 0; i < trace_nprofiles; i++)
        if (strcmp(trace_profiles[i].name, name) == 0)
            return &trace_profiles[i];
    return NULL;
}

/* The shape k solves sum(x^k ln x) / sum(x^k) - 1/k - mean(ln x) = 0, whose left side grows with k. */
static double weibull_equation(const double *x, size_t n, double k, double mean_log)
{
    double a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        double p = pow(x[i], k);
        a += p * log(x[i]);
        b += p;
    }
    return a / b - 1 / k - mean_log;
}

static void fit_weibull(const double *x, size_t n, struct trace_statistics *s)
{
    if (n < 2)
        return;
    double mean_log = 0, low = 1e-3, high = 50, sum = 0;
    for (size_t i = 0; i < n; i++)
        mean_log += log(x[i]) / (double)n;
    for (int i = 0; i < 100; i++) {
        double k = (low + high) / 2;
        *(weibull_equation(x, n, k, mean_log) < 0 ? &low : &high) = k;
    }
    s->weibull_shape = low;
    for (size_t i = 0; i < n; i++)
        sum += pow(x[i], low);
    s->weibull_scale_h = pow(sum / (double)n, 1 / low);
}

static void fit_lognormal(const double *x, size_t n, struct trace_statistics *s)
{
    double sum = 0;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++)
        sum += log(x[i]);
    s->repair_mu = sum / (double)n;
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (log(x[i]) - s->repair_mu) * (log(x[i]) - s->repair_mu);
    s->repair_sigma = sqrt(square / (double)n);
}

static int64_t last_moment(const struct trace *t)
{
    int64_t last = 0;
    for (size_t i = 0; i < t->n; i++) {
        int64_t end = t->record[i].end_s > t->record[i].start_s ? t->record[i].end_s : t->record[i].start_s;
        last = end > last ? end : last;
    }
    return last;
}

static size_t most_at_once(const struct trace *t)
{
    size_t most = 0;
    for (size_t i = 0; i < t->n; i++) { /* the number only grows at a start */
        size_t at = 0;
        for (size_t j = 0; j <= i; j++)
            at += t->record[j].end_s < 0 || t->record[j].end_s > t->record[i].start_s || j == i;
        most = at > most ? at : most;
    }
    return most;
}

struct trace_statistics trace_statistics(const struct trace *t)
{
    struct trace_statistics s = {.weibull_shape = (double)NAN,
                                 .weibull_scale_h = (double)NAN,
                                 .repair_mu = (double)NAN,
                                 .repair_sigma = (double)NAN};
    double *x = malloc((t->n + 1) * sizeof *x);
    if (!x || !t->n)
        goto out;
    s.span_h = (double)(last_moment(t) - t->record[0].start_s) / 3600;
    size_t n = 0;
    for (size_t i = 1; i < t->n; i++)
        if (t->record[i].start_s > t->record[i - 1].start_s)
            x[n++] = (double)(t->record[i].start_s - t->record[i - 1].start_s) / 3600;
    fit_weibull(x, n, &s);
    n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->record[i].end_s > t->record[i].start_s) {
            x[n] = (double)(t->record[i].end_s - t->record[i].start_s) / 3600;
            s.mean_repair_h += x[n++];
        }
    s.mean_repair_h /= n ? (double)n : 1;
    fit_lognormal(x, n, &s);
    s.overlap = most_at_once(t);
out:
    free(x);
    return s;
}

static double draw_normal(struct rng *rng)
{
    double u = 1 - rng_double(rng), v = rng_double(rng);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

bool trace_generate(struct trace *t, const struct trace_profile *p, struct rng *rng)
{
    *t = (struct trace){.format = p->repair_sigma > 0 ? TRACE_LANL_EXTRACT : TRACE_PNNL_EXTRACT};
    t->record = malloc((p->count + 1) * sizeof *t->record);
    if (!t->record)
        return false;
    t->cap = p->count + 1;
    double at_h = 0;
    const int64_t begin = 1041379200; /* 1 January 2003 */
    for (size_t i = 0; i < p->count; i++) {
        double repair_h = exp(p->repair_mu + p->repair_sigma * draw_normal(rng));
        struct trace_record r = {.start_s = begin + (int64_t)(at_h * 3600), .end_s = -1, .node = rng_below(rng, 1024)};
        if (p->repair_sigma > 0) /* logs count minutes */
            r.end_s = r.start_s + 60 * (1 + (int64_t)(repair_h < 8760 ? repair_h * 60 : 8760 * 60));
        t->record[t->n++] = r;
        at_h += p->weibull_scale_h * pow(-log(1 - rng_double(rng)), 1 / p->weibull_shape);
    }
    t->rows = t->n;
    return true;
}

static void print_time(FILE *out, int64_t seconds)
{
    time_t time = (time_t)seconds;
    struct tm tm;
    char text[32];
    gmtime_r(&time, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    fputs(text, out);
}

bool trace_write(const struct trace *t, FILE *out)
{
    bool repairs = t->format == TRACE_LANL || t->format == TRACE_LANL_EXTRACT;
    fputs(repairs ? "start,end,node,cause,downtime_min\n" : "time,hw,what,desc,action\n", out);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_record *r = &t->record[i];
        print_time(out, r->start_s);
        if (repairs) {
            fputc(',', out);
            print_time(out, r->end_s);
            fprintf(out, ",%" PRIu64 ",Interconnect,%" PRId64 "\n", r->node, (r->end_s - r->start_s) / 60);
        } else {
            fprintf(out, ",node %" PRIu64 ",QSW,,\n", r->node);
        }
    }
    return !ferror(out);
}

/* The cable of a record: one of those of its node's router, drawn with the seed. */
static int32_t cable_of(const struct fabric *f, const struct trace_record *r, struct rng *rng)
{
    int32_t router = fabric_home(f, (int32_t)(r->node % (uint64_t)f->endpoints));
    for (;;) {
        int32_t link = router * f->ports + (int32_t)rng_below(rng, (uint64_t)f->ports);
        if (f->neighbor[link] >= 0)
            return fabric_cable(f, link);
    }
}

const char *trace_outages(const struct trace *t, const struct fabric *f, uint64_t time_ns, double lasting,
                          struct rng *rng, struct outages *o)
{
    if (!t->n)
        return "the trace has no failures of the kind asked for";
    double span = (double)(last_moment(t) - t->record[0].start_s);
    double scale = (double)time_ns / (span > 0 ? span : 1);
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_record *r = &t->record[i];
        uint64_t start = (uint64_t)((double)(r->start_s - t->record[0].start_s) * scale);
        double last = r->end_s < 0 ? INFINITY : (double)(r->end_s - r->start_s) * scale * lasting;
        if (!outages_add(o, cable_of(f, r, rng), start, outage_end(start, last)))
            return "out of memory";
    }
    outages_sort(o);
    return NULL;
}
