/* The failure detector: whom it doubts, whom it looks at, and what it asks of whom.
 *
 * A late or failed heartbeat read is only a suspicion. The suspect is pinged directly and by voters; its kernel is
 * asked whether anybody still listens. The states of a doubt: target.c. The limits: patience.c. */
#include "detect/member_internal.h"

/* Pongs bring it back: so they say that the node lived, and both ways worked, after that time. */
uint64_t detector_nonce(struct member *m)
{
    m->nonce = m->now > m->nonce ? m->now : m->nonce + 1;
    return m->nonce;
}

void detector_forget(struct member *m, int node)
{
    struct detector *d = &m->detector;
    struct target *tg = target_find(d, node);
    if (tg)
        *tg = d->targets[--d->n_targets];
    relays_forget(&m->relays, node);
    linkmap_forget(m, node);
}

static int in_state(const struct detector *d, enum target_state state)
{
    int n = 0;
    for (int i = 0; i < d->n_targets; i++)
        n += d->targets[i].state == state;
    return n;
}

static int open_doubts(const struct detector *d)
{
    return in_state(d, TARGET_CHECK) + in_state(d, TARGET_SUSPECT);
}

/* Dead, suspect or looked at. False: no memory. */
static bool make_away(const struct member *m, struct idset *away)
{
    const struct detector *d = &m->detector;
    bool ok = idset_copy(away, &m->roster.dead);
    for (int i = 0; i < d->n_targets; i++)
        if (d->targets[i].state == TARGET_CHECK || d->targets[i].state == TARGET_SUSPECT)
            ok = ok && idset_add(away, d->targets[i].node);
    return ok;
}

/* While a node that we read is suspect, nobody may be reading those behind it: have a look at them now, not only when
 * it is declared dead. At as many as are suspect or were found dead before, so a row of dead is gone through in steps
 * that double; where those behind it answer it ends. */
void detector_check_behind(struct member *m)
{
    struct detector *d = &m->detector;
    /* so many are not silent at once, we would rather be slow; or they are so for long, or verdicts come, and make
     * room */
    int room = (DOUBTS << d->widened) + DOUBTS_VERDICT * d->verdicts, open = open_doubts(d);
    room = room < DOUBTS_MAX ? room : DOUBTS_MAX;
    int suspects = in_state(d, TARGET_SUSPECT), looks = open - suspects;
    struct idset away = {0};
    bool more = make_away(m, &away);
    while (more && open < room && looks < suspects + d->verdicts) {
        int want[WATCH_MAX];
        int n = watch_targets(m, &away, want);
        more = false;
        for (int i = 0; i < n; i++) {
            const struct target *tg = target_find(d, want[i]);
            if (watch_find(d, want[i]) || (tg && tg->state != TARGET_DUTY))
                continue;
            detector_check(m, want[i], "behind a suspect");
            more = idset_add(&away, want[i]);
            open++;
            looks++;
        }
    }
    idset_free(&away);
}

/* A row of silent nodes is not to be gone through in steps each of which waits for its own verdicts: the limits are
 * long. Who may be cut off itself would only find all others silent. */
static void look_further(struct member *m)
{
    struct detector *d = &m->detector;
    uint64_t age = 0;
    bool quorum = m->contact.check.passed_at && since(m, m->contact.check.passed_at) < m->p.limit_ns;
    if (!quorum && !patience_hears_most(m))
        return;
    for (int i = 0; i < d->n_targets; i++)
        if (d->targets[i].state == TARGET_SUSPECT)
            age = later(age, since(m, d->targets[i].since));
    if (d->widened < WIDENED_MAX && age > (uint64_t)(d->widened + 1) * m->p.answer_ns / 2) {
        d->widened++;
        detector_check_behind(m);
    }
}

/* ------------------------------------------------------------------------------------------------ doubts */

