/* Sending the pieces of an operation, as far as its plan and what is free allow. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/op/task.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/stream/connection.h"
#include "runtime/wire/acc.h"
#include "runtime/wire/get.h"
#include "runtime/wire/intent.h"
#include "runtime/wire/marks.h"
#include "runtime/wire/put.h"
#include "runtime/wire/rmw.h"

enum { COPIED_MAX = 8 * 1024 }; /* bytes of a message's body: larger ones are sent from the caller's memory */

/* ---- one piece ---- */

static struct msg_identity identity(const struct op *op, const struct piece *p)
{
    return (struct msg_identity){.of_task = op->of_task.is,
                                 .lane = (uint32_t)op->name.lane,
                                 .number = op->name.number,
                                 .task = op->of_task.id,
                                 .round = op->of_task.round,
                                 .step = p->step};
}

static void message_make(const struct op *op, const struct piece *p, int note, struct wire *w)
{
    const struct client *c = op->client;
    bool body = op->kind == OP_PUT || op->kind == OP_ACC || op->packed;
    struct msg_request request = {.seq = p->seq,
                                  .at = {.seg = op->segment ? op->segment->index : 0,
                                         .slot = (uint16_t)op->slot,
                                         .offset = op->offset + p->offset},
                                  .len = body ? (uint32_t)p->len : 0,
                                  .packed = op->packed,
                                  .generation = route_generation(op->route.tag),
                                  .origin = client_life(c),
                                  .doubted = c->doubts.behind};
    switch (op->kind) {
    case OP_PUT:
        msg_put_encode(&(struct msg_put){.request = request, .through = op->plan.through, .note = note}, w);
        break;
    case OP_GET:
        msg_get_encode(&(struct msg_get){.request = request,
                                         .bytes = (uint32_t)(op->packed ? op->packed->bytes : p->len),
                                         .strong = op->strong,
                                         .inspects = op->inspects,
                                         .compares = op->compares},
                       w);
        break;
    case OP_ACC:
        msg_acc_encode(
            &(struct msg_acc){
                .request = request, .identity = identity(op, p), .type = op->what, .scale = {op->a, op->b}},
            w);
        break;
    default:
        msg_rmw_encode(&(struct msg_rmw){.request = request,
                                         .identity = identity(op, p),
                                         .operation = op->what,
                                         .bytes = op->word,
                                         .unordered = op->unordered,
                                         .a = op->a,
                                         .b = op->b},
                       w);
        break;
    }
}

/* The caller's bytes, or a copy with a wrong bit. The piece keeps that as long as the caller's bytes would have to be
 * kept; sent again, it is right. */
static const uint8_t *bytes_of(struct op *op, struct piece *p)
{
    const uint8_t *bytes = op->src + p->offset;
    uint64_t at = (op->flying - 1) / 8 - p->offset;
    if (__builtin_expect(op->flying == 0, 1) || at >= p->len || p->flown || !(p->flown = malloc(p->len)))
        return bytes;
    memcpy(p->flown, bytes, p->len);
    p->flown[at] ^= (uint8_t)(1U << (op->flying - 1) % 8);
    op->flying = 0;
    return p->flown;
}

/* Where the program has replicas what counts once says what it is: nobody inspects what it has left. */
static keel_status send_message(struct op *op, struct piece *p, struct tp_ep *ep, int note)
{
    piece_hash(p);
    struct digested m;
    message_make(op, p, note, &m.wire);
    uint32_t len = m.wire.len;
    bool says = op_is_once(op) && replica_map_is_used(&op->client->replicas);
    size_t head = says ? digested_make(&m, len ? op->src + p->offset : NULL) : sizeof m.wire;
    if (len > COPIED_MAX && p->node != op->client->node) {
        memcpy(&p->made, &m, head);
        p->remote_access = true;
        op->out.accesses++;
        return tp_send(ep, &p->made, head, bytes_of(op, p), len, &p->tp);
    }
    return tp_send(ep, &m, head, len ? bytes_of(op, p) : NULL, len, NULL);
}

/* Tell the agent of a copy what a remote write is about to change: if this process dies, the agents make the copies
 * equal. */
static keel_status announce(const struct op *op, const struct piece *p, struct tp_ep *ep, int note)
{
    struct wire w;
    msg_intent_encode(
        &(struct msg_intent){
            .at = {.seg = op->segment->index, .slot = (uint16_t)op->slot, .offset = op->offset + p->offset},
            .bytes = (uint32_t)p->len,
            .note = note,
            .put = op->number,
            .generation = route_generation(op->route.tag),
            .level = (uint16_t)p->level},
        &w);
    return tp_send(ep, &w, sizeof w, NULL, 0, NULL);
}

static keel_status start_access(struct op *op, struct piece *p, struct tp_ep *ep, int note)
{
    uint64_t key = wire_key(op->segment->index, op->slot, route_generation(op->route.tag));
    keel_status status = note >= 0 ? announce(op, p, ep, note) : KEEL_OK;
    if (status != KEEL_OK)
        return status;
    p->remote_access = true;
    op->out.accesses++;
    if (op->kind == OP_GET)
        return ep->tp->table->read(ep, op->dst + p->offset, p->len, key, op->offset + p->offset, &p->tp);
    return tp_write(ep, bytes_of(op, p), p->len, key, op->offset + p->offset, &p->tp);
}

