#include "runtime/topo/detour.h"

#include "runtime/topo/detour_search.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct detour_path original = {.nvia = 0};

struct detour_config detour_config_paper(void)
{
    return (struct detour_config){
        .threshold = 3,
        .max_paths = 4,
        .max_distance = 3,
        .hop_ns = 220,
        .grow_wait_ns = 6000,
        .shrink_wait_ns = 2000,
        .settle_ns = 200000,
        .silence_limit = 3,
        .silence_hold_ns = 10000000,
        .max_faults = 512,
        .cache = 16,
        .retry_ns = 20000,
        .turns_ns = 8000000,
        .tell_ns = 200000,
        .tell_times = 16,
        .lasting_ns = 5000000,
        .retry_max_ns = 256000000,
        .sharpness = 1,
    };
}

struct detour_config detour_config_plus(void)
{
    struct detour_config c = detour_config_paper();
    c.forget = c.tell = c.shortest = c.spread = true;
    c.sharpness = 8;
    return c;
}

struct detour_config detour_config_plan(void)
{
    struct detour_config c = detour_config_plus();
    c.plan = true;
    c.plan_after_ns = 60000000;
    c.plan_look_ns = 5000000;
    c.plan_every_ns = 2000000;
    c.plan_pairs = 1 << 16;
    c.expect = (struct flow_plan){.sample = 65536, .sweeps = 2, .noise = 0.1, .seed = 1};
    return c;
}

bool detour_init(struct detour *d, const struct fabric *fabric, const struct detour_config *config)
{
    memset(d, 0, sizeof *d);
    if (config->threshold < 1 || config->max_paths < 1 || config->max_paths > DETOUR_MAX_PATHS ||
        config->max_distance < 1 || config->max_faults < 1 || config->max_faults > INT32_MAX || config->cache < 1 ||
        config->sharpness < 1 || config->sharpness > 16 || config->tell_times < 1 || config->tell_times > UINT8_MAX)
        return false;
    d->fabric = fabric;
    d->config = *config;
    size_t routers = (size_t)fabric->routers;
    d->avoid = calloc((size_t)fabric_links(fabric) + 1, 1);
    d->dead = calloc(routers, 1);
    d->stamp = calloc(routers, sizeof *d->stamp);
    d->queue = calloc(routers, sizeof *d->queue);
    d->parent = calloc(routers, sizeof *d->parent);
    if (d->avoid && d->dead && d->stamp && d->queue && d->parent)
        return true;
    detour_fini(d);
    return false;
}

void detour_fini(struct detour *d)
{
    free(d->avoid);
    free(d->dead);
    free(d->stamp);
    free(d->queue);
    free(d->parent);
    detour_plan_fini(d);
    memset(d, 0, sizeof *d);
}

void detour_alive(struct detour *d, int32_t router, bool alive)
{
    if (d->dead[router] == !alive)
        return;
    d->dead[router] = !alive;
    d->view++;
    for (int p = 0; p < d->fabric->ports; p++) {
        int32_t link = router * d->fabric->ports + p;
        if (d->fabric->neighbor[link] >= 0)
            detour_mark(d, fabric_cable(d->fabric, link), !alive);
    }
}

void detour_source_init(struct detour_source *s, int32_t endpoint)
{
    *s = (struct detour_source){.endpoint = endpoint};
}

void detour_source_fini(struct detour_source *s)
{
    detour_faults_fini(&s->faults);
    free(s->paths);
    free(s->key);
    free(s->demand);
    *s = (struct detour_source){.endpoint = s->endpoint};
}

struct detour_metapath *detour_metapath_find(struct detour_source *s, int32_t dest)
{
    for (uint32_t i = 0; i < s->npaths; i++)
        if (s->key[i].dest == dest) {
            s->key[i].used = s->choices;
            return &s->paths[i];
        }
    return NULL;
}

/* A free entry, or that of the destination not asked for longest. NULL when memory is out. */
static struct detour_metapath *metapath_slot(struct detour_source *s, uint32_t cache)
{
    if (s->npaths < s->cap)
        return &s->paths[s->npaths++];
    if (s->npaths < cache) {
        uint32_t cap = s->cap ? 2 * s->cap : 2;
        cap = cap > cache ? cache : cap;
        struct detour_metapath *more = realloc(s->paths, cap * sizeof *more);
        if (!more)
            return NULL;
        s->paths = more;
        struct detour_key *keys = realloc(s->key, cap * sizeof *keys);
        if (!keys)
            return NULL;
        s->key = keys;
        s->cap = cap;
        return &s->paths[s->npaths++];
    }
    uint32_t old = 0;
    for (uint32_t i = 1; i < s->npaths; i++)
        if (s->key[i].used < s->key[old].used)
            old = i;
    return &s->paths[old];
}

