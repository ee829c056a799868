/* Ways by the traffic expected (struct detour_config, `plan`). A source plans for a scene: faults that last and that
 * everybody should have heard of, and the pattern of the traffic (demand.h). Equal scenes give equal plans, so sources
 * that share a struct detour share them: those used last are kept.
 *
 * A plan is the price of each turn, and where the pairs are few (a map of coordinates, or all pairs of a small network)
 * also the way of each of them: everybody takes the way that the others expect of him. */
#include "runtime/topo/detour_search.h"

#include <stdlib.h>

/* Patterns are maps of coordinates: a source plans in grids only. */
static bool plans(const struct detour *d)
{
    return d->fabric->kind == FABRIC_GRID && flow_takes(d->fabric);
}

enum { PLANS_MAX = 64, PLANS_BYTES = 16 << 20, MAP_SWEEPS = 16, MOVE_SWEEPS = 3 };
static const double MOVE_BUSY = 0.4; /* a link predicted to be busier: whole ways are left, too */

void detour_plan_fini(struct detour *d)
{
    for (int i = 0; i < d->nplans; i++) {
        flow_fini(&d->plan[i].flow);
        free(d->plan[i].routes);
    }
    free(d->plan);
    free(d->scene);
    d->scene = NULL;
    d->plan = NULL;
    d->nplans = 0;
}

static struct detour_plan *plan_find(struct detour *d, uint64_t scene)
{
    for (int i = 0; i < d->nplans; i++)
        if (d->plan[i].made && d->plan[i].scene == scene) {
            d->plan[i].used = ++d->planning;
            return &d->plan[i];
        }
    return NULL;
}

/* Ways that a plan names: of each endpoint under a map, of all pairs of a small network, or none. */
static size_t ways_of(const struct detour *d, uint32_t pattern)
{
    size_t n = (size_t)d->fabric->endpoints;
    if (pattern != DEMAND_UNIFORM)
        return n;
    return n * n <= d->config.plan_pairs ? n * n : 0;
}

