/* Posts and events on their way through the injector (inject.c): each is asked about, and goes, waits or breaks its
 * connection. */
#include "tests/lib/net/inject_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FOREVER UINT64_MAX

static struct inject_verdict ask(struct inject_tp *tp, struct inject_at at)
{
    at.nth = tp->passed[at.point]++;
    return tp->decide ? tp->decide(tp->arg, &at) : (struct inject_verdict){.action = INJECT_PASS};
}

static uint64_t due_of(const struct inject_tp *tp, const struct inject_ep *ep, struct inject_verdict verdict)
{
    if (verdict.action == INJECT_HOLD || (ep && ep->held))
        return FOREVER;
    return verdict.action == INJECT_DELAY ? tp->polls + verdict.polls : 0;
}

void inject_parcels_free(struct parcel_list *list)
{
    struct parcel *parcel;
    while ((parcel = STAILQ_FIRST(list)) != NULL) {
        STAILQ_REMOVE_HEAD(list, link);
        free(parcel);
    }
}

static struct parcel *parcel_new(size_t room)
{
    struct parcel *parcel = calloc(1, sizeof(*parcel) + room);
    if (!parcel)
        abort(); /* a test tool: out of memory is the end of the test */
    return parcel;
}

/* ---- posts ---- */

void inject_break(struct inject_ep *ep)
{
    tp_disconnect(ep->inner);
}

/* Its TP_DONE, with KEEL_ERR_LINK, and not before what waits ahead of it. */
static void fail_op(struct inject_ep *ep, struct tp_op *op)
{
    if (!op)
        return;
    struct parcel *parcel = parcel_new(0);
    parcel->event = (struct tp_event){.type = TP_DONE, .status = KEEL_ERR_LINK, .ep = &ep->base, .op = op};
    op->ep = &ep->base;
    STAILQ_INSERT_TAIL(&ep->in, parcel, link);
}

static keel_status post_inner(struct inject_ep *ep, struct parcel *p)
{
    keel_status status;
    if (p->point == INJECT_SEND)
        status = tp_send(ep->inner, p->src, p->hlen, p->dst, p->len, p->op);
    else if (p->point == INJECT_WRITE)
        status = tp_write(ep->inner, p->src, p->len, p->key, p->offset, p->op);
    else
        status = tp_read(ep->inner, p->dst, p->len, p->key, p->offset, p->op);
    if (p->break_after)
        inject_break(ep);
    return status;
}

static keel_status post(struct inject_ep *ep, struct parcel p)
{
    struct inject_tp *tp = inject_tp_of(&ep->base);
    if (ep->closed)
        return KEEL_ERR_LINK;
    if (p.point == INJECT_SEND && (p.hlen > TP_BULK_MAX || p.len > TP_BULK_MAX - p.hlen))
        return KEEL_ERR_ARG;
    struct inject_verdict verdict = ask(tp, (struct inject_at){.point = p.point,
                                                               .ep = &ep->base,
                                                               .op = p.op,
                                                               .bytes = p.point == INJECT_SEND ? p.src : NULL,
                                                               .len = p.hlen});
    if (verdict.action == INJECT_BREAK_BEFORE) {
        fail_op(ep, p.op);
        inject_break(ep);
        return KEEL_OK;
    }
    p.due = due_of(tp, ep, verdict);
    p.break_after = verdict.action == INJECT_BREAK_AFTER;
    if (p.due == 0 && STAILQ_EMPTY(&ep->out))
        return post_inner(ep, &p);
    /* a message is copied in any case; the caller keeps the rest until TP_DONE */
    bool message = p.point == INJECT_SEND;
    struct parcel *parcel = parcel_new(message ? p.hlen + p.len : 0);
    *parcel = p;
    if (message) {
        if (p.hlen)
            memcpy(parcel->bytes, p.src, p.hlen);
        if (p.len)
            memcpy(parcel->bytes + p.hlen, p.dst, p.len);
        parcel->src = parcel->bytes;
        parcel->dst = parcel->bytes + p.hlen;
    }
    if (p.op)
        p.op->ep = &ep->base;
    STAILQ_INSERT_TAIL(&ep->out, parcel, link);
    return KEEL_OK;
}

keel_status inject_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                        struct tp_op *op)
{
    return post(
        (struct inject_ep *)ep,
        (struct parcel){
            .point = INJECT_SEND, .src = header, .hlen = hlen, .dst = (void *)(uintptr_t)body, .len = len, .op = op});
}

keel_status inject_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return post((struct inject_ep *)ep,
                (struct parcel){.point = INJECT_WRITE, .src = src, .len = len, .key = key, .offset = offset, .op = op});
}

keel_status inject_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return post((struct inject_ep *)ep,
                (struct parcel){.point = INJECT_READ, .dst = dst, .len = len, .key = key, .offset = offset, .op = op});
}

bool inject_room(const struct tp_ep *tp_ep)
{
    const struct inject_ep *ep = (const struct inject_ep *)tp_ep;
    return STAILQ_EMPTY(&ep->out) && tp_room(ep->inner);
}

