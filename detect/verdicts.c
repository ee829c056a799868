/* Verdicts: nodes that this member believes dead, by what it found itself or what others report. Never taken back. */
#include "detect/member_internal.h"

/* Where it is among the deaths, or belongs. */
static struct death *death_at(const struct verdicts *v, int node)
{
    int lo = 0, hi = v->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (v->deaths[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return &v->deaths[lo];
}

void verdict_adopt(struct member *m, int node, enum member_evidence evidence, int finder, const char *text)
{
    struct verdicts *v = &m->verdicts;
    if (node == m->p.self || !is_member(m, node) || m->halted)
        return;
    bool known = idset_has(&m->roster.dead, node), was_certain = idset_has(&m->roster.positive, node);
    if (known && (evidence != MEMBER_REFUSED || idset_has(&m->roster.positive, node)))
        return;
    if (!known && !grow((void **)&v->deaths, &v->cap, v->n + 1, sizeof *v->deaths)) {
        member_halt(m, "out of memory");
        return;
    }
    if (evidence == MEMBER_REFUSED)
        member_put(m, &m->roster.positive, node);
    member_put(m, &m->roster.dead, node);
    if (!idset_del(&m->patience.costly, node) || !idset_del(&m->patience.fatal, node))
        member_halt(m, "out of memory");
    if (!known)
        v->undeclared_since = m->t; /* as long as verdicts fall there is more to propose */
    struct death *d = death_at(v, node);
    if (!known) {
        memmove(d + 1, d, (size_t)(v->deaths + v->n++ - d) * sizeof *d);
        *d = (struct death){.node = node, .finder = finder};
    }
    d->evidence = evidence;
    if (evidence == MEMBER_REFUSED)
        v->n_uncertain -= known && !was_certain;
    else
        v->n_uncertain += !known && !was_certain;
    detector_forget(m, node);
    member_note(m, MEMBER_REPORT_VERDICT, node, evidence, m->ledger.epoch, text);
    if (!known)
        detector_rewatch(m);
    agreement_deaths_changed(m, finder == m->p.self);
}

bool verdict_believe(struct member *m, int node, enum member_evidence evidence, int finder, const char *text)
{
    if (node == m->p.self || m->halted || !m->joining.born)
        return true;
    if (is_live(m, node) && !contact_stays_admissible(m, node, evidence))
        return false;
    verdict_adopt(m, node, evidence, finder, text);
    return true;
}
