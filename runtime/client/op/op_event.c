/* What comes back: answers, ends of remote accesses, connections made and lost. */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/op/task.h"
#include "runtime/client/segment/segment.h"
#include "runtime/wire/reply.h"

/* FT-ARMCI: a put or accumulate to a part that died with its node is ignored. */
static bool is_ignored(const struct op *op, int status)
{
    return status == KEEL_ERR_DATA_LOST && op->segment && op->segment->redundancy == KEEL_REDUNDANCY_NONE &&
           (op->kind == OP_PUT || op->kind == OP_ACC);
}

void op_answered(struct client *c, const struct wire *w, const void *body, size_t len, uint64_t now)
{
    struct msg_reply r;
    msg_reply_decode(w, &r);
    if (r.forgot >= 0) {
        note_cleared(c, r.seq);
        return;
    }
    struct piece *p = piece_of(c, r.seq);
    if (!p)
        return; /* an answer to what was given up */
    struct op *op = p->op;
    op->out.unanswered--;
    if (r.status == WIRE_RETRY)
        counter_add(client_counts(c), COUNTER_retries, 1);
    if (r.status == WIRE_RETRY || (r.status == KEEL_ERR_NOMEM && !op_may_fail_here(op, 1))) {
        if (op_is_once(op))
            piece_unhash(p);
        else
            piece_done(p);
        op_later(op, now);
        return;
    }
    if (r.status != KEEL_OK) {
        if (op->of_task.is) /* neither it nor what comes after it has taken effect; with the data all is gone */
            for (const struct piece *q = op->out.pieces; q; q = q->sibling)
                if (r.status == KEEL_ERR_DATA_LOST || q->step >= p->step)
                    task_unstep(&c->task_run, op->copyset);
        piece_done(p);
        op_fail(op, is_ignored(op, r.status) ? KEEL_OK : (keel_status)r.status);
        return;
    }
    if (op->kind == OP_GET && op->packed)
        packed_answered(op->packed, body, len);
    else if (op->kind == OP_GET)
        memcpy(op->dst + p->offset, body, len < p->len ? len : p->len);
    FAULT_POINT("op.answered");
    op->result = r.value;
    if (r.shared)
        atomic_store(&op->segment->shared[op->slot], r.shared);
    op->plan.leg[p->leg].done += p->len;
    op->answered += p->len;
    op->times.retry_ns = 0;
    if (op->plan.noted)
        note_done(op, p);
    piece_done(p);
    op_advance(op, now);
}

/* The provider does not need the message's bytes any more. If it was not sent, TP_CLOSED says so. */
static void message_left(struct piece *p)
{
    p->op->out.accesses--;
    p->remote_access = false;
    if (p->done)
        piece_free(p);
}

void op_access_done(struct piece *p, keel_status status)
{
    struct op *op = p->op;
    struct client *c = op->client;
    if (p->made.wire.type) {
        message_left(p);
        op_advance(op, c->env.now(c->env.user));
        return;
    }
    if (status == KEEL_OK) {
        if (op->plan.way == PLAN_CHUNKS && !op->replan) {
            if (p->level == 0)
                FAULT_POINT("op.chunk_in_one_copy");
            else if (p->level < op->plan.legs - 1)
                FAULT_POINT("op.chunk_in_two_copies");
            stripe_done(&op->plan.stripe, p->leg, p->level);
            note_done(op, p);
        }
        op->plan.leg[p->leg].done += p->len;
    } else {
        op->replan = true;
        op->no_access =
            op->route.tag; /* perhaps the memory is gone, and every further try would break the connection */
    }
    piece_free(p);
    op_advance(op, c->env.now(c->env.user));
}

static void advance_all(struct client *c)
{
    uint64_t now = c->env.now(c->env.user);
    for (struct op *op = c->ops.active, *next; op; op = next) {
        next = op->next;
        op_advance(op, now);
    }
}

/* What other nodes have executed and the agent here was to answer may have been answered while there was no connection.
 * Repeated, it is answered by who executes it. */
static void ask_primaries_again(struct client *c)
{
    for (struct op *op = c->ops.active; op; op = op->next)
        for (struct piece *p = op->out.pieces; p && op_is_once(op); p = p->sibling)
            if (p->seq && p->node != c->node) {
                piece_unhash(p);
                op->replan = true;
            }
}

void op_connection_up(struct client *c, int node)
{
    note_clear_again(c, node);
    if (node == c->node)
        ask_primaries_again(c);
    advance_all(c);
}

/* The connection to node is gone: its messages are lost, its accesses have had their events. */
void op_connection_lost(struct client *c, int node)
{
    for (struct op *op = c->ops.active; op; op = op->next)
        for (struct piece *p = op->out.pieces, *next; p; p = next) {
            next = p->sibling;
            if (p->node != node || p->remote_access || !p->seq)
                continue;
            if (op_is_once(op))
                piece_unhash(p);
            else
                piece_free(p);
            op->replan = true;
        }
    advance_all(c);
}
