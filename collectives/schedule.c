#include "collectives/schedule.h"

#include <stdlib.h>

#include "collectives/schedule_int.h"

/* ------------------------------------------------------------------------------------------------ steps */

static struct schedule_step *add(struct schedule *s, enum schedule_op op, size_t len)
{
    static struct schedule_step dropped; /* takes what does not fit into memory; never read */
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        struct schedule_step *more = s->failed ? NULL : realloc(s->step, cap * sizeof *more);
        if (!more) {
            s->failed = true;
            return &dropped;
        }
        s->step = more;
        s->cap = cap;
    }
    s->step[s->n] = (struct schedule_step){.op = op, .len = len};
    return &s->step[s->n++];
}

static int place_of(const struct team *t, int member)
{
    return t->place ? t->place[member] : (t->first + member) % t->all;
}

/* Nothing is sent where there is nothing to send: both sides know the length. */
void add_send(struct schedule *s, const struct team *t, int to, uint32_t tag, struct schedule_region from, size_t len)
{
    if (len)
        add_send_always(s, t, to, tag, from, len);
}

void add_send_always(struct schedule *s, const struct team *t, int to, uint32_t tag, struct schedule_region from,
                     size_t len)
{
    struct schedule_step *step = add(s, SCHEDULE_SEND, len);
    step->peer = place_of(t, to);
    step->tag = t->tag + tag;
    step->to = from;
}

void add_recv(struct schedule *s, const struct team *t, int from, uint32_t tag, struct schedule_region to, size_t len)
{
    if (len)
        add_recv_always(s, t, from, tag, to, len);
}

void add_recv_always(struct schedule *s, const struct team *t, int from, uint32_t tag, struct schedule_region to,
                     size_t len)
{
    struct schedule_step *step = add(s, SCHEDULE_RECV, len);
    step->peer = place_of(t, from);
    step->tag = t->tag + tag;
    step->to = to;
}

void add_copy(struct schedule *s, struct schedule_region to, struct schedule_region from, size_t len)
{
    if (!len)
        return;
    struct schedule_step *step = add(s, SCHEDULE_COPY, len);
    step->to = to;
    step->from = from;
}

void add_combine(struct schedule *s, struct schedule_region to, struct schedule_region from, bool from_is_left,
                 size_t len)
{
    if (!len)
        return;
    struct schedule_step *step = add(s, SCHEDULE_COMBINE, len);
    step->to = to;
    step->from = from;
    step->from_is_left = from_is_left;
}

struct schedule_region add_tmp(struct schedule *s, size_t len)
{
    struct schedule_region r = region(SCHEDULE_TMP, s->tmp);
    s->tmp += (len + 63) / 64 * 64; /* aligned for any element */
    return r;
}

struct team team_all(const struct schedule_shape *shape, int first, uint32_t tag)
{
    return (struct team){.n = shape->places,
                         .me = (shape->me - first + shape->places) % shape->places,
                         .first = first,
                         .all = shape->places,
                         .tag = tag};
}

struct schedule_block chunk_of(size_t len, size_t unit, int n, int i)
{
    size_t units = len / unit, each = units / (size_t)n, more = units % (size_t)n, k = (size_t)i;
    size_t before = k * each + (k < more ? k : more);
    return (struct schedule_block){before * unit, (each + (k < more)) * unit};
}

/* ------------------------------------------------------------------------------------------------ all kinds */

bool schedule_build(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    *s = (struct schedule){0};
    return schedule_rebuild(s, a, shape);
}

bool schedule_rebuild(struct schedule *s, enum schedule_algorithm a, const struct schedule_shape *shape)
{
    *s = (struct schedule){.step = s->step, .cap = s->cap};
    if (a == SCHEDULE_TWO_LEVEL)
        build_two_level(s, shape);
    else if (shape->kind == SCHEDULE_BCAST)
        build_bcast(s, a, shape);
    else if (shape->kind == SCHEDULE_REDUCE)
        build_reduce(s, a, shape);
    else if (shape->kind == SCHEDULE_ALLREDUCE)
        build_allreduce(s, a, shape);
    else if (shape->kind == SCHEDULE_REDUCE_SCATTER)
        build_reduce_scatter(s, a, shape);
    else if (shape->kind == SCHEDULE_SCAN || shape->kind == SCHEDULE_EXSCAN)
        build_scan(s, shape);
    else if (shape->kind == SCHEDULE_GATHER)
        build_gather(s, a, shape);
    else if (shape->kind == SCHEDULE_SCATTER)
        build_scatter(s, a, shape);
    else if (shape->kind == SCHEDULE_ALLGATHER)
        build_allgather(s, a, shape);
    else
        build_alltoall(s, a, shape);
    if (s->failed)
        schedule_fini(s);
    return !s->failed;
}

bool schedule_overlap(const struct schedule_region *a, const struct schedule_region *b, size_t a_len, size_t b_len)
{
    return a->buffer == b->buffer && a->at < b->at + b_len && b->at < a->at + a_len;
}

void schedule_fini(struct schedule *s)
{
    free(s->step);
    s->step = NULL;
    s->n = s->cap = 0;
}
