/* Operations: from the call to the moment when every live copy has the bytes.
 *
 * An operation loads the route of its slot (core/page.h), makes a plan for it, sends pieces, and when all are answered
 * loads the route again: unchanged, it is complete; changed, it is planned again. Puts and gets may be repeated freely (they
 * are not complete until then, so nobody may rely on an order); accumulates and atomics keep their sequence number, so
 * that the copies recognise a repetition.
 *
 *   plan of a put       pair, both copies remote    small: a message to both at once (an agent applies a message whole or
 *                                                   not at all). Large: announced remote writes of chunks, each in one
 *                                                   copy before it starts in the other (guarantee G1): even chunks go to
 *                                                   the primary first, odd ones to the shadow, so that both are busy
 *                       pair, one copy here         plain stores, noted in the intent page. Small: after messages to
 *                                                   the other are sent. Large: of each chunk, when an announced remote
 *                                                   write has brought it to the other
 *                       one copy only               plain stores, or one remote write
 *                       being made equal            messages through the primary
 *   get                 plain loads, or one remote read from the primary
 *   acc, add, cas       messages to the primary
 */
#include "runtime/core/client.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

enum {
    ACCESS_WINDOW = 2, /* chunks of one operation on their way to one node */
    STAGED_CHUNK = 256 * 1024,
    MESSAGE_WINDOW = 8, /* messages of one operation on their way to one node */
    RETRY_FIRST_NS = 20000,
    RETRY_MAX_NS = 1000000,
    SCAN_EVERY_NS = 1000000,
    ASK_AFTER_NS = 100000000, /* no answer for so long: is the node alive? */
    SLEEP_MS = 5,
    YIELD_EVERY = 8, /* polls */
    BATCH = 32,
};

/* ---- memory ---- */

static struct piece *piece_new(struct op *op, int leg, uint64_t offset, uint64_t len)
{
    struct piece *p = client.free_pieces;
    if (p)
        client.free_pieces = p->next;
    else if (!(p = malloc(sizeof *p)))
        return NULL;
    *p = (struct piece){
        .op = op, .sibling = op->pieces, .offset = offset, .len = len, .leg = leg, .node = op->leg_node[leg]};
    p->tp.user = p;
    op->pieces = p;
    return p;
}

static void unhash(struct piece *p)
{
    if (!p->seq)
        return;
    struct piece **link = &client.by_seq[p->seq % CLIENT_SEQ_SLOTS];
    while (*link && *link != p)
        link = &(*link)->next;
    if (*link) {
        *link = p->next;
        client.messages--;
    }
    p->seq = 0;
}

static void piece_free(struct piece *p)
{
    unhash(p);
    struct piece **link = &p->op->pieces;
    while (*link != p)
        link = &(*link)->sibling;
    *link = p->sibling;
    if (p->remote_access)
        p->op->accesses--;
    p->next = client.free_pieces;
    client.free_pieces = p;
}

struct op *op_alloc(void)
{
    struct op *op = client.free_ops;
    if (op)
        client.free_ops = op->next;
    else
        op = malloc(sizeof *op);
    return op;
}

void op_free(struct op *op)
{
    op->next = client.free_ops;
    client.free_ops = op;
}

void op_init(struct op *op, enum op_kind kind, struct keel_segment *segment, int rank, size_t offset, size_t len)
{
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->segment = segment;
    op->len = len;
    op->intent = -1;
    op->flags = 0;
    if (segment) {
        const struct page_rank *r = page_rank(client.page, rank);
        op->slot = (int)r->slot;
        op->offset = (uint64_t)r->index * segment->stride + offset;
    }
}

/* ---- the end of an operation ---- */

static void intent_clear(struct op *op)
{
    if (op->intent >= 0)
        atomic_store_explicit(&client.intents->entry[op->intent].active, 0, memory_order_release);
    op->intent = -1;
}

static void announced_end(struct op *op)
{
    client.large -= op->announced;
    op->announced = op->staged = false;
    op->stripe.chunk = 0;
}

