/* Operations: from the call to the moment when every live copy has the bytes.
 *
 * An operation reads the route of its group (protocol/page.h), makes a plan for it (plan.h), sends pieces, and when all are
 * answered compares the route's tag: unchanged, it is complete; changed, it is planned again. Puts and gets may be
 * repeated freely (they are not complete until then, so nobody may rely on an order); accumulates and atomics keep their
 * identity, so that the copies recognise a repetition.
 *
 *            ┌─────────────── the route changed, a connection broke, an agent said RETRY ─────────────┐
 *            ▼                                                                                        │
 *   start ─► planned ─► pieces on their way ─► all answered ─► same route? ──yes──► finished         no
 *            │   ▲                                                   └────────────────────────────────┘
 *            ▼   │ given back, in the order of asking
 *          waiting for a note, a lane, an intent entry, the message window, or a large put to end */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/handle.h"

enum {
    RETRY_FIRST_NS = 20000,
    RETRY_MAX_NS = 1000000,
    INTENT_STEP = 1024 * 1024,
    COPIED_MAX = 8 * 1024, /* bytes of a message's body: larger ones are sent from the caller's memory */
};

/* ---- memory ---- */

static struct piece *piece_new(struct op *op, int leg, const struct stripe_piece *part)
{
    struct client *c = op->client;
    struct piece *p = c->free_pieces;
    if (p)
        c->free_pieces = p->next;
    else if (!(p = malloc(sizeof *p)))
        return NULL;
    *p = (struct piece){.op = op,
                        .offset = part->offset,
                        .len = part->len,
                        .second = part->second,
                        .leg = leg,
                        .node = op->plan.leg[leg].node,
                        .lane = -1};
    p->tp.user = p;
    *op->pieces_tail = p;
    op->pieces_tail = &p->sibling;
    c->pieces_living++;
    return p;
}

/* The message is not on its way any more. */
static void unhash(struct piece *p)
{
    struct client *c = p->op->client;
    if (!p->seq)
        return;
    struct piece **link = &c->by_seq[p->seq % SEQ_SLOTS];
    while (*link && *link != p)
        link = &(*link)->next;
    if (*link) {
        *link = p->next;
        c->messages--;
        c->serve = true;
    }
    p->seq = 0;
}

static void piece_free(struct piece *p)
{
    struct op *op = p->op;
    struct client *c = op->client;
    unhash(p);
    if (p->lane >= 0) {
        c->lane[p->lane].busy = false;
        c->serve = true;
    }
    struct piece **link = &op->pieces;
    while (*link != p)
        link = &(*link)->sibling;
    *link = p->sibling;
    if (!*link)
        op->pieces_tail = link;
    if (p->remote_access)
        op->accesses--;
    p->next = c->free_pieces;
    c->free_pieces = p;
    c->pieces_living--;
}

/* Nothing more is expected of it, but perhaps the provider's event. */
static void piece_done(struct piece *p)
{
    unhash(p);
    p->done = true;
    if (!p->remote_access)
        piece_free(p);
}

struct op *op_alloc(struct client *c)
{
    struct op *op = c->free_ops;
    if (op)
        c->free_ops = op->next;
    else
        op = malloc(sizeof *op);
    c->ops_living += op != NULL;
    return op;
}

void op_free(struct op *op)
{
    struct client *c = op->client;
    op->next = c->free_ops;
    c->free_ops = op;
    c->ops_living--;
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
    op->intent = -1;
    op->pieces_tail = &op->pieces;
    if (segment) {
        const struct page_rank *r = page_rank(c->page, rank);
        op->slot = (int)r->slot;
        op->group = group_of(op->slot, segment->redundancy);
        op->offset = (uint64_t)r->index * segment->stride + offset;
    }
}

bool op_is_once(const struct op *op)
{
    return op->kind == OP_ACC || op->kind == OP_RMW;
}

/* Atomics and barrier entries have no bytes: they are one unit long. */
static bool is_unit(const struct op *op)
{
    return op->kind == OP_RMW || op->kind == OP_ENTER;
}

