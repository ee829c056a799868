#include "tests/lib/net/inject_int.h"

#include <stdlib.h>
#include <string.h>

static const struct tp_table tp_inject;

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

static void inject_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct inject_ep *ep = (struct inject_ep *)tp_ep;
    struct inject_tp *tp = inject_tp_of(tp_ep);
    ep->inner->tp->table->ep_destroy(ep->inner);
    inject_parcels_free(&ep->in);
    inject_parcels_free(&ep->out);
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}

static void inject_close(struct tp *base)
{
    struct inject_tp *tp = (struct inject_tp *)base;
    while (!TAILQ_EMPTY(&tp->eps))
        inject_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    tp->inner->table->close(tp->inner);
    inject_parcels_free(&tp->requests);
    inject_bury(tp);
    free(tp);
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
    inject_fail_waiting(ep);
    inject_break(ep);
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
