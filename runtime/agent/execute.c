#include "runtime/agent/execute.h"

#include <stdlib.h>

#include "runtime/agent/execute_int.h"
#include "runtime/agent/execute_target.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/strong.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/words.h"
#include "runtime/wire/digest.h"
#include "runtime/wire/get.h"
#include "runtime/wire/put.h"
#include "runtime/wire/reply.h"

void execute_reply(struct conn *c, uint64_t seq, int status, int64_t value, const void *body, uint32_t len)
{
    struct wire reply;
    msg_reply_encode(&(struct msg_reply){.seq = seq, .status = status, .value = value, .len = len, .forgot = -1},
                     &reply);
    agent_answer(c, &reply, body);
}

/* A put that the origin sends to every copy itself. */
static void put_direct(struct agent *a, const struct request_target *t)
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

/* It is of before something that its rank has given up, and perhaps just that: what it writes from now on must not be
 * overtaken. What it has not given up it sends again. */
static bool is_given_up(const struct agent *a, const struct request_target *t)
{
    const struct msg_request *r = &t->request;
    const struct view_rank *k = &a->view.rank[r->origin.rank];
    return t->w->type != WIRE_GET && r->origin.incarnation == k->incarnation && (int32_t)(r->doubted - k->doubted) < 0;
}

/* Is the request well formed, and for a copy that is here? Answers it if not. */
static bool find_target(struct agent *a, struct request_target *t)
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
    if (!request_fits(a, t)) {
        answer(t, KEEL_ERR_ARG);
        return false;
    }
    return true;
}

/* The primary's copy; or another one of equals, for who does not reach the primary. A strong get is the primary's to
 * answer. */
static bool may_read(const struct agent *a, const struct request_target *t, bool strong)
{
    return t->w->type == WIRE_GET && !strong && t->g->mode == COPYSET_DIRECT && view_copy_at(t->g, a->self) >= 0;
}

/* By way of memory of our own, or the transport's: it copies as it likes, and may tear words that a process of this
 * node, or another copy's message, is storing. */
static void get(struct agent *a, const struct request_target *t)
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
    struct request_target t; /* find_target fills in the rest */
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
        execute_counted(a, &t);
}