static void finish(struct op *op, keel_status status)
{
    intent_clear(op);
    announced_end(op);
    op->finished = true;
    op->status = status;
    if (op->prev)
        op->prev->next = op->next;
    else
        client.active = op->next;
    if (op->next)
        op->next->prev = op->prev;
    op->next = op->prev = NULL;
    if (op->implicit && status != KEEL_OK && client.implicit_error == KEEL_OK)
        client.implicit_error = status;
    if (op->handle) {
        op->handle->opaque[0] = 0;
        op->handle->opaque[1] = (uint64_t)(int64_t)status;
        op->handle = NULL;
        op_free(op);
    } else if (op->implicit) {
        op_free(op);
    }
}

/* Give up what is on its way by message; what uses our memory must end by itself (a dropped connection flushes it). */
static void abandon(struct op *op)
{
    for (struct piece *p = op->pieces, *next; p; p = next) {
        next = p->sibling;
        if (!p->remote_access)
            piece_free(p);
    }
}

static void fail(struct op *op, keel_status status)
{
    abandon(op);
    if (op->accesses) {
        op->status = status; /* finished when they have ended */
        for (struct piece *p = op->pieces; p; p = p->sibling)
            link_drop(p->node);
        return;
    }
    finish(op, status);
}

/* ---- planning ---- */

/* The first len bytes of the operation. */
static bool intent_take(struct op *op, uint64_t len)
{
    for (int i = 0; op->intent < 0 && i < INTENT_MAX; i++) {
        struct intent *t = &client.intents->entry[i];
        if (atomic_load_explicit(&t->active, memory_order_relaxed))
            continue;
        t->seg = op->segment->index;
        t->slot = (uint32_t)op->slot;
        t->offset = op->offset;
        t->len = len;
        atomic_store_explicit(&t->active, 1, memory_order_release);
        op->intent = i;
        FAULT_POINT("op.intent_set");
    }
    return op->intent >= 0;
}

static void add_leg(struct op *op, int node, uint64_t window)
{
    op->leg_node[op->legs] = node;
    op->window[op->legs] = window;
    op->posted[op->legs] = op->done[op->legs] = 0;
    op->legs++;
}

static void later(struct op *op, uint64_t now)
{
    op->replan = true;
    op->retry_ns = !op->retry_ns ? RETRY_FIRST_NS : op->retry_ns * 2 > RETRY_MAX_NS ? RETRY_MAX_NS : op->retry_ns * 2;
    op->retry_at = now + op->retry_ns;
}

static bool is_replicated(const struct op *op)
{
    return op->segment->redundancy != KEEL_REDUNDANCY_NONE;
}

/* An unreplicated part may have died with an earlier primary: then only an agent knows, and remote access by key would
 * break the connection. */
static bool maybe_lost(const struct op *op)
{
    return !is_replicated(op) &&
           atomic_load_explicit(&page_slot(client.page, op->slot)->lost_at, memory_order_acquire) != 0;
}

static bool plan_put(struct op *op, uint64_t now)
{
    int primary = route_primary(op->route), shadow = route_shadow(op->route);
    enum slot_mode mode = route_mode(op->route);
    bool through = mode == SLOT_SYNC || mode == SLOT_REBUILD || op->always_through;
    if (through || maybe_lost(op)) {
        op->flags = through ? op->flags | WIRE_F_THROUGH : op->flags & ~WIRE_F_THROUGH;
        if (op->always_through)
            op->flags |= WIRE_F_ALWAYS;
        op->by_message = true;
        add_leg(op, primary, MESSAGE_WINDOW);
        return true;
    }
    op->flags &= (uint8_t)~WIRE_F_THROUGH;
    bool pair = mode == SLOT_PAIR && is_replicated(op);
    bool here = primary == client.node || (pair && shadow == client.node);
    bool large = pair && op->len > WIRE_BODY_MAX;
    if (large && client.large >= CLIENT_LARGE_MAX) {
        op->replan = client.large_waiting = true; /* op_progress goes on with it */
        return false;
    }
    if (here) {
        keel_status status;
        uint8_t *base = segment_map(op->segment, op->slot, &status);
        if (!base) {
            later(op, now);
            return false;
        }
        if (pair && !intent_take(op, large ? 0 : op->len)) {
            later(op, now);
            return false;
        }
        op->by_message = !large;
        if (pair)
            add_leg(op, primary == client.node ? shadow : primary, large ? ACCESS_WINDOW : MESSAGE_WINDOW);
        op->dst = base + op->offset; /* stored after the messages are on their way, or when a chunk is there */
    }
    if (large) {
        client.large++;
        op->announced = true;
        op->staged = here;
        if (!op->number)
            op->number = ++client.next_number;
    }
    if (here)
        return true;
    if (large)
        stripe_init(&op->stripe, op->len);
    op->by_message = pair && !large;
    add_leg(op, primary, op->by_message ? MESSAGE_WINDOW : ACCESS_WINDOW);
    if (pair)
        add_leg(op, shadow, op->by_message ? MESSAGE_WINDOW : ACCESS_WINDOW);
    return true;
}

