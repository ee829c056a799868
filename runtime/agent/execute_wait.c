/* Answers that wait for other copies, and requests that wait for a view. */
#include <stdlib.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/execute_int.h"
#include "runtime/agent/strong.h"
#include "runtime/base/fault.h"
#include "runtime/wire/forward.h"
#include "runtime/wire/reply.h"

static void reply_waiter(const struct waiter *w)
{
    struct wire reply;
    msg_reply_encode(&w->reply, &reply);
    agent_answer(w->conn, &reply, NULL);
}

/* Answer the waiter's connection when the other copies have what was sent to them. */
void execute_reply_when_reached(struct agent *a, struct waiter *waiter)
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
    ordering_forget(a, c);
    strong_forget(&a->strong, c);
    stash_look(&a->stash, came_on, c);
}

void execute_stash(struct agent *a, struct conn *c, const struct wire *w, const void *body)
{
    if (!stash_keep(&a->stash, c, w, body)) /* what counts once may have taken effect before: it has not failed */
        execute_reply(c, w->seq, w->type == WIRE_ACC || w->type == WIRE_RMW ? WIRE_RETRY : KEEL_ERR_NOMEM, 0, NULL, 0);
}

void execute_freeze(struct agent *a)
{
    a->recovery.frozen = true;
}

void execute_thaw(struct agent *a)
{
    a->recovery.frozen = false;
    release(a);
    ordering_view_committed(a);
    execute_unstash(a);
}

void execute_unstash(struct agent *a)
{
    ordering_unstash(a);
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

/* The copy that passed things on has died, and those behind it may lack them: once more, exactly as it was. */
void execute_view_committed(struct agent *a, const struct view_copyset *before)
{
    for (struct waiter *w = a->waiters; w; w = w->next) {
        const struct view_copyset *g = &a->view.copyset[w->copyset], *old = &before[w->copyset];
        w->answered_there = false; /* the last copy may not have listened to us any more */
        if (old->copies < 2 || view_copy_at(g, old->copy[1].node) >= 0 || g->copy[0].node != a->self || g->copies < 2 ||
            !g->copy[1].whole)
            continue;
        if (!w->forwarded) { /* a repetition: what it waits for was sent again just before */
            chain_mark(a, w->copyset, &w->mark);
            continue;
        }
        struct wire again = w->forward;
        msg_forward_is_again(&again);
        chain_send(a, w->copyset, &again, w->bytes, &w->mark);
    }
}
