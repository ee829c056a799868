#include "runtime/agent/execute.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/execute_int.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/strong.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/words.h"
#include "runtime/wire/acc.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/forward.h"
#include "runtime/wire/get.h"
#include "runtime/wire/put.h"
#include "runtime/wire/reply.h"
#include "runtime/wire/rmw.h"

void execute_reply(struct conn *c, uint64_t seq, int status, int64_t value, const void *body, uint32_t len)
{
    struct wire reply;
    msg_reply_encode(&(struct msg_reply){.seq = seq, .status = status, .value = value, .len = len, .forgot = -1},
                     &reply);
    agent_answer(c, &reply, body);
}

/* What a request is about, found once. */
struct target {
    struct conn *conn;
    const struct wire *w;
    struct msg_request request; /* of w, what all requests say */
    const void *body;
    int copyset;
    const struct view_copyset *g;
    struct store_copy *copy;
    struct pack pack; /* request.packed */
};

static bool is_packed(const struct target *t)
{
    return t->request.packed;
}

static void answer(const struct target *t, int status)
{
    execute_reply(t->conn, t->request.seq, status, 0, NULL, 0);
}

/* A put that the origin sends to every copy itself. */
static void put_direct(struct agent *a, const struct target *t)
{
    const struct msg_request *r = &t->request;
    struct msg_put put;
    if (t->g->mode != COPYSET_DIRECT || view_copy_at(t->g, a->self) < 0) {
        answer(t, WIRE_RETRY);
        return;
    }
    msg_put_decode(t->w, &put);
    /* Of pieces, all that lies between them, too: a repair may bring more than what differs. */
    if (put.note >= 0)
        t->conn->note[put.note] = (struct patch){.seg = r->at.seg,
                                                 .slot = r->at.slot,
                                                 .offset = r->at.offset,
                                                 .len = is_packed(t) ? pack_reach(&t->pack) : r->len,
                                                 .came_at = a->now};
    FAULT_POINT("replica.put_noted");
    if (is_packed(t))
        pack_scatter(&t->pack, t->copy->base + r->at.offset);
    else
        words_store(t->copy->base + r->at.offset, t->body, r->len);
    mark(a, t->copy, r->at.offset, r->len, is_packed(t) ? &t->pack : NULL);
    FAULT_POINT("replica.put_applied");
    answer(t, KEEL_OK);
}

static void add(const struct target *t, const struct msg_acc *acc, uint8_t *at, const void *by, size_t len)
{
    static_assert(sizeof acc->scale >= ARITH_SCALE_MAX, "a message carries a scale of any type");
    arith_add(acc->type, at, by, len / arith_size(acc->type), acc->scale, t->copy->shared);
}

static void accumulate(const struct target *t, uint8_t *at)
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
static int64_t apply(const struct target *t, const struct msg_identity *id)
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

static inline enum dedup_verdict look(const struct agent *a, const struct target *t, const struct msg_identity *id,
                                      int64_t *value)
{
    const struct dedup *d = &a->dedup[t->copyset];
    *value = 0;
    if (t->w->type == WIRE_PUT)
        return DEDUP_NEW;
    if (id->of_task)
        return dedup_task_look(d, id->task, id->round, id->step);
    return dedup_look(d, t->request.origin, id->lane, id->number, id->step, value);
}

/* The last copy has it when all have; and it is nearer to the origin, if that is on its node. Not while a copy is
 * filled: that gets what we do beside the chain. */
static bool is_answered_there(const struct agent *a, const struct target *t)
{
    const struct view_copyset *g = t->g;
    return g->mode == COPYSET_DIRECT && t->conn && t->conn->node != a->self &&
           g->copy[g->copies - 1].node == t->conn->node;
}

/* Send on what the operation left at its patch; its identity travels along. */
static void forward(struct agent *a, const struct target *t, const struct msg_identity *id, struct waiter *waiter,
                    uint32_t len, int64_t value)
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
static uint32_t left_bytes(const struct target *t)
{
    struct msg_rmw rmw;
    if (t->w->type != WIRE_RMW)
        return t->request.len;
    msg_rmw_decode(t->w, &rmw);
    return rmw.bytes;
}

/* The rank does the next one itself: nobody else has a copy, and no other set must know in which order. */
static void share(const struct agent *a, const struct target *t, struct waiter *waiter)
{
    if (t->w->type == WIRE_PUT || t->g->copies > 1 || a->view.replicas || !t->conn || t->conn->node != a->self)
        return;
    t->copy->shared = true;
    waiter->reply.shared = t->g->generation + 1;
}