static bool send_piece(struct op *op, struct piece *p, struct tp_ep *ep, int note)
{
    p->node = op->plan.leg[p->leg].node;
    keel_status status = op->plan.way == PLAN_MESSAGES ? send_message(op, p, ep, note) : start_access(op, p, ep, note);
    op->out.unanswered += op->plan.way == PLAN_MESSAGES;
    op->out.sent++;
    if (status == KEEL_OK)
        return true;
    /* The connection breaks: TP_CLOSED follows. */
    op->out.accesses -= p->remote_access;
    p->remote_access = false;
    if (op_is_once(op))
        piece_unhash(p);
    else
        piece_free(p);
    op->replan = true;
    return false;
}

/* ---- what a leg gets ---- */

/* Which piece of the operation it is, or the step in the task: whatever a repetition is recognised by. False: not
 * now. */
static bool identify(struct op *op, struct piece *p)
{
    if (op->of_task.is) {
        int64_t step = task_step(&op->client->task_run, op->copyset);
        p->step = (uint32_t)step;
        return step >= 0;
    }
    p->step = op_is_unit(op) ? 0 : ++op->out.named;
    return true;
}

static unsigned in_flight(const struct op *op, int leg)
{
    unsigned n = 0;
    for (const struct piece *p = op->out.pieces; p; p = p->sibling)
        n += p->leg == leg && (p->seq || p->remote_access);
    return n;
}

static bool has_window(const struct op *op)
{
    return op->plan.way != PLAN_MESSAGES || op->client->ops.messages < MESSAGES_MAX;
}

/* Pieces that were sent before and not answered, in their order. False: not all could be sent. */
static bool send_again(struct op *op, struct tp_ep *ep)
{
    for (struct piece *p = op->out.pieces, *next; p; p = next) {
        next = p->sibling;
        if (p->seq || p->remote_access)
            continue;
        if (!has_window(op)) {
            hold_wait(op);
            return false;
        }
        if (!send_piece(op, p, ep, -1))
            return false;
    }
    return true;
}

/* One more piece for the leg; false: none now. Who holds notes, an entry of the intent page, or the right of large puts
 * goes before those who wait to begin: they may be waiting for that, which it gives back when all copies have its
 * bytes. */
static bool post_one(struct op *op, int leg, struct tp_ep *ep)
{
    struct stripe_piece part;
    if (!has_window(op) || (hold_others_wait(op) && !op->line.first && !hold_has_some(op)) ||
        (op->plan.noted && !note_has_room(op, op->plan.leg[leg].node))) {
        hold_wait(op);
        return false;
    }
    struct plan before = op->plan;
    if (op_is_unit(op))
        part = (struct stripe_piece){.len = 1};
    else if (!plan_take(&op->plan, op->len, leg, &part))
        return false;
    struct piece *p = piece_new(op, leg, &part);
    if (!p) {
        op->plan = before;
        op_no_memory(op, op->client->env.now(op->client->env.user));
        return false;
    }
    int note = op->plan.noted ? note_take(op, op->plan.leg[leg].node, &part) : -1;
    if ((op->plan.noted && note < 0) || (op_is_once(op) && !identify(op, p))) {
        piece_free(p);
        op->plan = before;
        hold_wait(op);
        return false;
    }
    op->plan.leg[leg].posted += part.len;
    return send_piece(op, p, ep, note);
}

void op_post(struct op *op, int leg, uint64_t now)
{
    const struct plan_leg *l = &op->plan.leg[leg];
    bool unsent = op_is_once(op) && op->out.pieces;
    if (l->posted >= op->len && !unsent)
        return;
    unsigned n = in_flight(op, leg);
    if (n >= l->window)
        return;
    struct tp_ep *ep = connection_up(op->client, l->node, now);
    if (!ep || (unsent && !send_again(op, ep)))
        return;
    for (n = in_flight(op, leg); !op->finished && !op->replan && l->posted < op->len && n < l->window; n++)
        if (!post_one(op, leg, ep))
            return;
}

/* Who tracks the segment may have asked for marks while we were storing: it has the bytes, or we see that. */
static void stored_here(struct op *op, uint64_t sent)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (marks_wanted(op->client->page)) {
        size_t bytes = __atomic_load_n(&op->segment->map_bytes[op->slot], __ATOMIC_RELAXED);
        marks_set(op->base - op->offset, bytes, op->offset + op->stored, sent - op->stored);
    }
    op->stored = sent;
}

/* The copy on this node gets what is on its way to all others. False: the route is another one by now, and this copy
 * may be what others are filled from. Who has changed it sees the note, or we see the change. */
bool op_store_here(struct op *op)
{
    uint64_t sent = op->len;
    for (int leg = 0; leg < op->plan.legs; leg++)
        if (op->plan.leg[leg].posted < sent)
            sent = op->plan.leg[leg].posted;
    if (sent <= op->stored)
        return true;
    if (op_is_in_place(op)) {
        stored_here(op, sent);
        return true;
    }
    struct client *c = op->client;
    hold_intent_move(op, sent);
    if (page_tag(c->page, op->copyset) != op->route.tag)
        return false;
    FAULT_POINT("op.before_local_store");
    uint64_t from = op->stored;
    c->env.copy(c->env.user, op->base + from, op->src + from, sent - from);
    stored_here(op, sent);
    FAULT_POINT("op.after_local_store");
    return true;
}
