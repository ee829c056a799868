/* The search for multi-step paths (FT-routing section 2.1), and what else the sources of the policy share. */
#ifndef KEEL_TOPO_DETOUR_SEARCH_H
#define KEEL_TOPO_DETOUR_SEARCH_H
#include "runtime/topo/detour.h"

static inline int32_t detour_home(const struct detour *d, const struct detour_source *s)
{
    return fabric_home(d->fabric, s->endpoint);
}

struct detour_query {
    int32_t from;   /* router */
    int32_t dest;   /* endpoint */
    bool both_ends; /* intermediates near the destination too, not only near `from` */
    int skip;       /* paths that must not be found again */
    const struct detour_route *known;
};

/* The best path that uses no link marked in d->avoid.
 * returns  its hops, or -1 when there is none. */
int detour_search(struct detour *d, const struct detour_query *q, struct rng *rng, struct detour_path *path);
/* Hops of a path, or -1 when it uses a link marked in d->avoid or has more than limit hops. */
int detour_path_hops(const struct detour *d, int32_t from, const struct detour_path *path, int32_t dest, int limit);
/* Is it a number of a cable that can break? Others may say anything. */
bool detour_is_cable(const struct fabric *f, int32_t link);
/* Mark or unmark a cable, both directions of it. */
void detour_mark(struct detour *d, int32_t cable, uint8_t value);
/* The same for every cable that s knows as broken. */
void detour_mark_faults(struct detour *d, const struct detour_source *s, uint8_t value);
/* detour_plan.c: the cheapest way as the traffic is expected, avoiding what s knows as broken. returns false when there
 * is no plan, or no way. */
bool detour_plan_route(struct detour *d, struct detour_source *s, int32_t dest, double noise, uint64_t now,
                       struct rng *rng, struct detour_path *path);
/* The way that the plan of s names for its messages to dest, whatever s has heard since. returns false when it names
 * none. */
bool detour_plan_way(struct detour *d, struct detour_source *s, int32_t dest, uint64_t now, struct detour_path *path);
void detour_plan_fini(struct detour *d);
/* detour.c: the paths of s to an endpoint; NULL: there are none. */
struct detour_metapath *detour_metapath_find(struct detour_source *s, int32_t dest);
/* Begun with the original one; NULL: out of memory. */
struct detour_metapath *detour_metapath_make(struct detour *d, struct detour_source *s, int32_t dest, uint64_t now);
bool detour_path_equal(const struct detour_path *a, const struct detour_path *b);
#endif
