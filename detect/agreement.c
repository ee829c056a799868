/* View agreement: the same batches in the same order for every live member.
 *
 * Index e+1 is what turns view e into view e+1. The coordinator (the lowest member not believed dead) leads with a
 * ballot; a ballot is promised for all indexes at once, so only a change of coordinator costs the COLLECT phase.
 *
 *   coordinator                                       member
 *     IDLE --- not leading ---> COLLECT ----------->  promise; answer what was accepted for the index
 *      ^                           | all live answered
 *      |   +-----------------------+ something accepted: that again, else what is pending
 *      |   v
 *      |  PREPARE(batch) -------------------------->  the runtime fences; answer when prepared, with its value
 *      |   | all live answered
 *      |   v
 *      |  ACCEPT(batch, max) ---------------------->  accept
 *      |   | all live answered
 *      |   v
 *      |  COMMIT(batch, max) ---------------------->  apply, append to the log
 *      |   | all live answered  (a new PREPARE does not wait for it)
 *      |   v
 *      +- SETTLE ---------------------------------->  everybody has it
 *
 *   state     event                                   next      action
 *   IDLE      lowest live, ballot not ours            COLLECT   next higher ballot
 *   IDLE      leading, events pending                 PREPARE   at most MEMBER_BATCH_MAX events, deaths first; if any
 *                                                               is merely silent, COLLECT first: does a quorum hear us?
 *                                                               And if somebody was born since the last COLLECT.
 *   IDLE      leading, epoch not settled              COMMIT    the last epoch again
 *   COLLECT   answers of all live, one had accepted   PREPARE   the accepted batch of the highest ballot, and its value
 *   COLLECT   answers of all live, none had           IDLE      everybody has committed up to here
 *   PREPARE   answers of all live                     ACCEPT    max of the values
 *   ACCEPT    answers of all live                     COMMIT    settles the index before
 *   COMMIT    answers of the whole view               SETTLE
 *   COMMIT    answers of all live, not the whole view IDLE      the others are being declared dead
 *   COMMIT    events pending                          PREPARE
 *   any       somebody promised a higher ballot       IDLE      wait a little, at random
 *   any       believed dead: fewer to wait for        (checked again)
 *
 * "All live" = all of the view but those the coordinator believes dead. Those who answered COLLECT, PREPARE or ACCEPT
 * must be an admissible quorum (quorum.c). What was accepted by anybody is proposed again unchanged, batch and value:
 * this is Multi-Paxos, and PREPARE comes before it because everybody must have fenced and said its value before there
 * is something to accept. Deaths found after PREPARE go into the next index; their answers are not waited for, and
 * whoever has not answered yet is told of them: what its runtime waits for may be an acknowledgement of theirs. */
#include "detect/member_internal.h"

enum { UNDECLARED_LIMITS = 3 };

int agreement_coordinator(const struct member *m)
{
    int lowest = idset_next_out(&m->roster.dead, 0);
    return lowest < m->p.n ? lowest : m->p.self;
}

/* ------------------------------------------------------------------------------------------------ coordinator */

static bool is_root(const struct member *m, enum wave_phase phase)
{
    return m->wave.phase == phase && m->wave.root == m->p.self;
}

static void start_collect(struct member *m)
{
    struct agreement *ag = &m->agreement;
    uint64_t highest = ag->promised > ag->seen_ballot ? ag->promised : ag->seen_ballot;
    ag->promised = ag->seen_ballot = ((highest >> BALLOT_BITS) + 1) << BALLOT_BITS | (uint64_t)m->p.self;
    ag->leading = ag->collected = ag->bound = false;
    wave_start(m, PHASE_COLLECT, m->ledger.epoch + 1, NULL, 0);
}

/* With a ballot of its own, for a tree without those that have died meanwhile. What somebody has accepted is
 * proposed again. */
void agreement_begin_anew(struct member *m)
{
    start_collect(m);
}

/* Into the entry before, if that is near and they are many. False: the batch is full. */
static bool add_death(const struct member *m, struct batch *b, const struct death *d)
{
    struct view_event *last = b->n ? &b->e[b->n - 1].event : NULL;
    int behind = last ? d->node - (int)last->a : 0;
    if (m->verdicts.n > MEMBER_BATCH_MAX && last && last->b == d->evidence && behind > 0 && behind < BATCH_SPAN) {
        last->d |= 1ull << (behind - 1);
        return true;
    }
    if (b->n == MEMBER_BATCH_MAX)
        return false;
    b->e[b->n++] = (struct batch_entry){
        .node = d->finder,
        .event = {
            .type = VIEW_NODE_DEAD, .a = (uint32_t)d->node, .b = (uint32_t)d->evidence, .c = (uint32_t)d->finder}};
    return true;
}

/* A birth of another node than the next one, or a second one, comes to nothing: who asked for it did not know of the
 * other. */
static void add_event(const struct member *m, struct batch *b, const struct pending *p)
{
    struct batch_entry e = {.node = p->node, .seq = p->seq, .event = p->event};
    if (p->event.type == VIEW_NODE_BORN && ((int)p->event.a != m->roster.next_id || batch_birth(b)))
        e.event = (struct view_event){.type = BATCH_VOID};
    b->e[b->n++] = e;
}

