/* Operations that the primary executes once, passes on to the other copies, and answers when all have them. */
#include "runtime/agent/execute_target.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/execute_int.h"
#include "runtime/base/fault.h"
#include "runtime/base/words.h"
#include "runtime/wire/acc.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/forward.h"
#include "runtime/wire/rmw.h"

static void add(const struct request_target *t, const struct msg_acc *acc, uint8_t *at, const void *by, size_t len)
{
    static_assert(sizeof acc->scale >= ARITH_SCALE_MAX, "a message carries a scale of any type");
    arith_add(acc->type, at, by, len / arith_size(acc->type), acc->scale, t->copy->shared);
}

static void accumulate(const struct request_target *t, uint8_t *at)
{
    struct msg_acc acc;
    const uint8_t *data = t->pack.data;
    msg_acc_decode(t->w, &acc);
    if (!is_packed(t)) {
        add(t, &acc, at, t->body, t->request.len);
        return;
    }
    for (uint32_t i = 0; i < t->pack.runs; i++) {
        struct pack_run run = pack_run(&t->pack, i);
        add(t, &acc, at + run.at, data, run.len);
        data += run.len;
    }
}

/* The value that it returns; of an accumulate the piece, which is what is remembered of it. */
static int64_t apply(const struct request_target *t, const struct msg_identity *id)
{
    uint8_t *at = t->copy->base + t->request.at.offset;
    struct msg_rmw rmw;
    if (t->w->type == WIRE_RMW) {
        msg_rmw_decode(t->w, &rmw);
        return arith_rmw((enum arith_rmw)rmw.operation, rmw.bytes, at, rmw.a, rmw.b);
    }
    if (t->w->type == WIRE_ACC) {
        accumulate(t, at);
        return id->of_task ? 0 : id->step;
    }
    if (is_packed(t))
        pack_scatter(&t->pack, at);
    else
        words_store(at, t->body, t->request.len);
    return 0;
}

static inline struct life name_giver(const struct agent *a, const struct request_target *t)
{
    return named_by(a, t->request.origin, t->request.at.seg);
}

static inline enum dedup_verdict look(const struct agent *a, const struct request_target *t,
                                      const struct msg_identity *id, int64_t *value)
{
    const struct dedup *d = &a->dedup[t->copyset];
    *value = 0;
    if (t->w->type == WIRE_PUT)
        return DEDUP_NEW;
    if (id->of_task)
        return dedup_task_look(d, id->task, id->round, id->step);
    return dedup_look(d, name_giver(a, t), id->lane, id->number, id->step, value);
}

/* The last copy has it when all have; and it is nearer to the origin, if that is on its node. Not while a copy is
 * filled: that gets what we do beside the chain. */
static bool is_answered_there(const struct agent *a, const struct request_target *t)
{
    const struct view_copyset *g = t->g;
    return g->mode == COPYSET_DIRECT && t->conn && t->conn->node != a->self &&
           g->copy[g->copies - 1].node == t->conn->node;
}

/* Send on what the operation left at its patch; its identity travels along. */
static void forward(struct agent *a, const struct request_target *t, const struct msg_identity *id,
                    struct waiter *waiter, uint32_t len, int64_t value)
{
    struct wire f;
    counter_add(&a->counts, COUNTER_forwards, 1);
    const uint8_t *bytes = t->copy->base + t->request.at.offset;
    if (is_packed(t) && t->g->copies > 1) {
        pack_again(&t->pack, bytes, waiter->bytes);
        bytes = waiter->bytes;
    }
    waiter->answered_there = is_answered_there(a, t);
    msg_forward_encode(&(struct msg_forward){.at = t->request.at,
                                             .len = len,
                                             .packed = is_packed(t),
                                             .answer = waiter->answered_there,
                                             .request = t->request.seq,
                                             .operation = t->w->type,
                                             .number = ++a->forwards[t->copyset],
                                             .value = value,
                                             .origin = t->request.origin,
                                             .identity = *id},
                       &f);
    chain_send(a, t->copyset, &f, bytes, &waiter->mark);
    waiter->forwarded = waiter->mark.relayed != 0;
    if (waiter->forwarded) {
        waiter->forward = f;
        if (bytes != waiter->bytes)
            memcpy(waiter->bytes, bytes, len);
    }
}

/* Bytes that the operation leaves at its patch; of pieces, with where they are. */
static uint32_t left_bytes(const struct request_target *t)
{
    struct msg_rmw rmw;
    if (t->w->type != WIRE_RMW)
        return t->request.len;
    msg_rmw_decode(t->w, &rmw);
    return rmw.bytes;
}

/* The rank does the next one itself: nobody else has a copy, and no other set must know in which order. */
static void share(const struct agent *a, const struct request_target *t, struct waiter *waiter)
{
    if (t->w->type == WIRE_PUT || t->g->copies > 1 || !ordering_shares(a, t->w) || !t->conn || t->conn->node != a->self)
        return;
    t->copy->shared = true;
    waiter->reply.shared = t->g->generation + 1;
}

