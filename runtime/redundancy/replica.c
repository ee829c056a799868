#include "runtime/redundancy/replica.h"

#include <stdlib.h>
#include <string.h>

#include <keel/segment.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"

void replica_reply(struct conn *c, const struct wire *request, int status, int64_t value, const void *body,
                   uint32_t len)
{
    if (!c || !c->ep)
        return;
    struct wire reply = {.type = WIRE_REPLY, .seq = request->seq, .status = status, .a = value, .len = len};
    (void)tp_send(c->ep, &reply, sizeof reply, body, len, NULL); /* a lost reply is asked for again */
}

/* The node that must get what the primary does to the slot, or -1. */
static int forward_target(const struct agent *a, const struct wire *w)
{
    const struct view_slot *s = &a->view.slot[w->slot];
    if (s->mode != SLOT_PAIR && s->mode != SLOT_SYNC && s->mode != SLOT_REBUILD)
        return -1;
    /* Unreplicated segments have one copy, except while the slot moves to another node as a whole. */
    if (a->store.segment[w->seg].redundancy == KEEL_REDUNDANCY_NONE && s->mode != SLOT_REBUILD)
        return -1;
    return s->shadow;
}

/* Answer c when `node` has acknowledged everything up to seq; at once if there is nothing to wait for. */
static void reply_after(struct agent *a, struct conn *c, const struct wire *w, int64_t value, int node, uint64_t seq)
{
    if (node < 0 || peer_is_acked(&a->peers, node, seq)) {
        replica_reply(c, w, KEEL_OK, value, NULL, 0);
        return;
    }
    struct waiter *waiter = malloc(sizeof *waiter);
    if (!waiter) {
        node_break(a, "out of memory");
        return;
    }
    *waiter = (struct waiter){.conn = c, .reply = *w, .node = node, .seq = seq};
    waiter->reply.a = value;
    *a->waiters_tail = waiter;
    a->waiters_tail = &waiter->next;
}

static void release(struct agent *a, int node)
{
    struct waiter **link = &a->waiters;
    while (*link) {
        struct waiter *w = *link;
        if (w->node == node && peer_is_acked(&a->peers, node, w->seq)) {
            *link = w->next;
            FAULT_POINT("replica.acknowledged_not_answered");
            replica_reply(w->conn, &w->reply, KEEL_OK, w->reply.a, NULL, 0);
            free(w);
        } else {
            link = &w->next;
        }
    }
    a->waiters_tail = link;
}

void replica_acked(struct agent *a, int node)
{
    /* During a view change the streams to the nodes that it declares dead count as acknowledged; their waiters are
     * released by the commit only. */
    if (!a->node_fence[node])
        release(a, node);
}

bool replica_drained(const struct agent *a)
{
    for (const struct waiter *w = a->waiters; w; w = w->next)
        if (!a->node_fence[w->node] && !a->node_doomed[w->node])
            return false;
    return true;
}

void replica_forget(struct agent *a, struct conn *c)
{
    for (struct waiter *w = a->waiters; w; w = w->next)
        if (w->conn == c)
            w->conn = NULL;
    struct stashed **link = &a->stash;
    while (*link) {
        struct stashed *s = *link;
        if (s->conn == c) {
            *link = s->next;
            free(s);
        } else {
            link = &s->next;
        }
    }
    a->stash_tail = link;
}

static void stash(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    struct stashed *s = malloc(sizeof *s + w->len);
    if (!s) {
        node_break(a, "out of memory");
        return;
    }
    s->next = NULL;
    s->conn = c;
    s->wire = *w;
    memcpy(s->body, body, w->len);
    *a->stash_tail = s;
    a->stash_tail = &s->next;
}

void replica_freeze(struct agent *a)
{
    a->frozen = true;
}

void replica_thaw(struct agent *a)
{
    a->frozen = false;
    for (int node = 0; node < a->members; node++)
        release(a, node);
    replica_unstash(a);
}

void replica_unstash(struct agent *a)
{
    struct stashed *s = a->stash;
    a->stash = NULL;
    a->stash_tail = &a->stash;
    while (s) {
        struct stashed *next = s->next;
        replica_request(a, s->conn, &s->wire, s->body);
        free(s);
        s = next;
    }
}

uint64_t replica_send_bytes(struct agent *a, int node, uint8_t type, const struct patch *patch)
{
    const struct store_copy *copy = store_copy(&a->store, patch->seg, patch->slot);
    if (!copy || !copy->base)
        return 0;
    uint64_t seq = 0;
    for (uint64_t done = 0; done < patch->len;) {
        uint64_t n = patch->len - done < WIRE_BODY_MAX ? patch->len - done : WIRE_BODY_MAX;
        struct wire w = {.type = type,
                         .slot = (uint16_t)patch->slot,
                         .seg = patch->seg,
                         .offset = patch->offset + done,
                         .len = (uint32_t)n};
        seq = peer_send(&a->peers, node, &w, copy->base + patch->offset + done, a->now);
        done += n;
    }
    return seq;
}

