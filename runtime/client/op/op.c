/* Operations: from the call to the moment when every live copy has the bytes.
 *
 * An operation reads the route of its copyset (wire/page.h), makes a plan for it (plan.h), sends pieces, and when all
 * are answered compares the route's tag: unchanged, it is complete; changed, it is planned again. Puts and gets may be
 * repeated freely (they are not complete until then, so nobody may rely on an order); accumulates and atomics keep
 * their identity, so that the copies recognise a repetition.
 *
 *            ┌─────────────── the route changed, a connection broke, an agent said RETRY ─────────────┐
 *            ▼                                                                                        │
 *   start ─► planned ─► pieces on their way ─► all answered ─► same route? ──yes──► finished         no
 *            │   ▲                                                   └────────────────────────────────┘
 *            ▼   │ given back, in the order of asking
 *          waiting for a note, an intent entry, the message window, or a large put to end
 *
 * What counts once gets its name at the start (lane.h), and has no plan before it has its turn in its lane. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/words.h"
#include "runtime/client/client.h"
#include "runtime/client/op/handle.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/op/packed.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/stream/connection.h"

enum {
    RETRY_FIRST_NS = 20000,
    RETRY_MAX_NS = 1000000,
};

/* ---- memory ---- */

struct op *op_alloc(struct client *c)
{
    struct op *op = c->ops.free;
    if (op)
        c->ops.free = op->next;
    else
        op = malloc(sizeof *op);
    c->ops.living += op != NULL;
    return op;
}

void op_free(struct op *op)
{
    struct client *c = op->client;
    packed_give(&c->ops.packed, op->packed);
    op->next = c->ops.free;
    c->ops.free = op;
    c->ops.living--;
}

void op_init(struct client *c, struct op *op, enum op_kind kind, struct keel_segment *segment, int rank, size_t offset,
             size_t len)
{
    memset(op, 0, sizeof *op);
    op->client = c;
    op->kind = kind;
    op->segment = segment;
    op->rank = rank;
    op->len = len;
    op->held.intent = -1;
    op->out.pieces_tail = &op->out.pieces;
    if (segment) {
        const struct page_rank *r = page_rank(c->page, rank);
        op->slot = (int)r->slot;
        op->copyset = copyset_of(op->slot, segment->redundancy);
        op->offset = segment->part_at[rank] + offset;
    }
    if (__builtin_expect(c->flying.len != 0, 0) && c->flying.len == len && !c->flying.shaped &&
        (kind == OP_PUT || kind == OP_ACC)) {
        op->flying = c->flying.bit + 1;
        c->flying.len = 0;
    }
}

bool op_is_once(const struct op *op)
{
    return op->kind == OP_ACC || op->kind == OP_RMW;
}

bool op_changes(const struct op *op)
{
    return op->kind == OP_PUT || op_is_once(op);
}

bool op_is_unit(const struct op *op)
{
    return op->kind == OP_RMW;
}

/* The program has stored its bytes in the copy here itself, and brings them to the others (keel/update.h). Nothing is
 * torn there, and no other copy's bytes may take their place. */
bool op_is_in_place(const struct op *op)
{
    const struct keel_segment *s = op->segment;
    if (op->kind != OP_PUT || op->packed)
        return false;
    return op->src == op->base || (s->view && s->view_slot == op->slot && op->src == s->view + op->offset);
}

/* ---- the end ---- */

static void unlink_active(struct op *op)
{
    struct client *c = op->client;
    if (op->prev)
        op->prev->next = op->next;
    else
        c->ops.active = op->next;
    if (op->next)
        op->next->prev = op->prev;
    else
        c->ops.active_last = op->prev;
    op->next = op->prev = NULL;
}

static void finish(struct op *op, keel_status status)
{
    struct client *c = op->client;
    if (status == KEEL_OK)
        op_count(op);
    hold_release(op);
    name_end(op);
    op->finished = true;
    op->status = status;
    unlink_active(op);
    if (op->implicit && status != KEEL_OK)
        errors_keep(&c->ops.errors, op->rank, status);
    if (op->of_task.step_ahead && status != KEEL_OK)
        c->task_run.broken = true; /* its step may be another's by the time that the caller hears it */
    if (op->handle) {
        handle_end(op->handle, status);
        op->handle = NULL;
        op_free(op);
    } else if (op->implicit) {
        op_free(op);
    }
}