/* Room for one more plan, or that of the plan not used for longest. */
static struct detour_plan *plan_slot(struct detour *d)
{
    if (!d->plan) {
        size_t bytes = (size_t)fabric_links(d->fabric) * (size_t)(d->fabric->ports + 8) * sizeof(float);
        size_t fit = PLANS_BYTES / (bytes + ways_of(d, DEMAND_UNIFORM) * sizeof(struct detour_path));
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

static uint64_t mix(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static int by_found(const void *a, const void *b)
{
    const struct detour_fault *x = a, *y = b;
    if (x->found_ns != y->found_ns)
        return x->found_ns < y->found_ns ? -1 : 1;
    return x->cable < y->cable ? -1 : x->cable > y->cable;
}

/* The faults that s plans for, into d->scene: those that everybody should know, in the order they were first found in.
 * While new ones are found all the time, sources agree on the older ones: the number is rounded down to a sixteenth.
 * returns how many. */
static uint32_t scene_faults(struct detour *d, const struct detour_source *s, uint64_t now)
{
    uint32_t n = 0, step = 1;
    for (uint32_t i = 0; i < s->faults.used; i++) {
        const struct detour_fault *f = &s->faults.entry[i];
        if (f->lasting && f->found_ns + d->config.plan_after_ns <= now)
            d->scene[n++] = *f;
    }
    qsort(d->scene, n, sizeof *d->scene, by_found);
    while (32 * step <= n)
        step *= 2;
    bool settled = n == 0 || d->scene[n - 1].found_ns + 2 * d->config.plan_after_ns <= now;
    return settled ? n : n / step * step;
}

static uint64_t scene_of(const struct detour *d, uint32_t n, uint32_t pattern)
{
    uint64_t scene = pattern * 0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < n; i++)
        scene ^= mix((uint64_t)d->scene[i].cable);
    return scene;
}

static double busiest(const struct flow *w)
{
    float most = 0;
    for (int32_t l = 0; l < fabric_links(w->fabric); l++)
        most = w->sum[l] > most ? w->sum[l] : most;
    return (double)most * w->traffic.serial_ns;
}

/* Under a map everybody's way is looked for; of a small network those of cut pairs, or of all where links get full. */
static bool expect(struct detour *d, struct detour_plan *p)
{
    struct flow_plan plan = d->config.expect;
    int32_t *partner = NULL;
    plan.routes = p->routes;
    if (p->routes) {
        plan.sample = 0;
        plan.noise = 0;
    }
    if (p->pattern != DEMAND_UNIFORM) {
        partner = malloc((size_t)d->fabric->endpoints * sizeof *partner);
        if (!partner)
            return false;
        for (int32_t e = 0; e < d->fabric->endpoints; e++)
            partner[e] = demand_partner(p->pattern, &d->fabric->grid, e);
        plan.partner = partner;
        plan.all_move = plan.longer = true;
        plan.sweeps = MAP_SWEEPS;
    }
    bool made = flow_expect(&p->flow, &plan);
    if (made && p->routes && !partner && busiest(&p->flow) > MOVE_BUSY) {
        plan.all_move = true;
        plan.sweeps = MOVE_SWEEPS;
        made = flow_expect(&p->flow, &plan);
    }
    free(partner);
    return made;
}

/* For the first n faults of d->scene. */
static struct detour_plan *plan_make(struct detour *d, uint32_t n, uint32_t pattern)
{
    struct detour_plan *p = plan_slot(d);
    if (!p)
        return NULL;
    size_t ways = ways_of(d, pattern);
    p->made = false;
    free(p->routes);
    p->routes = ways ? calloc(ways, sizeof *p->routes) : NULL;
    if (ways && !p->routes)
        return NULL;
    p->pattern = pattern;
    p->scene = scene_of(d, n, pattern);
    p->used = ++d->planning;
    for (uint32_t i = 0; i < n; i++)
        detour_mark(d, d->scene[i].cable, 1);
    p->flow.avoid = d->avoid;
    p->made = expect(d, p);
    for (uint32_t i = 0; i < n; i++)
        detour_mark(d, d->scene[i].cable, 0);
    return p->made ? p : NULL;
}

/* Every plan_look_ns: which scene is it, and is there a plan for it, or may one be made? */
static void look(struct detour *d, struct detour_source *s, uint64_t now)
{
    if (now < s->look_ns)
        return;
    s->look_ns = now + d->config.plan_look_ns;
    s->pattern = s->demand ? demand_pattern(s->demand, &d->fabric->grid) : DEMAND_UNKNOWN;
    uint32_t n = scene_faults(d, s, now);
    uint64_t scene = scene_of(d, n, s->pattern);
    if (scene != s->scene)
        s->scene_ns = now;
    s->scene = scene;
    if (s->pattern == DEMAND_UNKNOWN || (s->planned == s->scene && s->planned_pattern == s->pattern))
        return;
    if (!plan_find(d, s->scene)) {
        bool wanted = s->confirmed == scene || now >= s->scene_ns + d->config.plan_after_ns;
        if (!wanted || now < d->plan_next_ns)
            return;
        d->plan_next_ns = now + d->config.plan_every_ns;
        if (!plan_make(d, n, s->pattern))
            return;
    }
    s->planned = s->scene;
    s->planned_pattern = s->pattern;
}

static struct detour_plan *plan_of(struct detour *d, struct detour_source *s, uint64_t now)
{
    if (!d->scene)
        d->scene = malloc(((size_t)d->config.max_faults + 1) * sizeof *d->scene);
    if (!d->scene)
        return NULL;
    look(d, s, now);
    struct detour_plan *p = s->planned_pattern != DEMAND_UNKNOWN ? plan_find(d, s->planned) : NULL;
    if (p || s->pattern != DEMAND_UNIFORM)
        return p;
    p = plan_find(d, scene_of(d, 0, DEMAND_UNIFORM));
    return p ? p : plan_make(d, 0, DEMAND_UNIFORM);
}

struct detour_digest detour_digest(const struct detour_source *s)
{
    struct detour_digest digest = {.scene = s->scene};
    for (uint32_t i = 0; i < s->faults.used; i++)
        if (s->faults.entry[i].lasting)
            digest.faults ^= mix((uint64_t)s->faults.entry[i].cable);
    return digest;
}

bool detour_compare(struct detour_source *s, const struct detour_digest *other)
{
    if (other->scene == s->scene)
        s->confirmed = s->scene;
    return other->faults != detour_digest(s).faults;
}

bool detour_plan_way(struct detour *d, struct detour_source *s, int32_t dest, uint64_t now, struct detour_path *path)
{
    if (!plans(d))
        return false;
    const struct detour_plan *p = plan_of(d, s, now);
    if (!p || !p->routes)
        return false;
    if (p->pattern == DEMAND_UNIFORM)
        *path = p->routes[(size_t)s->endpoint * (size_t)d->fabric->endpoints + (size_t)dest];
    else if (demand_partner(p->pattern, &d->fabric->grid, s->endpoint) == dest)
        *path = p->routes[s->endpoint];
    else
        return false;
    return true;
}

bool detour_plan_route(struct detour *d, struct detour_source *s, int32_t dest, double noise, uint64_t now,
                       struct rng *rng, struct detour_path *path)
{
    if (!d->config.plan || !plans(d))
        return false;
    struct detour_plan *p = plan_of(d, s, now);
    if (!p)
        return false;
    detour_mark_faults(d, s, 1);
    double price = flow_route(&p->flow, s->endpoint, dest, noise, rng, path);
    detour_mark_faults(d, s, 0);
    return price >= 0;
}

static struct demand *demand_of(const struct detour *d, struct detour_source *s)
{
    if (!s->demand && d->config.plan && plans(d))
        s->demand = calloc(1, sizeof *s->demand);
    return s->demand; /* NULL: nothing is expected */
}

void detour_sent(struct detour *d, struct detour_source *s, int32_t dest)
{
    struct demand *m = demand_of(d, s);
    if (m)
        demand_sent(m, s->endpoint, dest);
}

bool detour_told_flow(struct detour *d, struct detour_source *s, const struct demand_flow *flow)
{
    struct demand *m = demand_of(d, s);
    return m && demand_told(m, flow);
}

int detour_recall_flows(struct detour *d, struct detour_source *s, int max, struct demand_flow *flow)
{
    struct demand *m = demand_of(d, s);
    return m ? demand_recall(m, s->endpoint, max, flow) : 0;
}
