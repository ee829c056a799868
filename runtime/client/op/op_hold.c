/* What an operation holds while it is under way, of which there is only so much: notes at agents (op_note.c), an entry of
 * the intent page, the right to be one of the large puts. Who finds none left waits in line; what is given back is served
 * in the order of asking; but nobody who holds something waits behind who holds nothing, as that one may be waiting for
 * it. */
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/op_int.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/stream/link.h"

enum { INTENT_STEP = 1024 * 1024 };
_Static_assert(INTENT_MAX <= 64, "a word has a bit for each of those that were given up");

/* ---- the line ---- */

void hold_wait(struct op *op)
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

void hold_wait_no_more(struct op *op)
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

bool hold_others_wait(const struct op *op)
{
    return op->client->waiting && op->client->waiting != op;
}

bool hold_has_some(const struct op *op)
{
    return op->notes > 0 || op->intent >= 0 || op->large;
}

/* The turn of the one at *link; false: it still wants something. */
static bool serve_one(struct op *const *link, uint64_t now)
{
    struct op *op = *link;
    op->wants = false;
    op->first_in_line = true;
    op_advance(op, now);
    if (*link != op)
        return true; /* it has ended */
    op->first_in_line = false;
    if (op->wants)
        return false;
    hold_wait_no_more(op);
    return true;
}

/* In the order of asking. Where the first one finds nothing, those behind it who hold something go on if they can: it
 * may be waiting for what they give back at their end. */
void op_serve(struct client *c, uint64_t now)
{
    c->serve = false;
    while (c->waiting && serve_one(&c->waiting, now))
        ;
    for (struct op **link = c->waiting ? &c->waiting->next_waiting : NULL; link && *link;)
        if (!hold_has_some(*link) || !serve_one(link, now))
            link = &(*link)->next_waiting;
}

/* ---- the intent page ---- */

static void intent_clear(struct op *op)
{
    struct client *c = op->client;
    if (op->intent >= 0) {
        atomic_store_explicit(&c->intents->entry[op->intent].active, 0, memory_order_release);
        c->serve = true;
    }
    op->intent = -1;
}

bool hold_intent(struct op *op)
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
void hold_intent_move(struct op *op, uint64_t end)
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

/* ---- the end ---- */

void hold_large_end(struct op *op)
{
    op->client->large -= op->large;
    op->client->serve = op->client->serve || op->large;
    op->large = false;
}

void hold_release(struct op *op)
{
    note_free_all(op);
    intent_clear(op);
    hold_large_end(op);
    hold_wait_no_more(op);
    if (op->counted)
        atomic_fetch_sub_explicit(&op->client->intents->open, 1, memory_order_relaxed);
    op->counted = false;
}

/* What ends here may come later than what is written from now on: a view will end its connections, and have agents refuse what was sent before. What
 * went to copies one by one may be in some only: its notes stay, and that view will make the copies equal. */
void hold_give_up(struct op *op)
{
    struct client *c = op->client;
    if (op->notes == 0 && op->intent < 0 && !op->counted && !(op->unanswered && op_changes(op)))
        return;
    c->behind = atomic_load(&c->intents->doubted) + 1;
    if (op->notes > 0 || op->intent >= 0)
        atomic_store(&c->intents->unequal, c->behind);
    atomic_store(&c->intents->doubted, c->behind);
    struct control r = {.type = CONTROL_DOUBT};
    c->doubt_untold = !c->env.tell(c->env.user, &r); /* else client_progress does it */
    struct near *n = &op->segment->near[op->rank];   /* the fast path waits, too */
    __atomic_store_n(&n->put_tag, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&n->add_tag, 0, __ATOMIC_RELEASE);
    int which = c->given_up[0].any;
    struct given_up *g = &c->given_up[which];
    for (int i = 0; i < op->notes; i++)
        link_note_give_up(&c->links.of[op->note[i].node], op->note[i].note, which);
    g->any = true;
    g->number = c->behind;
    if (op->intent >= 0)
        g->intents |= (uint64_t)1 << op->intent;
    g->open += op->counted;
    op->notes = 0;
    op->intent = -1;
    op->counted = false;
}

static bool is_taken_up(const struct client *c, uint32_t doubt)
{
    return (int32_t)(atomic_load_explicit(&page_rank(c->page, c->rank)->doubted, memory_order_acquire) - doubt) >= 0;
}

bool hold_is_behind(const struct client *c)
{
    return c->behind && !is_taken_up(c, c->behind);
}

static void first_taken_up(struct client *c)
{
    const struct given_up *g = &c->given_up[0];
    for (int m = 0; m < (int)c->page->members; m++)
        link_notes_taken_up(c, &c->links.of[m]);
    for (int i = 0; i < INTENT_MAX; i++)
        if (g->intents >> i & 1)
            atomic_store_explicit(&c->intents->entry[i].active, 0, memory_order_release);
    atomic_fetch_sub_explicit(&c->intents->open, g->open, memory_order_relaxed);
    c->given_up[0] = c->given_up[1];
    c->given_up[1] = (struct given_up){0};
    c->serve = true;
}

void op_given_up_done(struct client *c)
{
    while (c->given_up[0].any && is_taken_up(c, c->given_up[0].number))
        first_taken_up(c);
}