/* What the next index carries: deaths first, those that are not certain before the others (a proposal that leaves them
 * out must name them to everybody), then events in the order they came. */
static bool make_batch(struct member *m, struct batch *b)
{
    struct verdicts *v = &m->verdicts;
    int said = 0, room = MEMBER_EVENTS_MAX - MEMBER_BATCH_MAX;
    b->n = 0;
    for (int certain = 0; certain < 2; certain++)
        for (int i = 0; i < v->n && said < room; i++)
            if (idset_has(&m->roster.positive, v->deaths[i].node) == certain && add_death(m, b, &v->deaths[i]))
                said++;
    for (int i = 0; i < m->events.n_queue && b->n < MEMBER_BATCH_MAX; i++)
        add_event(m, b, &m->events.queue[i]);
    return b->n > 0;
}

/* Who is merely silent may be well, and we cut off with a minority. A proposal fences at once, for good: so before it
 * we make sure that a quorum hears us. */
static bool leaves_out_silent(const struct member *m)
{
    return m->verdicts.n_uncertain > 0;
}

void agreement_pump(struct member *m)
{
    struct ledger *l = &m->ledger;
    struct agreement *ag = &m->agreement;
    if (agreement_coordinator(m) != m->p.self || m->halted)
        return;
    if (!ag->leading) {
        if (!is_root(m, PHASE_COLLECT) && m->t >= ag->next_collect)
            start_collect(m);
        return;
    }
    if (is_root(m, PHASE_COLLECT) || is_root(m, PHASE_PREPARE) || is_root(m, PHASE_ACCEPT))
        return;
    struct batch b;
    if (make_batch(m, &b)) {
        if ((leaves_out_silent(m) && !ag->collected) || ag->newborn) {
            start_collect(m);
            return;
        }
        ag->collected = false;
        wave_start(m, PHASE_PREPARE, l->epoch + 1, &b, 0);
    } else if (l->settled < l->epoch && !is_root(m, PHASE_COMMIT)) {
        const struct log_entry *e = l->log[l->epoch - 1];
        wave_start(m, PHASE_COMMIT, l->epoch, &e->batch, e->max_value);
    }
}

static bool says_certain(const struct batch *batch, int node)
{
    for (int i = 0; i < batch->n; i++) {
        const struct batch one = {.n = 1, .e = {batch->e[i]}};
        if (batch->e[i].event.b == MEMBER_REFUSED && batch_declares(&one, node))
            return true;
    }
    return false;
}

/* Would those whom we and the batch leave alive be a quorum? */
static bool batch_admissible(const struct member *m, const struct batch *batch)
{
    const struct verdicts *v = &m->verdicts;
    int stay = m->p.n - m->roster.dead.count, lowest = lowest_member(m);
    bool certain = true, lowest_stays = is_live(m, lowest);
    for (int i = 0; i < batch->n; i++) {
        const struct view_event *e = &batch->e[i].event;
        for (int node = batch_next_death(e, -1); node >= 0; node = batch_next_death(e, node)) {
            if (!is_live(m, node))
                continue; /* each is in a batch but once */
            stay--;
            certain &= e->b == MEMBER_REFUSED;
            lowest_stays &= node != lowest;
        }
    }
    for (int i = 0; i < v->n; i++)
        certain &= idset_has(&m->roster.positive, v->deaths[i].node) || says_certain(batch, v->deaths[i].node);
    return quorum_admissible(member_count(m), stay, certain, lowest_stays);
}

/* Settled means committed by everybody in the view. A phase may complete without members that are believed dead; then
 * settling waits for the view without them. */
void agreement_wave_complete(struct member *m)
{
    struct agreement *ag = &m->agreement;
    struct wave *r = &m->wave;
    struct batch batch = r->phase == PHASE_COLLECT ? r->best : r->batch;
    uint64_t index = r->index, value = r->value, best_value = r->best_value;
    bool everybody = wave_everybody(m), had = r->best_ballot != 0;
    enum wave_phase phase = r->phase;
    wave_cancel(m);
    switch (phase) {
    case PHASE_COLLECT:
        ag->leading = ag->collected = true;
        ag->newborn = false;
        ag->collect_attempts = 0;
        if (everybody)
            ledger_settle(m, index - 1);
        if (had && !m->halted && batch_admissible(m, &batch)) {
            ag->bound = true;
            ag->bound_value = best_value;
            wave_start(m, PHASE_PREPARE, index, &batch, 0);
        } else if (had && !m->halted) { /* begun by a quorum that is not ours: collect again, later */
            ag->leading = false;
            ag->next_collect = m->t + m->p.rto_max_ns;
            contact_no_quorum(m);
        }
        break;
    case PHASE_PREPARE:
        wave_start(m, PHASE_ACCEPT, index, &batch, ag->bound ? ag->bound_value : value);
        break;
    case PHASE_ACCEPT:
        wave_start(m, PHASE_COMMIT, index, &batch, value);
        if (everybody) /* but those declared dead by this very commit */
            ledger_settle(m, index - 1);
        break;
    case PHASE_COMMIT:
        if (!everybody)
            break;
        ledger_settle(m, index);
        if (!m->halted)
            wave_start(m, PHASE_SETTLE, index, NULL, 0);
        if (is_root(m, PHASE_SETTLE))
            wave_cancel(m);
        break;
    default:
        break;
    }
}

