/* Traffic expected on the links of a grid of at most two dimensions or of a tree, what it makes a path cost, and the
 * cheapest path.
 *
 * Below saturation messages wait where streams merge: a packet that comes to an output from one input meets those that
 * come from the others, while those of its own input arrive one behind the other. So a hop that leaves by link l,
 * having come by input i, is priced at what a further message there costs itself and the others:
 *
 *     hop_ns + E[S^2] * (sum of the streams into l - the stream from i) / (1 - share of time l is busy)^2
 *
 * with S the time a packet fills a link and streams in messages per ns. A turn is dear where the way straight on is
 * busy, and cheap elsewhere. In a tree the link to an endpoint is priced likewise, as static routes all reach it by one
 * input and others would merge with them there.
 * Pure; scratch space for one thread. Memory: linear in the links. */
#ifndef KEEL_TOPO_FLOW_H
#define KEEL_TOPO_FLOW_H
#include "runtime/base/rng.h"
#include "runtime/topo/detour_path.h"

#include <stdatomic.h>

struct flow_traffic {
    double rate;       /* messages per ns of an endpoint that sends */
    double serial_ns;  /* mean time of a message on a link */
    double serial2_ns; /* mean of its square, ns^2 */
    double hop_ns;
};

struct flow {
    const struct fabric *fabric; /* not owned */
    struct flow_traffic traffic;
    const uint8_t *avoid; /* [link] not owned: 1 where a link may not be used; NULL: nowhere */
    int inputs;           /* of a router: its ports, and its endpoints last */
    float *stream; /* [out * inputs + input] messages per ns; out: a link, or of a tree fabric_links + an endpoint */
    float *sum;    /* [out] of its streams */
    float *gain;   /* [out] price of a stream of another input, ns^2 */
    float *cost;   /* scratch of searches */
    uint8_t *back;
    int32_t *queue;
};

/* May flow be used on this network? */
bool flow_takes(const struct fabric *f);
/* returns false when memory is out. The network must be one that flow_takes. */
bool flow_init(struct flow *w, const struct fabric *f, const struct flow_traffic *t);
void flow_fini(struct flow *w);
void flow_clear(struct flow *w);
/* Add (or with a negative rate take away) a stream of messages along a path between two endpoints. */
void flow_add(struct flow *w, int32_t from, const struct detour_path *path, int32_t dest, double rate);
/* Price of a path as the streams are, or a negative number when it uses what must be avoided. */
double flow_price(const struct flow *w, int32_t from, const struct detour_path *path, int32_t dest);
/* The cheapest way between two endpoints that avoids what must be avoided: a shortest one where there is any. Prices of
 * inputs are drawn up to `noise` (0..1) dearer, so that near equals share the traffic; rng may be NULL without noise.
 * A way of more than DETOUR_MAX_VIA intermediates cannot be named: then the cheapest of those with fewer turns.
 * returns its price, or a negative number, *path untouched, when there is none. */
double flow_route(struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng, struct detour_path *path);
/* The same, but a longer way where one is cheaper than the shortest, in a grid. It takes many times as long. */
double flow_route_longer(struct flow *w, int32_t from, int32_t dest, double noise, struct rng *rng,
                         struct detour_path *path);

/* Streams of a pattern when `avoid` is out: whole static routes keep their traffic, the others look for the cheapest
 * way as the streams are, `sweeps` times over, of `sample` pairs drawn with the seed (0: all pairs).
 * partner   [endpoint] where each sends to (negative: nowhere); NULL: uniform traffic. */
struct flow_plan {
    const int32_t *partner;
    int32_t sample;
    int sweeps;
    double noise;
    uint64_t seed;
    bool all_move;           /* whole static routes may be left, too, for cheaper ways */
    bool longer;             /* ways longer than the shortest may be taken, too, in a grid: flow_route_longer */
    const atomic_bool *stop; /* NULL, or set from outside: the search ends, with what it has found */
    struct detour_path
        *routes; /* NULL; or the ways found, original ones where there is none: [from] where there are partners, else
                  * [from * endpoints + dest] */
};
/* returns false when memory is out. */
bool flow_expect(struct flow *w, const struct flow_plan *p);
#endif
