/* Messages of a member, out and in: addressed, sent around a broken link, passed on, handed to the part that they are
 * for. */
#include "detect/member_internal.h"

static void post(struct member *m, int to, int via, struct datagram *msg)
{
    if (m->halted || to == m->p.self)
        return;
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    msg->src = m->p.self;
    msg->dst = to;
    msg->epoch = m->ledger.epoch;
    msg->settled = m->ledger.settled;
    msg->late = patience_publish(m);
    size_t len = datagram_encode(msg, bytes);
    m->ops.send(m->ops.user, via, bytes, len);
}

void member_post_direct(struct member *m, int to, struct datagram *msg)
{
    post(m, to, to, msg);
}

void member_post(struct member *m, int to, struct datagram *msg)
{
    post(m, to, relays_via(&m->relays, to), msg);
}

/* For somebody who cannot reach `dst` itself. One hop only. */
static void pass_on(struct member *m, const struct datagram *msg, const void *data, size_t len)
{
    if (msg->hops || !is_live(m, msg->dst))
        return;
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    memcpy(bytes, data, len);
    bytes[2] = 1;
    m->ops.send(m->ops.user, msg->dst, bytes, len);
}

static void receive(struct member *m, int from, const struct datagram *msg)
{
    struct ledger *l = &m->ledger;
    if (!m->joining.born) {
        join_receive(m, msg);
        return;
    }
    if (is_unborn(m, msg->src)) {
        join_stranger(m, msg);
        return;
    }
    if (!is_member(m, msg->src)) {
        struct datagram dead = {.type = DATAGRAM_DEAD};
        if (msg->type != DATAGRAM_DEAD)
            member_post(m, msg->src, &dead);
        return;
    }
    if (msg->type == DATAGRAM_DEAD) {
        member_halt(m, "declared dead by the others");
        return;
    }
    if (msg->hops) {
        relays_set(&m->relays, msg->src, from);
        contact_sign_of_life_relayed(m, msg->src);
    } else {
        detector_clear_relay(m, msg->src);
        contact_sign_of_life(m, msg->src, 0);
    }
    detector_note_late(m, msg->src, patience_published(msg->late));
    report_heard(m, msg->src);
    if (msg->epoch > l->epoch && msg->type != DATAGRAM_LOG && msg->type != DATAGRAM_WAVE)
        ledger_behind(m, msg->src);
    agreement_receive(m, msg);
    if (msg->type == DATAGRAM_LINK)
        linkmap_receive(m, msg);
    else
        detector_receive(m, msg);
    if (msg->settled > l->settled && msg->epoch <= l->epoch) /* "by all" is meant of the sender's view */
        ledger_settle(m, msg->settled);
    if (msg->type == DATAGRAM_LOG && msg->epoch > l->epoch && !m->halted)
        ledger_behind(m, msg->src);
}

void member_receive(struct member *m, int from, const void *data, size_t len, uint64_t now)
{
    struct datagram msg;
    int left[DATAGRAM_LEFT_MAX];
    if (m->halted || len > MEMBER_DATAGRAM_MAX || !datagram_decode(data, len, m->p.n, &msg, left) ||
        msg.src == m->p.self || (!msg.hops && msg.src != from))
        return;
    member_enter(m, now);
    if (msg.dst == m->p.self)
        receive(m, from, &msg);
    else if (is_member(m, msg.src))
        pass_on(m, &msg, data, len);
    member_leave(m);
}
