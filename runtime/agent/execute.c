#include "runtime/agent/execute.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/strong.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/words.h"
#include "runtime/wire/arith.h"
#include "runtime/wire/marks.h"
#include "runtime/wire/pack.h"

void execute_reply(struct conn *c, const struct wire *request, int status, int64_t value, const void *body,
                   uint32_t len)
{
    struct wire reply = {.type = WIRE_REPLY, .seq = request->seq, .status = status, .a = value, .len = len};
    agent_answer(c, &reply, body);
}

static void reply_waiter(const struct waiter *w)
{
    struct wire reply = {.type = WIRE_REPLY, .seq = w->reply.seq, .a = w->reply.a, .epoch = w->reply.epoch};
    agent_answer(w->conn, &reply, NULL);
}

/* ---- answers that wait ---- */

/* Answer the waiter's connection when the other copies have what was sent to them. */
static void reply_when_reached(struct agent *a, struct waiter *waiter)
{
    if (chain_reached(a, &waiter->mark)) {
        reply_waiter(waiter);
        free(waiter);
        return;
    }
    *a->waiters_tail = waiter;
    a->waiters_tail = &waiter->next;
}

static void release(struct agent *a)
{
    struct waiter **link = &a->waiters;
    while (*link) {
        struct waiter *w = *link;
        if (chain_reached(a, &w->mark)) {
            *link = w->next;
            FAULT_POINT("replica.acknowledged_not_answered");
            if (!w->answered_there)
                reply_waiter(w);
            free(w);
        } else {
            link = &w->next;
        }
    }
    a->waiters_tail = link;
}

void execute_acked(struct agent *a, int node)
{
    (void)node;
    if (!a->recovery.frozen) /* else the commit does it */
        release(a);
}

bool execute_drained(const struct agent *a)
{
    for (const struct waiter *w = a->waiters; w; w = w->next)
        if (!chain_reached_living(a, &w->mark))
            return false;
    return chain_drained(a);
}

static bool came_on(void *conn, const struct stashed *s)
{
    return s->conn == conn;
}

void execute_forget(struct agent *a, struct conn *c)
{
    for (struct waiter *w = a->waiters; w; w = w->next)
        if (w->conn == c)
            w->conn = NULL;
    strong_forget(&a->strong, c);
    stash_look(&a->stash, came_on, c);
}

static void stash(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    if (!stash_keep(&a->stash, c, w, body)) /* what counts once may have taken effect before: it has not failed */
        execute_reply(c, w, w->type == WIRE_ACC || w->type == WIRE_RMW ? WIRE_RETRY : KEEL_ERR_NOMEM, 0, NULL, 0);
}

void execute_freeze(struct agent *a)
{
    a->recovery.frozen = true;
}

void execute_thaw(struct agent *a)
{
    a->recovery.frozen = false;
    release(a);
    execute_unstash(a);
}

void execute_unstash(struct agent *a)
{
    for (struct stashed *s = stash_take(&a->stash), *next; s; s = next) {
        next = s->next;
        execute_request(a, s->conn, &s->wire, s->body);
        free(s);
    }
}

