/* Having deaths and events ordered: what this member has to say goes to the coordinator, once for each change, and
 * again until the coordinator has taken it: a pong with the flag TAKEN and the report's number. From then on it is the
 * coordinator's, and this member only asks again in long intervals, or when another becomes coordinator.
 *
 * A coordinator that takes nothing, and of which nothing is heard, is looked at. While it does not answer, who would be
 * coordinator after it is told as well, and looked at, and so on: several may be gone, and each believed alive by
 * somebody else. One that is heard is slow, not dead: to say it more often, or to ask others, would only make it
 * slower.
 *
 * Many deaths are told in shares of a message. Whoever is to be coordinator, but does not believe it yet, answers a
 * share that it believes with the flag KNOWN, and gets the next one at once: where half of all have died it believes
 * it after the last share only. */
#include "detect/member_internal.h"

enum { CANDIDATES_MAX = 8 };

/* ------------------------------------------------------------------------------------------------ as member */

/* It is said at `at`, and from then on in intervals that begin anew. */
static void report_at(struct member *m, uint64_t at)
{
    struct report *r = &m->report;
    r->taken = false;
    r->since = r->next = at;
    r->rto = rtt_rto(m, &r->rtt, 1);
    r->hold = m->p.late_ns;
}

/* There is something new to say: what was taken so far does not contain it. */
static void report_due(struct member *m)
{
    m->report.changed = detector_nonce(m);
    report_at(m, m->t);
}

uint32_t report_submit(struct member *m, const struct view_event *event)
{
    uint32_t seq = events_submit(&m->events, m->p.self, event);
    if (!seq)
        member_halt(m, "out of memory");
    else if (m->events.n_mine <= MEMBER_BATCH_MAX) /* later ones have their turn after a commit */
        report_due(m);
    return seq;
}

uint32_t member_submit(struct member *m, const struct view_event *event, uint64_t now)
{
    member_enter(m, now);
    uint32_t seq = !m->halted && event->type >= VIEW_EVENT_FIRST ? report_submit(m, event) : 0;
    member_leave(m);
    return seq;
}

/* Our own verdict is reported at once; what others told us only if nothing has come of it after a while. */
void report_death(struct member *m, bool own)
{
    const struct report *r = &m->report;
    if (own)
        report_due(m);
    else if (r->next <= m->t || (m->verdicts.n == 1 && !m->events.n_mine))
        report_at(m, m->t + m->p.rto_max_ns + rng_below(&m->rng, m->p.late_ns));
}

static void poll_later(struct member *m)
{
    m->next_poll = m->t + later(m->poll_rto, rtt_rto(m, &m->report.rtt, 1));
}

/* A view came: what did not fit into the report before has its turn. */
void report_committed(struct member *m)
{
    struct report *r = &m->report;
    m->poll_rto = 4 * m->p.rto_ns;
    poll_later(m);
    int last = m->events.n_mine < MEMBER_BATCH_MAX ? m->events.n_mine : MEMBER_BATCH_MAX;
    if (last > 0 && m->events.mine[last - 1].seq > r->said)
        report_due(m);
}

/* A sign of life of the coordinator. */
void report_heard(struct member *m, int node)
{
    if (node == m->report.to)
        m->report.heard = m->t;
}

static bool is_own(const struct member *m, const struct death *d)
{
    return d->finder == m->p.self;
}

static bool was_said(const struct report *r, int node)
{
    for (int k = 0; k < r->n_said; k++)
        if (r->said_dead[k] == node)
            return true;
    return false;
}

void report_taken(struct member *m, int node, uint64_t nonce)
{
    struct verdicts *v = &m->verdicts;
    struct report *r = &m->report;
    if (node != r->to || nonce > m->nonce)
        return;
    bool more = false; /* than one message holds: the next ones have their turn */
    for (int i = 0; i < v->n; i++) {
        v->deaths[i].taken |= nonce == r->said_nonce && was_said(r, v->deaths[i].node);
        more |= is_own(m, &v->deaths[i]) && !v->deaths[i].taken;
    }
    if (r->taken || nonce <= r->changed)
        return;
    rtt_note(&r->rtt, m->now > nonce ? m->now - nonce : 0);
    if (more) {
        report_due(m);
        return;
    }
    r->taken = true;
    r->next = m->t + r->hold;
    r->hold = 2 * r->hold < m->p.answer_ns ? 2 * r->hold : m->p.answer_ns;
}

