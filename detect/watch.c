/* Who is watched, and what reading its heartbeat shows. */
#include "detect/member_internal.h"

struct watch *watch_find(const struct detector *d, int node)
{
    for (int i = 0; i < d->n_watch; i++)
        if (d->watch[i].node == node)
            return &d->watch[i];
    return NULL;
}

static void watch_add(struct member *m, int node)
{
    struct detector *d = &m->detector;
    if (!grow((void **)&d->watch, &d->cap_watch, d->n_watch + 1, sizeof *d->watch)) {
        member_halt(m, "out of memory");
        return;
    }
    struct watch *w = &d->watch[d->n_watch++];
    *w = (struct watch){.node = node, .fresh = true, .next_read = m->t, .last_life = m->t};
    m->ops.watch(m->ops.user, node, true);
}

/* Whom to read when these are away. The topology is of those that were ever born. */
int watch_targets(const struct member *m, const struct idset *away, int want[WATCH_MAX])
{
    struct member_params p = m->p;
    p.n = m->roster.next_id;
    return m->joining.born ? topology_targets(&p, away, want, WATCH_MAX) : 0;
}

/* After a change of who is dead: the topology closes over them. */
void detector_rewatch(struct member *m)
{
    struct detector *d = &m->detector;
    int want[WATCH_MAX];
    int n = watch_targets(m, &m->roster.dead, want);
    for (int i = 0; i < d->n_watch; i++)
        d->watch[i].fresh = false;
    for (int i = 0; i < n; i++) {
        struct watch *w = watch_find(d, want[i]);
        if (w)
            w->fresh = true;
    }
    for (int i = 0; i < d->n_watch;) {
        if (d->watch[i].fresh) {
            i++;
            continue;
        }
        int node = d->watch[i].node;
        d->watch[i] = d->watch[--d->n_watch];
        m->ops.watch(m->ops.user, node, false);
    }
    for (int i = 0; i < n; i++)
        if (!watch_find(d, want[i]) && d->n_watch < WATCH_MAX)
            watch_add(m, want[i]);
}

static void note_latency(const struct member *m, struct watch *w)
{
    uint64_t us = w->posted ? since(m, w->posted) / 1000 : 0;
    int bucket = us ? 63 - __builtin_clzll(us) : 0;
    w->latency[bucket < MEMBER_LATENCY_BUCKETS ? bucket : MEMBER_LATENCY_BUCKETS - 1]++;
    w->reads++;
}

void member_heartbeat(struct member *m, int node, uint64_t word, uint64_t now)
{
    uint64_t counter = word & ((1ull << MEMBER_BEAT_BITS) - 1);
    if (node < 0 || node >= m->p.n)
        return;
    member_enter(m, now);
    struct watch *w = watch_find(&m->detector, node);
    if (w && !m->halted) {
        uint64_t began = w->posted;
        note_latency(m, w);
        w->posted = 0;
        w->last_done = m->t;
        w->late_ns = patience_published((unsigned)(word >> MEMBER_BEAT_BITS));
        if (!w->have_counter || counter != w->counter) {
            w->have_counter = true;
            w->counter = counter;
            w->last_life = m->t;
            w->same = 0;
            contact_sign_of_life(m, node, began);
        } else {
            w->same++;
        }
    }
    member_leave(m);
}

uint64_t watch_late_at(const struct member *m, const struct watch *w)
{
    bool seen = w->have_counter || contact_has_seen(m, w->node);
    uint64_t sign = seen ? w->last_life : later(w->last_life, m->created + m->p.startup_ns);
    return sign + m->p.late_ns;
}

void watch_tick(struct member *m, struct watch *w)
{
    if (m->t >= w->next_read && (!w->posted || since(m, w->posted) >= m->p.late_ns)) {
        w->posted = m->t;
        w->next_read += m->p.period_ns;
        if (w->next_read <= m->t)
            w->next_read = m->t + m->p.period_ns;
        m->ops.read(m->ops.user, w->node);
    }
    if (m->t >= watch_late_at(m, w))
        detector_suspect(m, w->node, w->last_life, "heartbeat late");
}
