#include "runtime/net/inject.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define FOREVER UINT64_MAX

/* A post or an event that waits. */
struct parcel {
    STAILQ_ENTRY(parcel) link;
    uint64_t due; /* poll number, or FOREVER */
    bool break_after;
    /* a post */
    enum inject_point point;
    const void *src;
    void *dst;
    size_t hlen, len;
    uint64_t key, offset;
    struct tp_op *op;
    /* or an event */
    struct tp_event event;
    uint8_t bytes[]; /* copied message */
};
STAILQ_HEAD(parcel_list, parcel);

struct inject_ep {
    struct tp_ep base;
    struct tp_ep *inner;
    struct parcel_list out, in;
    bool held, closed;
    TAILQ_ENTRY(inject_ep) link;
};
TAILQ_HEAD(inject_ep_list, inject_ep);

struct inject_tp {
    struct tp base;
    struct tp *inner;
    inject_decide decide;
    void *arg;
    uint64_t polls, passed[INJECT_POINT_COUNT];
    struct parcel_list requests, held; /* delayed TP_CONNREQ; messages the caller is looking at */
    struct inject_ep_list eps, graveyard;
};

static const struct tp_table tp_inject;

static struct inject_tp *tp_of(const struct tp_ep *ep)
{
    return (struct inject_tp *)ep->tp;
}

bool inject_point_by_name(const char *name, enum inject_point *out)
{
    for (int i = 0; i < INJECT_POINT_COUNT; i++) {
        if (strcmp(inject_point_name((enum inject_point)i), name) != 0)
            continue;
        *out = (enum inject_point)i;
        return true;
    }
    return false;
}

const char *inject_point_name(enum inject_point point)
{
    static const char *const names[] = {
#define X(name, text) [name] = (text),
        INJECT_POINTS(X)
#undef X
    };
    return names[point];
}

struct inject_verdict inject_random_decide(void *arg, const struct inject_at *at)
{
    struct inject_random *r = arg;
    uint64_t draw = rng_below(&r->rng, 1000000);
    if (draw < r->break_ppm && at->ep)
        return (struct inject_verdict){.action = draw % 2 ? INJECT_BREAK_BEFORE : INJECT_BREAK_AFTER};
    if (draw >= r->break_ppm && draw - r->break_ppm < r->delay_ppm && r->max_delay)
        return (struct inject_verdict){.action = INJECT_DELAY, .polls = 1 + (uint32_t)rng_below(&r->rng, r->max_delay)};
    return (struct inject_verdict){.action = INJECT_PASS};
}

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

static void parcels_free(struct parcel_list *list)
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

/* ---- open and close ---- */

keel_status tp_inject_open(struct tp *inner, inject_decide decide, void *arg, struct tp **out)
{
    struct inject_tp *tp = calloc(1, sizeof(*tp));
    if (!tp)
        return KEEL_ERR_NOMEM;
    *tp = (struct inject_tp){.base.table = &tp_inject, .inner = inner, .decide = decide, .arg = arg};
    STAILQ_INIT(&tp->requests);
    STAILQ_INIT(&tp->held);
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->graveyard);
    *out = &tp->base;
    return KEEL_OK;
}

void tp_inject_set(struct tp *tp, inject_decide decide, void *arg)
{
    ((struct inject_tp *)tp)->decide = decide;
    ((struct inject_tp *)tp)->arg = arg;
}

static void bury(struct inject_tp *tp)
{
    struct inject_ep *ep;
    parcels_free(&tp->held);
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        free(ep);
    }
}

static void inject_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct inject_ep *ep = (struct inject_ep *)tp_ep;
    struct inject_tp *tp = tp_of(tp_ep);
    ep->inner->tp->table->ep_destroy(ep->inner);
    parcels_free(&ep->in);
    parcels_free(&ep->out);
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}

static void inject_close(struct tp *base)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    while (!TAILQ_EMPTY(&tp->eps))
        inject_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    tp->inner->table->close(tp->inner);
    parcels_free(&tp->requests);
    bury(tp);
    free(tp);
}

/* ---- posts ---- */

static void break_now(struct inject_ep *ep)
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
        break_now(ep);
    return status;
}

static keel_status post(struct inject_ep *ep, struct parcel p)
{
    struct inject_tp *tp = tp_of(&ep->base);
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
        break_now(ep);
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

static keel_status inject_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                               struct tp_op *op)
{
    return post(
        (struct inject_ep *)ep,
        (struct parcel){
            .point = INJECT_SEND, .src = header, .hlen = hlen, .dst = (void *)(uintptr_t)body, .len = len, .op = op});
}

static keel_status inject_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                                struct tp_op *op)
{
    return post((struct inject_ep *)ep,
                (struct parcel){.point = INJECT_WRITE, .src = src, .len = len, .key = key, .offset = offset, .op = op});
}

static keel_status inject_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return post((struct inject_ep *)ep,
                (struct parcel){.point = INJECT_READ, .dst = dst, .len = len, .key = key, .offset = offset, .op = op});
}