static bool plan_get(struct op *op, uint64_t now)
{
    int primary = route_primary(op->route);
    /* The primary's bytes may be torn until the copies are equal again; its agent answers when they are not. */
    op->by_message = maybe_lost(op) || route_mode(op->route) == SLOT_SYNC;
    if (primary == client.node && !op->by_message) {
        keel_status status;
        const uint8_t *base = segment_map(op->segment, op->slot, &status);
        if (base)
            memcpy(op->dst, base + op->offset, op->len);
        else
            later(op, now);
        return base != NULL;
    }
    add_leg(op, primary, op->by_message ? MESSAGE_WINDOW : 1);
    return true;
}

/* A plan for the current route; false if there is none yet (retry later), or the operation has ended. */
static bool plan(struct op *op, uint64_t now)
{
    op->replan = false;
    op->legs = 0;
    announced_end(op);
    if (op->kind == OP_ENTER) {
        op->by_message = true;
        add_leg(op, client.node, 1);
        op->planned = true;
        return true;
    }
    op->route = page_route(client.page, op->slot);
    if (route_mode(op->route) == SLOT_LOST) {
        finish(op, !is_replicated(op) && (op->kind == OP_PUT || op->kind == OP_ACC) ? KEEL_OK : KEEL_ERR_DATA_LOST);
        return false;
    }
    bool ok;
    if (op->kind == OP_PUT) {
        ok = plan_put(op, now);
    } else if (op->kind == OP_GET) {
        ok = plan_get(op, now);
    } else {
        op->by_message = true;
        uint64_t done = op->legs == 0 && op->planned ? op->done[0] : 0;
        add_leg(op, route_primary(op->route), 1);
        op->posted[0] = op->done[0] = done; /* what was answered has taken effect for good */
        ok = true;
    }
    op->planned = op->planned || ok;
    return ok;
}

/* ---- sending ---- */

static uint8_t wire_type(const struct op *op)
{
    static const uint8_t type[] = {[OP_PUT] = WIRE_PUT, [OP_GET] = WIRE_GET, [OP_ACC] = WIRE_ACC,
                                   [OP_ADD] = WIRE_ADD, [OP_CAS] = WIRE_CAS, [OP_ENTER] = WIRE_ENTER};
    return type[op->kind];
}

static keel_status send_message(struct op *op, struct piece *p, struct tp_ep *ep)
{
    bool body = op->kind == OP_PUT || op->kind == OP_ACC;
    struct wire w = {.type = wire_type(op),
                     .flags = op->flags,
                     .slot = (uint16_t)op->slot,
                     .seg = op->segment ? op->segment->index : 0,
                     .seq = p->seq,
                     .offset = op->offset + p->offset,
                     .len = body ? (uint32_t)p->len : 0,
                     .count = op->kind == OP_GET ? (uint32_t)p->len : 0,
                     .a = op->a,
                     .b = op->b,
                     .task = op->task,
                     .step = op->step,
                     .rank = (uint32_t)client.rank,
                     .incarnation = client.incarnation};
    if (op->kind == OP_ACC)
        w.f = op->scale;
    return tp_send(ep, &w, sizeof w, body ? op->src + p->offset : NULL, w.len, NULL);
}

static void hash_piece(struct op *op, struct piece *p)
{
    bool once = op->kind == OP_ACC || op->kind == OP_ADD || op->kind == OP_CAS;
    if (once && !op->seq)
        op->seq = ++client.next_seq;
    p->seq = once ? op->seq : ++client.next_seq;
    p->next = client.by_seq[p->seq % CLIENT_SEQ_SLOTS];
    client.by_seq[p->seq % CLIENT_SEQ_SLOTS] = p;
    client.messages++;
}