/* If it is new; and the answer, when all copies have it. */
static void execute_once(struct agent *a, const struct request_target *t, enum dedup_verdict verdict, int64_t value)
{
    struct msg_identity id;
    msg_identity_decode(t->w, &id);
    uint32_t len = left_bytes(t);
    bool keeps = chain_keeps(t->g) || (is_packed(t) && t->g->copies > 1);
    struct waiter *waiter =
        malloc(sizeof *waiter + (keeps ? len : 0)); /* before it takes effect: nothing is half-done */
    bool once = t->w->type != WIRE_PUT;
    if (!waiter || (once && verdict == DEDUP_NEW && !reserve(&a->dedup[t->copyset], name_giver(a, t), &id))) {
        free(waiter);
        answer(t, verdict == DEDUP_SEEN ? WIRE_RETRY : KEEL_ERR_NOMEM); /* it has taken effect: it has not failed */
        return;
    }
    *waiter = (struct waiter){.conn = t->conn, .reply = {.seq = t->request.seq, .forgot = -1}, .copyset = t->copyset};
    share(a, t, waiter);
    chain_mark(a, t->copyset, &waiter->mark);
    if (verdict == DEDUP_NEW) {
        value = apply(t, &id);
        mark(a, t->copy, t->request.at.offset, len,
             is_packed(t) ? &t->pack : NULL); /* the last copy may answer for us */
        if (once)
            record(&a->dedup[t->copyset], name_giver(a, t), &id, value);
        FAULT_POINT("replica.applied_not_forwarded");
        forward(a, t, &id, waiter, len, value);
        FAULT_POINT("replica.forwarded");
    }
    waiter->reply.value = value;
    execute_reply_when_reached(a, waiter);
}

/* Another replica of its rank has gone on to later names, so this one has taken effect. What an atomic found is not
 * known any more: replicas meet before the next one (client/replica/partner.h), so those that do as agreed do not ask.
 */
static void answer_who_is_behind(const struct request_target *t)
{
    struct msg_rmw rmw = {.unordered = true};
    if (t->w->type == WIRE_RMW)
        msg_rmw_decode(t->w, &rmw);
    answer(t, rmw.unordered ? KEEL_OK : KEEL_ERR_STATE);
}

void execute_counted(struct agent *a, const struct request_target *t)
{
    int64_t value;
    struct msg_identity id;
    if (ordering_is_over(a, t->w))
        return;
    if (a->partners && ordering_refuses(a, t->w, t->copyset)) {
        answer(t, KEEL_ERR_DATA_LOST);
        return;
    }
    msg_identity_decode(t->w, &id);
    enum dedup_verdict verdict = look(a, t, &id, &value);
    if (verdict == DEDUP_ECHO && a->partners)
        answer_who_is_behind(t);
    if (verdict == DEDUP_ECHO)
        return;
    if (a->ordering.map && ordering_has_turn(a, t->w, t->copyset))
        ordering_take(a, t->conn, t->w, t->body, t->copyset, verdict);
    else if (verdict == DEDUP_EARLY)
        answer(t, WIRE_RETRY);
    else
        execute_once(a, t, verdict, value);
}

/* ---- in the order of all sets ---- */

/* It was found well formed when it came; only that the segment was freed can have come between. */
static bool find_again(const struct agent *a, struct request_target *t, struct conn *c, const struct wire *w,
                       const void *body)
{
    *t = (struct request_target){.conn = c, .w = w, .body = body};
    msg_request_decode(w, &t->request);
    const struct store_segment *s = store_find(&a->store, t->request.at.seg);
    if (!s)
        return false;
    t->copyset = copyset_of(t->request.at.slot, s->redundancy);
    t->g = &a->view.copyset[t->copyset];
    t->copy = store_copy(&a->store, t->request.at.seg, t->request.at.slot);
    return t->copy && !t->copy->lost && (w->type == WIRE_ACC ? acc_fits(t) : rmw_fits(t));
}

void execute_in_turn(struct agent *a, const struct wire *w, const void *body)
{
    struct request_target t;
    int64_t value;
    struct msg_identity id;
    if (!find_again(a, &t, NULL, w, body))
        return;
    msg_identity_decode(w, &id);
    execute_once(a, &t, DEDUP_NEW, 0);
    if (look(a, &t, &id, &value) != DEDUP_SEEN)
        agent_break(a, "out of memory for an operation whose turn has come");
}

void execute_answer(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    struct request_target t;
    int64_t value;
    struct msg_identity id;
    if (!c)
        return;
    msg_identity_decode(w, &id);
    if (find_again(a, &t, c, w, body) && look(a, &t, &id, &value) == DEDUP_SEEN)
        execute_once(a, &t, DEDUP_SEEN, value);
    else
        execute_reply(c, w->seq, KEEL_ERR_ARG, 0, NULL, 0);
}