/* If it is new; and the answer, when all copies have it. */
static void execute_once(struct agent *a, const struct target *t, enum dedup_verdict verdict, int64_t value)
{
    struct msg_identity id;
    msg_identity_decode(t->w, &id);
    uint32_t len = left_bytes(t);
    bool keeps = chain_keeps(t->g) || (is_packed(t) && t->g->copies > 1);
    struct waiter *waiter =
        malloc(sizeof *waiter + (keeps ? len : 0)); /* before it takes effect: nothing is half-done */
    bool once = t->w->type != WIRE_PUT;
    if (!waiter || (once && verdict == DEDUP_NEW && !reserve(&a->dedup[t->copyset], t->request.origin, &id))) {
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
            record(&a->dedup[t->copyset], t->request.origin, &id, value);
        FAULT_POINT("replica.applied_not_forwarded");
        forward(a, t, &id, waiter, len, value);
        FAULT_POINT("replica.forwarded");
    }
    waiter->reply.value = value;
    execute_reply_when_reached(a, waiter);
}

/* What the primary executes, once, and passes on. */
static void execute(struct agent *a, const struct target *t)
{
    int64_t value;
    struct msg_identity id;
    msg_identity_decode(t->w, &id);
    enum dedup_verdict verdict = look(a, t, &id, &value);
    if (verdict == DEDUP_ECHO)
        return;
    if (a->ordering.map && ordering_has_turn(a, t->w, t->copyset))
        ordering_take(a, t->conn, t->w, t->body, t->copyset, verdict);
    else if (verdict == DEDUP_EARLY)
        answer(t, WIRE_RETRY);
    else
        execute_once(a, t, verdict, value);
}

/* What one answer can carry. */
static uint32_t get_max(const struct agent *a, const struct target *t, const struct msg_get *get)
{
    return t->conn->node == a->self || get->strong ? WIRE_BODY_MAX : WIRE_BULK_MAX;
}

/* The pieces come with their bytes. */
static bool has_data(const struct target *t)
{
    struct msg_get get;
    if (t->w->type != WIRE_GET)
        return true;
    msg_get_decode(t->w, &get);
    return get.compares;
}

/* The pieces lie in the copy, as elements of size bytes, aligned so. */
static bool are_pieces_here(struct target *t, size_t align, size_t size)
{
    const struct msg_request *r = &t->request;
    return pack_open(&t->pack, t->body, r->len, has_data(t)) && in_range(t->copy, r->at.offset, 0) &&
           r->at.offset % align == 0 && pack_fits(&t->pack, t->copy->bytes - r->at.offset, align, size);
}

/* The bytes do. */
static bool are_bytes_here(const struct target *t, uint64_t len, size_t align)
{
    return in_range(t->copy, t->request.at.offset, len) && t->request.at.offset % align == 0;
}

static bool is_put_well_formed(struct target *t)
{
    struct msg_put put;
    msg_put_decode(t->w, &put);
    if (put.note >= NOTES_MAX)
        return false;
    return is_packed(t) ? are_pieces_here(t, 1, 1) : are_bytes_here(t, t->request.len, 1);
}

static bool is_get_well_formed(const struct agent *a, struct target *t)
{
    struct msg_get get;
    msg_get_decode(t->w, &get);
    if (is_packed(t))
        return !get.strong && (get.inspects || !get.compares) && are_pieces_here(t, 1, 1);
    return !get.inspects && !get.compares && get.bytes <= get_max(a, t, &get) && are_bytes_here(t, get.bytes, 1);
}

static bool is_acc_well_formed(struct target *t)
{
    struct msg_acc acc;
    msg_acc_decode(t->w, &acc);
    if (acc.identity.lane >= LANES_MAX || !arith_can_add(acc.type))
        return false;
    size_t align = arith_align(acc.type), size = arith_size(acc.type);
    return is_packed(t) ? are_pieces_here(t, align, size)
                        : t->request.len % size == 0 && are_bytes_here(t, t->request.len, align);
}

static bool is_rmw_well_formed(const struct target *t)
{
    struct msg_rmw rmw;
    msg_rmw_decode(t->w, &rmw);
    return rmw.identity.lane < LANES_MAX && !is_packed(t) && rmw.operation < ARITH_RMW_OPS &&
           are_bytes_here(t, rmw.bytes, rmw.bytes);
}

/* What the request does fits its kind and the copy. */
static bool is_well_formed(const struct agent *a, struct target *t)
{
    switch (t->w->type) {
    case WIRE_PUT:
        return is_put_well_formed(t);
    case WIRE_GET:
        return is_get_well_formed(a, t);
    case WIRE_ACC:
        return is_acc_well_formed(t);
    default:
        return is_rmw_well_formed(t);
    }
}

/* It is of before something that its rank has given up, and perhaps just that: what it writes from now on must not be
 * overtaken. What it has not given up it sends again. */
static bool is_given_up(const struct agent *a, const struct target *t)
{
    const struct msg_request *r = &t->request;
    const struct view_rank *k = &a->view.rank[r->origin.rank];
    return t->w->type != WIRE_GET && r->origin.incarnation == k->incarnation && (int32_t)(r->doubted - k->doubted) < 0;
}

