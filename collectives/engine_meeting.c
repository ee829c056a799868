/* One instance in a meeting: the votes of all that live, merged step by step, or the decision of somebody who has left
 * it. And the timer by which who is waited for is asked again, in a meeting or for data. */
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_instance.h"

#define RESEND_MIN_NS (20ull * 1000 * 1000)
#define RESEND_MAX_NS (640ull * 1000 * 1000)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ------------------------------------------------------------------------------------------------ the timer */

void instance_set_timer(struct engine *e, struct instance *i)
{
    i->rto = RESEND_MIN_NS;
    i->resend_at = e->now + i->rto;
}

int instance_waits_for(const struct engine *e, const struct instance *i)
{
    (void)e;
    if (i->state == INSTANCE_MEETING)
        return i->step < i->steps ? i->plan[i->step].member : -1;
    if (i->state != INSTANCE_MOVING || !i->built || i->at == i->schedule.n)
        return -1;
    const struct schedule_step *s = &i->schedule.step[i->at];
    return s->op == SCHEDULE_RECV ? roster_member(i->members, s->peer) : -1;
}

/* Who is waited for is asked again, each time after twice as long. */
void instance_tick(struct engine *e, struct instance *i)
{
    int member = instance_waits_for(e, i);
    i->rto = least(2 * i->rto, RESEND_MAX_NS);
    i->resend_at = e->now + i->rto;
    if (member < 0) {
        if (i->pause || i->sending)
            instance_progress(e, i);
        return;
    }
    if (i->state == INSTANCE_MEETING)
        engine_send(e, i, member, MESSAGE_WANT, i->plan[i->step].tag, i->epoch);
    else
        engine_send(e, i, member, MESSAGE_ASK, i->schedule.step[i->at].tag, roster_epoch(i->members));
}

/* ------------------------------------------------------------------------------------------------ the meeting */

static void plan_meeting(struct engine *e, struct instance *i)
{
    struct roster *view = instance_roster(e, i);
    if (i->call.shape != MEET_CUBE || !e->node || !meet_has_nodes(view, e->node)) {
        i->steps = meet_plan(i->call.shape, view, e->self, i->plan);
        return;
    }
    if (e->nodes.view != view) {
        roster_unref(e->nodes.view);
        e->nodes.view = roster_ref(view);
        e->nodes.steps = meet_plan_nodes(view, e->node, e->self, e->nodes.plan);
    }
    i->steps = e->nodes.steps;
    memcpy(i->plan, e->nodes.plan, (size_t)i->steps * sizeof i->plan[0]);
}

void instance_enter_meeting(struct engine *e, struct instance *i)
{
    int s = seq_stream(i->seq);
    instance_set_state(i, INSTANCE_MEETING);
    i->epoch = roster_epoch(instance_roster(e, i));
    i->vote = (struct vote){
        .finished_min = i->finished,
        .finished_max = i->finished,
        .returned_max = i->returned,
        .complete_min = e->stream[s].complete,
        .value = i->call.value,
        .signature_min = i->call.refuses ? UINT32_MAX : i->signature, /* fits to any */
        .signature_max = i->call.refuses ? 0 : i->signature,
        .holder_min = i->holds || i->returned ? (uint32_t)e->self : UINT32_MAX,
        .trouble = i->trouble,
    };
    if (i->call.kind == ENGINE_DECIDE) {
        i->vote.finished_min = i->call.place ? i->call.place : UINT64_MAX;
        i->vote.finished_max = i->call.place;
    }
    plan_meeting(e, i);
    i->step = 0;
    instance_set_timer(e, i);
}

void instance_flush(struct engine *e, struct instance *i)
{
    struct meet_step plan[MEET_STEPS_MAX];
    int n = meet_plan(MEET_CUBE, instance_roster(e, i), e->self, plan);
    i->finished = 0;
    for (int k = 0; k < n; k++)
        if (!plan[k].wait)
            engine_send(e, i, plan[k].member, MESSAGE_FLUSH, 0, roster_epoch(instance_roster(e, i)));
    instance_enter_meeting(e, i);
}

uint64_t engine_combine(enum engine_agree op, uint64_t a, uint64_t b)
{
    switch (op) {
    case ENGINE_AND:
        return a & b;
    case ENGINE_OR:
        return a | b;
    case ENGINE_MIN:
        return least(a, b);
    default:
        return most(a, b);
    }
}

