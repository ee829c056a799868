/* What a member has prepared, accepted and committed: the part of the view agreement that every member has, coordinator
 * or not (diagram and table: agreement.c), and the log, which is sent to whoever is behind. */
#include "detect/member_internal.h"

#include <stdlib.h>

enum { LOG_WINDOW = 4 };

static void note_ordered(struct member *m, const struct batch_entry *e)
{
    if (!events_set_ordered(&m->events, e->node, e->seq))
        member_halt(m, "out of memory");
}

static bool same_batch(const struct batch *a, const struct batch *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        const struct batch_entry *x = &a->e[i], *y = &b->e[i];
        if (x->node != y->node || x->seq != y->seq || x->event.type != y->event.type || x->event.a != y->event.a ||
            x->event.b != y->event.b || x->event.c != y->event.c || x->event.d != y->event.d)
            return false;
    }
    return true;
}

void ledger_prepare(struct member *m, const struct batch *batch)
{
    if (m->proposal.open && same_batch(&m->proposal.batch, batch))
        return; /* a new coordinator takes up what the old one began: our answer stands */
    m->proposal.open = true;
    m->proposal.batch = *batch;
    m->proposal.number++;
    m->proposal.since = m->t;
    m->proposal.prepared = false;
    m->proposal.value = 0;
    member_note(m, MEMBER_REPORT_PREPARE, -1, MEMBER_ALIVE, m->ledger.epoch + 1, "proposed");
    for (int i = 0; i < batch->n && !m->halted; i++) {
        const struct view_event *e = &batch->e[i].event;
        for (int node = batch_next_death(e, -1); node >= 0 && !m->halted; node = batch_next_death(e, node))
            verdict_adopt(m, node, (enum member_evidence)e->b, (int)e->c, "declared in a proposal");
    }
    if (m->halted)
        return;
    struct view_event events[MEMBER_EVENTS_MAX];
    int n = batch_events(batch, events);
    m->ops.prepare(m->ops.user, m->ledger.epoch + 1, m->proposal.number, events, n);
}

void ledger_accept(struct member *m, uint64_t ballot, const struct batch *batch, uint64_t value)
{
    m->accepted.any = true;
    m->accepted.ballot = ballot;
    m->accepted.batch = *batch;
    m->accepted.value = value;
}

void member_prepared(struct member *m, uint64_t proposal, uint64_t value, uint64_t now)
{
    member_enter(m, now);
    if (!m->halted && m->proposal.open && !m->proposal.prepared && proposal == m->proposal.number) {
        m->proposal.prepared = true;
        m->proposal.value = value;
        if (m->wave.phase == PHASE_PREPARE && m->wave.index == m->ledger.epoch + 1)
            wave_self_done(m);
    }
    member_leave(m);
}

static void drop_pending(struct member *m)
{
    struct verdicts *v = &m->verdicts;
    int k = 0;
    events_drop(&m->events, m->p.self, &m->roster.gone);
    for (int i = 0; i < v->n; i++)
        if (is_member(m, v->deaths[i].node))
            v->deaths[k++] = v->deaths[i];
    v->n = k;
    v->n_uncertain = 0;
    for (int i = 0; i < k; i++)
        v->n_uncertain += !idset_has(&m->roster.positive, v->deaths[i].node);
}

void ledger_free(struct ledger *l)
{
    for (uint64_t i = 0; i < l->epoch; i++)
        free(l->log[i]);
    free(l->log);
}

static bool log_append(struct ledger *l, const struct batch *batch, uint64_t max_value)
{
    if (l->epoch == l->cap) {
        uint64_t cap = l->cap ? 2 * l->cap : 8;
        struct log_entry **log = realloc(l->log, cap * sizeof *log); // NOLINT(bugprone-sizeof-expression): of pointers
        if (!log)
            return false;
        l->log = log;
        l->cap = cap;
    }
    struct log_entry *e = calloc(1, sizeof *e);
    if (!e)
        return false;
    e->max_value = max_value;
    e->batch = *batch;
    l->log[l->epoch++] = e;
    return true;
}

