/* What an engine says to other members. */
#include "collectives/engine_int.h"

void engine_send(struct engine *e, const struct instance *i, int to, enum message_kind kind, uint32_t tag,
                 uint64_t epoch)
{
    uint8_t bytes[MESSAGE_HEAD + MESSAGE_VOTE_BYTES];
    struct message_head h = {kind, i->attempt, tag, i->signature, 0, e->id, i->seq, epoch};
    size_t len = MESSAGE_HEAD;
    if (kind == MESSAGE_WANT || kind == MESSAGE_ASK)
        h.behind = engine_pair_behind(e);
    message_head_write(bytes, &h);
    if (kind == MESSAGE_VOTE) {
        message_vote_write(bytes + len, &i->vote);
        len += MESSAGE_VOTE_BYTES;
    }
    e->ops.send(e->ops.user, to, i->seq, bytes, len, NULL, 0);
}

static void send_decided(struct engine *e, int to, enum message_kind kind, uint32_t tag, uint64_t seq,
                         const struct decision *d)
{
    uint8_t bytes[MESSAGE_HEAD + MESSAGE_VOTE_BYTES];
    struct message_head h = {kind, d->attempt, tag, d->vote.signature_min, 0, e->id, seq, d->epoch};
    message_head_write(bytes, &h);
    message_vote_write(bytes + MESSAGE_HEAD, &d->vote);
    e->ops.send(e->ops.user, to, seq, bytes, sizeof bytes, NULL, 0);
}

void engine_send_decision(struct engine *e, int to, uint64_t seq, const struct decision *d)
{
    send_decided(e, to, MESSAGE_DECIDED, 0, seq, d);
}

void engine_ask_whether_over(struct engine *e, int to, uint64_t seq)
{
    uint8_t bytes[MESSAGE_HEAD];
    struct message_head h = {.kind = MESSAGE_WANT, .tag = MESSAGE_WHETHER_OVER, .group = e->id, .seq = seq};
    message_head_write(bytes, &h);
    e->ops.send(e->ops.user, to, 0, bytes, sizeof bytes, NULL, 0);
}

void engine_send_skip(struct engine *e, int to, const struct instance *i)
{
    send_decided(e, to, MESSAGE_SKIP, (uint32_t)i->root, i->seq, &i->last);
}

void engine_tell_all(struct engine *e, uint64_t seq, const struct decision *d)
{
    struct meet_step plan[MEET_STEPS_MAX];
    int n = meet_plan(MEET_CUBE, engine_roster(e), e->self, plan);
    for (int k = 0; k < n; k++)
        if (!plan[k].wait)
            engine_send_decision(e, plan[k].member, seq, d);
}

void engine_send_revoked(struct engine *e, int to)
{
    uint8_t bytes[MESSAGE_HEAD];
    struct message_head h = {.kind = MESSAGE_REVOKED, .tag = (uint32_t)(e->blamed + 1), .group = e->id};
    message_head_write(bytes, &h);
    e->ops.send(e->ops.user, to, 0, bytes, sizeof bytes, NULL, 0);
}

void engine_tell_revoked(struct engine *e)
{
    struct meet_step plan[MEET_STEPS_MAX];
    int n = meet_plan(MEET_CUBE, engine_roster(e), e->self, plan);
    for (int k = 0; k < n; k++)
        if (!plan[k].wait)
            engine_send_revoked(e, plan[k].member);
}