void report_known(struct member *m, int node, uint64_t nonce)
{
    struct verdicts *v = &m->verdicts;
    struct report *r = &m->report;
    if (node != r->to || nonce != r->said_nonce || r->taken)
        return;
    bool more = false;
    for (int i = 0; i < v->n; i++) {
        v->deaths[i].told |= was_said(r, v->deaths[i].node);
        more |= !v->deaths[i].told;
    }
    if (more) {
        r->next = m->t;
        r->rto = rtt_rto(m, &r->rtt, 1);
    }
}

/* How soon a death has its turn in a report, 0 the first: those that who is to have them ordered does not know, our
 * own before others'. */
enum { URGENCIES = 4 };
static int urgency(const struct member *m, const struct death *d)
{
    bool urgent = is_own(m, d) && !d->taken;
    return 2 * d->told + !urgent;
}

/* As many as a message holds, others in each. */
static void add_deaths(const struct member *m, struct datagram *msg)
{
    const struct verdicts *v = &m->verdicts;
    for (int turn = 0; turn < URGENCIES; turn++)
        for (int i = 0; i < v->n && msg->n_deaths < MEMBER_BATCH_MAX; i++) {
            const struct death *d = &v->deaths[(i + m->report.from) % v->n];
            if (urgency(m, d) == turn)
                msg->deaths[msg->n_deaths++] = *d;
        }
}

void report_tell_deaths(struct member *m, int to)
{
    struct datagram msg = {.type = DATAGRAM_REPORT};
    add_deaths(m, &msg);
    member_post(m, to, &msg);
}

static void send_report(struct member *m, int to)
{
    struct datagram msg = {.type = DATAGRAM_REPORT, .nonce = detector_nonce(m)};
    add_deaths(m, &msg);
    for (int i = 0; i < m->events.n_mine && i < MEMBER_BATCH_MAX; i++) {
        msg.batch.e[msg.batch.n++] =
            (struct batch_entry){.node = m->p.self, .seq = m->events.mine[i].seq, .event = m->events.mine[i].event};
        m->report.said = m->events.mine[i].seq;
    }
    m->report.said_nonce = msg.nonce;
    m->report.n_said = msg.n_deaths;
    for (int i = 0; i < msg.n_deaths; i++)
        m->report.said_dead[i] = msg.deaths[i].node;
    member_post(m, to, &msg);
}

/* For how long has the coordinator taken nothing and said nothing? One that only talks has a limit, too: it may not
 * hear us. */
static uint64_t silence(const struct member *m)
{
    const struct report *r = &m->report;
    uint64_t untaken = since(m, r->since), silent = since(m, later(r->since, r->heard));
    return untaken > m->p.answer_ns ? later(silent, untaken - m->p.answer_ns) : silent;
}

static bool has_own(const struct member *m)
{
    bool own = m->events.n_mine > 0;
    for (int i = 0; i < m->verdicts.n; i++)
        own |= is_own(m, &m->verdicts.deaths[i]);
    return own;
}

static bool is_doubted(struct member *m, int node)
{
    const struct target *tg = target_find(&m->detector, node);
    return tg && (tg->state == TARGET_SUSPECT || tg->state == TARGET_BEYOND);
}

void report_send(struct member *m)
{
    struct verdicts *v = &m->verdicts;
    struct report *r = &m->report;
    int to = agreement_coordinator(m);
    if (!m->events.n_mine && !v->n)
        return;
    if (to != r->to) {
        r->to = to;
        r->heard = 0;
        for (int i = 0; i < v->n; i++)
            v->deaths[i].taken = v->deaths[i].told = false;
        if (has_own(m))
            report_due(m);
    }
    if (m->t < r->next)
        return;
    if (r->taken) {
        r->taken = false;
        r->since = m->t;
        r->rto = rtt_rto(m, &r->rtt, 1);
    }
    r->next = m->t + r->rto;
    r->rto = 2 * r->rto < rtt_rto_max(m, &r->rtt, 1) ? 2 * r->rto : rtt_rto_max(m, &r->rtt, 1);
    bool look = silence(m) >= m->p.late_ns;
    int candidates = 1;
    for (int id = to; id < m->p.n && !m->halted; id = idset_next_out(&m->roster.dead, id + 1)) {
        if (id == m->p.self) {
            events_enqueue_mine(&m->events, m->p.self);
            break; /* those after us would not be coordinator before us */
        }
        send_report(m, id);
        if (look)
            detector_check(m, id, "no answer to a report");
        if (!look || !is_doubted(m, id) || ++candidates > CANDIDATES_MAX)
            break;
    }
    /* Who is told is coordinator, and takes what it was told, only when it knows of all deaths below it: so the next
     * ones next time, also if all answers are lost. */
    if (v->n > MEMBER_BATCH_MAX)
        r->from = (r->from + MEMBER_BATCH_MAX) % v->n;
}

