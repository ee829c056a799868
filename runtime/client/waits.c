#include "runtime/client/waits.h"

#include "runtime/client/client.h"

enum { AGAIN_NS = 100000000 }; /* whom it is for may change */

/* Another thread may take one at the same time: waits in the middle of requests to the agent are said without the
 * lock. */
static int take_place(struct client *c)
{
    for (int i = 0; i < WAIT_NOTES; i++)
        if (!(atomic_fetch_or(&c->waits_said, 1u << i) & 1u << i))
            return i + 1;
    return 0;
}

static void say(struct client *c, struct wait *w)
{
    if (!w->place && !(w->place = take_place(c)))
        return;
    struct wait_said said = {.call = w->call, .whom = WAIT_FOR_VIEW, .rank = -1, .node = -1, .since_ns = w->since};
    if (w->whom)
        w->whom(c, w->arg, &said);
    wait_note_write(&c->intents->wait[w->place - 1], &said);
}

void waits_last(struct client *c, struct wait *w, uint64_t since, uint64_t now)
{
    w->since = w->since ? w->since : since;
    if (now < w->since + WAIT_SAID_NS || now < w->said_at + AGAIN_NS || !c->intents)
        return;
    w->said_at = now;
    say(c, w);
}

void waits_again(struct client *c, struct wait *w, uint64_t now)
{
    w->said_at = 0;
    waits_last(c, w, now, now);
}

void waits_begin(struct client *c, struct wait *w, uint64_t now)
{
    w->since = now;
    if (c->intents)
        say(c, w);
}

void waits_over(struct client *c, struct wait *w)
{
    static const struct wait_said none = {.call = WAIT_NO_CALL};
    if (!w->place)
        return;
    wait_note_write(&c->intents->wait[w->place - 1], &none);
    atomic_fetch_and(&c->waits_said, ~(1u << (w->place - 1)));
    w->place = 0;
}

/* ---- whom ---- */

void waits_for_op(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct op *op = arg;
    bool went_out;
    (void)c;
    out->rank = op->rank;
    out->node = op_waits_for(op, &went_out);
    out->whom = out->node >= 0 ? WAIT_FOR_NODE : WAIT_FOR_VIEW;
}

void waits_for_memory(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_MEMORY;
    out->rank = c->rank;
}

void waits_for_any_op(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    if (c->ops.active)
        waits_for_op(c, c->ops.active, out);
}

void waits_for_handle(const struct client *c, const void *handle, struct wait_said *out)
{
    for (const struct op *op = c->ops.active; op; op = op->next)
        if (op->handle == handle) {
            waits_for_op(c, op, out);
            return;
        }
}

void waits_for_fence(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct waits_fence *f = arg;
    for (const struct op *op = c->ops.active; op; op = op->next)
        if (op->implicit && (f->rank < 0 || op->rank == f->rank)) {
            waits_for_op(c, op, out);
            return;
        }
}