/* ---- requests ---- */

static bool in_range(const struct store_copy *copy, uint64_t offset, uint64_t len)
{
    return len <= copy->bytes && offset <= copy->bytes - len;
}

static void note_put(struct conn *c, const struct wire *w)
{
    c->ring[c->puts++ % CONN_RING] = (struct patch){.seg = w->seg, .slot = w->slot, .offset = w->offset, .len = w->len};
}

/* A put that the origin sends to every copy itself. */
static void put_direct(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    const struct view_slot *s = &a->view.slot[w->slot];
    bool replicated = a->store.segment[w->seg].redundancy != KEEL_REDUNDANCY_NONE;
    bool mine = s->primary == a->self || (replicated && s->shadow == a->self);
    if (!mine || (s->mode != SLOT_PAIR && s->mode != SLOT_ALONE)) {
        replica_reply(c, w, WIRE_RETRY, 0, NULL, 0);
        return;
    }
    struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    if (replicated)
        note_put(c, w);
    FAULT_POINT("replica.put_noted");
    memcpy(copy->base + w->offset, body, w->len);
    FAULT_POINT("replica.put_applied");
    replica_reply(c, w, KEEL_OK, 0, NULL, 0);
}

/* Pass on what the operation left at its patch; the dedup identity travels along. Returns the stream position. */
static uint64_t forward(struct agent *a, const struct wire *w, const struct store_copy *copy, uint32_t len,
                        int64_t value, int node)
{
    struct wire f = *w;
    f.type = WIRE_FORWARD;
    f.len = len;
    f.b = (int64_t)w->seq;
    f.a = value;
    f.count = w->type;
    return peer_send(&a->peers, node, &f, copy->base + w->offset, a->now);
}

static int64_t apply(const struct wire *w, struct store_copy *copy, const void *body)
{
    if (w->type == WIRE_PUT) {
        memcpy(copy->base + w->offset, body, w->len);
        return 0;
    }
    if (w->type == WIRE_ACC) {
        double *to = (double *)(void *)(copy->base + w->offset);
        double element;
        for (uint32_t i = 0; i < w->len / sizeof element; i++) {
            memcpy(&element, (const char *)body + i * sizeof element, sizeof element);
            to[i] += w->f * element;
        }
        return 0;
    }
    /* Ranks of this node use the processor's atomics on unreplicated segments: so must we. */
    _Atomic int64_t *word = (_Atomic int64_t *)(void *)(copy->base + w->offset);
    if (w->type == WIRE_ADD)
        return atomic_fetch_add(word, w->a);
    int64_t expected = w->a;
    atomic_compare_exchange_strong(word, &expected, w->b);
    return expected;
}

static bool seen(struct agent *a, const struct wire *w, int64_t *value)
{
    struct dedup *d = &a->dedup[w->slot];
    *value = 0;
    if (w->flags & WIRE_F_TASK)
        return dedup_task_seen(d, w->task, w->step);
    return dedup_seen(d, w->rank, w->incarnation, w->seq, value);
}

static bool record(struct agent *a, const struct wire *w, uint64_t seq, int64_t value)
{
    struct dedup *d = &a->dedup[w->slot];
    if (w->flags & WIRE_F_TASK)
        return dedup_task_record(d, w->task, w->step);
    return dedup_record(d, w->rank, w->incarnation, seq, value);
}

/* What the primary executes, once, and passes on. */
static void execute(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    const struct view_slot *s = &a->view.slot[w->slot];
    if (a->frozen || a->push[w->slot].torn) {
        stash(a, c, w, body);
        return;
    }
    if (s->primary != a->self) {
        replica_reply(c, w, WIRE_RETRY, 0, NULL, 0);
        return;
    }
    /* The writer has looked, or will look, at the new route and puts to both copies itself: a forward of ours might come to
     * the shadow after a later put of the same writer. */
    bool direct_now = s->mode == SLOT_PAIR || s->mode == SLOT_ALONE;
    if (w->type == WIRE_PUT && direct_now && !(w->flags & WIRE_F_ALWAYS)) {
        replica_reply(c, w, WIRE_RETRY, 0, NULL, 0);
        return;
    }
    struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    int shadow = forward_target(a, w);
    int64_t value = 0;
    uint64_t position = shadow >= 0 ? a->peers.peer[shadow].next - 1 : 0;
    bool once = w->type != WIRE_PUT;
    if (!once || !seen(a, w, &value)) {
        value = apply(w, copy, body);
        if (once && !record(a, w, w->seq, value)) {
            node_break(a, "out of memory");
            return;
        }
        uint32_t len = w->type == WIRE_PUT || w->type == WIRE_ACC ? w->len : 8;
        FAULT_POINT("replica.applied_not_forwarded");
        if (shadow >= 0)
            position = forward(a, w, copy, len, value, shadow);
        FAULT_POINT("replica.forwarded");
    }
    reply_after(a, c, w, value, shadow, position);
}

