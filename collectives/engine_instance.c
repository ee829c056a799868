/* One instance from attempt to attempt: each is a move of data (engine_move.c) and a meeting (engine_meeting.c), and
 * its decision ends the instance or begins the next.
 *
 * Why all get the same (docs/protocols/collectives.md has it in full): a member leaves meeting a only with the votes of
 * all that live in one view, each given in that view, or because somebody who left it says so. Who has left it votes no
 * more in it but answers with the decision, so that nobody can complete the meeting in a later view without it. A
 * decision "done" needs that all have the result of the same attempt; they keep it until they hear the decision. */
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_instance.h"

#define PAUSE_NS (20ull * 1000 * 1000)

/* ------------------------------------------------------------------------------------------------ the decision */

/* The result is made from the root's data alone: who lives has it. Else it is made from those of the attempt's
 * members. */
static bool only_root_gives(const struct instance *i)
{
    return i->call.move == SCHEDULE_BCAST || i->call.move == SCHEDULE_SCATTER;
}

static bool is_rooted(const struct instance *i)
{
    return only_root_gives(i) || i->call.move == SCHEDULE_REDUCE || i->call.move == SCHEDULE_GATHER;
}

/* No member gives anything. */
static bool is_empty(const struct engine_call *c)
{
    return !c->len && (!c->varying || c->move == SCHEDULE_REDUCE_SCATTER);
}

/* Whom the result of this attempt covers: those whose data it is made from; of nothing, those who have met. */
static struct roster *covered(const struct engine *e, const struct instance *i, struct roster *then)
{
    struct roster *r = i->brings ? instance_roster_at(e, i, i->brings) : i->members;
    return only_root_gives(i) || is_empty(&i->call) || !r ? then : r;
}

/* Is what was to move where it should be? Else i->root becomes who has the bytes of a broadcast whose root is dead, or
 * of a result that somebody has returned: then nobody may get another. Each decision names it anew: who has taken the
 * place of one that had them has nothing. */
static bool has_moved(const struct engine *e, struct instance *i, const struct vote *v, struct roster *then,
                      struct engine_result *result)
{
    bool dead = is_rooted(i) && !roster_has(then, i->root), all = v->finished_min && v->finished_min == v->finished_max;
    if (all && (!dead || only_root_gives(i))) {
        result->members = covered(e, i, then);
        return true;
    }
    i->brings = v->returned_max;
    i->root = i->call.root;
    dead = is_rooted(i) && !roster_has(then, i->root);
    if (v->returned_max || (dead && i->call.move == SCHEDULE_BCAST && v->holder_min != UINT32_MAX))
        i->root = (int)v->holder_min;
    else if (dead)
        *result = (struct engine_result){.status = ENGINE_ROOT_DEAD};
    return result->status != ENGINE_OK;
}

/* Do they meet twice, so that what a member that died returned is what the others return? Agreements always; a shrink
 * where it fails, as it is told from an agreement by its signature only. */
static bool is_binding(const struct instance *i)
{
    return i->call.kind != ENGINE_BARRIER && i->call.kind != ENGINE_MOVE;
}

static enum engine_status trouble_of(const struct instance *i, const struct vote *v)
{
    bool places = i->call.kind == ENGINE_DECIDE && v->finished_min < v->finished_max;
    return v->signature_min < v->signature_max || places ? ENGINE_MISMATCH : (enum engine_status)v->trouble;
}

/* The first meeting was decided in one view for all who come to the end of the second: those who lived in it gave
 * the value. */
static bool agreement_is_over(const struct instance *i, enum engine_status trouble, struct engine_result *result)
{
    if (trouble)
        *result = (struct engine_result){.status = trouble, .value = result->value};
    else if (i->call.kind != ENGINE_SHRINK)
        result->members = i->members;
    return i->attempt > 0 || (!trouble && i->call.kind == ENGINE_SHRINK);
}

void instance_bind(struct instance *i, const struct vote *v)
{
    i->call.value = v->value;
    i->trouble = trouble_of(i, v);
}

/* Is the instance over, and how? */
static bool is_over(struct engine *e, struct instance *i, const struct decision *d, struct engine_result *result)
{
    const struct vote *v = &d->vote;
    struct roster *then = instance_roster_at(e, i, d->epoch);
    *result = (struct engine_result){.status = ENGINE_OK, .value = v->value, .members = then};
    bool no_memory = v->trouble == ENGINE_NOMEM &&
                     v->returned_max; /* others have returned the result: there will be memory for it */
    enum engine_status trouble = trouble_of(i, v);
    if (is_binding(i))
        return agreement_is_over(i, trouble, result);
    if (trouble == ENGINE_MISMATCH || (trouble && !no_memory))
        *result = (struct engine_result){.status = trouble};
    else if (i->call.kind == ENGINE_MOVE)
        return has_moved(e, i, v, then, result);
    return true;
}

/* ------------------------------------------------------------------------------------------------ an attempt */

/* Over the members of that view. */
static void begin_attempt(struct engine *e, struct instance *i, struct roster *members)
{
    roster_unref(i->members);
    i->members = roster_ref(members);
    i->finished = 0;
    i->built = i->lost = false;
    bool rooted = i->call.kind == ENGINE_MOVE && (is_rooted(i) || i->brings);
    bool rootless = rooted && !roster_has(members, i->root);
    if (i->call.kind != ENGINE_MOVE || i->trouble || rootless || members != instance_roster(e, i)) {
        instance_enter_meeting(e, i); /* nothing to move, or one of them is dead meanwhile, as all will learn */
        return;
    }
    instance_set_state(i, INSTANCE_MOVING);
    instance_set_timer(e, i);
}

