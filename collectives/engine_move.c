/* One instance in an attempt: the schedule over the members that live, and the data steps that it consists of. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_instance.h"

/* The blocks of a call, by place of the attempt's members. */
static void place_blocks(const struct instance *i, const struct engine_blocks *from, struct schedule_block *to)
{
    for (int p = 0; p < roster_live(i->members); p++) {
        size_t m = (size_t)roster_member(i->members, p);
        if (i->call.varying || i->call.move == SCHEDULE_REDUCE_SCATTER)
            to[p] = from->at ? (struct schedule_block){from->at[m], from->len[m]} : (struct schedule_block){0, 0};
        else
            to[p] = (struct schedule_block){m * i->call.len, i->call.len};
    }
}

/* What dead members would have sent stays empty, the same for all. */
static void clear_absent(const struct engine *e, struct instance *i)
{
    const struct engine_call *c = &i->call;
    bool receives = c->move == SCHEDULE_ALLGATHER || c->move == SCHEDULE_ALLTOALL ||
                    (c->move == SCHEDULE_GATHER && c->root == e->self);
    for (int m = 0; receives && m < e->n; m++) {
        if (roster_has(i->members, m))
            continue;
        size_t at = c->varying ? c->out_blocks.at[m] : (size_t)m * c->len;
        memset((char *)c->out + at, 0, c->varying ? c->out_blocks.len[m] : c->len);
    }
}

/* The first member's out of an exclusive scan has nothing, also where an earlier attempt had something for it. */
static void leave_alone(struct instance *i)
{
    const void *was = i->saved ? i->saved : i->untouched;
    if (was)
        memcpy(i->call.out, was, i->out_len);
}

/* A user's operation writes to its right operand: where that must not be, a copy is made. */
static size_t scratch_of(const struct instance *i)
{
    size_t most = 0;
    for (size_t k = 0; k < i->schedule.n && i->call.element.op == ELEMENT_USER; k++)
        if (i->schedule.step[k].op == SCHEDULE_COMBINE && i->schedule.step[k].len > most)
            most = i->schedule.step[k].len;
    return most;
}

static bool make_schedule(const struct engine *e, struct instance *i, struct schedule_block *blocks, int *nodes)
{
    const struct engine_call *c = &i->call;
    int places = roster_live(i->members);
    bool reduces = c->move >= SCHEDULE_REDUCE && c->move <= SCHEDULE_EXSCAN;
    place_blocks(i, &c->in_blocks, blocks);
    place_blocks(i, &c->out_blocks, blocks + places);
    for (int p = 0; e->node && p < places; p++)
        nodes[p] = e->node[roster_member(i->members, p)];
    struct schedule_shape shape = {
        .kind = c->move,
        .places = places,
        .me = roster_place(i->members, e->self),
        .root = roster_place(i->members, i->root),
        .len = c->len,
        .unit = reduces ? element_size(&c->element) : 1,
        .mine = c->varying ? c->mine : c->len,
        .uniform = !c->varying,
        .ordered = c->element.op == ELEMENT_USER && !c->commutes,
        .in = blocks,
        .out = blocks + places,
        .node = e->node ? nodes : NULL,
    };
    if (i->brings && instance_differs(i)) /* both live, and the one that has returned sends what it has kept */
        return schedule_rebuild(&i->schedule, SCHEDULE_PAIRWISE, &shape);
    enum schedule_algorithm a = (enum schedule_algorithm)(c->algorithm - 1);
    if (!c->algorithm || !schedule_fits(a, &shape))
        a = schedule_choose(&shape);
    return schedule_build(&i->schedule, a, &shape);
}

static bool make_any(const struct engine *e, struct instance *i)
{
    size_t places = (size_t)roster_live(i->members);
    struct schedule_block *blocks = malloc(2 * places * sizeof *blocks);
    int *nodes = malloc(places * sizeof *nodes);
    schedule_fini(&i->schedule);
    bool ok = blocks && nodes && make_schedule(e, i, blocks, nodes);
    free(blocks);
    free(nodes);
    return ok;
}

/* Brings a result that was returned to who lacks it: nobody may fail now, so it takes the memory that the instance
 * has. */
static bool make_brought(const struct engine *e, struct instance *i)
{
    int nodes[2];
    struct schedule_block blocks[4];
    if (instance_differs(i)) /* among two */
        return make_schedule(e, i, blocks, nodes);
    struct schedule_shape shape = {.kind = SCHEDULE_BCAST,
                                   .places = roster_live(i->members),
                                   .me = roster_place(i->members, e->self),
                                   .root = roster_place(i->members, i->root),
                                   .len = i->out_len,
                                   .unit = 1,
                                   .mine = i->out_len,
                                   .uniform = true};
    return schedule_rebuild(&i->schedule, SCHEDULE_BINOMIAL, &shape);
}

