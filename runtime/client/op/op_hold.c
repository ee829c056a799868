/* What an operation holds while it is under way, of which there is only so much: notes at agents (op_note.c), an entry
 * of the intent page, the right to be one of the large puts. Who finds none left waits in line; what is given back is
 * served in the order of asking; but nobody who holds something waits behind who holds nothing, as that one may be
 * waiting for it. */
#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/segment/segment.h"

enum { INTENT_STEP = 1024 * 1024 };

/* ---- the line ---- */

void hold_wait(struct op *op)
{
    struct client *c = op->client;
    op->line.wants = true;
    if (op->line.waiting)
        return;
    op->line.waiting = true;
    op->line.next = NULL;
    *c->ops.waiting_tail = op;
    c->ops.waiting_tail = &op->line.next;
}

void hold_wait_no_more(struct op *op)
{
    struct client *c = op->client;
    struct op **link = &c->ops.waiting;
    if (!op->line.waiting)
        return;
    while (*link != op)
        link = &(*link)->line.next;
    *link = op->line.next;
    if (!*link)
        c->ops.waiting_tail = link;
    op->line.waiting = false;
}

bool hold_others_wait(const struct op *op)
{
    return op->client->ops.waiting && op->client->ops.waiting != op;
}

bool hold_has_some(const struct op *op)
{
    return op->held.notes > 0 || op->held.intent >= 0 || op->held.large;
}

/* The turn of the one at *link; false: it still wants something. */
static bool serve_one(struct op *const *link, uint64_t now)
{
    struct op *op = *link;
    op->line.wants = false;
    op->line.first = true;
    op_advance(op, now);
    if (*link != op)
        return true; /* it has ended */
    op->line.first = false;
    if (op->line.wants)
        return false;
    hold_wait_no_more(op);
    return true;
}

/* In the order of asking. Where the first one finds nothing, those behind it who hold something go on if they can: it
 * may be waiting for what they give back at their end. */
void op_serve(struct client *c, uint64_t now)
{
    c->ops.serve = false;
    while (c->ops.waiting && serve_one(&c->ops.waiting, now))
        ;
    for (struct op **link = c->ops.waiting ? &c->ops.waiting->line.next : NULL; link && *link;)
        if (!hold_has_some(*link) || !serve_one(link, now))
            link = &(*link)->line.next;
}

/* ---- the intent page ---- */

static void intent_clear(struct op *op)
{
    struct client *c = op->client;
    if (op->held.intent >= 0) {
        atomic_store_explicit(&c->intents->entry[op->held.intent].active, 0, memory_order_release);
        c->ops.serve = true;
    }
    op->held.intent = -1;
}

bool hold_intent(struct op *op)
{
    struct client *c = op->client;
    if (op->held.intent >= 0) { /* of an earlier plan: from the beginning again, and what it covered stays covered */
        struct intent *t = &c->intents->entry[op->held.intent];
        __atomic_store_n(&t->len, t->offset - op->offset + t->len, __ATOMIC_RELEASE);
        __atomic_store_n(&t->offset, op->offset, __ATOMIC_RELEASE);
    }
    for (int i = 0; op->held.intent < 0 && i < INTENT_MAX; i++) {
        struct intent *t = &c->intents->entry[i];
        if (atomic_load_explicit(&t->active, memory_order_relaxed))
            continue;
        t->seg = op->segment->index;
        t->slot = (uint32_t)op->slot;
        t->offset = op->offset;
        t->len = 0;
        atomic_store_explicit(&t->active, 1, memory_order_release);
        op->held.intent = i;
        FAULT_POINT("op.intent_set");
    }
    return op->held.intent >= 0;
}

/* The copy here may differ up to `end`, from where all others have the bytes. */
void hold_intent_move(struct op *op, uint64_t end)
{
    struct intent *t = &op->client->intents->entry[op->held.intent];
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

/* ---- the end ---- */

void hold_large_end(struct op *op)
{
    op->client->ops.large -= op->held.large;
    op->client->ops.serve = op->client->ops.serve || op->held.large;
    op->held.large = false;
}

void hold_release(struct op *op)
{
    note_free_all(op);
    intent_clear(op);
    hold_large_end(op);
    hold_wait_no_more(op);
    if (op->held.counted)
        atomic_fetch_sub_explicit(&op->client->intents->open, 1, memory_order_relaxed);
    op->held.counted = false;
}