/* ---- what is limited ---- */

static void wait_for_resource(struct op *op)
{
    struct client *c = op->client;
    op->wants = true;
    if (op->waiting)
        return;
    op->waiting = true;
    op->next_waiting = NULL;
    *c->waiting_tail = op;
    c->waiting_tail = &op->next_waiting;
}

static void wait_no_more(struct op *op)
{
    struct client *c = op->client;
    struct op **link = &c->waiting;
    if (!op->waiting)
        return;
    while (*link != op)
        link = &(*link)->next_waiting;
    *link = op->next_waiting;
    if (!*link)
        c->waiting_tail = link;
    op->waiting = false;
}

/* Others were first: what is free is theirs. */
static bool others_wait(const struct op *op)
{
    return op->client->waiting && op->client->waiting != op;
}

void op_serve(struct client *c, uint64_t now)
{
    c->serve = false;
    for (struct op *op; (op = c->waiting) != NULL;) {
        op->wants = false;
        op->first_in_line = true;
        op_advance(op, now);
        if (c->waiting != op)
            continue; /* it has ended */
        op->first_in_line = false;
        if (op->wants)
            return;
        wait_no_more(op);
    }
}

/* ---- notes ---- */

/* Each leg has its share: one that is ahead must not take what another needs to come after it, for the notes of a piece
 * are given back when all legs have it. */
static bool note_has_room(const struct op *op, int node)
{
    int of_leg = 0;
    for (int i = 0; i < op->notes; i++)
        of_leg += op->note[i].node == node;
    return op->notes < OP_NOTES_MAX && of_leg < OP_NOTES_MAX / COPIES_MAX;
}

/* A note at the agent of the leg for these bytes; the one that it has already, if they are sent again. */
static int note_for(struct op *op, int node, const struct stripe_piece *part)
{
    for (int i = 0; i < op->notes; i++)
        if (op->note[i].node == node && op->note[i].offset == part->offset && op->note[i].len == part->len) {
            op->note[i].done = false;
            return op->note[i].note;
        }
    int note = note_has_room(op, node) ? link_note_take(&op->client->link[node]) : -1;
    if (note >= 0)
        op->note[op->notes++] =
            (struct held_note){.node = node, .note = note, .offset = part->offset, .len = part->len};
    return note;
}

static void note_free(struct op *op, int i)
{
    if (op->announced)
        link_note_clear(&op->client->link[op->note[i].node], op->note[i].note);
    link_note_free(op->client, &op->client->link[op->note[i].node], op->note[i].note);
    op->note[i] = op->note[--op->notes];
}

/* The leg has the bytes of the piece. When all have them nothing is in doubt there any more. */
static void note_done(struct op *op, const struct piece *p)
{
    int done = 0;
    for (int i = 0; i < op->notes; i++)
        if (op->note[i].offset == p->offset && op->note[i].len == p->len) {
            op->note[i].done = op->note[i].done || op->note[i].node == p->node;
            done += op->note[i].done;
        }
    if (done < op->plan.legs || (op->plan.here && op->stored < p->offset + p->len))
        return;
    if (op->plan.way == PLAN_CHUNKS)
        FAULT_POINT("op.chunk_in_both_copies");
    for (int i = op->notes - 1; i >= 0; i--)
        if (op->note[i].offset == p->offset && op->note[i].len == p->len)
            note_free(op, i);
}

static void intent_clear(struct op *op)
{
    struct client *c = op->client;
    if (op->intent >= 0) {
        atomic_store_explicit(&c->intents->entry[op->intent].active, 0, memory_order_release);
        c->serve = true;
    }
    op->intent = -1;
}

