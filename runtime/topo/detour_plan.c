/* Ways by the traffic expected (struct detour_config, `plan`). A source whose set of lasting faults has not changed for
 * plan_quiet_ns expects where traffic goes around them; until then it keeps the plan it has. Equal sets give equal plans,
 * so sources that share a struct detour share them: those used last are kept. */
#include "runtime/topo/detour_search.h"

#include <stdlib.h>

enum { PLANS_MAX = 64, PLANS_BYTES = 8 << 20 };

void detour_plan_fini(struct detour *d)
{
    for (int i = 0; i < d->nplans; i++)
        flow_fini(&d->plan[i].flow);
    free(d->plan);
    d->plan = NULL;
    d->nplans = 0;
}

static struct detour_plan *plan_find(struct detour *d, uint64_t lasting)
{
    for (int i = 0; i < d->nplans; i++)
        if (d->plan[i].made && d->plan[i].lasting == lasting) {
            d->plan[i].used = ++d->planning;
            return &d->plan[i];
        }
    return NULL;
}

/* Room for one more plan, or that of the plan not used for longest. */
static struct detour_plan *plan_slot(struct detour *d)
{
    if (!d->plan) {
        int64_t bytes = (int64_t)fabric_links(d->fabric) * (d->fabric->ports + 8) * (int64_t)sizeof(float);
        int64_t fit = PLANS_BYTES / bytes;
        d->plans = fit < 2 ? 2 : fit > PLANS_MAX ? PLANS_MAX : (int)fit;
        d->plan = calloc((size_t)d->plans, sizeof *d->plan);
        if (!d->plan)
            return NULL;
    }
    if (d->nplans < d->plans) {
        struct detour_plan *p = &d->plan[d->nplans];
        if (!flow_init(&p->flow, d->fabric, &d->config.traffic))
            return NULL;
        d->nplans++;
        return p;
    }
    struct detour_plan *old = &d->plan[0];
    for (int i = 1; i < d->nplans; i++)
        if (d->plan[i].used < old->used)
            old = &d->plan[i];
    return old;
}

static void mark_lasting(struct detour *d, const struct detour_source *s, uint8_t value)
{
    for (uint32_t i = 0; i < s->faults.used; i++)
        if (s->faults.entry[i].lasting)
            detour_mark(d, s->faults.entry[i].cable, value);
}

/* lasting: the set of s, or 0 for none. */
static struct detour_plan *plan_make(struct detour *d, const struct detour_source *s, uint64_t lasting)
{
    struct detour_plan *p = plan_slot(d);
    if (!p)
        return NULL;
    if (lasting)
        mark_lasting(d, s, 1);
    p->flow.avoid = d->avoid;
    p->made = flow_expect(&p->flow, &d->config.expect);
    if (lasting)
        mark_lasting(d, s, 0);
    p->lasting = lasting;
    p->used = ++d->planning;
    return p->made ? p : NULL;
}

static struct detour_plan *plan_of(struct detour *d, struct detour_source *s, uint64_t now)
{
    if (s->lasting != s->planned && now >= s->lasting_ns + d->config.plan_quiet_ns)
        s->planned = s->lasting;
    struct detour_plan *p = plan_find(d, s->planned);
    if (p)
        return p;
    if (s->planned == s->lasting && now >= d->plan_next_ns) {
        d->plan_next_ns = now + d->config.plan_every_ns;
        return plan_make(d, s, s->lasting);
    }
    p = plan_find(d, 0);
    return p ? p : plan_make(d, s, 0);
}

bool detour_plan_route(struct detour *d, struct detour_source *s, int32_t dest, double noise, uint64_t now,
                       struct rng *rng, struct detour_path *path)
{
    if (!d->config.plan || !flow_takes(d->fabric))
        return false;
    struct detour_plan *p = plan_of(d, s, now);
    if (!p)
        return false;
    detour_mark_faults(d, s, 1);
    double price = flow_route(&p->flow, fabric_home(d->fabric, s->endpoint), dest, noise, rng, path);
    detour_mark_faults(d, s, 0);
    return price >= 0;
}