void detector_suspect(struct member *m, int node, uint64_t base, const char *text)
{
    if (!m->joining.born)
        return;
    struct target *tg = target_have(m, node);
    if (!tg)
        return;
    if (tg->state == TARGET_DUTY)
        tg->raised = m->t;
    if (tg->state == TARGET_DUTY || tg->state == TARGET_CHECK) {
        tg->base = base;
        target_set_state(m, tg, TARGET_SUSPECT, text);
        detector_check_behind(m);
    }
}

void detector_check(struct member *m, int node, const char *why)
{
    (void)why;
    if (node == m->p.self || !is_live(m, node) || !m->joining.born)
        return;
    struct target *tg = target_have(m, node);
    if (!tg || tg->state != TARGET_DUTY)
        return;
    tg->raised = tg->base = m->t;
    target_set_state(m, tg, TARGET_CHECK, why);
}

void detector_ask(struct member *m, int node)
{
    detector_check(m, node, "asked to check");
    struct target *tg = target_find(&m->detector, node);
    if (!tg)
        return;
    tg->asked = m->now;
    tg->next_ping = m->t;
}

/* ------------------------------------------------------------------------------------------------ messages */

static void take_pong(struct member *m, const struct datagram *msg)
{
    struct target *tg = target_find(&m->detector, msg->src);
    if (!tg || !tg->asked || msg->hops || msg->nonce > m->nonce)
        return;
    if (msg->nonce >= tg->asked)
        tg->asked = 0;
    member_note_answer(m, tg->node, msg->nonce);
}

void detector_receive(struct member *m, const struct datagram *msg)
{
    switch (msg->type) {
    case DATAGRAM_PING: {
        struct datagram pong = {.type = DATAGRAM_PONG, .nonce = msg->nonce};
        if (msg->hops)
            member_post(m, msg->src, &pong);
        else
            member_post_direct(m, msg->src, &pong);
        if (msg->flags & DATAGRAM_LONELY)
            contact_check_begin(m, 0);
        break;
    }
    case DATAGRAM_VOTE_ASK:
        vote_answer(m, msg);
        break;
    case DATAGRAM_VOTE:
        vote_take(m, msg);
        break;
    case DATAGRAM_PONG:
        if (msg->flags & DATAGRAM_TAKEN)
            report_taken(m, msg->src, msg->nonce);
        else if (msg->flags & DATAGRAM_KNOWN)
            report_known(m, msg->src, msg->nonce);
        else
            take_pong(m, msg);
        break;
    default: /* the sign of life was noted for every message */
        break;
    }
}

/* ------------------------------------------------------------------------------------------------ time */

void detector_clear_relay(struct member *m, int node)
{
    const struct target *tg = target_find(&m->detector, node);
    if (!tg || tg->state != TARGET_BEYOND) /* else it reaches us, but what we send does not arrive */
        relays_clear(&m->relays, node);
}

void detector_note_late(struct member *m, int node, uint64_t late)
{
    struct target *tg = target_find(&m->detector, node);
    if (tg)
        tg->late_ns = late;
}

static void check_lonely(struct member *m, const struct target *tg)
{
    int answered = 0;
    enum member_why why;
    if (since(m, tg->since) < m->p.answer_ns / 3)
        return;
    for (int i = 0; i < tg->n_voters; i++)
        answered += tg->voters[i].answered;
    if (2 * answered < tg->n_voters + tg->n_mute || tg->n_voters < vote_panel(m, tg) ||
        (!patience_hears_most(m) && m->t >= target_sign(m, tg) + m->p.limit_ns / 2))
        contact_check_begin(m, target_host_sign(m, tg) + patience_silent(m, tg, &why));
}

/* Is there something to find out soon? Not of one that was never heard of and may only be starting, nor when it has
 * been asked about for a while: then less and less often, for a machine where many are late has no time for so many
 * questions. */
static bool is_urgent(const struct member *m, const struct target *tg)
{
    return tg->state != TARGET_SUSPECT || (contact_has_seen(m, tg->node) && since(m, tg->since) < m->p.late_ns);
}

static uint64_t slower(uint64_t gap, uint64_t most)
{
    return 2 * gap < most ? 2 * gap : most;
}

