#include "runtime/client/op/doubt.h"

#include "runtime/client/client.h"
#include "runtime/client/op/near.h"
#include "runtime/client/op/op_int.h"

_Static_assert(INTENT_MAX <= 64, "a word has a bit for each of those that were given up");

/* What ends here may come later than what is written from now on: a view will end its connections, and have agents
 * refuse what was sent before. What went to copies one by one may be in some only: its notes stay, and that view
 * will make the copies equal. */
void doubt_give_up(struct op *op)
{
    struct client *c = op->client;
    if (op->held.notes == 0 && op->held.intent < 0 && !op->held.counted && !(op->out.unanswered && op_changes(op)))
        return;
    c->doubts.behind = atomic_load(&c->intents->doubted) + 1;
    if (op->held.notes > 0 || op->held.intent >= 0)
        atomic_store(&c->intents->unequal, c->doubts.behind);
    atomic_store(&c->intents->doubted, c->doubts.behind);
    counter_add(client_counts(c), COUNTER_doubts, 1);
    c->doubts.untold = true;
    doubt_tell(c);                                 /* else client_progress does it */
    struct near *n = &op->segment->near[op->rank]; /* the fast path waits, too */
    __atomic_store_n(&n->put_tag, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&n->signal_tag, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&n->add_tag, 0, __ATOMIC_RELEASE);
    int which = c->doubts.given_up[0].any;
    struct given_up *g = &c->doubts.given_up[which];
    for (int i = 0; i < op->held.notes; i++)
        connection_note_give_up(&c->connections.of[op->held.note[i].node], op->held.note[i].note, which);
    g->any = true;
    g->number = c->doubts.behind;
    if (op->held.intent >= 0)
        g->intents |= (uint64_t)1 << op->held.intent;
    g->open += op->held.counted;
    op->held.notes = 0;
    op->held.intent = -1;
    op->held.counted = false;
}

void doubt_tell(struct client *c)
{
    struct control r = {.type = CONTROL_DOUBT};
    if (c->doubts.untold)
        c->doubts.untold = !c->env.tell(c->env.user, &r);
}

static bool is_taken_up(const struct client *c, uint32_t doubt)
{
    return (int32_t)(atomic_load_explicit(&page_rank(c->page, c->rank)->doubted, memory_order_acquire) - doubt) >= 0;
}

bool doubt_is_behind(const struct client *c)
{
    return c->doubts.behind && !is_taken_up(c, c->doubts.behind);
}

static void first_taken_up(struct client *c)
{
    const struct given_up *g = &c->doubts.given_up[0];
    for (int m = 0; m < (int)c->page->members; m++)
        connection_notes_taken_up(c, &c->connections.of[m]);
    for (int i = 0; i < INTENT_MAX; i++)
        if (g->intents >> i & 1)
            atomic_store_explicit(&c->intents->entry[i].active, 0, memory_order_release);
    atomic_fetch_sub_explicit(&c->intents->open, g->open, memory_order_relaxed);
    c->doubts.given_up[0] = c->doubts.given_up[1];
    c->doubts.given_up[1] = (struct given_up){0};
    c->ops.serve = true;
}

void doubt_taken_up(struct client *c)
{
    while (c->doubts.given_up[0].any && is_taken_up(c, c->doubts.given_up[0].number))
        first_taken_up(c);
}