static bool intent_take(struct op *op)
{
    struct client *c = op->client;
    if (op->intent >= 0) { /* of an earlier plan: from the beginning again, and what it covered stays covered */
        struct intent *t = &c->intents->entry[op->intent];
        __atomic_store_n(&t->len, t->offset - op->offset + t->len, __ATOMIC_RELEASE);
        __atomic_store_n(&t->offset, op->offset, __ATOMIC_RELEASE);
    }
    for (int i = 0; op->intent < 0 && i < INTENT_MAX; i++) {
        struct intent *t = &c->intents->entry[i];
        if (atomic_load_explicit(&t->active, memory_order_relaxed))
            continue;
        t->seg = op->segment->index;
        t->slot = (uint32_t)op->slot;
        t->offset = op->offset;
        t->len = 0;
        atomic_store_explicit(&t->active, 1, memory_order_release);
        op->intent = i;
        FAULT_POINT("op.intent_set");
    }
    return op->intent >= 0;
}

/* The copy here may differ up to `end`, from where all others have the bytes. */
static void intent_move(struct op *op, uint64_t end)
{
    struct intent *t = &op->client->intents->entry[op->intent];
    uint64_t all = op->stored;
    for (int leg = 0; leg < op->plan.legs; leg++)
        if (op->plan.leg[leg].done < all)
            all = op->plan.leg[leg].done;
    uint64_t from = t->offset - op->offset;
    if (all >= from + INTENT_STEP) {
        /* First the beginning: in between the entry names too much, never too little. */
        __atomic_store_n(&t->offset, op->offset + all, __ATOMIC_RELEASE);
        from = all;
    }
    if (end - from > t->len || end == op->len)
        __atomic_store_n(&t->len, end - from, __ATOMIC_RELEASE);
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- the end of an operation ---- */

static void large_end(struct op *op)
{
    op->client->large -= op->large;
    op->client->serve = op->client->serve || op->large;
    op->large = false;
}

static void unlink_active(struct op *op)
{
    struct client *c = op->client;
    if (op->prev)
        op->prev->next = op->next;
    else
        c->active = op->next;
    if (op->next)
        op->next->prev = op->prev;
    else
        c->active_last = op->prev;
    op->next = op->prev = NULL;
}

void op_keep_error(struct client *c, int rank, keel_status status)
{
    struct implicit_error **link = &c->implicit_errors;
    while (*link && (*link)->rank != rank)
        link = &(*link)->next;
    if (*link)
        return;
    *link = malloc(sizeof **link);
    if (*link)
        **link = (struct implicit_error){.rank = rank, .status = status};
    else
        c->implicit_error = status; /* without memory any fence tells it */
}

static void finish(struct op *op, keel_status status)
{
    struct client *c = op->client;
    while (op->notes)
        note_free(op, op->notes - 1);
    intent_clear(op);
    large_end(op);
    wait_no_more(op);
    if (op->counted)
        atomic_fetch_sub_explicit(&c->intents->open, 1, memory_order_relaxed);
    op->counted = false;
    op->finished = true;
    op->status = status;
    unlink_active(op);
    if (op->implicit && status != KEEL_OK)
        op_keep_error(c, op->rank, status);
    if (op->handle) {
        handle_end(op->handle, status);
        op->handle = NULL;
        op_free(op);
    } else if (op->implicit) {
        op_free(op);
    }
}

/* Take back what is on its way by message; accesses use our memory and must end by themselves (a dropped connection
 * flushes them). What counts once keeps its pieces: they are sent again. */
static void take_back(struct op *op, bool all)
{
    for (struct piece *p = op->pieces, *next; p; p = next) {
        next = p->sibling;
        if (all || !op_is_once(op))
            piece_done(p);
    }
}

/* A put that ends here may be in some copies only, or come later than what others write from now on. Its notes stay, and a view
 * will make the copies equal and end its connections. */
static void give_up(struct op *op)
{
    struct client *c = op->client;
    if (op->notes == 0 && op->intent < 0 && !op->counted)
        return;
    struct given_up *g = malloc(sizeof *g);
    atomic_fetch_add(&c->intents->doubted, 1);
    struct control r = {.type = CONTROL_DOUBT};
    c->doubt_untold = !c->env.tell(c->env.user, &r); /* else client_progress does it */
    if (g) {                                         /* without memory these notes are never used again */
        *g = (struct given_up){.next = c->given_up,
                               .number = atomic_load(&c->intents->doubted),
                               .notes = op->notes,
                               .intent = op->intent,
                               .counted = op->counted};
        memcpy(g->note, op->note, sizeof g->note);
        c->given_up = g;
    }
    op->notes = 0;
    op->intent = -1;
    op->counted = false;
}

void op_given_up_done(struct client *c)
{
    uint32_t taken = atomic_load_explicit(&page_rank(c->page, c->rank)->doubted, memory_order_acquire);
    struct given_up **link = &c->given_up;
    while (*link) {
        struct given_up *g = *link;
        if ((int32_t)(taken - g->number) < 0) {
            link = &g->next;
            continue;
        }
        *link = g->next;
        for (int i = 0; i < g->notes; i++)
            link_note_free(c, &c->link[g->note[i].node], g->note[i].note);
        if (g->intent >= 0)
            atomic_store_explicit(&c->intents->entry[g->intent].active, 0, memory_order_release);
        if (g->counted)
            atomic_fetch_sub_explicit(&c->intents->open, 1, memory_order_relaxed);
        c->serve = true;
        free(g);
    }
}

void op_fail(struct op *op, keel_status status)
{
    struct client *c = op->client;
    take_back(op, true);
    if (op->accesses) {
        op->status = status; /* finished when they have ended */
        for (struct piece *p = op->pieces; p; p = p->sibling)
            link_drop(c, p->node);
        return;
    }
    if (status != KEEL_ERR_DATA_LOST)
        give_up(op);
    finish(op, status);
}

/* ---- planning ---- */

void op_later(struct op *op, uint64_t now)
{
    struct client *c = op->client;
    op->replan = true;
    op->retry_ns = !op->retry_ns ? RETRY_FIRST_NS : op->retry_ns * 2 > RETRY_MAX_NS ? RETRY_MAX_NS : op->retry_ns * 2;
    op->retry_at = now + op->retry_ns;
    if (op->retry_at < c->retry_at)
        c->retry_at = op->retry_at;
}

/* What is stored and loaded here. False: not now. */
static bool plan_here(struct op *op, uint64_t now)
{
    keel_status status;
    uint8_t *base = segment_map(op->segment, op->slot, &status);
    bool for_good = status == KEEL_ERR_ARG || status == KEEL_ERR_SYSTEM; /* ARG: it was freed here */
    if (for_good || (status == KEEL_ERR_NOMEM && !op->patient)) {
        op_fail(op, status);
        return false;
    }
    if (!base) {
        op_later(op, now);
        return false;
    }
    op->base = base + op->offset;
    if (op->plan.noted && !intent_take(op)) {
        wait_for_resource(op);
        return false;
    }
    if (op->plan.way != PLAN_PLAIN)
        return true;
    if (op->kind == OP_PUT)
        op->client->env.copy(op->client->env.user, op->base, op->src, op->len);
    else
        memcpy(op->dst, op->base, op->len);
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
                            .always_through = op->always_through || op->notes >= OP_NOTES_MAX / COPIES_MAX,
                            .strong = op->flags & WIRE_F_STRONG,
                            .in_task = op->flags & WIRE_F_TASK,
                            .self = c->node};
    large_end(op);
    op->replan = false;
    op->planned = false;
    if (op->kind != OP_ENTER && !page_route_read(c->page, op->group, &op->route)) {
        op_later(op, now);
        return false;
    }
    in.by_message = op->no_access == op->route.tag;
    plan_make(&op->plan, &in, &op->route);
    if (op->plan.way == PLAN_CHUNKS) {
        if (c->large >= LARGE_MAX || (others_wait(op) && !op->first_in_line)) {
            wait_for_resource(op);
            return false;
        }
        c->large++;
        op->large = op->announced = true;
    }
    op->stored = 0;
    for (int i = 0; i < op->notes; i++)
        op->note[i].done = false; /* a copy of an older route counts for none of this one */
    if (op->plan.here && !plan_here(op, now))
        return false;
    if (op->kind == OP_PUT && (op->plan.noted || op->plan.legs) && !op->counted) {
        atomic_fetch_add_explicit(&c->intents->open, 1, memory_order_relaxed);
        op->counted = true;
        op->number = ++c->next_number;
    }
    if (op_is_once(op)) { /* what was answered has taken effect for good; the rest has its pieces */
        op->plan.leg[0].done = op->answered;
        op->plan.leg[0].posted = op->answered;
        for (struct piece *p = op->pieces; p; p = p->sibling) {
            op->plan.leg[0].posted += p->len;
            p->leg = 0;
            if (!p->seq)
                p->node = op->plan.leg[0].node;
        }
    }
    op->planned = true;
    return true;
}