static bool inject_room(const struct tp_ep *tp_ep)
{
    const struct inject_ep *ep = (const struct inject_ep *)tp_ep;
    return STAILQ_EMPTY(&ep->out) && tp_room(ep->inner);
}

static bool inject_moved(const struct tp_ep *tp_ep, struct tp_moved *moved)
{
    return tp_moved(((const struct inject_ep *)tp_ep)->inner, moved);
}

/* What has not left yet will not. */
static void fail_waiting(struct inject_ep *ep)
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
        break_now(ep);
        if (event.type != TP_DONE)
            return;
        event.status = KEEL_ERR_LINK;
    }
    if (event.type == TP_CLOSED) {
        ep->closed = true;
        fail_waiting(ep);
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
        break_now(ep);
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

static int inject_poll(struct tp *base, struct tp_event *events, int max)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    struct inject_ep *ep;
    struct tp_event inner[16];
    int n;
    bury(tp);
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

static bool inject_arm(struct tp *base)
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

/* ---- straight through ---- */

static struct inject_ep *ep_new(struct inject_tp *tp, void *user)
{
    struct inject_ep *ep = calloc(1, sizeof(*ep));
    if (!ep)
        return NULL;
    ep->base.tp = &tp->base;
    ep->base.user = user;
    STAILQ_INIT(&ep->in);
    STAILQ_INIT(&ep->out);
    return ep;
}

static keel_status adopt(struct inject_tp *tp, struct inject_ep *ep, keel_status status, struct tp_ep **out)
{
    if (status != KEEL_OK) {
        free(ep);
        return status;
    }
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = &ep->base;
    return KEEL_OK;
}

static keel_status inject_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                                  struct tp_ep **out)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    struct inject_ep *ep = ep_new(tp, user);
    if (!ep)
        return KEEL_ERR_NOMEM;
    return adopt(tp, ep, tp->inner->table->connect(tp->inner, to, hello, len, ep, &ep->inner), out);
}

static keel_status inject_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    struct inject_ep *ep = ep_new(tp, user);
    if (!ep) {
        tp->inner->table->reject(tp->inner, req);
        return KEEL_ERR_NOMEM;
    }
    return adopt(tp, ep, tp->inner->table->accept(tp->inner, req, ep, &ep->inner), out);
}

static keel_status inject_open(const struct tp_config *config, struct tp **out)
{
    (void)config, (void)out;
    return KEEL_ERR_STATE; /* tp_inject_open: it needs to know what to interpose */
}
static keel_status inject_listen(struct tp *tp, struct tp_addr *out)
{
    struct tp *inner = ((struct inject_tp *)tp)->inner;
    return inner->table->listen(inner, out);
}
static void inject_reject(struct tp *tp, struct tp_connreq *req)
{
    struct tp *inner = ((struct inject_tp *)tp)->inner;
    inner->table->reject(inner, req);
}
/* The caller's own: hard and at once, whatever is held. */
static void inject_disconnect(struct tp_ep *tp_ep)
{
    struct inject_ep *ep = (struct inject_ep *)tp_ep;
    struct parcel_list in = STAILQ_HEAD_INITIALIZER(in);
    struct parcel *parcel;
    STAILQ_CONCAT(&in, &ep->in);
    while ((parcel = STAILQ_FIRST(&in)) != NULL) {
        STAILQ_REMOVE_HEAD(&in, link);
        parcel->due = 0;
        if (parcel->event.type == TP_RECV)
            free(parcel);
        else
            STAILQ_INSERT_TAIL(&ep->in, parcel, link);
    }
    ep->held = false;
    fail_waiting(ep);
    break_now(ep);
}
static keel_status inject_reg(struct tp *tp, void *memory, size_t len, uint64_t key)
{
    struct tp *inner = ((struct inject_tp *)tp)->inner;
    return inner->table->reg(inner, memory, len, key);
}
static void inject_unreg(struct tp *tp, uint64_t key)
{
    struct tp *inner = ((struct inject_tp *)tp)->inner;
    inner->table->unreg(inner, key);
}
static int inject_wait_fd(struct tp *tp)
{
    struct tp *inner = ((struct inject_tp *)tp)->inner;
    return inner->table->wait_fd(inner);
}

static const struct tp_table tp_inject = {
    .name = "inject",
    .open = inject_open,
    .close = inject_close,
    .listen = inject_listen,
    .connect = inject_connect,
    .accept = inject_accept,
    .reject = inject_reject,
    .disconnect = inject_disconnect,
    .ep_destroy = inject_ep_destroy,
    .reg = inject_reg,
    .unreg = inject_unreg,
    .send = inject_send,
    .write = inject_write,
    .read = inject_read,
    .room = inject_room,
    .moved = inject_moved,
    .poll = inject_poll,
    .wait_fd = inject_wait_fd,
    .arm = inject_arm,
};