uint64_t report_deadline(const struct member *m)
{
    return m->events.n_mine || m->verdicts.n ? m->report.next : NEVER;
}

/* ------------------------------------------------------------------------------------------------ what has come of
 * it */

/* Something is under way whose end we have not heard. */
static bool polls(const struct member *m)
{
    return agreement_coordinator(m) != m->p.self && (m->ledger.settled != m->ledger.epoch || m->proposal.open);
}

/* Then the coordinator is asked how far it is (its answer's header says it), if nothing is heard of it. One that does
 * not answer at all comes under suspicion. */
void poll_tick(struct member *m)
{
    const struct report *r = &m->report;
    int coordinator = agreement_coordinator(m);
    uint64_t heard = coordinator == r->to ? r->heard : 0;
    if (!polls(m) || m->t < m->next_poll)
        return;
    if (heard + m->poll_rto > m->t) {
        poll_later(m);
        return;
    }
    struct datagram ping = {.type = DATAGRAM_PING, .nonce = ++m->nonce};
    member_post(m, coordinator, &ping);
    poll_later(m);
    m->poll_rto = 2 * m->poll_rto < rtt_rto_max(m, &r->rtt, 1) ? 2 * m->poll_rto : rtt_rto_max(m, &r->rtt, 1);
    if (m->proposal.open && since(m, later(m->proposal.since, heard)) >= m->p.late_ns)
        detector_check(m, coordinator, "proposal without an end");
}

uint64_t poll_deadline(const struct member *m)
{
    return polls(m) ? m->next_poll : NEVER;
}

/* ------------------------------------------------------------------------------------------------ as coordinator */

/* Are all deaths that it says believed here? */
static bool is_known(const struct member *m, const struct datagram *msg)
{
    bool known = true;
    for (int i = 0; i < msg->n_deaths; i++)
        known &= !is_live(m, msg->deaths[i].node);
    return known;
}

/* Is all that it says known here, and ours to have ordered? */
static bool is_taken(const struct member *m, const struct datagram *msg)
{
    bool taken = agreement_coordinator(m) == m->p.self && is_known(m, msg);
    for (int i = 0; i < msg->batch.n; i++)
        taken &= msg->batch.e[i].seq <= events_last_known(&m->events, msg->batch.e[i].node);
    return taken;
}

void report_take(struct member *m, const struct datagram *msg)
{
    for (int i = 0; i < msg->n_deaths && !m->halted; i++)
        if (!verdict_believe(m, msg->deaths[i].node, msg->deaths[i].evidence, msg->deaths[i].finder, "reported"))
            contact_check_begin(m, 0); /* are we cut off, or the one who reports? */
    for (int i = 0; i < msg->batch.n && !m->halted; i++) {
        const struct batch_entry *e = &msg->batch.e[i];
        bool right = e->event.type >= VIEW_EVENT_FIRST || e->event.type == VIEW_NODE_BORN;
        if (right && is_member(m, e->node))
            (void)events_enqueue(&m->events, &(struct pending){.node = e->node, .seq = e->seq, .event = e->event});
    }
    struct datagram pong = {.type = DATAGRAM_PONG};
    if (is_taken(m, msg)) {
        pong.flags = DATAGRAM_TAKEN;
        pong.nonce = msg->nonce;
    } else if (msg->nonce && msg->n_deaths && agreement_coordinator(m) != m->p.self && is_known(m, msg)) {
        pong.flags = DATAGRAM_KNOWN;
        pong.nonce = msg->nonce;
    }
    if (!m->halted && (msg->nonce || !pong.flags))
        member_post(m, msg->src, &pong);
}