/* ---- sending ---- */

static uint8_t wire_type(const struct op *op)
{
    static const uint8_t type[] = {
        [OP_PUT] = WIRE_PUT, [OP_GET] = WIRE_GET, [OP_ACC] = WIRE_ACC, [OP_RMW] = WIRE_RMW, [OP_ENTER] = WIRE_ENTER};
    return type[op->kind];
}

static void hash_piece(struct piece *p)
{
    struct client *c = p->op->client;
    p->seq = ++c->next_seq;
    p->next = c->by_seq[p->seq % SEQ_SLOTS];
    c->by_seq[p->seq % SEQ_SLOTS] = p;
    c->messages++;
}

static keel_status send_message(struct op *op, struct piece *p, struct tp_ep *ep, int note)
{
    const struct client *c = op->client;
    bool body = op->kind == OP_PUT || op->kind == OP_ACC, task = op->flags & WIRE_F_TASK;
    hash_piece(p);
    struct wire w = {.type = wire_type(op),
                     .flags = (uint8_t)(op->flags | (op->plan.through ? WIRE_F_THROUGH : 0)),
                     .slot = (uint16_t)op->slot,
                     .seg = op->segment ? op->segment->index : 0,
                     .seq = p->seq,
                     .offset = op->offset + p->offset,
                     .len = body ? (uint32_t)p->len : 0,
                     .count = op->kind == OP_GET ? (uint32_t)p->len : op->what,
                     .a = op->a,
                     .b = op->b,
                     .identity = task ? op->task : p->number,
                     .step = p->step,
                     .round = op->round,
                     .epoch = route_generation(op->route.tag),
                     .rank = (uint32_t)c->rank,
                     .incarnation = c->incarnation,
                     .note = (uint16_t)(note + 1),
                     .lane = (uint16_t)(p->lane < 0 ? 0 : p->lane)};
    if (w.len > COPIED_MAX && p->node != c->node) {
        p->wire = w;
        p->remote_access = true;
        op->accesses++;
        return tp_send(ep, &p->wire, sizeof w, op->src + p->offset, w.len, &p->tp);
    }
    return tp_send(ep, &w, sizeof w, body ? op->src + p->offset : NULL, w.len, NULL);
}