/* Tell the agent of a copy what a remote write is about to change, or that both copies have it: if this process dies
 * in between, the agents make the copies equal. */
static keel_status announce(const struct op *op, const struct piece *p, struct tp_ep *ep, bool over)
{
    uint64_t oldest = op->number;
    for (const struct op *o = client.active; o; o = o->next)
        if (o->number && o->number < oldest)
            oldest = o->number;
    struct wire w = {.type = WIRE_INTENT,
                     .flags = p->second ? WIRE_F_SECOND : 0,
                     .slot = (uint16_t)op->slot,
                     .seg = op->segment->index,
                     .seq = op->number,
                     .offset = op->offset + p->offset,
                     .count = over ? 0 : (uint32_t)p->len,
                     .a = (int64_t)oldest};
    return tp_send(ep, &w, sizeof w, NULL, 0, NULL);
}

static void announce_over(const struct op *op, const struct piece *p)
{
    for (int leg = 0; leg < op->legs; leg++) {
        const struct link *l = &client.link[op->leg_node[leg]];
        if (l->state == LINK_UP)
            (void)announce(op, p, l->ep, true);
    }
}

static keel_status start_access(struct op *op, struct piece *p, struct tp_ep *ep)
{
    uint64_t key = wire_key(op->segment->index, op->slot);
    p->remote_access = true;
    op->accesses++;
    if (op->kind == OP_GET)
        return ep->tp->table->read(ep, op->dst + p->offset, p->len, key, op->offset + p->offset, &p->tp);
    keel_status status = op->announced ? announce(op, p, ep, false) : KEEL_OK;
    if (status != KEEL_OK)
        return status;
    return tp_write(ep, op->src + p->offset, p->len, key, op->offset + p->offset, &p->tp);
}

/* The next piece for the leg; false: nothing now. */
static bool take_piece(struct op *op, int leg, struct stripe_piece *piece)
{
    if (op->stripe.chunk)
        return stripe_take(&op->stripe, leg, piece);
    uint64_t left = op->len - op->posted[leg];
    if (op->by_message && client.messages >= CLIENT_MESSAGES_MAX)
        return false;
    uint64_t max = op->by_message ? WIRE_BODY_MAX : op->staged ? STAGED_CHUNK : left, len = left < max ? left : max;
    *piece = (struct stripe_piece){.offset = op->posted[leg], .len = len};
    return true;
}

static int in_flight(const struct op *op, int leg)
{
    int n = 0;
    for (const struct piece *p = op->pieces; p; p = p->sibling)
        n += p->leg == leg;
    return n;
}

/* Atomics and barrier entries have no bytes: they are one unit long. */
static bool is_unit(const struct op *op)
{
    return op->kind == OP_ADD || op->kind == OP_CAS || op->kind == OP_ENTER;
}

static void post(struct op *op, int leg, uint64_t now)
{
    struct tp_ep *ep = NULL;
    struct stripe_piece next;
    for (uint64_t n = (uint64_t)in_flight(op, leg); op->posted[leg] < op->len && n < op->window[leg]; n++) {
        if ((!ep && !(ep = link_up(op->leg_node[leg], now))) || !take_piece(op, leg, &next))
            return;
        struct piece *p = piece_new(op, leg, next.offset, next.len);
        if (!p) {
            fail(op, KEEL_ERR_NOMEM);
            return;
        }
        p->second = next.second;
        op->posted[leg] += next.len;
        keel_status status;
        if (op->by_message) {
            hash_piece(op, p);
            status = send_message(op, p, ep);
        } else {
            status = start_access(op, p, ep);
        }
        if (status != KEEL_OK) { /* the connection breaks: TP_CLOSED follows */
            piece_free(p);
            op->replan = true;
            return;
        }
    }
}

