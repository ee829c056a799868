/* Votes: members at random say whether they reach a suspect; who does is a relay to it.
 *
 * A vote is about now. A voter that stood still has in its sockets what was sent to it meanwhile, maybe by one that has
 * been stopped since: until that is read, and the first question after it can have been answered, neither what is heard
 * nor what is not says anything. */
#include "detect/member_internal.h"

/* An answer from before the voter fell silent itself says nothing of now. */
static bool is_fresh(const struct member *m, const struct voter *v)
{
    return v->answered && since(m, v->heard) < 4 * m->p.late_ns;
}

static bool is_voter(const struct target *tg, int node)
{
    for (int i = 0; i < tg->n_voters; i++)
        if (tg->voters[i].node == node)
            return true;
    return false;
}

/* A random member to ask, not itself in doubt if there is one. -1: none left. */
static int pick_voter(struct member *m, const struct target *tg)
{
    int start = (int)rng_below(&m->rng, (uint64_t)m->p.n), fallback = -1;
    for (int i = 0; i < m->p.n; i++) {
        int node = (start + i) % m->p.n;
        if (node == m->p.self || node == tg->node || !is_live(m, node) || is_voter(tg, node))
            continue;
        struct target *other = target_find(&m->detector, node);
        if (!other || other->state != TARGET_SUSPECT)
            return node;
        if (fallback < 0)
            fallback = node;
    }
    return fallback;
}

int vote_panel(const struct member *m, const struct target *tg)
{
    int n = m->p.n - m->roster.dead.count;
    n -= is_live(m, m->p.self) + is_live(m, tg->node);
    int most = tg->state == TARGET_BEYOND ? VOTERS_MAX : m->p.voters; /* one that some reach is not to die by a draw */
    return n < most ? n : most;
}

void vote_ask(struct member *m, struct target *tg)
{
    int want = vote_panel(m, tg);
    for (int i = 0; i < tg->n_voters;) { /* who is dead or does not answer makes room */
        struct voter *v = &tg->voters[i];
        bool mute = v->answered ? !is_fresh(m, v) : since(m, v->asked) >= m->p.late_ns;
        if (!is_live(m, v->node) || (mute && pick_voter(m, tg) >= 0)) {
            tg->n_mute += mute;
            *v = tg->voters[--tg->n_voters];
        } else
            i++;
    }
    while (tg->n_voters < want) {
        int node = pick_voter(m, tg);
        if (node < 0)
            break;
        tg->voters[tg->n_voters++] = (struct voter){.node = node, .asked = m->t};
    }
    for (int i = 0; i < tg->n_voters; i++) {
        struct datagram ask = {.type = DATAGRAM_VOTE_ASK, .node = tg->node};
        member_post(m, tg->voters[i].node, &ask);
    }
}

/* Do more than half of the panel (the voters and us) fail to reach it, and more than succeed? */
bool vote_majority_unreached(const struct member *m, const struct target *tg)
{
    int unreached = 1, reached = 0, panel = 1 + vote_panel(m, tg);
    for (int i = 0; i < tg->n_voters; i++) {
        if (!is_fresh(m, &tg->voters[i]))
            continue;
        unreached += tg->voters[i].vote == VOTE_UNREACHED || tg->voters[i].vote == VOTE_KERNEL;
        reached += tg->voters[i].vote == VOTE_REACHED;
    }
    return 2 * unreached > panel && unreached > reached;
}

/* Does the kernel of its host say nothing either, to us and to more than half of the panel? Then it is no busy machine.
 * Who could not ask it does not know. */
bool vote_is_dark(const struct member *m, const struct target *tg)
{
    int dark = 1, panel = 1 + vote_panel(m, tg);
    for (int i = 0; i < tg->n_voters; i++) {
        if (!is_fresh(m, &tg->voters[i]))
            continue;
        dark += tg->voters[i].vote == VOTE_UNREACHED;
        if (tg->voters[i].vote == VOTE_REACHED || tg->voters[i].vote == VOTE_KERNEL)
            return false;
    }
    return 2 * dark > panel;
}

void vote_answer(struct member *m, const struct datagram *ask)
{
    int node = ask->node;
    if (node == m->p.self || is_unborn(m, node))
        return;
    if (!is_live(m, node)) { /* our verdict, or the view's: the epoch in the header says which */
        struct datagram dead = {.type = DATAGRAM_VOTE, .node = node, .vote = VOTE_UNREACHED};
        member_post(m, ask->src, &dead);
        return;
    }
    struct target *tg = target_have(m, node);
    if (!tg)
        return;
    tg->duty_until = m->t + (2 * PINGS_SLOW + 1) * m->p.ping_ns; /* one question may be lost */
    if (tg->state == TARGET_DUTY && m->t >= tg->next_probe) {    /* its kernel may answer where it does not */
        tg->next_probe = m->t + m->p.ping_ns / 2;
        m->ops.probe(m->ops.user, node);
    }
    struct watch *w = watch_find(&m->detector, node);
    uint64_t sign = tg->last_direct, back = m->woke ? m->woke + m->p.ping_ns : 0;
    if (w && w->have_counter)
        sign = later(sign, w->last_life);
    struct datagram vote = {.type = DATAGRAM_VOTE, .node = node};
    if (sign > back && since(m, sign) < 3 * m->p.ping_ns) {
        vote.vote = VOTE_REACHED;
        vote.age_us = (uint32_t)(since(m, sign) / 1000);
    } else if (tg->first_ping && m->t >= later(tg->first_ping, back) + 2 * m->p.ping_ns) {
        uint64_t said = later(tg->last_kernel, tg->last_unasked);
        bool kernel = said >= tg->first_ping && since(m, said) < m->p.late_ns;
        vote.vote = kernel ? VOTE_KERNEL : VOTE_UNREACHED;
    }
    member_post(m, ask->src, &vote);
}

void vote_take(struct member *m, const struct datagram *msg)
{
    struct target *tg = target_find(&m->detector, msg->node);
    if (!tg)
        return;
    for (int i = 0; i < tg->n_voters; i++) {
        struct voter *v = &tg->voters[i];
        if (v->node != msg->src)
            continue;
        v->answered = true;
        v->heard = m->t;
        v->vote = msg->vote;
        if (v->vote == VOTE_KERNEL)
            tg->last_host = m->t;
        uint64_t age = (uint64_t)msg->age_us * 1000;
        if (v->vote == VOTE_REACHED && age < m->t) {
            target_indirect(m, tg, m->t - age);
            contact_note_seen(m, msg->node);
            if (tg->state == TARGET_BEYOND || since(m, tg->last_direct) > m->p.late_ns)
                relays_set(&m->relays, msg->node, msg->src);
        }
    }
}
