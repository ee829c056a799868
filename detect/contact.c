/* Our own contact with the others: were we away, and do we still hear a quorum? */
#include "detect/member_internal.h"

#define REFUSAL_GAP_NS (500ull * 1000 * 1000) /* no verdict refused for so long: that is over */

/* ------------------------------------------------------------------------------------------------ own absence
 *
 * Who was frozen or cut off for nearly the shortest limit may have been left out. If so, it hears of it from whoever it
 * reaches; but the others may have come to the end of the job meanwhile, and then their kernels refuse it as if they
 * had died. */

void contact_note_absence(struct member *m)
{
    struct contact *c = &m->contact;
    uint64_t shortest = m->p.limit_ns < m->p.stopped_ns ? m->p.limit_ns : m->p.stopped_ns;
    if (m->now - c->last_sign < shortest / 4 * 3)
        return;
    c->last_sign = m->now;
    c->absent = true;
    c->absent_at = m->t;
}

/* What was sent before the absence may be heard only now, so a sign is not enough; a heartbeat read that began some
 * time after it is: a member that knows us left out, or about to be, has closed that connection. */
static void note_contact(struct member *m, uint64_t began)
{
    struct contact *c = &m->contact;
    c->last_sign = m->now;
    if (c->absent && (since(m, c->absent_at) >= m->p.answer_ns || began >= c->absent_at + m->p.late_ns))
        c->absent = false;
}

/* May those believed dead have gone on without us, and ended? */
static bool may_be_left_out(const struct member *m)
{
    int total = member_count(m), left = m->roster.dead.count - m->roster.gone.count;
    return m->contact.absent &&
           quorum_admissible(total, left, left == total, idset_has(&m->roster.dead, lowest_member(m)));
}

bool contact_has_seen(const struct member *m, int node)
{
    return m->roster.all_seen || idset_has(&m->roster.seen, node);
}

void contact_note_seen(struct member *m, int node)
{
    if (!m->roster.all_seen)
        member_put(m, &m->roster.seen, node);
}

/* The node, if we look after it. */
static struct target *lives(struct member *m, int node, uint64_t began)
{
    note_contact(m, began);
    contact_note_seen(m, node);
    patience_heard(m, node);
    if (m->contact.check.active)
        member_put(m, &m->contact.check.heard, node);
    return target_find(&m->detector, node);
}

void contact_sign_of_life(struct member *m, int node, uint64_t began)
{
    struct target *tg = lives(m, node, began);
    if (tg)
        tg->last_direct = m->t;
}

void contact_sign_of_life_relayed(struct member *m, int node)
{
    struct target *tg = lives(m, node, 0);
    if (tg)
        target_indirect(m, tg, m->t);
}

/* Would those not believed dead still be a quorum? */
bool contact_stays_admissible(struct member *m, int node, enum member_evidence evidence)
{
    bool was = idset_has(&m->roster.dead, node),
         certain = evidence == MEMBER_REFUSED || idset_has(&m->roster.positive, node);
    certain &= m->verdicts.n_uncertain == (was && !idset_has(&m->roster.positive, node)); /* no other one */
    int lowest = lowest_member(m);
    if (!was && !idset_add(&m->roster.dead, node)) {
        member_halt(m, "out of memory");
        return false;
    }
    bool ok = quorum_admissible(member_count(m), m->p.n - m->roster.dead.count, certain, is_live(m, lowest)) &&
              !may_be_left_out(m);
    if (!was && !idset_del(&m->roster.dead, node))
        member_halt(m, "out of memory");
    return ok;
}

/* Ranks that have something to save are told some time before the end. */
static void tell_cut_off(struct member *m, uint64_t end)
{
    if (m->contact.cut_told)
        return;
    m->contact.cut_told = true;
    struct member_report r = {.kind = MEMBER_REPORT_CUT_OFF,
                              .node = m->p.self,
                              .epoch = m->ledger.epoch,
                              .now_ns = m->now,
                              .text = "too few of the others are heard",
                              .limit_ns = end > m->t ? end - m->t : 0};
    if (m->ops.report)
        m->ops.report(m->ops.user, &r);
}

/* Too many are silent: it may be us who are cut off, or the others have all stood still for a moment. Deciding nothing
 * is safe, so there is time to wait and see; if it stays so, we end. */
void contact_no_quorum(struct member *m)
{
    struct contact *c = &m->contact;
    if (!c->refused_since || since(m, c->refused_last) > REFUSAL_GAP_NS)
        c->refused_since = m->t;
    c->refused_last = m->t;
    tell_cut_off(m, c->refused_since + patience_alone(m));
    if (since(m, c->refused_since) >= patience_alone(m))
        member_halt(m, "no quorum: too many members are silent");
}