bool inject_moved(const struct tp_ep *tp_ep, struct tp_moved *moved)
{
    return tp_moved(((const struct inject_ep *)tp_ep)->inner, moved);
}

/* What has not left yet will not. */
void inject_fail_waiting(struct inject_ep *ep)
{
    struct parcel *parcel;
    while ((parcel = STAILQ_FIRST(&ep->out)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->out, link);
        fail_op(ep, parcel->op);
        free(parcel);
    }
}

static void send_due(struct inject_tp *tp, struct inject_ep *ep)
{
    struct parcel *parcel;
    while ((parcel = STAILQ_FIRST(&ep->out)) != NULL && parcel->due <= tp->polls) {
        STAILQ_REMOVE_HEAD(&ep->out, link);
        if (post_inner(ep, parcel) != KEEL_OK)
            fail_op(ep, parcel->op);
        free(parcel);
    }
}

void inject_bury(struct inject_tp *tp)
{
    struct inject_ep *ep;
    inject_parcels_free(&tp->held);
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        free(ep);
    }
}

/* ---- events ---- */

static enum inject_point point_of(enum tp_event_type type)
{
    switch (type) {
    case TP_CONNREQ:
        return INJECT_CONNREQ;
    case TP_CONNECTED:
        return INJECT_CONNECTED;
    case TP_CLOSED:
        return INJECT_CLOSED;
    case TP_RECV:
        return INJECT_RECV;
    default:
        return INJECT_DONE;
    }
}

/* An event of the inner tp joins its connection's queue. */
static void admit(struct inject_tp *tp, struct tp_event event)
{
    struct inject_ep *ep = event.ep ? tp_ep_user(event.ep) : NULL;
    assert(ep || event.type == TP_CONNREQ || event.type == TP_GONE);
    event.ep = ep ? &ep->base : NULL;
    if (event.op)
        event.op->ep = event.ep;
    struct inject_verdict verdict = ask(
        tp, (struct inject_at){
                .point = point_of(event.type), .ep = event.ep, .op = event.op, .bytes = event.data, .len = event.len});
    bool may_break = ep && event.type != TP_CLOSED;
    if (may_break && verdict.action == INJECT_BREAK_BEFORE) {
        inject_break(ep);
        if (event.type != TP_DONE)
            return;
        event.status = KEEL_ERR_LINK;
    }
    if (event.type == TP_CLOSED) {
        ep->closed = true;
        inject_fail_waiting(ep);
    }
    bool copy = event.type == TP_RECV;
    struct parcel *parcel = parcel_new(copy ? event.len : 0);
    parcel->event = event;
    parcel->due = due_of(tp, ep, verdict);
    if (copy) {
        memcpy(parcel->bytes, event.data, event.len);
        parcel->event.data = parcel->bytes;
    }
    STAILQ_INSERT_TAIL(ep ? &ep->in : &tp->requests, parcel, link);
    if (may_break && verdict.action == INJECT_BREAK_AFTER)
        inject_break(ep);
}

static int deliver(struct inject_tp *tp, struct parcel_list *list, struct tp_event *events, int max)
{
    struct parcel *parcel;
    int n = 0;
    while (n < max && (parcel = STAILQ_FIRST(list)) != NULL && parcel->due <= tp->polls) {
        STAILQ_REMOVE_HEAD(list, link);
        events[n++] = parcel->event;
        STAILQ_INSERT_TAIL(&tp->held, parcel, link);
    }
    return n;
}

int inject_poll(struct tp *base, struct tp_event *events, int max)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    struct inject_ep *ep;
    struct tp_event inner[16];
    int n;
    inject_bury(tp);
    tp->polls++;
    TAILQ_FOREACH(ep, &tp->eps, link)
        send_due(tp, ep);
    int got = tp_poll(tp->inner, inner, 16);
    for (int i = 0; i < got; i++)
        admit(tp, inner[i]);
    n = deliver(tp, &tp->requests, events, max);
    TAILQ_FOREACH(ep, &tp->eps, link)
        n += deliver(tp, &ep->in, events + n, max - n);
    return n;
}

static bool sleeps(const struct parcel_list *list)
{
    const struct parcel *parcel = STAILQ_FIRST(list);
    return !parcel || parcel->due == FOREVER;
}

bool inject_arm(struct tp *base)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    struct inject_ep *ep;
    if (!sleeps(&tp->requests))
        return false;
    TAILQ_FOREACH(ep, &tp->eps, link)
        if (!sleeps(&ep->in) || !sleeps(&ep->out))
            return false;
    return tp->inner->table->arm(tp->inner);
}

void tp_inject_hold(struct tp_ep *ep)
{
    ((struct inject_ep *)ep)->held = true;
}

void tp_inject_release(struct tp_ep *tp_ep)
{
    struct inject_ep *ep = (struct inject_ep *)tp_ep;
    struct parcel *parcel;
    ep->held = false;
    STAILQ_FOREACH(parcel, &ep->in, link)
        parcel->due = parcel->due == FOREVER ? 0 : parcel->due;
    STAILQ_FOREACH(parcel, &ep->out, link)
        parcel->due = parcel->due == FOREVER ? 0 : parcel->due;
}