/* Tell the agent of a copy what a remote write is about to change: if this process dies, the agents make the copies
 * equal. */
static keel_status announce(const struct op *op, const struct piece *p, struct tp_ep *ep, int note)
{
    struct wire w = {.type = WIRE_INTENT,
                     .flags = p->second ? WIRE_F_SECOND : 0,
                     .slot = (uint16_t)op->slot,
                     .seg = op->segment->index,
                     .offset = op->offset + p->offset,
                     .count = (uint32_t)p->len,
                     .identity = op->number,
                     .epoch = route_generation(op->route.tag),
                     .note = (uint16_t)(note + 1)};
    return tp_send(ep, &w, sizeof w, NULL, 0, NULL);
}

static keel_status start_access(struct op *op, struct piece *p, struct tp_ep *ep, int note)
{
    uint64_t key = wire_key(op->segment->index, op->slot, route_generation(op->route.tag));
    keel_status status = note >= 0 ? announce(op, p, ep, note) : KEEL_OK;
    if (status != KEEL_OK)
        return status;
    p->remote_access = true;
    op->accesses++;
    if (op->kind == OP_GET)
        return ep->tp->table->read(ep, op->dst + p->offset, p->len, key, op->offset + p->offset, &p->tp);
    return tp_write(ep, op->src + p->offset, p->len, key, op->offset + p->offset, &p->tp);
}

