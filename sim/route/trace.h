/* Failure logs of real machines, read as their owners publish them, and a generator with the same statistics.
 *
 * Four forms, told apart by their header line: the Los Alamos log (26 columns, "System,machine type,..."), extracts of
 * it
 * ("start,end,node,cause,downtime_min"), the PNNL MPP2 log ("Date,Hardware Identifier,What Failed,...") and extracts of
 * that ("time,hw,what,desc,action"). Files that end in .xz are unpacked. From the two whole logs only network failures
 * are kept: Los Alamos rows whose Hardware cause begins with "Interconnect", PNNL rows about ELAN3, ELAN4 or QSW.
 *
 * A record names a node, not a link: which cable of that node's router breaks is an assumption of ours, drawn with the
 * seed. PNNL gives no repair times, so its failures last to the end of the run (as in the paper). */
#ifndef KEEL_SIM_ROUTE_TRACE_H
#define KEEL_SIM_ROUTE_TRACE_H
#include "sim/route/outage.h"

enum trace_format { TRACE_LANL, TRACE_LANL_EXTRACT, TRACE_PNNL, TRACE_PNNL_EXTRACT };

struct trace_record {
    int64_t start_s, end_s; /* seconds since 1970; end -1: not known */
    uint64_t node;          /* its number, or a hash of what else the row names */
};

struct trace {
    enum trace_format format;
    struct trace_record *record; /* by start */
    size_t n, cap;
    size_t rows; /* data rows read, kept or not */
    size_t bad;  /* malformed rows left out, with skip_bad */
};

struct trace_options {
    int system;    /* Los Alamos log: only this system; 0: all */
    bool all;      /* whole logs: every failure, not those of the network only */
    bool skip_bad; /* leave malformed rows out and count them */
};

enum { TRACE_WHAT = 200 };

/* Parse text of len bytes (it need not end in a zero). what gets one line of text on an error: name:line: why.
 * returns false on an error; the trace is then empty. */
bool trace_parse(struct trace *t, const char *text, size_t len, const char *name, const struct trace_options *o,
                 char what[TRACE_WHAT]);
/* Read a file, unpack it if its name ends in .xz, and parse it. */
bool trace_load(struct trace *t, const char *path, const struct trace_options *o, char what[TRACE_WHAT]);
void trace_fini(struct trace *t);

/* Maximum-likelihood fits: times between failures to a Weibull distribution (zeros left out), repair times to a
 * lognormal one (zeros and unknown ones left out), in hours. What has less than two values to fit is NAN. */
struct trace_statistics {
    double span_h;
    double weibull_shape, weibull_scale_h;
    double repair_mu, repair_sigma;
    double mean_repair_h;
    size_t overlap; /* most failures in force at once */
};
struct trace_statistics trace_statistics(const struct trace *t);

/* Statistics of known machines, for those who do not have the logs. */
struct trace_profile {
    const char *name;
    size_t count;
    double weibull_shape, weibull_scale_h;
    double repair_mu, repair_sigma; /* both 0: no repair */
};
extern const struct trace_profile trace_profiles[];
extern const size_t trace_nprofiles;
const struct trace_profile *trace_profile_find(const char *name);
/* returns false when memory is out. */
bool trace_generate(struct trace *t, const struct trace_profile *p, struct rng *rng);
bool trace_write(const struct trace *t, FILE *out);

/* Stretch the trace over time_ns and break cables of fabric by it. Lengths are scaled by the same factor, then by
 * `lasting` (1: true to scale); no failure lasts less than 1 ns. returns NULL or what is wrong. */
const char *trace_outages(const struct trace *t, const struct fabric *f, uint64_t time_ns, double lasting,
                          struct rng *rng, struct outages *o);
#endif