void op_fail(struct op *op, keel_status status)
{
    struct client *c = op->client;
    piece_take_back(op, true);
    if (op->out.accesses) {
        op->status = status; /* finished when they have ended */
        for (struct piece *p = op->out.pieces; p; p = p->sibling)
            connection_drop(c, p->node);
        return;
    }
    if (status != KEEL_ERR_DATA_LOST && status != KEEL_OK && status != KEEL_ERR_NOMEM) { /* then nothing was done */
        c->task_run.broken = c->task_run.broken || op->of_task.is;
        doubt_give_up(op);
    }
    finish(op, status);
}

/* ---- planning ---- */

void op_later(struct op *op, uint64_t now)
{
    struct client *c = op->client;
    op->replan = true;
    op->times.retry_ns = !op->times.retry_ns                     ? RETRY_FIRST_NS
                         : op->times.retry_ns * 2 > RETRY_MAX_NS ? RETRY_MAX_NS
                                                                 : op->times.retry_ns * 2;
    op->times.retry_at = now + op->times.retry_ns;
    if (op->times.retry_at < c->progress.retry_at)
        c->progress.retry_at = op->times.retry_at;
}

/* Of an operation that changes something so much is sent that all of it has to be: then there is memory when that
 * has come back. */
bool op_may_fail_here(const struct op *op, uint64_t sent)
{
    return !op->patient && (!op_changes(op) || (op->out.sent <= sent && op->stored == 0));
}

void op_no_memory(struct op *op, uint64_t now)
{
    if (op_may_fail_here(op, 0))
        op_fail(op, KEEL_ERR_NOMEM);
    else
        op_later(op, now);
}

/* What is stored and loaded here. False: not now. */
static bool plan_here(struct op *op, uint64_t now)
{
    keel_status status;
    uint8_t *base = segment_map(op->segment, op->slot, &status);
    bool for_good = status == KEEL_ERR_ARG || status == KEEL_ERR_SYSTEM; /* ARG: it was freed here */
    if (for_good) {
        op_fail(op, status);
        return false;
    }
    if (status == KEEL_ERR_NOMEM) {
        op_no_memory(op, now);
        return false;
    }
    if (!base) {
        op_later(op, now);
        return false;
    }
    op->base = base + op->offset;
    if (op->plan.noted && !op_is_in_place(op) && !hold_intent(op)) {
        hold_wait(op);
        return false;
    }
    if (op->plan.way != PLAN_PLAIN || op_is_in_place(op))
        return true;
    if (op->kind == OP_PUT)
        op->client->env.copy(op->client->env.user, op->base, op->src, op->len);
    if (op->kind == OP_PUT && op->flying) {
        op->base[(op->flying - 1) / 8] ^= (uint8_t)(1U << (op->flying - 1) % 8);
        op->flying = 0;
    }
    if (op->kind != OP_PUT)
        words_load(op->dst, op->base, op->len);
    return true;
}

/* A plan for the current route; false if there is none yet. */
static bool plan(struct op *op, uint64_t now)
{
    struct client *c = op->client;
    struct plan_input in = {.kind = op->kind,
                            .offset = op->offset,
                            .len = op->len,
                            .redundancy = op->segment ? (unsigned)op->segment->redundancy : 0,
                            /* notes of earlier plans leave no room for new ones: the primary needs none */
                            .always_through = op->always_through || op->held.notes >= OP_NOTES_MAX / LEGS_MAX,
                            .strong = op->strong,
                            .in_task = op->of_task.is,
                            .packed = op->packed != NULL,
                            .bytewise = c->connections.bytewise,
                            .self = c->node};
    hold_large_end(op);
    op->replan = false;
    op->planned = false;
    if ((op_changes(op) && doubt_is_behind(c)) || !page_route_read(c->page, op->copyset, &op->route)) {
        op_later(op, now);
        return false;
    }
    in.by_message = op->no_access == op->route.tag;
    in.from = page_copy_to_read(c->page, &op->route);
    plan_make(&op->plan, &in, &op->route);
    if (op->plan.way == PLAN_CHUNKS) {
        if (c->ops.large >= LARGE_MAX || (hold_others_wait(op) && !op->line.first)) {
            hold_wait(op);
            return false;
        }
        c->ops.large++;
        op->held.large = true;
        note_announce(op);
    }
    op->stored = 0;
    for (int i = 0; i < op->held.notes; i++)
        op->held.note[i].done = false; /* a copy of an older route counts for none of this one */
    if (op->plan.here && !plan_here(op, now))
        return false;
    if (op->kind == OP_PUT && (op->plan.noted || op->plan.legs) && !op->held.counted) {
        atomic_fetch_add_explicit(&c->intents->open, 1, memory_order_relaxed);
        op->held.counted = true;
        op->number = ++c->ops.next_number;
    }
    if (op_is_once(op)) { /* what was answered has taken effect for good; the rest has its pieces */
        op->plan.leg[0].done = op->answered;
        op->plan.leg[0].posted = op->answered;
        for (struct piece *p = op->out.pieces; p; p = p->sibling) {
            op->plan.leg[0].posted += p->len;
            p->leg = 0;
            if (!p->seq)
                p->node = op->plan.leg[0].node;
        }
    }
    op->planned = true;
    return true;
}