static bool send_piece(struct op *op, struct piece *p, struct tp_ep *ep, int note)
{
    p->node = op->plan.leg[p->leg].node;
    keel_status status = op->plan.way == PLAN_MESSAGES ? send_message(op, p, ep, note) : start_access(op, p, ep, note);
    if (status == KEEL_OK)
        return true;
    /* The connection breaks: TP_CLOSED follows. */
    op->accesses -= p->remote_access;
    p->remote_access = false;
    if (op_is_once(op))
        unhash(p);
    else
        piece_free(p);
    op->replan = true;
    return false;
}

/* A lane, or the step in the task: whatever a repetition is recognised by. False: not now. */
static bool identify(struct op *op, struct piece *p)
{
    struct client *c = op->client;
    if (op->flags & WIRE_F_TASK) {
        int64_t step = task_step(c, op->group);
        p->step = (uint32_t)step;
        return step >= 0;
    }
    for (int i = 0; i < LANES_MAX; i++)
        if (!c->lane[i].busy) {
            c->lane[i].busy = true;
            p->lane = i;
            p->number = ++c->lane[i].number;
            return true;
        }
    return false;
}

static unsigned in_flight(const struct op *op, int leg)
{
    unsigned n = 0;
    for (const struct piece *p = op->pieces; p; p = p->sibling)
        n += p->leg == leg && (p->seq || p->remote_access);
    return n;
}

static bool has_window(const struct op *op)
{
    return op->plan.way != PLAN_MESSAGES || op->client->messages < MESSAGES_MAX;
}

/* Pieces that were sent before and not answered, in their order. False: not all could be sent. */
static bool send_again(struct op *op, struct tp_ep *ep)
{
    for (struct piece *p = op->pieces, *next; p; p = next) {
        next = p->sibling;
        if (p->seq || p->remote_access)
            continue;
        if (!has_window(op)) {
            wait_for_resource(op);
            return false;
        }
        if (!send_piece(op, p, ep, -1))
            return false;
    }
    return true;
}

/* One more piece for the leg; false: none now. Who holds notes already goes before those who wait to begin: they may be waiting
 * for these very notes, which it gives back when all copies have its bytes. */
static bool post_one(struct op *op, int leg, struct tp_ep *ep)
{
    struct stripe_piece part;
    if (!has_window(op) || (others_wait(op) && !op->first_in_line && op->notes == 0) ||
        (op->plan.noted && !note_has_room(op, op->plan.leg[leg].node))) {
        wait_for_resource(op);
        return false;
    }
    struct plan before = op->plan;
    if (is_unit(op))
        part = (struct stripe_piece){.len = 1};
    else if (!plan_take(&op->plan, op->len, leg, &part))
        return false;
    int note = op->plan.noted ? note_for(op, op->plan.leg[leg].node, &part) : -1;
    if (op->plan.noted && note < 0) {
        op->plan = before;
        wait_for_resource(op);
        return false;
    }
    struct piece *p = piece_new(op, leg, &part);
    if (!p) {
        if (op->patient)
            op_later(op, op->client->env.now(op->client->env.user));
        else
            op_fail(op, KEEL_ERR_NOMEM);
        return false;
    }
    if (op_is_once(op) && !identify(op, p)) {
        piece_free(p);
        op->plan = before;
        wait_for_resource(op);
        return false;
    }
    op->plan.leg[leg].posted += part.len;
    return send_piece(op, p, ep, note);
}