static void advance(struct op *op, uint64_t now)
{
    if (op->finished)
        return;
    if (op->status != KEEL_OK && op->status != KEEL_IN_PROGRESS) { /* failed; waits for its accesses */
        if (!op->accesses)
            finish(op, op->status);
        return;
    }
    if (op->replan || !op->planned) {
        if (op->replan)
            abandon(op);
        if (op->accesses || now < op->retry_at || !plan(op, now))
            return;
    }
    for (int leg = 0; leg < op->legs && !op->finished; leg++) {
        post(op, leg, now);
        if (leg == 0 && op->kind == OP_PUT)
            FAULT_POINT("op.put_between_copies");
    }
    if (op->finished)
        return;
    if (op->kind == OP_PUT && op->dst && !op->staged) { /* the copy on this node */
        FAULT_POINT("op.before_local_store");
        memcpy(op->dst, op->src, op->len);
        op->dst = NULL;
        FAULT_POINT("op.after_local_store");
    }
    for (int leg = 0; leg < op->legs; leg++)
        if (op->done[leg] < op->len)
            return;
    bool repeatable = op->kind == OP_PUT || op->kind == OP_GET;
    if (repeatable && page_route(client.page, op->slot) != op->route) {
        op->replan = true;
        op->retry_at = 0;
        advance(op, now);
        return;
    }
    finish(op, KEEL_OK);
}

/* ---- events ---- */

void op_answered(const struct wire *w, const void *body, size_t len)
{
    struct piece *p = client.by_seq[w->seq % CLIENT_SEQ_SLOTS];
    while (p && p->seq != w->seq)
        p = p->next;
    if (!p || w->type != WIRE_REPLY)
        return; /* an answer to what was given up */
    struct op *op = p->op;
    uint64_t now = clock_now_ns();
    if (w->status == WIRE_RETRY) {
        piece_free(p);
        later(op, now);
        return;
    }
    if (w->status != KEEL_OK) {
        bool ignored =
            w->status == KEEL_ERR_DATA_LOST && !is_replicated(op) && (op->kind == OP_PUT || op->kind == OP_ACC);
        piece_free(p);
        fail(op, ignored ? KEEL_OK : (keel_status)w->status);
        return;
    }
    if (op->kind == OP_GET)
        memcpy(op->dst + p->offset, body, len < p->len ? len : p->len);
    FAULT_POINT("op.answered");
    op->result = w->a;
    op->done[p->leg] += p->len;
    op->seq = 0;
    if (op->kind == OP_ACC)
        op->step++;
    piece_free(p);
    advance(op, now);
}

/* A chunk of a large put is whole in one copy: on to the other, or both have it. */
static void chunk_written(struct op *op, const struct piece *p)
{
    if (!p->second)
        FAULT_POINT("op.chunk_in_one_copy");
    if (op->stripe.chunk && !p->second) {
        stripe_first_done(&op->stripe, p->leg);
        return;
    }
    if (op->staged) {
        /* Until the end of the operation the agent here knows what of this copy may differ. */
        client.intents->entry[op->intent].len = p->offset + p->len;
        atomic_thread_fence(memory_order_release);
        FAULT_POINT("op.before_local_chunk");
        memcpy(op->dst + p->offset, op->src + p->offset, p->len);
    }
    FAULT_POINT("op.chunk_in_both_copies");
    announce_over(op, p);
}

void op_access_done(struct piece *p, keel_status status)
{
    struct op *op = p->op;
    uint64_t now = clock_now_ns();
    if (status == KEEL_OK) {
        if (op->announced)
            chunk_written(op, p);
        op->done[p->leg] += p->len;
    } else {
        op->replan = true;
    }
    piece_free(p);
    advance(op, now);
}

static void advance_all(uint64_t now)
{
    for (struct op *op = client.active, *next; op; op = next) {
        next = op->next;
        advance(op, now);
    }
}

void op_links_changed(void)
{
    advance_all(clock_now_ns());
}

/* The connection to node is gone: its messages are lost, its accesses have had their events. */
void op_link_lost(int node)
{
    for (struct op *op = client.active; op; op = op->next)
        for (struct piece *p = op->pieces, *next; p; p = next) {
            next = p->sibling;
            if (p->node == node && !p->remote_access) {
                piece_free(p);
                op->replan = true;
            }
        }
    advance_all(clock_now_ns());
}

/* ---- progress ---- */

static void poll_transport(struct tp *tp, uint64_t now)
{
    struct tp_event events[BATCH];
    int n = tp_poll(tp, events, BATCH);
    for (int i = 0; i < n; i++) {
        if (events[i].type == TP_DONE)
            op_access_done(events[i].op->user, events[i].status);
        else if (events[i].ep)
            link_event(tp_ep_user(events[i].ep), &events[i], now);
    }
}