static void get(struct agent *a, struct conn *c, const struct wire *w)
{
    if (a->frozen || a->push[w->slot].torn) { /* whoever knows of a death sees what stays */
        stash(a, c, w, w + 1);
        return;
    }
    if (a->view.slot[w->slot].primary != a->self) {
        replica_reply(c, w, WIRE_RETRY, 0, NULL, 0);
        return;
    }
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    replica_reply(c, w, KEEL_OK, 0, copy->base + w->offset, w->count);
}

/* A write is forgotten when both copies have it. If the connection broke before the writer could say so, it says so by
 * the number of the oldest put that it has not completed. */
static void intent(struct conn *c, const struct wire *w)
{
    struct patch *free_entry = NULL;
    for (int i = 0; i < CONN_OPEN; i++) {
        struct patch *open = &c->open[i];
        if (open->len && open->put < (uint64_t)w->a)
            open->len = 0;
        if (open->len && open->put == w->seq && open->offset == w->offset)
            open->len = 0; /* over, or announced again */
        if (!open->len && !free_entry)
            free_entry = open;
    }
    if (w->count == 0)
        return;
    if (!free_entry) {
        log_error("rank %d has more than %d writes under way", c->rank, CONN_OPEN);
        return;
    }
    *free_entry = (struct patch){w->seg, w->slot, w->offset, w->count, true, w->flags & WIRE_F_SECOND, w->seq};
}

/* Is the request well formed for a copy that is here? Answers it if not. */
static bool admit(struct agent *a, struct conn *c, const struct wire *w)
{
    if (w->slot >= a->view.nodes || w->seg >= STORE_SEGMENTS_MAX) {
        replica_reply(c, w, KEEL_ERR_ARG, 0, NULL, 0);
        return false;
    }
    if (a->view.slot[w->slot].mode == SLOT_LOST) {
        replica_reply(c, w, KEEL_ERR_DATA_LOST, 0, NULL, 0);
        return false;
    }
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    if (!copy) {
        replica_reply(c, w, WIRE_RETRY, 0, NULL, 0);
        return false;
    }
    if (copy->lost) {
        replica_reply(c, w, KEEL_ERR_DATA_LOST, 0, NULL, 0);
        return false;
    }
    uint64_t len = w->type == WIRE_GET ? w->count : w->type == WIRE_ADD || w->type == WIRE_CAS ? 8 : w->len;
    bool aligned = w->type == WIRE_GET || w->type == WIRE_PUT || w->offset % 8 == 0;
    if (!in_range(copy, w->offset, len) || !aligned || (w->type == WIRE_GET && w->count > WIRE_BODY_MAX)) {
        replica_reply(c, w, KEEL_ERR_ARG, 0, NULL, 0);
        return false;
    }
    return true;
}

void replica_request(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    if (w->type == WIRE_INTENT) {
        intent(c, w);
        return;
    }
    if (w->rank != (uint32_t)c->rank || w->incarnation != c->incarnation) {
        log_error("rank %d sends in the name of rank %u", c->rank, w->rank);
        replica_reply(c, w, KEEL_ERR_AUTH, 0, NULL, 0);
        return;
    }
    if (!admit(a, c, w))
        return;
    switch (w->type) {
    case WIRE_PUT:
        if (w->flags & WIRE_F_THROUGH)
            execute(a, c, w, body);
        else
            put_direct(a, c, w, body);
        break;
    case WIRE_GET:
        get(a, c, w);
        break;
    case WIRE_ACC:
    case WIRE_ADD:
    case WIRE_CAS:
        execute(a, c, w, body);
        break;
    default:
        log_error("unknown request %u of rank %d", w->type, c->rank);
    }
}

void replica_forwarded(struct agent *a, int from, const struct wire *w, const void *body)
{
    /* A copy that is about to be rebuilt is not there yet: the snapshot will bring what this forward did. */
    struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    if (w->slot >= a->view.nodes || !copy || !copy->base)
        return;
    if (!in_range(copy, w->offset, w->len)) {
        log_error("node %d forwards beyond segment %u", from, w->seg);
        return;
    }
    FAULT_POINT("replica.forward_received");
    memcpy(copy->base + w->offset, body, w->len);
    FAULT_POINT("replica.forward_stored");
    if (w->count != WIRE_PUT && !record(a, w, (uint64_t)w->b, w->a))
        node_break(a, "out of memory");
}