static void target_act(struct member *m, struct target *tg)
{
    bool urgent = is_urgent(m, tg);
    if (m->t >= tg->next_ping) {
        struct datagram ping = {.type = DATAGRAM_PING, .nonce = detector_nonce(m)};
        if (!tg->first_ping)
            tg->first_ping = m->t;
        tg->next_ping = m->t + (tg->state == TARGET_ANSWERS ? m->p.late_ns / 3 : tg->ping_gap);
        if (tg->state == TARGET_CHECK)
            tg->ping_gap *= 2;
        else if (!urgent)
            tg->ping_gap = slower(tg->ping_gap, PINGS_SLOW * m->p.ping_ns);
        member_post_direct(m, tg->node, &ping);
    }
    if (tg->state == TARGET_SUSPECT && m->t >= tg->next_probe) {
        tg->next_probe = m->t + tg->probe_gap;
        tg->probe_gap = slower(tg->probe_gap, urgent ? PROBE_GAP_MAX : later(PROBE_GAP_MAX, PINGS_SLOW * m->p.ping_ns));
        m->ops.probe(m->ops.user, tg->node);
    }
    if ((tg->state == TARGET_SUSPECT || tg->state == TARGET_BEYOND) && m->t >= tg->next_panel) {
        vote_ask(m, tg);
        tg->panel_gap = urgent ? m->p.ping_ns : slower(tg->panel_gap, PINGS_SLOW * m->p.ping_ns);
        tg->next_panel = m->t + tg->panel_gap;
        if (tg->state == TARGET_SUSPECT)
            check_lonely(m, tg);
    }
}

void detector_tick(struct member *m)
{
    struct detector *d = &m->detector;
    m->patience.hearing.wanted = false;
    for (int i = 0; i < d->n_watch && !m->halted; i++)
        watch_tick(m, &d->watch[i]);
    for (int i = 0; i < d->n_targets && !m->halted; i++) {
        int node = d->targets[i].node;
        if (target_judge(m, &d->targets[i])) {
            if (d->targets[i].node == node)
                target_act(m, &d->targets[i]);
        } else {
            i--; /* another record took its place, or it is to be judged again */
        }
    }
    if ((d->verdicts || d->widened) && open_doubts(d) == 0)
        d->verdicts = d->widened = 0;
    else if (!m->halted)
        look_further(m);
    if (!m->halted)
        patience_tick(m);
    if (!m->halted)
        contact_tick(m);
}

static void sooner(uint64_t *deadline, uint64_t t)
{
    if (t < *deadline)
        *deadline = t;
}

uint64_t detector_deadline(const struct member *m)
{
    const struct contact *c = &m->contact;
    uint64_t d = NEVER;
    const struct member_params *p = &m->p;
    for (int i = 0; i < m->detector.n_watch; i++) {
        const struct watch *w = &m->detector.watch[i];
        uint64_t late_at = watch_late_at(m, w);
        sooner(&d, w->posted ? later(w->next_read, w->posted + p->late_ns) : w->next_read);
        if (late_at > m->t)
            sooner(&d, late_at);
    }
    for (int i = 0; i < m->detector.n_targets; i++) {
        const struct target *tg = &m->detector.targets[i];
        sooner(&d, tg->next_ping);
        if (tg->state == TARGET_CHECK)
            sooner(&d, tg->since + p->late_ns / 2);
        if (tg->state == TARGET_SUSPECT || tg->state == TARGET_BEYOND)
            sooner(&d, tg->next_panel);
        if (tg->state == TARGET_SUSPECT) {
            enum member_why why;
            uint64_t verdict = target_host_sign(m, tg) + patience_silent(m, tg, &why);
            sooner(&d, tg->next_probe);
            if (verdict > m->t)
                sooner(&d, verdict);
        }
    }
    sooner(&d, patience_deadline(m));
    if (c->check.active)
        sooner(&d, c->check.next_ping < c->check.end ? c->check.next_ping : c->check.end);
    return d;
}