static void check_fatal(void)
{
    if (client.fatal != KEEL_OK)
        return;
    if (atomic_load_explicit(&client.page->fenced, memory_order_acquire))
        client.fatal = KEEL_ERR_FENCED;
    else if (control_is_broken())
        client.fatal = KEEL_ERR_AGENT_GONE;
    for (struct op *op = client.active, *next; client.fatal != KEEL_OK && op; op = next) {
        next = op->next;
        fail(op, client.fatal);
    }
}

/* Deadlines, views, nodes that do not answer. */
static void scan(uint64_t now)
{
    uint64_t epoch = atomic_load_explicit(&client.page->epoch, memory_order_acquire);
    if (epoch != client.epoch_seen) {
        client.epoch_seen = epoch;
        for (int m = 0; m < (int)client.page->members; m++)
            if (!atomic_load_explicit(&page_node(client.page, m)->alive, memory_order_acquire))
                link_drop(m);
    }
    for (struct op *op = client.active, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_ENTER)
            continue;
        if (now > op->deadline && op->status == KEEL_IN_PROGRESS) {
            fail(op, KEEL_ERR_TIMEOUT);
            continue;
        }
        if (op->planned && !op->replan && page_route(client.page, op->slot) != op->route)
            op->replan = true;
        if (now - op->started > ASK_AFTER_NS)
            for (struct piece *p = op->pieces; p; p = p->sibling)
                link_ask_agent(p->node, now);
        advance(op, now);
    }
    check_fatal();
}

void op_progress(void)
{
    uint64_t now = clock_now_ns();
    poll_transport(client.shm, now);
    poll_transport(client.net, now);
    if (client.large_waiting && client.large < CLIENT_LARGE_MAX) {
        client.large_waiting = false;
        advance_all(now);
    }
    if (now >= client.scan_at || atomic_load_explicit(&client.page->epoch, memory_order_relaxed) != client.epoch_seen) {
        client.scan_at = now + SCAN_EVERY_NS;
        scan(now);
    }
}

static uint64_t sleep_ms(void)
{
    uint64_t ms = SLEEP_MS;
    for (const struct op *op = client.active; op; op = op->next)
        if (op->replan || !op->planned)
            ms = 1;
    return ms;
}

bool op_wait(bool (*done)(void *arg), void *arg)
{
    uint64_t spin_until = clock_now_ns() + client.spin_ns;
    bool alone = client.active && !client.active->next; /* nothing else is on its way: no answer can be here yet */
    unsigned polls = alone ? 0 : 1;
    while (!done(arg)) {
        if (client.fatal != KEEL_OK)
            return false;
        if (polls++ % YIELD_EVERY == 0)
            sched_yield(); /* the agent that must answer may need this processor */
        op_progress();
        if (done(arg))
            break;
        if (clock_now_ns() < spin_until)
            continue;
        bool idle = client.shm->table->arm(client.shm) && client.net->table->arm(client.net);
        int ms = idle ? (int)sleep_ms() : 0;
        pthread_mutex_unlock(&client.lock);
        struct epoll_event ev[2];
        epoll_wait(client.epoll_fd, ev, 2, ms);
        pthread_mutex_lock(&client.lock);
        spin_until = clock_now_ns() + client.spin_ns / 4;
    }
    return client.fatal == KEEL_OK || done(arg);
}

static bool is_finished(void *arg)
{
    return ((struct op *)arg)->finished;
}

void op_start(struct op *op)
{
    uint64_t now = clock_now_ns();
    op->status = KEEL_IN_PROGRESS;
    op->started = now;
    op->deadline = now + client.timeout_ns;
    if (is_unit(op))
        op->len = 1;
    op->prev = NULL;
    op->next = client.active;
    if (client.active)
        client.active->prev = op;
    client.active = op;
    if (client.fatal != KEEL_OK)
        fail(op, client.fatal);
    else
        advance(op, now);
}

keel_status op_run(struct op *op)
{
    pthread_mutex_lock(&client.lock);
    op_start(op);
    op_wait(is_finished, op);
    /* Even when the job is lost, nothing may use the caller's memory any more. */
    while (!op->finished)
        op_progress();
    pthread_mutex_unlock(&client.lock);
    return op->status;
}