static void post(struct op *op, int leg, uint64_t now)
{
    const struct plan_leg *l = &op->plan.leg[leg];
    bool unsent = op_is_once(op) && op->pieces;
    if (l->posted >= op->len && !unsent)
        return;
    unsigned n = in_flight(op, leg);
    if (n >= l->window)
        return;
    struct tp_ep *ep = link_up(op->client, l->node, now);
    if (!ep || (unsent && !send_again(op, ep)))
        return;
    for (n = in_flight(op, leg); !op->finished && !op->replan && l->posted < op->len && n < l->window; n++)
        if (!post_one(op, leg, ep))
            return;
}

/* The copy on this node gets what is on its way to all others. */
static void store_here(struct op *op)
{
    uint64_t sent = op->len;
    for (int leg = 0; leg < op->plan.legs; leg++)
        if (op->plan.leg[leg].posted < sent)
            sent = op->plan.leg[leg].posted;
    if (sent <= op->stored)
        return;
    struct client *c = op->client;
    intent_move(op, sent);
    FAULT_POINT("op.before_local_store");
    uint64_t from = op->stored;
    c->env.copy(c->env.user, op->base + from, op->src + from, sent - from);
    op->stored = sent;
    FAULT_POINT("op.after_local_store");
}

static bool all_done(const struct op *op)
{
    if (op->accesses)
        return false;
    for (int leg = 0; leg < op->plan.legs; leg++)
        if (op->plan.leg[leg].done < op->len)
            return false;
    return !op->plan.here || op->plan.way == PLAN_PLAIN || op->stored >= op->len;
}

/* The agents hear that its notes name nothing any more. One that does not would call its copy torn, and bytes of another copy,
 * which the next writer tears, would be taken for it. */
static bool can_clear(const struct op *op, uint64_t now)
{
    bool can = true;
    for (int leg = 0; op->plan.way == PLAN_CHUNKS && leg < op->plan.legs; leg++)
        can = link_up(op->client, op->plan.leg[leg].node, now) && can;
    return can;
}

void op_advance(struct op *op, uint64_t now)
{
    if (op->finished)
        return;
    if (op->status != KEEL_IN_PROGRESS) { /* failed; waits for its accesses */
        if (!op->accesses)
            op_fail(op, op->status);
        return;
    }
    if (op->replan || !op->planned) {
        if (op->replan)
            take_back(op, false);
        if (op->replan && op->waiting && !op->first_in_line) { /* for what the old plan wanted */
            wait_no_more(op);
            op->client->serve = true;
        }
        if (op->accesses || now < op->retry_at || (op->waiting && !op->first_in_line) || !plan(op, now))
            return;
    }
    for (int leg = 0; leg < op->plan.legs && !op->finished && !op->replan; leg++) {
        post(op, leg, now);
        if (leg == 0 && op->kind == OP_PUT)
            FAULT_POINT("op.put_between_copies");
    }
    if (op->finished)
        return;
    if (op->kind == OP_PUT && op->plan.here && op->plan.way == PLAN_MESSAGES && !op->replan)
        store_here(op);
    if (op->replan || !all_done(op))
        return;
    bool repeatable = op->kind == OP_PUT || op->kind == OP_GET;
    if (repeatable && page_tag(op->client->page, op->group) != op->route.tag) {
        op->replan = true;
        op->retry_at = 0;
        op_advance(op, now);
        return;
    }
    if (can_clear(op, now)) /* else when there is a connection, or another route */
        finish(op, KEEL_OK);
}

void op_start(struct op *op)
{
    struct client *c = op->client;
    op->status = KEEL_IN_PROGRESS;
    op->started = c->lived_ns;
    op->deadline = c->lived_ns + c->timeout_ns;
    if (is_unit(op))
        op->len = 1;
    op->next = NULL;
    op->prev = c->active_last;
    if (c->active_last)
        c->active_last->next = op;
    else
        c->active = op;
    c->active_last = op;
    if (c->fatal != KEEL_OK)
        op_fail(op, c->fatal);
    else
        op_advance(op, c->env.now(c->env.user));
}

/* ---- events ---- */