static void declare_dead(struct member *m, const struct view_event *e, int node)
{
    if (e->b != MEMBER_REFUSED && (m->p.self == agreement_coordinator(m) || m->p.self == (int)e->c)) {
        /* If it lives it should end; if this is lost, it learns when it asks somebody. */
        struct datagram dead = {.type = DATAGRAM_DEAD};
        member_post(m, node, &dead);
    }
    member_put(m, &m->roster.gone, node);
    member_put(m, &m->roster.dead, node);
    if (e->b == MEMBER_REFUSED)
        member_put(m, &m->roster.positive, node);
    detector_forget(m, node);
}

/* Decided. The only place where the epoch moves. */
void ledger_commit(struct member *m, const struct batch *batch, uint64_t max_value)
{
    if (batch_declares(batch, m->p.self)) {
        member_halt(m, "declared dead by the others");
        return;
    }
    if (join_is_other(m, batch)) {
        member_halt(m, "its number was given to another node");
        return;
    }
    if (!log_append(&m->ledger, batch, max_value)) {
        member_halt(m, "out of memory");
        return;
    }
    for (int i = 0; i < batch->n; i++) {
        const struct batch_entry *e = &batch->e[i];
        for (int node = batch_next_death(&e->event, -1); node >= 0; node = batch_next_death(&e->event, node))
            declare_dead(m, &e->event, node);
        if (e->event.type == VIEW_NODE_BORN)
            join_bear(m, &e->event);
        if (e->event.type != VIEW_NODE_DEAD)
            note_ordered(m, e);
    }
    m->proposal.open = m->proposal.prepared = m->accepted.any = m->agreement.bound = false;
    /* What was under way for this index is over; as coordinator we go on with the next one. */
    if (m->wave.phase >= PHASE_COLLECT && m->wave.phase <= PHASE_ACCEPT && m->wave.index <= m->ledger.epoch) {
        wave_cancel(m);
        m->agreement.next_collect = m->t;
    }
    drop_pending(m);
    report_committed(m);
    detector_rewatch(m);
    member_note(m, MEMBER_REPORT_VIEW, -1, MEMBER_ALIVE, m->ledger.epoch, "committed");
    struct view_event events[MEMBER_EVENTS_MAX];
    int n = batch_events(batch, events);
    m->ops.commit(m->ops.user, m->ledger.epoch, events, n, max_value);
}

void ledger_settle(struct member *m, uint64_t epoch)
{
    struct ledger *l = &m->ledger;
    if (epoch > l->epoch)
        epoch = l->epoch;
    if (epoch <= l->settled || m->halted)
        return;
    l->settled = epoch;
    m->roster.all_seen = true; /* all have been there to commit it */
    idset_free(&m->roster.seen);
    member_note(m, MEMBER_REPORT_SETTLED, -1, MEMBER_ALIVE, epoch, "committed by all");
    m->ops.settled(m->ops.user, epoch);
}

/* ------------------------------------------------------------------------------------------------ who is behind */

void ledger_send(struct member *m, int to, uint64_t from)
{
    for (uint64_t index = from; index <= m->ledger.epoch && index < from + LOG_WINDOW; index++) {
        const struct log_entry *e = m->ledger.log[index - 1];
        struct datagram msg = {.type = DATAGRAM_LOG, .index = index, .value = e->max_value, .batch = e->batch};
        member_post(m, to, &msg);
    }
}

/* `who` has committed more than we have. */
void ledger_behind(struct member *m, int who)
{
    if (m->t < m->ledger.next_fetch)
        return;
    m->ledger.next_fetch = m->t + m->p.rto_ns;
    struct datagram msg = {.type = DATAGRAM_FETCH, .index = m->ledger.epoch + 1};
    member_post(m, who, &msg);
}

void ledger_take(struct member *m, const struct datagram *msg)
{
    if (msg->index != m->ledger.epoch + 1)
        return;
    ledger_commit(m, &msg->batch, msg->value);
    if (m->halted)
        return;
    m->ledger.next_fetch = 0;
}
