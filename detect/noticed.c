/* Entry points by which the owner says what its connections, and other nodes' kernels and witnesses, tell it. */
#include "detect/member_internal.h"

/* A broken connection: the process may just have died. Ask its kernel at once. */
void member_broken(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    struct watch *w = watch_find(&m->detector, node);
    if (w)
        w->posted = 0;
    struct target *tg = target_find(&m->detector, node);
    if (!m->halted && is_live(m, node)) {
        if (tg && (tg->state == TARGET_ANSWERS || tg->state == TARGET_BEYOND) && since(m, tg->next_probe) > 0) {
            tg->next_probe = m->t + PROBE_GAP_MAX;
            m->ops.probe(m->ops.user, node);
        } else {
            detector_suspect(m, node, w ? w->last_life : m->t, "connection broken");
        }
    }
    member_leave(m);
}

void member_refused(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    if (!m->halted && is_member(m, node) &&
        !verdict_believe(m, node, MEMBER_REFUSED, m->p.self, "connection refused: no process listens"))
        contact_no_quorum(m);
    member_leave(m);
}

/* It says nothing of the agent. */
void member_kernel(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    struct target *tg = target_find(&m->detector, node);
    if (tg && !m->halted)
        tg->last_kernel = m->t;
    if (!m->halted)
        contact_host(m, node);
    member_leave(m);
}

void member_unasked(struct member *m, int node, uint64_t now)
{
    if (node < 0 || node >= m->p.n || node == m->p.self)
        return;
    member_enter(m, now);
    struct target *tg = target_find(&m->detector, node);
    if (tg && !m->halted)
        tg->last_unasked = m->t;
    member_leave(m);
}

void member_runs(struct member *m, int node, uint64_t now)
{
    struct target *tg = node >= 0 && node < m->p.n ? target_find(&m->detector, node) : NULL;
    if (tg)
        tg->stopped_since = tg->last_stopped = 0;
    member_kernel(m, node, now);
}

void member_stopped(struct member *m, int node, uint64_t now)
{
    member_kernel(m, node, now);
    struct target *tg = node >= 0 && node < m->p.n ? target_find(&m->detector, node) : NULL;
    if (!tg)
        return;
    tg->last_stopped = m->t;
    if (!tg->stopped_since)
        tg->stopped_since = m->t;
}
