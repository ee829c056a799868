/* What happens to an instance from outside: a letter, a view, a connection that is lost, memory that is short. */
#include "collectives/engine_instance.h"

static void keep(struct instance *i, struct letter *l)
{
    struct letter **end = &i->inbox;
    while (*end)
        end = &(*end)->next;
    *end = l;
}

/* A message of an attempt that the sender is in, and we are, too. False: it is to be kept. */
static bool receive_now(struct engine *e, struct instance *i, const struct letter *l)
{
    const struct message_head *h = &l->head;
    bool moving = i->state == INSTANCE_MOVING;
    uint64_t ours = roster_epoch(i->members);
    if (h->kind == MESSAGE_VOTE || h->kind == MESSAGE_WANT || h->kind == MESSAGE_DECIDED)
        instance_rejoin(e, i);
    switch (h->kind) {
    case MESSAGE_DATA:
    case MESSAGE_ASK:
        if (moving && (h->epoch != ours || h->signature != i->signature))
            instance_flush(e, i); /* it has another idea of the call, or of who takes part */
        else if (moving)
            return h->kind == MESSAGE_ASK;
        else if (h->kind == MESSAGE_ASK &&
                 (i->lost || i->finished != h->epoch ||
                  h->signature != i->signature)) /* who has finished may have had nothing to send */
            engine_send(e, i, l->from, MESSAGE_FLUSH, 0, roster_epoch(instance_roster(e, i)));
        return true;
    case MESSAGE_FLUSH:
        if (moving)
            instance_flush(e, i);
        instance_rejoin(e, i);
        return true;
    case MESSAGE_WANT:
        for (int k = 0; !moving && h->epoch == i->epoch && k < i->step; k++)
            if (!i->plan[k].wait && i->plan[k].member == l->from && i->plan[k].tag == h->tag)
                engine_send(e, i, l->from, MESSAGE_VOTE, h->tag, i->epoch);
        return true;
    case MESSAGE_VOTE: /* who could not finish, or finished something else, tells that we cannot */
        if (moving && (l->vote.finished_min != ours || l->vote.finished_max != ours ||
                       l->vote.signature_min != i->signature || l->vote.signature_max != i->signature))
            instance_flush(e, i);
        return false;
    default:
        return h->kind != MESSAGE_DECIDED;
    }
}

void instance_receive(struct engine *e, struct instance *i, struct letter *l)
{
    const struct message_head *h = &l->head;
    bool done = true;
    if (e->keeps && i->last.made && h->attempt <= i->last.attempt && h->epoch > i->last.epoch &&
        h->kind != MESSAGE_FLUSH && h->kind != MESSAGE_RESULT && h->kind != MESSAGE_SKIP)
        engine_send_skip(e, l->from, i);
    if (h->kind == MESSAGE_RESULT || h->kind == MESSAGE_SKIP) {
        done = h->attempt < i->attempt || h->epoch >= e->born; /* not for who was there */
    } else if (h->attempt == i->attempt) {
        done = receive_now(e, i, l);
    } else if (h->attempt == i->attempt + 1) {
        done = h->kind == MESSAGE_WANT || h->kind == MESSAGE_ASK;
    } else if (i->last.made && h->attempt == i->last.attempt) { /* it has not heard the last decision */
        if (h->kind == MESSAGE_WANT || (h->kind == MESSAGE_VOTE && h->epoch > i->last.epoch))
            engine_send_decision(e, l->from, i->seq, &i->last);
    }
    if (done)
        letter_free(e, l);
    else
        keep(i, l);
    instance_progress(e, i);
}

void instance_view(struct engine *e, struct instance *i)
{
    if (i->state == INSTANCE_LINGERING)
        return; /* whoever has not got it meets, and asks */
    if (i->last.made)
        engine_tell_all(e, i->seq, &i->last);
    if (i->state == INSTANCE_MOVING)
        i->finished = 0;
    instance_enter_meeting(e, i);
    instance_progress(e, i);
}

void instance_lost(struct engine *e, struct instance *i, int member)
{
    if (i->call.kind == ENGINE_MOVE && roster_has(i->members, member)) {
        i->lost = true;
        if (i->state == INSTANCE_MOVING)
            instance_flush(e, i);
        else
            engine_send(e, i, member, MESSAGE_FLUSH, 0, roster_epoch(instance_roster(e, i)));
    }
    if (i->state != INSTANCE_LINGERING)
        instance_set_timer(e, i);
    instance_progress(e, i);
}

void instance_unsent(struct engine *e, struct instance *i, int member)
{
    if (i->state == INSTANCE_MOVING && i->call.kind == ENGINE_MOVE && roster_has(i->members, member))
        i->trouble = ENGINE_NOMEM;
    instance_lost(e, i, member);
}

void instance_ready(struct engine *e, struct instance *i)
{
    if (i->state != INSTANCE_MOVING || i->built || i->sending)
        return;
    i->pause = 0;
    instance_progress(e, i);
}

void instance_starved(struct engine *e, struct instance *i, const struct message_head *h)
{
    if (h->attempt < i->attempt || (h->attempt == i->attempt && i->state != INSTANCE_MOVING))
        return; /* nobody needs it any more */
    if (h->attempt > i->attempt) {
        i->starved = true;
        return;
    }
    i->trouble = ENGINE_NOMEM;
    instance_flush(e, i);
    instance_progress(e, i);
}