bool instance_build(const struct engine *e, struct instance *i)
{
    free(i->tmp);
    i->tmp = NULL;
    if (!(i->brings ? make_brought(e, i) : make_any(e, i)))
        return false;
    size_t data = i->schedule.tmp + scratch_of(i);
    bool small = data == 0 && i->schedule.n <= sizeof i->marks;
    i->tmp = small ? NULL : malloc(data + i->schedule.n + 1);
    if (!small && !i->tmp)
        return false;
    i->under_way = small ? i->marks : i->tmp + data;
    memset(i->under_way, 0, i->schedule.n);
    if (!i->brings)
        clear_absent(e, i);
    if (i->call.move == SCHEDULE_EXSCAN && !roster_place(i->members, e->self))
        leave_alone(i);
    i->at = 0;
    i->placing = false;
    i->built = true;
    return true;
}

/* ------------------------------------------------------------------------------------------------ the steps */

uint8_t *engine_bytes_of(const struct instance *i, struct schedule_region r)
{
    if (r.buffer == SCHEDULE_TMP)
        return i->tmp + r.at;
    if (i->returned && instance_differs(i)) /* both are the caller's again */
        return i->kept + (r.buffer == SCHEDULE_OUT ? i->kept_len / 2 : 0) + r.at;
    if (r.buffer == SCHEDULE_OUT && i->returned) /* out is, and the bytes are the same */
        return i->kept + r.at;
    return (uint8_t *)(r.buffer == SCHEDULE_IN ? (void *)(uintptr_t)i->call.in : i->call.out) + r.at;
}

bool instance_sends(const struct instance *i, const struct schedule_region *r, size_t len)
{
    for (size_t k = 0; k < i->at && i->sending; k++)
        if (i->under_way[k] && schedule_overlap(&i->schedule.step[k].to, r, i->schedule.step[k].len, len))
            return true;
    return false;
}

void instance_sent(struct instance *i, int member)
{
    assert(i->sending > 0);
    i->sending--;
    for (size_t k = 0; k < i->schedule.n; k++)
        if (i->under_way[k] && roster_member(i->members, i->schedule.step[k].peer) == member) {
            i->under_way[k] = false;
            return;
        }
}

/* Of a call that returns early: it is little, and can be copied. Whoever it is for may compute, and need not take it
 * for long. */
static void take_back(struct engine *e, struct instance *i)
{
    i->taking_back = true;
    if (e->ops.keep)
        e->ops.keep(e->ops.user, i->seq);
    i->taking_back = false;
}

static void send_data(struct engine *e, struct instance *i, size_t at)
{
    const struct schedule_step *s = &i->schedule.step[at];
    uint8_t head[MESSAGE_HEAD];
    struct message_head h = {MESSAGE_DATA,        i->attempt, s->tag, i->signature,
                             engine_behind(e, i), e->id,      i->seq, roster_epoch(i->members)};
    message_head_write(head, &h);
    if (!e->ops.send(e->ops.user, roster_member(i->members, s->peer), i->seq, head, sizeof head,
                     s->len ? engine_bytes_of(i, s->to) : NULL, s->len)) {
        i->sending++;
        i->under_way[at] = true;
        if (i->early)
            take_back(e, i);
    }
}

static enum outcome receive_data(struct engine *e, struct instance *i, const struct schedule_step *s)
{
    struct letter *l =
        instance_take(i, MESSAGE_DATA, roster_member(i->members, s->peer), s->tag, roster_epoch(i->members));
    if (!l)
        return STEP_WAITS;
    bool fits = l->len == s->len;
    i->behind = l->head.behind > i->behind ? l->head.behind : i->behind;
    if (fits && l->len)
        memcpy(engine_bytes_of(i, s->to), l->data, l->len);
    if (!fits)
        i->trouble = ENGINE_MISMATCH;
    letter_free(e, l);
    return fits ? STEP_DONE : STEP_FAILED;
}

enum outcome instance_take_step(struct engine *e, struct instance *i, const struct schedule_step *s)
{
    if (s->op == SCHEDULE_SEND) {
        send_data(e, i, i->at);
        return STEP_DONE;
    }
    if (instance_sends(i, &s->to, s->len))
        return STEP_WAITS;
    if (s->op == SCHEDULE_RECV)
        return receive_data(e, i, s);
    uint8_t *to = engine_bytes_of(i, s->to), *from = engine_bytes_of(i, s->from);
    if (s->op == SCHEDULE_COPY) {
        memmove(to, from, s->len);
    } else {
        const struct element *el = &i->call.element;
        size_t n = s->len / element_size(el);
        element_combine(el, to, s->from_is_left ? from : to, s->from_is_left ? to : from, n, i->tmp + i->schedule.tmp);
    }
    return STEP_DONE;
}