void execute_fini(struct agent *a)
{
    for (struct waiter *w = a->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    stash_free(&a->stash);
    free(a->gathered);
    a->waiters = NULL;
}

/* ---- requests ---- */

/* What a request is about, found once. */
struct target {
    struct conn *conn;
    const struct wire *w;
    const void *body;
    int copyset;
    const struct view_copyset *g;
    struct store_copy *copy;
    struct pack pack; /* with WIRE_F_PACKED */
};

static bool is_packed(const struct wire *w)
{
    return w->flags & WIRE_F_PACKED;
}

static bool in_range(const struct store_copy *copy, uint64_t offset, uint64_t len)
{
    return len <= copy->bytes && offset <= copy->bytes - len;
}

static void answer(const struct target *t, int status)
{
    execute_reply(t->conn, t->w, status, 0, NULL, 0);
}

/* It was written to. Of pieces each one by itself: what lies between them may be much. */
static void mark(const struct agent *a, const struct store_copy *copy, uint64_t offset, uint64_t len,
                 const struct pack *pieces)
{
    if (!marks_wanted(a->page))
        return;
    if (!pieces)
        marks_set(copy->base, copy->bytes, offset, len);
    for (uint32_t i = 0; pieces && i < pieces->runs; i++)
        marks_set(copy->base, copy->bytes, offset + pack_run(pieces, i).at, pack_run(pieces, i).len);
}

/* A put that the origin sends to every copy itself. */
static void put_direct(struct agent *a, const struct target *t)
{
    const struct wire *w = t->w;
    if (t->g->mode != COPYSET_DIRECT || view_copy_at(t->g, a->self) < 0) {
        answer(t, WIRE_RETRY);
        return;
    }
    /* Of pieces, all that lies between them, too: a repair may bring more than what differs. */
    if (w->note)
        t->conn->note[w->note - 1] = (struct patch){
            .seg = w->seg, .slot = w->slot, .offset = w->offset, .len = is_packed(w) ? pack_reach(&t->pack) : w->len};
    FAULT_POINT("replica.put_noted");
    if (is_packed(w))
        pack_scatter(&t->pack, t->copy->base + w->offset);
    else
        words_store(t->copy->base + w->offset, t->body, w->len);
    mark(a, t->copy, w->offset, w->len, is_packed(w) ? &t->pack : NULL);
    FAULT_POINT("replica.put_applied");
    answer(t, KEEL_OK);
}

static size_t rmw_bytes(const struct wire *w)
{
    return w->count & WIRE_RMW_32 ? 4 : 8;
}

static void add(const struct target *t, uint8_t *at, const void *by, size_t len)
{
    int64_t scale[] = {t->w->a, t->w->b};
    static_assert(sizeof scale >= ARITH_SCALE_MAX, "a message carries a scale of any type");
    arith_add(t->w->count, at, by, len / arith_size(t->w->count), scale, t->copy->shared);
}

static void apply_pieces(const struct target *t, uint8_t *at)
{
    const uint8_t *data = t->pack.data;
    if (t->w->type == WIRE_PUT) {
        pack_scatter(&t->pack, at);
        return;
    }
    for (uint32_t i = 0; i < t->pack.runs; i++) {
        struct pack_run run = pack_run(&t->pack, i);
        add(t, at + run.at, data, run.len);
        data += run.len;
    }
}

static int64_t apply(const struct target *t)
{
    const struct wire *w = t->w;
    uint8_t *at = t->copy->base + w->offset;
    if (is_packed(w)) {
        apply_pieces(t, at);
        return 0;
    }
    if (w->type == WIRE_RMW)
        return arith_rmw((enum arith_rmw)(w->count & ~(uint32_t)WIRE_RMW_32), rmw_bytes(w), at, w->a, w->b);
    if (w->type == WIRE_PUT) {
        words_store(at, t->body, w->len);
        return 0;
    }
    add(t, at, t->body, w->len);
    return 0;
}

static enum dedup_verdict look(const struct agent *a, const struct target *t, int64_t *value)
{
    const struct dedup *d = &a->dedup[t->copyset];
    const struct wire *w = t->w;
    *value = 0;
    if (w->type == WIRE_PUT)
        return DEDUP_NEW;
    if (w->flags & WIRE_F_TASK)
        return dedup_task_look(d, w->identity, w->round, w->step);
    return dedup_look(d, wire_life(w), w->lane, w->identity, value);
}

static bool reserve(struct dedup *d, const struct wire *w)
{
    if (w->flags & WIRE_F_TASK)
        return dedup_task_reserve(d, w->identity, w->round);
    return dedup_reserve(d, wire_life(w), w->lane);
}

static void record(struct dedup *d, const struct wire *w, int64_t value)
{
    if (w->flags & WIRE_F_TASK)
        dedup_task_record(d, w->identity, w->round, w->step);
    else
        dedup_record(d, wire_life(w), w->lane, w->identity, value);
}

/* The last copy has it when all have; and it is nearer to the origin, if that is on its node. Not while a copy is filled: that
 * gets what we do beside the chain. */
static bool is_answered_there(const struct agent *a, const struct target *t)
{
    const struct view_copyset *g = t->g;
    return g->mode == COPYSET_DIRECT && t->conn->node != a->self && g->copy[g->copies - 1].node == t->conn->node;
}

/* Send on what the operation left at its patch; its identity travels along. */
static void forward(struct agent *a, const struct target *t, struct waiter *waiter, uint32_t len, int64_t value)
{
    struct wire f = *t->w;
    f.type = WIRE_FORWARD;
    f.flags &= WIRE_F_THROUGH | WIRE_F_TASK | WIRE_F_PACKED;
    f.len = len;
    f.a = value;
    f.count = t->w->type;
    f.status = (int32_t)++a->forwards[t->copyset];
    const uint8_t *bytes = t->copy->base + f.offset;
    if (is_packed(t->w) && t->g->copies > 1) {
        pack_again(&t->pack, bytes, waiter->bytes);
        bytes = waiter->bytes;
    }
    waiter->answered_there = is_answered_there(a, t);
    if (waiter->answered_there) {
        f.flags |= WIRE_F_ANSWER;
        f.b = (int64_t)t->w->seq;
    }
    chain_send(a, t->copyset, &f, bytes, &waiter->mark);
    waiter->forwarded = waiter->mark.relayed != 0;
    if (waiter->forwarded) {
        waiter->forward = f;
        if (bytes != waiter->bytes)
            memcpy(waiter->bytes, bytes, len);
    }
}

/* The copy that passed things on has died, and those behind it may lack them: once more, exactly as it was. */
void execute_view_committed(struct agent *a, const struct view_copyset *before)
{
    for (struct waiter *w = a->waiters; w; w = w->next) {
        const struct view_copyset *g = &a->view.copyset[w->copyset], *old = &before[w->copyset];
        w->answered_there = false; /* the last copy may not have listened to us any more */
        if (old->copies < 2 || a->view.alive[old->copy[1].node] || g->copy[0].node != a->self || g->copies < 2 ||
            !g->copy[1].whole)
            continue;
        if (!w->forwarded) { /* a repetition: what it waits for was sent again just before */
            chain_mark(a, w->copyset, &w->mark);
            continue;
        }
        struct wire again = w->forward;
        again.flags |= WIRE_F_AGAIN;
        chain_send(a, w->copyset, &again, w->bytes, &w->mark);
    }
}

/* What the primary executes, once, and passes on. */
static void execute(struct agent *a, const struct target *t)
{
    const struct wire *w = t->w;
    int64_t value;
    enum dedup_verdict verdict = look(a, t, &value);
    if (verdict == DEDUP_ECHO)
        return;
    if (verdict == DEDUP_EARLY) {
        answer(t, WIRE_RETRY);
        return;
    }
    uint32_t len = w->type == WIRE_RMW ? (uint32_t)rmw_bytes(w) : w->len;
    bool keeps = chain_keeps(t->g) || (is_packed(w) && t->g->copies > 1);
    struct waiter *waiter =
        malloc(sizeof *waiter + (keeps ? len : 0)); /* before it takes effect: nothing is half-done */
    bool once = w->type != WIRE_PUT;
    if (!waiter || (once && verdict == DEDUP_NEW && !reserve(&a->dedup[t->copyset], w))) {
        free(waiter);
        answer(t, verdict == DEDUP_SEEN ? WIRE_RETRY : KEEL_ERR_NOMEM); /* it has taken effect: it has not failed */
        return;
    }
    *waiter = (struct waiter){.conn = t->conn, .reply = *w, .copyset = t->copyset};
    waiter->reply.epoch = 0;
    if (once && t->g->copies == 1 && t->conn->node == a->self) { /* the rank does the next one itself */
        t->copy->shared = true;
        waiter->reply.epoch = t->g->generation + 1;
    }
    chain_mark(a, t->copyset, &waiter->mark);
    if (verdict == DEDUP_NEW) {
        value = apply(t);
        mark(a, t->copy, w->offset, len, is_packed(w) ? &t->pack : NULL); /* the last copy may answer for us */
        if (once)
            record(&a->dedup[t->copyset], w, value);
        FAULT_POINT("replica.applied_not_forwarded");
        forward(a, t, waiter, len, value);
        FAULT_POINT("replica.forwarded");
    }
    waiter->reply.a = value;
    reply_when_reached(a, waiter);
}

/* Remote writes happen without us. */
static void mark_noted(const struct agent *a, const struct patch *p)
{
    const struct store_copy *copy = p->len ? store_copy(&a->store, p->seg, p->slot) : NULL;
    if (copy && in_range(copy, p->offset, p->len))
        mark(a, copy, p->offset, p->len, NULL);
}

/* Every copy has the bytes of the note: it is forgotten, and the writer hears so. */
static void intent_over(struct agent *a, struct conn *c, const struct wire *w)
{
    struct wire reply = {.type = WIRE_REPLY, .seq = w->seq, .note = w->note};
    mark_noted(a, &c->note[w->note - 1]);
    c->note[w->note - 1].len = 0;
    repair_forget_doubt(a, c->life, w);
    agent_answer(c, &reply, NULL);
}

/* A note of a remote write that follows on this connection, or that every copy has it. One of bytes that are not here can be
 * followed by no write, nor one of an older generation. */
static void intent(struct agent *a, struct conn *c, const struct wire *w)
{
    if (w->note && w->note <= NOTES_MAX && w->count == 0) {
        intent_over(a, c, w);
        return;
    }
    const struct store_segment *s = w->slot < a->view.nodes ? store_find(&a->store, w->seg) : NULL;
    const struct store_copy *copy = s ? store_copy(&a->store, w->seg, w->slot) : NULL;
    if (w->note == 0 || w->note > NOTES_MAX || !copy || !in_range(copy, w->offset, w->count) ||
        w->epoch < a->view.copyset[copyset_of(w->slot, s->redundancy)].generation)
        return;
    c->note[w->note - 1] = (struct patch){.seg = w->seg,
                                          .slot = w->slot,
                                          .offset = w->offset,
                                          .len = w->count,
                                          .torn = true,
                                          .level = (uint8_t)(w->lane < COPIES_MAX ? w->lane : COPIES_MAX - 1),
                                          .put = w->identity,
                                          .generation = w->epoch};
}

/* What one answer can carry. */
static uint32_t get_max(const struct agent *a, const struct target *t)
{
    return t->conn->node == a->self || t->w->flags & WIRE_F_STRONG ? WIRE_BODY_MAX : WIRE_BULK_MAX;
}

static bool is_well_packed(struct target *t)
{
    const struct wire *w = t->w;
    size_t align = 1, size = 1;
    if (w->type == WIRE_ACC) {
        align = arith_align(w->count);
        size = arith_size(w->count);
        if (!arith_can_add(w->count))
            return false;
    } else if (w->type != WIRE_PUT && (w->type != WIRE_GET || w->flags & WIRE_F_STRONG)) {
        return false;
    }
    return pack_open(&t->pack, t->body, w->len, w->type != WIRE_GET) && in_range(t->copy, w->offset, 0) &&
           w->offset % align == 0 && pack_fits(&t->pack, t->copy->bytes - w->offset, align, size);
}

/* What the request does fits its kind and the copy. */
static bool is_well_formed(const struct agent *a, struct target *t)
{
    const struct wire *w = t->w;
    uint64_t len = w->len;
    size_t align = 1;
    if (w->lane >= LANES_MAX || w->note > NOTES_MAX)
        return false;
    if (is_packed(w))
        return is_well_packed(t);
    if (w->type == WIRE_GET) {
        len = w->count;
        if (len > get_max(a, t))
            return false;
    } else if (w->type == WIRE_ACC) {
        align = arith_align(w->count);
        if (!arith_can_add(w->count) || w->len % arith_size(w->count))
            return false;
    } else if (w->type == WIRE_RMW) {
        align = len = rmw_bytes(w);
        if ((w->count & ~(uint32_t)WIRE_RMW_32) >= ARITH_RMW_OPS)
            return false;
    }
    return in_range(t->copy, w->offset, len) && w->offset % align == 0;
}

/* It is of before something that its rank has given up, and perhaps just that: what it writes from now on must not be overtaken. What it has
 * not given up it sends again. */
static bool is_given_up(const struct agent *a, const struct wire *w)
{
    const struct view_rank *k = &a->view.rank[w->rank];
    return w->type != WIRE_GET && w->incarnation == k->incarnation && (int32_t)((uint32_t)w->status - k->doubted) < 0;
}

/* Is the request well formed, and for a copy that is here? Answers it if not. */
static bool find_target(struct agent *a, struct target *t)
{
    const struct wire *w = t->w;
    const struct store_segment *s = w->slot < a->view.nodes ? store_find(&a->store, w->seg) : NULL;
    if (!s) {
        /* all nodes know a group's segment before anybody has it */
        bool gone = store_was_freed(&a->store, w->seg) || w->seg >= SEGMENT_GROUP_FIRST;
        answer(t, w->slot >= a->view.nodes || gone ? KEEL_ERR_ARG : WIRE_RETRY);
        return false;
    }
    t->copyset = copyset_of(w->slot, s->redundancy);
    t->g = &a->view.copyset[t->copyset];
    t->copy = store_copy(&a->store, w->seg, w->slot);
    if (w->epoch > t->g->generation) { /* its view has not come here yet */
        stash(a, t->conn, w, t->body);
        return false;
    }
    if (w->epoch < t->g->generation || !t->copy || is_given_up(a, w)) {
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

/* The primary's copy; or another one of equals, for who does not reach the primary. A strong get is the primary's to answer. */
static bool may_read(const struct agent *a, const struct target *t)
{
    return t->w->type == WIRE_GET && !(t->w->flags & WIRE_F_STRONG) && t->g->mode == COPYSET_DIRECT &&
           view_copy_at(t->g, a->self) >= 0;
}

/* By way of memory of our own, or the transport's: it copies as it likes, and may tear words that a process of this node, or another copy's
 * message, is storing. */
static void get(struct agent *a, const struct target *t)
{
    const uint8_t *from = t->copy->base + t->w->offset;
    uint32_t len = is_packed(t->w) ? t->pack.bytes : t->w->count;
    uint8_t *to = t->conn->ep ? tp_place(t->conn->ep, sizeof(struct wire), len) : NULL;
    if (!to && !a->gathered)
        a->gathered = malloc(PACK_BODY_MAX);
    to = to ? to : a->gathered;
    if (!to) {
        answer(t, KEEL_ERR_NOMEM);
        return;
    }
    if (is_packed(t->w))
        pack_gather(&t->pack, from, to);
    else
        words_load(to, from, len);
    execute_reply(t->conn, t->w, KEEL_OK, 0, to, len);
}

void execute_request(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    if (w->type == WIRE_INTENT) {
        intent(a, c, w);
        return;
    }
    if (!life_equal(wire_life(w), c->life)) {
        log_error("rank %d sends in the name of rank %u", c->life.rank, w->rank);
        execute_reply(c, w, KEEL_ERR_AUTH, 0, NULL, 0);
        return;
    }
    struct target t = {.conn = c, .w = w, .body = body};
    if (!find_target(a, &t))
        return;
    if (w->type == WIRE_PUT && !(w->flags & WIRE_F_THROUGH)) {
        put_direct(a, &t);
        return;
    }
    if (w->type < WIRE_PUT || w->type > WIRE_RMW) {
        log_error("unknown request %u of rank %d", w->type, c->life.rank);
        return;
    }
    if (a->recovery.frozen || repair_holds(a, t.copyset)) { /* whoever knows of a death sees what stays */
        stash(a, c, w, body);
        return;
    }
    if (t.g->copy[0].node != a->self && !may_read(a, &t))
        answer(&t, WIRE_RETRY);
    else if (w->type == WIRE_GET && w->flags & WIRE_F_STRONG && view_whole_copies(t.g) > 1)
        strong_request(a, c, w, t.copyset);
    else if (w->type == WIRE_GET)
        get(a, &t);
    else
        execute(a, &t);
}

/* Its bytes are older than what is here: stored again, they would be all that is left if what follows them never comes. */
static bool is_known(const struct agent *a, int copyset, const struct wire *w)
{
    return w->flags & WIRE_F_AGAIN && (int32_t)((uint32_t)w->status - a->forwards[copyset]) <= 0;
}

/* False: it cannot be remembered. */
static bool store_forward(struct agent *a, int copyset, const struct store_copy *copy, const struct wire *w,
                          const void *body, const struct pack *pack)
{
    bool counts = w->count != WIRE_PUT;
    if (counts && !reserve(&a->dedup[copyset], w))
        return false;
    FAULT_POINT("replica.forward_received");
    if (pack)
        pack_scatter(pack, copy->base + w->offset);
    else
        words_store(copy->base + w->offset, body, w->len);
    mark(a, copy, w->offset, w->len, pack);
    FAULT_POINT("replica.forward_stored");
    if (counts)
        record(&a->dedup[copyset], w, w->a);
    a->forwards[copyset] = (uint32_t)w->status;
    return true;
}

/* This is the last copy, on the origin's node: all have it. */
static void answer_origin(const struct agent *a, const struct wire *w)
{
    struct conn *c = a->ranks.conn[w->rank];
    struct wire reply = {.type = WIRE_REPLY, .seq = (uint64_t)w->b, .a = w->a};
    if (c && life_equal(c->life, wire_life(w)))
        agent_answer(c, &reply, NULL);
}

static bool is_forward_in_range(const struct store_copy *copy, const struct wire *w, const void *body,
                                struct pack *pieces)
{
    if (!pieces)
        return in_range(copy, w->offset, w->len);
    return in_range(copy, w->offset, 0) && pack_open(pieces, body, w->len, true) &&
           pack_fits(pieces, copy->bytes - w->offset, 1, 1);
}

void execute_forwarded(struct agent *a, int from, const struct wire *w, const void *body)
{
    const struct store_segment *s = w->slot < a->view.nodes ? store_find(&a->store, w->seg) : NULL;
    if (w->rank >= (uint32_t)a->view.ranks || w->lane >= LANES_MAX)
        return;
    bool answer = w->flags & WIRE_F_ANSWER;
    if (!s) { /* freed meanwhile */
        if (answer)
            answer_origin(a, w);
        return;
    }
    int copyset = copyset_of(w->slot, s->redundancy);
    /* Who is not before this copy any more has told everybody before it stopped being so, or was declared dead. */
    if (!chain_is_before(a, copyset, from))
        return;
    /* A copy that is about to be filled is not there yet: it will bring what this forward did. */
    struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    if (!copy || !copy->base)
        return;
    struct pack pack, *pieces = is_packed(w) ? &pack : NULL;
    if (!is_forward_in_range(copy, w, body, pieces)) {
        log_error("node %d forwards beyond segment %u", from, w->seg);
        return;
    }
    if (!is_known(a, copyset, w) && !store_forward(a, copyset, copy, w, body, pieces)) {
        agent_break(a, "out of memory for the records of operations");
        return;
    }
    chain_relay(a, copyset, from, w, body);
    if (answer && a->view.copyset[copyset].copy[a->view.copyset[copyset].copies - 1].node == a->self) {
        FAULT_POINT("replica.answering_for_primary");
        answer_origin(a, w);
        if (!a->recovery.frozen) /* else a view waits for it */
            peer_unhurried(&a->peers, from);
    }
}