/* ------------------------------------------------------------------------------------------------ own contact */

/* Pings to everybody until a quorum has answered; if that does not come by `end`, we are the ones cut off. */
void contact_check_begin(struct member *m, uint64_t end)
{
    struct detector *d = &m->detector;
    struct contact_check *c = &m->contact.check;
    uint64_t last = c->start + patience_most(m) + patience_alone(m); /* there is always one more to suspect */
    if (c->active && end + patience_alone(m) > c->end)
        c->end = later(c->end, end + patience_alone(m) < last ? end + patience_alone(m) : last);
    if (c->active || (c->passed_at && since(m, c->passed_at) < m->p.answer_ns))
        return;
    if (!end)
        end = m->t + patience_most(m);
    m->contact.cut_told = false;
    idset_clear(&c->heard);
    idset_clear(&c->hosts);
    member_put(m, &c->heard, m->p.self);
    bool started = d->n_watch == 0;
    for (int i = 0; i < d->n_watch; i++)
        started |= contact_has_seen(m, d->watch[i].node);
    if (!started)
        end = later(end, m->created + m->p.startup_ns);
    *c = (struct contact_check){.active = true,
                                .start = m->t,
                                .end = later(end, m->t) + patience_alone(m),
                                .next_ping = m->t,
                                .gap = m->p.rto_ns,
                                .next = c->next,
                                .heard = c->heard,
                                .hosts = c->hosts};
}

/* Is whom we have heard, and do not believe dead since, a quorum? */
static bool is_quorum(const struct member *m, const struct idset *heard)
{
    int total = member_count(m), stay = heard->count - idset_common(heard, &m->roster.dead), lowest = lowest_member(m);
    int certain = m->roster.positive.count - idset_common(&m->roster.positive, &m->roster.gone);
    return quorum_admissible(total, stay, total - stay == certain, idset_has(heard, lowest) && is_live(m, lowest));
}

/* A host that answers while its agent does not was not cut off from us: with those that were heard they may be a
 * quorum. */
void contact_host(struct member *m, int node)
{
    struct contact_check *c = &m->contact.check;
    if (c->active && is_live(m, node))
        member_put(m, &c->hosts, node);
}

static bool reaches_quorum(struct member *m)
{
    struct contact_check *c = &m->contact.check;
    for (int i = idset_next(&c->heard, 0); i >= 0 && !m->halted; i = idset_next(&c->heard, i + 1))
        member_put(m, &c->hosts, i);
    return !m->halted && is_quorum(m, &c->hosts);
}

void contact_tick(struct member *m)
{
    struct contact_check *c = &m->contact.check;
    if (!c->active)
        return;
    if (is_quorum(m, &c->heard)) {
        c->active = false;
        c->passed_at = m->t;
        if (m->contact.cut_told)
            member_note(m, MEMBER_REPORT_IN_TOUCH, m->p.self, MEMBER_ALIVE, m->ledger.epoch,
                        "enough of the others are heard");
        m->contact.cut_told = false;
        return;
    }
    if (c->hosts.count > 0 && reaches_quorum(m)) {
        idset_clear(&c->hosts);
        c->end = later(c->end, m->t + patience_alone(m));
        c->start = m->t; /* nothing is cut */
    }
    if (since(m, c->start) >= m->p.limit_ns)
        tell_cut_off(m, c->end);
    if (m->t >= c->end) {
        member_halt(m, "no quorum: cut off from the others");
        return;
    }
    if (m->t < c->next_ping)
        return;
    bool lonely = since(m, c->start) > m->p.answer_ns;
    for (int i = 0; i < 4 + m->p.n / 16; i++) {
        c->next = (c->next + 1) % m->p.n;
        if (c->next == 0 && c->gap < m->p.rto_max_ns) /* who has not answered is not served by more of them */
            c->gap *= 2;
        /* who answered may be cut off with us, and have nobody of the other side to miss: it is to look too */
        if (is_member(m, c->next) && (lonely || !idset_has(&c->heard, c->next))) {
            struct datagram ping = {
                .type = DATAGRAM_PING, .nonce = detector_nonce(m), .flags = lonely ? DATAGRAM_LONELY : 0};
            member_post_direct(m, c->next, &ping);
            if (lonely && is_live(m, c->next) && !idset_has(&c->heard, c->next))
                m->ops.probe(m->ops.user, c->next);
        }
    }
    c->next_ping = m->t + c->gap;
}
