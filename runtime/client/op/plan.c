#include "runtime/client/op/plan.h"

#include <string.h>

enum {
    ACCESS_WINDOW = 2,  /* chunks of one operation on their way to one node */
    MESSAGE_WINDOW = 8, /* messages of one operation on their way to one node */
};

static void add_leg(struct plan *p, int node, unsigned window)
{
    p->leg[p->legs++] = (struct plan_leg){.node = node, .window = window};
}

/* An agent on this node begins with the first part while the rank copies the next one into the ring; a strong get
 * compares small ones. Each message of a task is one of its steps, which another rank must count alike, wherever it
 * runs. */
static unsigned most_of_message(const struct plan *p, const struct plan_input *in)
{
    if (in->packed)
        return WIRE_BULK_MAX;
    if (in->strong || in->in_task)
        return WIRE_BODY_MAX;
    for (int leg = 0; leg < p->legs; leg++)
        if (p->leg[leg].node == in->self)
            return WIRE_BODY_MAX;
    return WIRE_BULK_MAX;
}

static bool is_here(int self, const struct route *r)
{
    for (int i = 0; i < r->copies; i++)
        if (r->node[i] == self)
            return true;
    return false;
}

/* Not by a remote write or read, though there might be one. */
static bool in_messages(const struct plan_input *in)
{
    return in->by_message || (in->bytewise && in->len <= PLAN_WHOLE_MAX);
}

static void plan_put(struct plan *p, const struct plan_input *in, const struct route *r)
{
    bool several = r->copies > 1;
    if (in->always_through || route_mode(r->tag) != ROUTE_DIRECT) {
        p->through = true;
        add_leg(p, r->node[0], MESSAGE_WINDOW);
        return;
    }
    if (in->packed) { /* the agent here stores them into a copy here */
        p->noted = several;
        for (int i = 0; i < r->copies; i++)
            add_leg(p, r->node[i], MESSAGE_WINDOW);
        return;
    }
    p->here = is_here(in->self, r) && !r->lost; /* what was lost has no memory: an agent says so */
    p->noted = several;
    if (!several && !r->lost && (p->here || !in_messages(in))) {
        p->way = p->here ? PLAN_PLAIN : PLAN_ACCESS;
        if (!p->here)
            add_leg(p, r->node[0], 1);
        return;
    }
    if (several && !p->here && !r->lost && !in->by_message && in->len > WIRE_BULK_MAX) {
        p->way = PLAN_CHUNKS;
        stripe_init(&p->stripe, in->offset, in->len, r->copies);
    }
    for (int i = 0; i < r->copies; i++)
        if (!p->here || r->node[i] != in->self)
            add_leg(p, r->node[i], p->way == PLAN_CHUNKS ? ACCESS_WINDOW : MESSAGE_WINDOW);
}

static void plan_get(struct plan *p, const struct plan_input *in, const struct route *r)
{
    int node = r->node[in->strong ? 0 : in->from];
    bool by_message = route_mode(r->tag) == ROUTE_THROUGH || r->lost || (in_messages(in) && node != in->self) ||
                      (in->strong && r->copies > 1) || in->packed;
    p->here = node == in->self && !by_message;
    p->way = p->here ? PLAN_PLAIN : by_message ? PLAN_MESSAGES : PLAN_ACCESS;
    if (!p->here)
        add_leg(p, node, by_message ? MESSAGE_WINDOW : 1);
}

size_t plan_packs(enum op_kind kind, const struct route *r, int self)
{
    if (kind == OP_ACC || r->lost || route_mode(r->tag) != ROUTE_DIRECT)
        return PLAN_PACKED_MAX;
    bool here = kind == OP_GET ? r->node[0] == self : is_here(self, r);
    return here && (kind == OP_GET || r->copies == 1) ? 0 : PLAN_PACKED_MAX;
}

void plan_make(struct plan *p, const struct plan_input *in, const struct route *route)
{
    memset(p, 0, sizeof *p);
    p->way = PLAN_MESSAGES;
    p->skew = (in->kind == OP_PUT || in->kind == OP_GET) && !in->packed ? (unsigned)(in->offset % 8) : 0;
    if (in->kind == OP_PUT)
        plan_put(p, in, route);
    else if (in->kind == OP_GET)
        plan_get(p, in, route);
    else
        add_leg(p, route->node[0], MESSAGE_WINDOW);
    p->most = most_of_message(p, in);
}

bool plan_take(struct plan *p, uint64_t len, int leg, struct stripe_piece *piece)
{
    if (p->way == PLAN_CHUNKS)
        return stripe_take(&p->stripe, leg, piece);
    uint64_t left = len - p->leg[leg].posted, max = p->way == PLAN_MESSAGES ? p->most : left;
    if (p->way == PLAN_MESSAGES && p->leg[leg].posted == 0)
        max -= p->skew;
    *piece = (struct stripe_piece){.offset = p->leg[leg].posted, .len = left < max ? left : max};
    return piece->len > 0;
}
