/* What a source learns from acknowledgements and from silences: of its paths, and of cables. */
#include "runtime/topo/detour_search.h"

static struct detour_route *route_find(struct detour_metapath *m, const struct detour_path *path)
{
    for (int i = 0; i < m->nroutes; i++)
        if (detour_path_equal(&m->route[i].path, path))
            return &m->route[i];
    return NULL;
}

static double wait_per_hop(const struct detour *d, double latency_ns, int hops)
{
    return latency_ns / (hops + 1) - d->config.hop_ns;
}

/* "The number of alternative paths ... is determined using the set of collected latencies": open one more while
 * messages wait long, close one when they do not. The mean is over messages, so a path counts as often as it is chosen.
 */
static void metapath_adapt(const struct detour *d, struct detour_metapath *m, uint64_t now)
{
    if (d->config.spread || now - m->changed_ns < d->config.settle_ns)
        return;
    double sum = 0, wait = 0;
    for (int i = 0; i < m->nroutes; i++) {
        const struct detour_route *r = &m->route[i];
        if (!r->fresh)
            continue;
        sum += 1 / r->latency_ns;
        wait += wait_per_hop(d, r->latency_ns, r->hops) / r->latency_ns;
    }
    if (sum <= 0)
        return;
    int open = m->open;
    if (wait / sum > d->config.grow_wait_ns && open < d->config.max_paths)
        open++;
    else if (wait / sum < d->config.shrink_wait_ns && open > 1)
        open--;
    if (open != m->open) {
        m->open = open;
        m->changed_ns = now;
        for (int i = 0; i < m->nroutes; i++)
            m->route[i].fresh = false;
    }
}

/* A message came through every cable of the path, at when_ns or later. Others are told, so the entry stays. */
static void clear_faults(const struct detour *d, struct detour_source *s, int32_t dest, const struct detour_path *path,
                         uint64_t when_ns)
{
    if (!s->faults.used)
        return;
    struct detour_walk w;
    detour_walk_begin(&w, d->fabric, detour_home(d, s), path, dest);
    for (int32_t link; (link = detour_walk_next(&w)) >= 0;) {
        int32_t cable = fabric_cable(d->fabric, link);
        if (!d->config.tell) {
            detour_faults_remove(&s->faults, cable);
            continue;
        }
        struct detour_fault *f = detour_faults_find(&s->faults, cable);
        if (f)
            f->doubts = 0;
        if (!f || f->works || f->last_ns >= when_ns)
            continue;
        if (f->out_ns < d->config.tell_ns) {
            detour_faults_remove(&s->faults, cable); /* nobody needs to hear of it */
            continue;
        }
        f = detour_faults_renew(&s->faults, f);
        detour_faults_end(f, 0, when_ns);
    }
}

void detour_acked(struct detour *d, struct detour_source *s, int32_t dest, const struct detour_path *path,
                  uint64_t latency_ns, uint64_t now)
{
    clear_faults(d, s, dest, path, latency_ns <= now / 2 ? now - 2 * latency_ns : 0);
    struct detour_metapath *m = detour_metapath_find(s, dest);
    if (!m) {
        if (path->nvia || d->config.max_paths < 2)
            return;
        int hops = fabric_hops(d->fabric, detour_home(d, s), fabric_home(d->fabric, dest), dest);
        if (wait_per_hop(d, (double)latency_ns, hops) <= d->config.grow_wait_ns)
            return;
        m = detour_metapath_make(d, s, dest, now);
        if (!m)
            return;
        m->open = 2;
    }
    struct detour_route *r = route_find(m, path);
    if (!r)
        return;
    double sample = latency_ns ? (double)latency_ns : 1.0;
    r->latency_ns = r->tried ? r->latency_ns + (sample - r->latency_ns) / 4 : sample;
    r->tried = r->fresh = true;
    r->silent = 0;
    r->rest_until = 0;
    metapath_adapt(d, m, now);
}

/* Who is to blame for a silence. */
static void doubt_cables(struct detour *d, struct detour_source *s, int32_t dest, const struct detour_path *path,
                         uint64_t now)
{
    struct detour_walk w;
    int32_t cables = 0, last = -1;
    detour_walk_begin(&w, d->fabric, detour_home(d, s), path, dest);
    for (int32_t link; (link = detour_walk_next(&w)) >= 0;)
        if (!d->fabric->firm || !d->fabric->firm[link]) {
            cables++;
            last = fabric_cable(d->fabric, link);
        }
    if (cables == 1) {
        detour_faulted(d, s, last, 0, now);
        return;
    }
    detour_walk_begin(&w, d->fabric, detour_home(d, s), path, dest);
    for (int32_t link; (link = detour_walk_next(&w)) >= 0;) {
        int32_t cable = fabric_cable(d->fabric, link);
        if (d->fabric->firm && d->fabric->firm[link])
            continue;
        struct detour_fault *f = detour_faults_add(&s->faults, cable, d->config.max_faults);
        if (!f)
            return;            /* out of memory: the next silence tries again */
        if (f->last_ns == 0) { /* a new entry: under suspicion only */
            f->works = true;
            f->last_ns = now ? now : 1;
        }
        if (++f->doubts >= d->config.silence_limit) {
            f->doubts = 0;
            detour_faulted(d, s, cable, 0, now);
        }
    }
}

void detour_silent(struct detour *d, struct detour_source *s, int32_t dest, const struct detour_path *path,
                   uint64_t now)
{
    if (d->config.forget)
        doubt_cables(d, s, dest, path, now);
    struct detour_metapath *m = detour_metapath_find(s, dest);
    if (!m && path->nvia == 0)
        m = detour_metapath_make(d, s, dest, now);
    struct detour_route *r = m ? route_find(m, path) : NULL;
    if (!r)
        return;
    r->latency_ns = r->latency_ns < 1e12 ? r->latency_ns * 2 : r->latency_ns;
    if (++r->silent >= d->config.silence_limit) {
        r->silent = 0;
        r->rest_until = now + d->config.silence_hold_ns;
    }
}