void instance_begin(struct engine *e, struct instance *i)
{
    begin_attempt(e, i, instance_roster(e, i));
    instance_progress(e, i);
}

/* Nobody has to be told that it has returned: all have begun, as their data are in it, and who cannot finish asks. */
static void linger(struct engine *e, struct instance *i)
{
    uint64_t number = seq_number(i->seq);
    instance_set_state(i, INSTANCE_LINGERING);
    i->resend_at = UINT64_MAX;
    engine_returned_everywhere(e, seq_stream(i->seq), number - 1 - engine_behind(e, i));
    free(i->tmp);
    free(i->saved);
    i->tmp = NULL;
    i->saved = NULL;
    i->built = false;
}

/* Where each gets something else nobody but the sender has what another one gets: both of two that return keep it for
 * each other. Of three one could have had its block, and died before the third had. */
static bool may_return(const struct engine *e, const struct instance *i)
{
    return i->early && !e->leaves && !i->returned && (!instance_differs(i) || roster_live(i->members) <= 2);
}

static bool keep_for_others(struct instance *i)
{
    i->kept = malloc(i->kept_len);
    if (i->kept && instance_differs(i))
        memcpy(i->kept, i->call.in, i->kept_len / 2);
    else if (i->kept)
        memcpy(i->kept, i->call.out, i->kept_len);
    return i->kept;
}

/* What is here is what all will get, if not from those who sent it then from us. */
static void return_early(struct engine *e, struct instance *i)
{
    struct engine_result result = {.status = ENGINE_OK, .members = covered(e, i, i->members)};
    if (!keep_for_others(i))
        return;
    i->returned = i->brings ? i->brings : roster_epoch(i->members);
    if (only_root_gives(i) || i->attempt > 0 || roster_live(i->members) == 1)
        instance_enter_meeting(e, i); /* with the vote that says so */
    else
        linger(e, i);
    engine_tell_early(e, i, &result);
}

void instance_rejoin(struct engine *e, struct instance *i)
{
    if (i->state == INSTANCE_LINGERING)
        instance_enter_meeting(e, i);
}

void instance_settle(struct engine *e, struct instance *i)
{
    instance_rejoin(e, i);
    instance_progress(e, i);
}

static void move(struct engine *e, struct instance *i)
{
    if (!i->built && (i->sending || e->now < i->pause))
        return;
    if (!i->built && !instance_build(e, i)) {
        i->trouble = ENGINE_NOMEM;
        instance_flush(e, i);
        return;
    }
    for (; i->at < i->schedule.n; i->at++) {
        enum outcome o = instance_take_step(e, i, &i->schedule.step[i->at]);
        if (o == STEP_FAILED)
            instance_flush(e, i);
        if (o != STEP_DONE)
            return;
    }
    i->finished = roster_epoch(i->members);
    i->holds |= i->call.move == SCHEDULE_BCAST;
    if (may_return(e, i)) {
        if (i->sending) /* those who have returned would not come to a meeting before they are asked */
            return;
        return_early(e, i);
    }
    if (i->state == INSTANCE_MOVING)
        instance_enter_meeting(e, i);
}

/* A new attempt has begun: what was kept is looked at again. The instance may be gone on return. */
static void reread(struct engine *e, struct instance *i)
{
    uint64_t seq = i->seq;
    uint16_t attempt = i->attempt;
    struct letter *old = i->inbox;
    i->inbox = NULL;
    while (old) {
        struct letter *l = old;
        old = l->next;
        l->next = NULL;
        struct instance *still = e->instances;
        while (still && still->seq != seq)
            still = still->next;
        if (still && still->state != INSTANCE_COMPLETE && l->head.attempt >= attempt)
            instance_receive(e, still, l);
        else
            letter_free(e, l);
    }
}

/* A new attempt has begun: what was kept for it is looked at. The instance may be gone on return. */
static void go_on(struct engine *e, struct instance *i)
{
    uint64_t seq = i->seq;
    reread(e, i);
    for (i = e->instances; i && i->seq != seq;)
        i = i->next;
    if (i && i->state != INSTANCE_COMPLETE)
        instance_progress(e, i);
}

void instance_progress(struct engine *e, struct instance *i)
{
    struct decision d;
    struct engine_result result;
    if (e->keeps && instance_skip(e, i)) {
        go_on(e, i);
        return;
    }
    if (i->state == INSTANCE_MOVING)
        move(e, i);
    const struct letter *late = instance_late_letter(e, i);
    if (late) {
        result = (struct engine_result){
            .status = instance_late_result(e, i, late), .value = late->vote.value, .epoch = late->head.epoch};
        i->last = (struct decision){e->keeps, late->head.attempt, late->head.epoch, late->vote};
        engine_complete(e, i, &result);
        return;
    }
    if (i->state != INSTANCE_MEETING || !instance_meet(e, i, &d))
        return;
    i->last = d;
    if (is_over(e, i, &d, &result)) {
        engine_complete(e, i, &result);
        return;
    }
    i->attempt++;
    if (d.vote.trouble)
        i->pause = e->now + (i->trouble ? 1 : 2) * PAUSE_NS; /* who gives waits for who had no memory to be ready */
    i->trouble = i->starved || i->call.refuses ? ENGINE_NOMEM : ENGINE_OK;
    if (is_binding(i))
        instance_bind(i, &d.vote);
    i->starved = false;
    begin_attempt(e, i, instance_roster_at(e, i, d.epoch));
    go_on(e, i);
}