void agreement_deaths_changed(struct member *m, bool own)
{
    report_death(m, own);
    wave_recheck(m);
    if (!m->halted)
        wave_tell_deaths(m);
}

/* Somebody promised a higher ballot than ours: let it try, then try again. */
static void step_down(struct member *m, uint64_t ballot)
{
    struct agreement *ag = &m->agreement;
    if (ballot > ag->seen_ballot)
        ag->seen_ballot = ballot;
    if (ballot <= ag->promised)
        return;
    if (m->wave.root == m->p.self)
        wave_cancel(m);
    ag->leading = false;
    if (ag->collect_attempts < 5)
        ag->collect_attempts++;
    uint64_t span = m->p.rto_ns << ag->collect_attempts;
    ag->next_collect = m->t + m->p.rto_ns + rng_below(&m->rng, span);
}

/* ------------------------------------------------------------------------------------------------ messages */

static void send_nack(struct member *m, int to)
{
    struct datagram nack = {.type = DATAGRAM_NACK, .ballot = m->agreement.promised};
    if (!m->halted)
        member_post(m, to, &nack);
}

static void take_wave(struct member *m, const struct datagram *msg)
{
    struct ledger *l = &m->ledger;
    struct agreement *ag = &m->agreement;
    if (msg->phase == PHASE_COMMIT || msg->phase == PHASE_SETTLE) {
        /* a decision is a fact whatever was promised since */
        if (msg->index > l->epoch + (msg->phase == PHASE_COMMIT))
            ledger_behind(m, msg->src);
        else if (msg->ballot >= ag->promised)
            wave_join(m, msg);
        else if (msg->phase == PHASE_COMMIT && msg->index == l->epoch + 1)
            ledger_commit(m, &msg->batch, msg->value);
        if (msg->ballot < ag->promised)
            send_nack(m, msg->root);
        return;
    }
    if (msg->ballot < ag->promised) {
        send_nack(m, msg->root);
        return;
    }
    if (msg->index <= l->epoch) {
        ledger_send(m, msg->root, msg->index);
        return;
    }
    if (msg->index > l->epoch + 1) {
        ledger_behind(m, msg->src);
        return;
    }
    if (msg->ballot > ag->promised) {
        step_down(m, msg->ballot);
        ag->promised = msg->ballot;
    }
    wave_join(m, msg);
}

void agreement_receive(struct member *m, const struct datagram *msg)
{
    switch (msg->type) {
    case DATAGRAM_WAVE:
        take_wave(m, msg);
        break;
    case DATAGRAM_ACK:
        wave_ack(m, msg);
        break;
    case DATAGRAM_NACK:
        step_down(m, msg->ballot);
        break;
    case DATAGRAM_REPORT:
        report_take(m, msg);
        break;
    case DATAGRAM_FETCH:
        if (msg->index > 0)
            ledger_send(m, msg->src, msg->index);
        break;
    case DATAGRAM_LOG:
        ledger_take(m, msg);
        break;
    default:
        break;
    }
}

/* ------------------------------------------------------------------------------------------------ time */

/* A quorum would have proposed the deaths that we believe in: the others must think otherwise. (One that believes the
 * coordinators dead that its view lives on with does no good.) A phase waits for all who live, also for one of whom
 * nobody has ever heard: that one is given the time to start, and is found silent then. Where messages are lost a
 * coordinator that has taken the verdicts may need long. */
static void undeclared_tick(struct member *m)
{
    struct verdicts *v = &m->verdicts;
    uint64_t started = m->created + m->p.startup_ns + m->p.limit_ns;
    if (!v->n || m->proposal.open || m->report.taken || m->t < started)
        v->undeclared_since = m->t;
    else if (m->t - v->undeclared_since >= UNDECLARED_LIMITS * later(m->p.limit_ns, m->p.answer_ns))
        member_halt(m, "no quorum shares its verdicts");
}

void agreement_tick(struct member *m)
{
    undeclared_tick(m);
    if (!m->halted)
        wave_tick(m);
    if (!m->halted)
        report_send(m);
    if (!m->halted)
        poll_tick(m);
}

uint64_t agreement_deadline(const struct member *m)
{
    const struct agreement *ag = &m->agreement;
    uint64_t d = m->wave.phase != PHASE_NONE ? m->wave.next_resend : NEVER;
    int coordinator = agreement_coordinator(m);
    if (report_deadline(m) < d)
        d = report_deadline(m);
    if (poll_deadline(m) < d)
        d = poll_deadline(m);
    if (coordinator == m->p.self && !ag->leading && !is_root(m, PHASE_COLLECT) && ag->next_collect < d)
        d = ag->next_collect;
    return d;
}