struct detour_metapath *detour_metapath_make(struct detour *d, struct detour_source *s, int32_t dest, uint64_t now)
{
    struct detour_metapath *m = metapath_slot(s, d->config.cache);
    if (!m)
        return NULL;
    int hops = fabric_hops(d->fabric, detour_home(d, s), fabric_home(d->fabric, dest), dest);
    *m = (struct detour_metapath){
        .dest = dest, .open = 1, .nroutes = 1, .version = s->faults.version, .view = d->view, .changed_ns = now};
    s->key[m - s->paths] = (struct detour_key){dest, s->choices};
    m->route[0].hops = (uint16_t)hops;
    m->route[0].latency_ns = (hops + 1) * (double)d->config.hop_ns;
    return m;
}

static bool is_blocking(const struct detour *d, const struct detour_fault *f, uint64_t now)
{
    return d->config.forget ? !f->works && now < f->retry_ns : f->permanent;
}

/* Is nothing known against any cable of a path? */
static bool path_usable(const struct detour *d, const struct detour_source *s, const struct detour_path *path,
                        int32_t dest, uint64_t now)
{
    struct detour_walk w;
    detour_walk_begin(&w, d->fabric, detour_home(d, s), path, dest);
    for (int32_t link; (link = detour_walk_next(&w)) >= 0;) {
        const struct detour_fault *f = detour_faults_find(&s->faults, fabric_cable(d->fabric, link));
        if (d->avoid[link] || (f && is_blocking(d, f, now)))
            return false;
    }
    return true;
}

/* Nothing is known against any cable: original paths need not be walked along. */
static bool is_whole(const struct detour *d, const struct detour_source *s)
{
    return !s->faults.used && !d->view && d->fabric->kind != FABRIC_GRAPH;
}

/* "If there are no permanent link failures along the original path, each new message is sent through that path." */
static bool original_usable(const struct detour *d, const struct detour_source *s, int32_t dest, uint64_t now)
{
    return is_whole(d, s) || path_usable(d, s, &original, dest, now);
}

/* One message tries what is due to be tried; the next ones wait until the answer or another retry_ns. returns whether
 * there was something. */
static bool claim_trial(const struct detour *d, struct detour_source *s, int32_t dest, uint64_t now)
{
    bool claimed = false;
    if (!d->config.forget || !s->faults.used)
        return false;
    struct detour_walk w;
    detour_walk_begin(&w, d->fabric, detour_home(d, s), &original, dest);
    for (int32_t link; (link = detour_walk_next(&w)) >= 0;) {
        struct detour_fault *f = detour_faults_find(&s->faults, fabric_cable(d->fabric, link));
        if (f && !f->works) {
            f->retry_ns = now + d->config.retry_ns;
            claimed = true;
        }
    }
    return claimed;
}

void detour_mark_faults(struct detour *d, const struct detour_source *s, uint8_t value)
{
    for (uint32_t i = 0; i < s->faults.used; i++)
        if (!s->faults.entry[i].works)
            detour_mark(d, s->faults.entry[i].cable, value);
}

/* Drop alternatives that use a cable known as broken or a dead router. */
static void metapath_refresh(struct detour *d, const struct detour_source *s, struct detour_metapath *m)
{
    if (m->version == s->faults.version && m->view == d->view)
        return;
    int n = 1;
    if (m->nroutes > 1)
        detour_mark_faults(d, s, 1);
    for (int i = 1; i < m->nroutes; i++)
        if (detour_path_hops(d, detour_home(d, s), &m->route[i].path, m->dest, INT_MAX) >= 0)
            m->route[n++] = m->route[i];
    if (m->nroutes > 1)
        detour_mark_faults(d, s, 0);
    m->nroutes = n;
    m->version = s->faults.version;
    m->view = d->view;
}

