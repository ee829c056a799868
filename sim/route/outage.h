/* Lists of link failures: which cable breaks when, and when it works again. From a random generator, from a file, or
 * from failure traces (trace.h). */
#ifndef KEEL_SIM_ROUTE_OUTAGE_H
#define KEEL_SIM_ROUTE_OUTAGE_H
#include "runtime/base/rng.h"
#include "runtime/topo/fabric.h"

#include <stdio.h>

#define OUTAGE_FOREVER UINT64_MAX

struct outage {
    int32_t cable;
    uint64_t start_ns, end_ns; /* end OUTAGE_FOREVER: permanent */
};

struct outages {
    struct outage *list; /* by start time */
    size_t n, cap;
};

void outages_fini(struct outages *o);
/* returns false when memory is out. */
bool outages_add(struct outages *o, int32_t cable, uint64_t start_ns, uint64_t end_ns);
/* The end of an outage: at least 1 ns after its start, OUTAGE_FOREVER beyond 1e18 ns. */
uint64_t outage_end(uint64_t start_ns, double lasts_ns);
void outages_sort(struct outages *o);

struct outage_random {
    int32_t count; /* of outages; of distinct cables unless length_ns is given */
    bool permanent;
    uint64_t time_ns;    /* of the run */
    double onset;        /* breaks begin within this first share of the run, uniformly */
    double lasting;      /* non-permanent: each lasts a uniform share of the run up to this */
    uint64_t length_ns;  /* not 0: each lasts exactly so long, and a cable may break several times; `permanent` and
                          * `lasting` do not count */
    bool keep_connected; /* skip a cable whose break, with those drawn before (with length_ns: with those broken at
                          * that time), would cut the network in two */
};

/* returns NULL, or a constant text that says what is wrong (more failures than can be placed, no memory). */
const char *outages_random(struct outages *o, const struct fabric *f, const struct outage_random *r, struct rng *rng);

/* Read lines "start_us,end_us,router,port", decimal numbers with blanks around them or none (end empty: permanent; #
 * begins a comment, a first line that begins with a letter is a header). what: 160 bytes for the text of an error.
 * returns false on an error, with its line in *what. */
bool outages_read(struct outages *o, const struct fabric *f, FILE *in, const char *name, char what[160]);

/* Take out of the list, in its order, every permanent failure that with those before it would cut the network in two.
 * returns how many, or -1 when memory is out. */
int outages_keep_connected(struct outages *o, const struct fabric *f);

/* What is left of a network when these cables are out for good. */
struct outage_connectivity {
    double pairs_connected; /* share of ordered pairs of endpoints with a path */
    double pairs_static;    /* share whose static route is whole */
    double mean_hops;       /* of shortest paths over connected pairs of different endpoints */
};
/* returns false when memory is out. Time routers * links. */
bool outages_connectivity(const struct outages *o, const struct fabric *f, struct outage_connectivity *result);
#endif