/* Is the request well formed, and for a copy that is here? Answers it if not. */
static bool find_target(struct agent *a, struct target *t)
{
    const struct msg_request *r = &t->request;
    const struct store_segment *s = r->at.slot < a->view.nodes ? store_find(&a->store, r->at.seg) : NULL;
    if (!s) {
        /* all nodes know a group's segment before anybody has it */
        bool gone = store_was_freed(&a->store, r->at.seg) || r->at.seg >= SEGMENT_GROUP_FIRST;
        answer(t, r->at.slot >= a->view.nodes || gone ? KEEL_ERR_ARG : WIRE_RETRY);
        return false;
    }
    t->copyset = copyset_of(r->at.slot, s->redundancy);
    t->g = &a->view.copyset[t->copyset];
    t->copy = store_copy(&a->store, r->at.seg, r->at.slot);
    if (r->generation > t->g->generation) { /* its view has not come here yet */
        execute_stash(a, t->conn, t->w, t->body);
        return false;
    }
    if (r->generation < t->g->generation || !t->copy || is_given_up(a, t)) {
        answer(t, WIRE_RETRY);
        return false;
    }
    if (t->copy->lost) {
        answer(t, KEEL_ERR_DATA_LOST);
        return false;
    }
    if (!is_well_formed(a, t)) {
        answer(t, KEEL_ERR_ARG);
        return false;
    }
    return true;
}

/* The primary's copy; or another one of equals, for who does not reach the primary. A strong get is the primary's to
 * answer. */
static bool may_read(const struct agent *a, const struct target *t, bool strong)
{
    return t->w->type == WIRE_GET && !strong && t->g->mode == COPYSET_DIRECT && view_copy_at(t->g, a->self) >= 0;
}

/* By way of memory of our own, or the transport's: it copies as it likes, and may tear words that a process of this
 * node, or another copy's message, is storing. */
static void get(struct agent *a, const struct target *t)
{
    struct msg_get get;
    msg_get_decode(t->w, &get);
    const uint8_t *from = t->copy->base + t->request.at.offset;
    uint32_t len = get.inspects ? t->pack.runs * DIGEST_BYTES : is_packed(t) ? t->pack.bytes : get.bytes;
    uint8_t *to = t->conn->ep ? tp_place(t->conn->ep, sizeof(struct wire), len) : NULL;
    if (!to && !a->gathered)
        a->gathered = malloc(PACK_BODY_MAX);
    to = to ? to : a->gathered;
    if (!to) {
        answer(t, KEEL_ERR_NOMEM);
        return;
    }
    if (get.inspects)
        digest_pieces(&t->pack, from, to);
    else if (is_packed(t))
        pack_gather(&t->pack, from, to);
    else
        words_load(to, from, len);
    execute_reply(t->conn, t->request.seq, KEEL_OK, 0, to, len);
}

static void refuse_stranger(struct conn *c, const struct wire *w)
{
    log_error("rank %d sends in the name of rank %d", c->life.rank, wire_life(w).rank);
    execute_reply(c, w->seq, KEEL_ERR_AUTH, 0, NULL, 0);
}

static bool is_direct_put(const struct wire *w)
{
    struct msg_put put;
    msg_put_decode(w, &put);
    return w->type == WIRE_PUT && !put.through;
}

static bool is_strong_get(const struct wire *w)
{
    struct msg_get get;
    msg_get_decode(w, &get);
    return w->type == WIRE_GET && get.strong;
}

void execute_request(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    if (w->type == WIRE_INTENT) {
        execute_intent(a, c, w);
        return;
    }
    struct target t; /* find_target fills in the rest */
    t.conn = c;
    t.w = w;
    t.body = body;
    msg_request_decode(w, &t.request);
    if (!life_equal(t.request.origin, c->life)) {
        refuse_stranger(c, w);
        return;
    }
    if (!find_target(a, &t))
        return;
    if (is_direct_put(w)) {
        put_direct(a, &t);
        return;
    }
    if (a->recovery.frozen || repair_holds(a, t.copyset)) { /* whoever knows of a death sees what stays */
        execute_stash(a, c, w, body);
        return;
    }
    bool strong = is_strong_get(w);
    if (t.g->copy[0].node != a->self && !may_read(a, &t, strong))
        answer(&t, WIRE_RETRY);
    else if (strong && view_whole_copies(t.g) > 1)
        strong_request(a, c, w, t.copyset);
    else if (w->type == WIRE_GET)
        get(a, &t);
    else
        execute(a, &t);
}

/* ---- in the order of all sets ---- */

/* It was found well formed when it came; only that the segment was freed can have come between. */
static bool find_again(const struct agent *a, struct target *t, struct conn *c, const struct wire *w, const void *body)
{
    *t = (struct target){.conn = c, .w = w, .body = body};
    msg_request_decode(w, &t->request);
    const struct store_segment *s = store_find(&a->store, t->request.at.seg);
    if (!s)
        return false;
    t->copyset = copyset_of(t->request.at.slot, s->redundancy);
    t->g = &a->view.copyset[t->copyset];
    t->copy = store_copy(&a->store, t->request.at.seg, t->request.at.slot);
    return t->copy && !t->copy->lost && (w->type == WIRE_ACC ? is_acc_well_formed(t) : is_rmw_well_formed(t));
}

void execute_in_turn(struct agent *a, const struct wire *w, const void *body)
{
    struct target t;
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
    struct target t;
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