static struct piece *piece_of(const struct client *c, uint64_t seq)
{
    struct piece *p = c->by_seq[seq % SEQ_SLOTS];
    while (p && p->seq != seq)
        p = p->next;
    return p;
}

/* FT-ARMCI: a put or accumulate to a part that died with its node is ignored. */
static bool is_ignored(const struct op *op, int status)
{
    return status == KEEL_ERR_DATA_LOST && op->segment && op->segment->redundancy == KEEL_REDUNDANCY_NONE &&
           (op->kind == OP_PUT || op->kind == OP_ACC);
}

void op_answered(struct client *c, const struct wire *w, const void *body, size_t len)
{
    struct piece *p = w->type == WIRE_REPLY ? piece_of(c, w->seq) : NULL;
    if (!p)
        return; /* an answer to what was given up */
    struct op *op = p->op;
    uint64_t now = c->env.now(c->env.user);
    if (w->status == WIRE_RETRY || (w->status == KEEL_ERR_NOMEM && op->patient)) {
        if (op_is_once(op))
            unhash(p);
        else
            piece_done(p);
        op_later(op, now);
        return;
    }
    if (w->status != KEEL_OK) {
        if (op->flags &
            WIRE_F_TASK) /* neither it nor what comes after it has taken effect; with the data all is gone */
            for (const struct piece *q = op->pieces; q; q = q->sibling)
                if (w->status == KEEL_ERR_DATA_LOST || q->step >= p->step)
                    task_unstep(c, op->group);
        piece_done(p);
        op_fail(op, is_ignored(op, w->status) ? KEEL_OK : (keel_status)w->status);
        return;
    }
    if (op->kind == OP_GET)
        memcpy(op->dst + p->offset, body, len < p->len ? len : p->len);
    FAULT_POINT("op.answered");
    op->result = w->a;
    if (w->epoch)
        atomic_store(&op->segment->shared[op->slot], w->epoch);
    op->plan.leg[p->leg].done += p->len;
    op->answered += p->len;
    op->retry_ns = 0;
    if (op->plan.noted)
        note_done(op, p);
    piece_done(p);
    op_advance(op, now);
}

/* The provider does not need the message's bytes any more. If it was not sent, TP_CLOSED says so. */
static void message_left(struct piece *p)
{
    p->op->accesses--;
    p->remote_access = false;
    if (p->done)
        piece_free(p);
}

void op_access_done(struct piece *p, keel_status status)
{
    struct op *op = p->op;
    struct client *c = op->client;
    if (p->wire.type) {
        message_left(p);
        op_advance(op, c->env.now(c->env.user));
        return;
    }
    if (status == KEEL_OK) {
        if (op->plan.way == PLAN_CHUNKS && !op->replan) {
            if (!p->second) {
                FAULT_POINT("op.chunk_in_one_copy");
                stripe_first_done(&op->plan.stripe, p->leg);
            }
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
    for (struct op *op = c->active, *next; op; op = next) {
        next = op->next;
        op_advance(op, now);
    }
}

/* What other nodes have executed and the agent here was to answer may have been answered while there was no connection. Repeated,
 * it is answered by who executes it. */
static void ask_primaries_again(struct client *c)
{
    for (struct op *op = c->active; op; op = op->next)
        for (struct piece *p = op->pieces; p && op_is_once(op); p = p->sibling)
            if (p->seq && p->node != c->node) {
                unhash(p);
                op->replan = true;
            }
}

void op_link_up(struct client *c, int node)
{
    if (node == c->node)
        ask_primaries_again(c);
    advance_all(c);
}

/* The connection to node is gone: its messages are lost, its accesses have had their events. */
void op_link_lost(struct client *c, int node)
{
    for (struct op *op = c->active; op; op = op->next)
        for (struct piece *p = op->pieces, *next; p; p = next) {
            next = p->sibling;
            if (p->node != node || p->remote_access || !p->seq)
                continue;
            if (op_is_once(op))
                unhash(p);
            else
                piece_free(p);
            op->replan = true;
        }
    advance_all(c);
}