static void merge(struct vote *v, const struct vote *other, enum engine_agree op)
{
    v->finished_min = least(v->finished_min, other->finished_min);
    v->finished_max = most(v->finished_max, other->finished_max);
    v->returned_max = most(v->returned_max, other->returned_max);
    v->complete_min = least(v->complete_min, other->complete_min);
    v->value = engine_combine(op, v->value, other->value);
    v->signature_min = (uint32_t)least(v->signature_min, other->signature_min);
    v->signature_max = (uint32_t)most(v->signature_max, other->signature_max);
    v->holder_min = (uint32_t)least(v->holder_min, other->holder_min);
    v->trouble = (uint32_t)most(v->trouble, other->trouble);
}

struct letter *instance_take(struct instance *i, enum message_kind kind, int from, uint32_t tag, uint64_t epoch)
{
    for (struct letter **at = &i->inbox; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->head.kind == kind && l->from == from && l->head.tag == tag && l->head.epoch == epoch &&
            l->head.attempt == i->attempt) {
            *at = l->next;
            return l;
        }
    }
    return NULL;
}

/* Somebody left this meeting before us: its decision is ours, once we are in that view. */
static bool heard_decision(struct engine *e, struct instance *i, struct decision *d)
{
    for (struct letter **at = &i->inbox; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->head.kind != MESSAGE_DECIDED || l->head.attempt != i->attempt ||
            !instance_roster_at(e, i, l->head.epoch))
            continue;
        *at = l->next;
        *d = (struct decision){true, i->attempt, l->head.epoch, l->vote};
        letter_free(e, l);
        return true;
    }
    return false;
}

bool instance_meet(struct engine *e, struct instance *i, struct decision *d)
{
    if (heard_decision(e, i, d)) {
        engine_tell_all(e, i->seq, d); /* who waits for our vote gets this instead */
        return true;
    }
    for (; i->step < i->steps; i->step++) {
        const struct meet_step *s = &i->plan[i->step];
        if (!s->wait) {
            engine_send(e, i, s->member, MESSAGE_VOTE, s->tag, i->epoch);
            continue;
        }
        struct letter *l = instance_take(i, MESSAGE_VOTE, s->member, s->tag, i->epoch);
        if (!l)
            return false;
        merge(&i->vote, &l->vote, i->call.agree);
        letter_free(e, l);
    }
    *d = (struct decision){true, i->attempt, i->epoch, i->vote};
    return true;
}

/* ------------------------------------------------------------------------------------------------ decided without
 * this member */

const struct letter *instance_late_letter(const struct engine *e, const struct instance *i)
{
    enum message_kind kind = e->keeps ? MESSAGE_RESULT : MESSAGE_DECIDED;
    for (const struct letter *l = i->inbox; l; l = l->next)
        if (l->head.kind == kind && l->head.attempt >= i->attempt && l->head.epoch < e->born)
            return l;
    return NULL;
}

bool instance_skip(struct engine *e, struct instance *i)
{
    for (struct letter **at = &i->inbox; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->head.kind != MESSAGE_SKIP || l->head.attempt < i->attempt)
            continue;
        *at = l->next;
        i->last = (struct decision){true, l->head.attempt, l->head.epoch, l->vote};
        i->attempt = (uint16_t)(l->head.attempt + 1);
        if (i->call.kind == ENGINE_DECIDE)
            instance_bind(i, &l->vote);
        if ((int)l->head.tag >= 0 && (int)l->head.tag < e->n)
            i->root = (int)l->head.tag;
        letter_free(e, l);
        roster_unref(i->members);
        i->members = roster_ref(instance_roster(e, i));
        i->finished = 0;
        i->built = i->lost = false;
        instance_enter_meeting(e, i);
        return true;
    }
    return false;
}

enum engine_status instance_late_result(const struct engine *e, struct instance *i, const struct letter *l)
{
    if (!e->keeps)
        return ENGINE_LATE;
    enum engine_status status = (enum engine_status)l->head.tag;
    bool moves = i->call.kind == ENGINE_MOVE;
    if (status != ENGINE_OK)
        return status > ENGINE_LATE ? ENGINE_MISMATCH : status;
    if (l->head.signature != i->signature || (moves && l->len != i->out_len))
        return ENGINE_MISMATCH;
    if (l->len && moves)
        memcpy(i->call.out, l->data, l->len);
    return ENGINE_OK;
}