/* One more alternative, not among those there are. */
static bool metapath_extend(struct detour *d, struct detour_source *s, struct detour_metapath *m, uint64_t now,
                            struct rng *rng)
{
    if (m->nroutes >= d->config.max_paths)
        return false;
    const struct detour_query q = {
        .from = detour_home(d, s), .dest = m->dest, .both_ends = true, .skip = m->nroutes, .known = m->route};
    struct detour_route *r = &m->route[m->nroutes];
    memset(r, 0, sizeof *r);
    bool planned = m->nroutes == 1 && detour_plan_route(d, s, m->dest, d->config.expect.noise, now, rng, &r->path);
    detour_mark_faults(d, s, 1);
    int hops = planned ? detour_path_hops(d, q.from, &r->path, q.dest, INT_MAX) : detour_search(d, &q, rng, &r->path);
    detour_mark_faults(d, s, 0);
    if (hops < 0)
        return false;
    r->hops = (uint16_t)hops;
    r->latency_ns = m->route[0].latency_ns * (hops + 1) / (m->route[0].hops + 1);
    m->nroutes++;
    return true;
}

/* The routes traffic may take now, at most m->open; finds more where there are too few. */
static int metapath_usable(struct detour *d, struct detour_source *s, struct detour_metapath *m, bool original_ok,
                           uint64_t now, struct rng *rng, int pick[DETOUR_MAX_PATHS])
{
    metapath_refresh(d, s, m);
    if (d->config.spread && m->open < d->config.max_paths && m->nroutes > m->open - original_ok)
        m->open++; /* one more each time, as many destinations get only one message */
    int n = 0, seen = 0;
    do {
        for (; seen < m->nroutes && n < m->open; seen++)
            if (now >= m->route[seen].rest_until && (seen > 0 || original_ok))
                pick[n++] = seen;
    } while (n < m->open && metapath_extend(d, s, m, now, rng));
    return n;
}

/* One of these routes, with probabilities by inverse latency. */
static int draw(const struct detour *d, const struct detour_metapath *m, const int *pick, int n, struct rng *rng)
{
    double weight[DETOUR_MAX_PATHS], sum = 0;
    for (int i = 0; i < n; i++) {
        double inverse = m->route[pick[0]].latency_ns / m->route[pick[i]].latency_ns;
        weight[i] = 1;
        for (int k = 0; k < d->config.sharpness; k++)
            weight[i] *= inverse;
        sum += weight[i];
    }
    double at = rng_double(rng) * sum;
    int i = 0;
    while (i < n - 1 && (at -= weight[i]) >= 0)
        i++;
    return pick[i];
}

/* A message that tries what is due takes the original path, the others the one that the plan names. */
static bool choose_planned(struct detour *d, struct detour_source *s, int32_t dest, bool ok, uint64_t now,
                           struct detour_path *path)
{
    if (ok && claim_trial(d, s, dest, now))
        return true;
    struct detour_path way;
    if (!detour_plan_way(d, s, dest, now, &way) || !path_usable(d, s, &way, dest, now))
        return false;
    *path = way;
    return true;
}

bool detour_choose(struct detour *d, struct detour_source *s, int32_t dest, uint64_t now, struct rng *rng,
                   struct detour_path *path)
{
    *path = original;
    s->choices++;
    struct detour_metapath *m = detour_metapath_find(s, dest);
    if (!m && is_whole(d, s))
        return true;
    bool ok = original_usable(d, s, dest, now);
    if (d->config.plan && choose_planned(d, s, dest, ok, now, path))
        return true;
    if (ok && (!m || (m->open == 1 && now >= m->route[0].rest_until))) {
        claim_trial(d, s, dest, now);
        return true;
    }
    if (!m)
        m = detour_metapath_make(d, s, dest, now);
    if (!m)
        return ok; /* out of memory: the original path is always there */
    int pick[DETOUR_MAX_PATHS], n = metapath_usable(d, s, m, ok, now, rng, pick);
    if (n == 0)
        return false;
    int i = n > 1 ? draw(d, m, pick, n, rng) : pick[0];
    if (i == 0)
        claim_trial(d, s, dest, now);
    *path = m->route[i].path;
    return true;
}

bool detour_escape(struct detour *d, int32_t at, int32_t dest, const int32_t *known, int n, struct rng *rng,
                   struct detour_path *path)
{
    for (int i = 0; i < n; i++)
        detour_mark(d, known[i], 1);
    const struct detour_query q = {.from = at, .dest = dest};
    int hops = detour_search(d, &q, rng, path);
    for (int i = 0; i < n; i++)
        detour_mark(d, known[i], 0);
    return hops >= 0;
}