/* A get waits for no node in doubt while another copy is as whole: it reads that one. What has been sent by message is
 * taken back here, a remote read by whoever drops the connection (link.c). */
bool op_turns_away(struct op *op)
{
    const struct client *c = op->client;
    if (op->kind != OP_GET || op->strong || !op->planned || op->replan || op->plan.legs != 1 ||
        !page_is_doubted(c->page, op->plan.leg[0].node) ||
        op->route.node[page_copy_to_read(c->page, &op->route)] == op->plan.leg[0].node)
        return false;
    if (!op->out.accesses) {
        op->replan = true;
        op->times.retry_at = 0;
    }
    return true;
}

/* ---- from the call to the end ---- */

static bool all_done(const struct op *op)
{
    if (op->out.accesses)
        return false;
    for (int leg = 0; leg < op->plan.legs; leg++)
        if (op->plan.leg[leg].done < op->len)
            return false;
    return !op->plan.here || op->plan.way == PLAN_PLAIN || op->stored >= op->len;
}

void op_advance(struct op *op, uint64_t now)
{
    if (op->finished)
        return;
    if (op->status != KEEL_IN_PROGRESS) { /* failed; waits for its accesses */
        if (!op->out.accesses)
            op_fail(op, op->status);
        return;
    }
    if (op->name.waits)
        return;
    if (op->replan || !op->planned) {
        if (op->replan)
            piece_take_back(op, false);
        if (op->replan && op->line.waiting && !op->line.first) { /* for what the old plan wanted */
            hold_wait_no_more(op);
            op->client->ops.serve = true;
        }
        if (op->out.accesses || now < op->times.retry_at || (op->line.waiting && !op->line.first) || !plan(op, now))
            return;
    }
    for (int leg = 0; leg < op->plan.legs && !op->finished && !op->replan; leg++) {
        op_post(op, leg, now);
        if (leg == 0 && op->kind == OP_PUT)
            FAULT_POINT("op.put_between_copies");
    }
    if (op->finished)
        return;
    if (op->replan)
        return;
    bool stays = op->kind != OP_PUT || !op->plan.here || op->plan.way != PLAN_MESSAGES || op_store_here(op);
    if (stays && !all_done(op))
        return;
    bool repeatable = op->kind == OP_PUT || op->kind == OP_GET;
    if (!stays || (repeatable && page_tag(op->client->page, op->copyset) != op->route.tag)) {
        op->replan = true;
        op->times.retry_at = 0;
        op_advance(op, now);
        return;
    }
    if (note_all_given_back(op, now))
        finish(op, KEEL_OK);
}

void op_start(struct op *op)
{
    struct client *c = op->client;
    op->status = KEEL_IN_PROGRESS;
    op->times.started = c->progress.lived_ns;
    op->patient = op->patient || (op_is_once(op) && replica_map_is_used(&c->replicas));
    op->times.deadline = op->patient ? UINT64_MAX : c->progress.lived_ns + c->timeout_ns;
    if (op_is_unit(op))
        op->len = 1;
    name_take(op);
    op->next = NULL;
    op->prev = c->ops.active_last;
    if (c->ops.active_last)
        c->ops.active_last->next = op;
    else
        c->ops.active = op;
    c->ops.active_last = op;
    if (c->fatal != KEEL_OK || c->leaving)
        op_fail(op, c->leaving ? KEEL_ERR_STATE : c->fatal);
    else
        op_advance(op, c->env.now(c->env.user));
}
