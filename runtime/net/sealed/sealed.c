#include "runtime/net/sealed/sealed_int.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/secret.h"
#include "runtime/net/stream/stream.h"

static void bury(struct sealed_tp *tp)
{
    struct sealed_ep *ep;
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        sealed_ep_free(tp, ep);
    }
}

static void sealed_close(struct tp *base)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    struct region *region;
    struct frame *frame;
    while (!TAILQ_EMPTY(&tp->eps))
        sealed_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    tp->inner->table->close(tp->inner);
    bury(tp);
    while (!LIST_EMPTY(&tp->reqs)) // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is off the list
        sealed_request_free(tp, LIST_FIRST(&tp->reqs));
    while ((region = LIST_FIRST(&tp->regions)) != NULL) {
        LIST_REMOVE(region, link);
        free(region);
    }
    while ((frame = TAILQ_FIRST(&tp->free_frames)) != NULL) {
        TAILQ_REMOVE(&tp->free_frames, frame, link);
        free(frame);
    }
    secret_free(tp->secret, BOX_SECRET);
    free(tp->kept);
    free(tp->kept_req);
    free(tp);
}

static int on_event(struct sealed_tp *tp, const struct tp_event *inner, struct tp_event *event)
{
    if (inner->type == TP_CONNREQ)
        return sealed_on_request(tp, inner, event);
    if (inner->type == TP_GONE) {
        *event = *inner;
        return 1;
    }
    struct sealed_ep *ep = tp_ep_user(inner->ep);
    switch (inner->type) {
    case TP_CONNECTED:
        return sealed_on_connected(ep, event);
    case TP_RECV:
        return sealed_on_received(ep, inner, event);
    case TP_DONE:
        return sealed_on_sent(ep, inner->op, inner->status, event);
    default:
        sealed_on_closed(ep, inner->status);
        return 0;
    }
}

static int tell(struct sealed_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct told *told;
    while (n < max && (told = STAILQ_FIRST(&tp->told)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->told, link);
        events[n++] = told->event;
        sealed_told_free(tp, told);
    }
    return n;
}

/* Looks below until there is something to tell or nothing more has come: pieces of writes leave no event. */
static int sealed_poll(struct tp *base, struct tp_event *events, int max)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    struct tp_event inner[INNER_BATCH];
    bury(tp);
    int n = tell(tp, events, max), got = 1;
    while (n == 0 && got > 0) {
        got = tp_poll(tp->inner, inner, max < INNER_BATCH ? max : INNER_BATCH);
        for (int i = 0; i < got; i++)
            n += on_event(tp, &inner[i], &events[n]);
        n += tell(tp, events + n, max - n);
    }
    return n;
}

static int sealed_wait_fd(struct tp *base)
{
    struct tp *inner = ((struct sealed_tp *)base)->inner;
    return inner->table->wait_fd(inner);
}

static bool sealed_arm(struct tp *base)
{
    struct sealed_tp *tp = (struct sealed_tp *)base;
    return STAILQ_EMPTY(&tp->told) && tp->inner->table->arm(tp->inner);
}

static keel_status no_open(const struct tp_config *config, struct tp **out)
{
    (void)config;
    (void)out;
    return KEEL_ERR_ARG; /* see tp_sealed_open */
}

static const struct tp_table tp_sealed = {
    .name = "sealed",
    .open = no_open,
    .close = sealed_close,
    .listen = sealed_listen,
    .connect = sealed_connect,
    .accept = sealed_accept,
    .reject = sealed_reject,
    .disconnect = sealed_disconnect,
    .ep_destroy = sealed_ep_destroy,
    .reg = sealed_reg,
    .unreg = sealed_unreg,
    .send = sealed_send,
    .room = sealed_room,
    .moved = sealed_moved,
    .write = sealed_write,
    .read = sealed_read,
    .poll = sealed_poll,
    .wait_fd = sealed_wait_fd,
    .arm = sealed_arm,
};

keel_status tp_sealed_open(struct tp *inner, const uint8_t secret[32], struct tp **out)
{
    struct sealed_tp *tp = calloc(1, sizeof *tp);
    uint8_t *kept = tp ? secret_alloc(BOX_SECRET) : NULL;
    if (!kept || sodium_init() < 0) {
        secret_free(kept, BOX_SECRET);
        free(tp);
        inner->table->close(inner);
        return kept ? KEEL_ERR_SYSTEM : KEEL_ERR_NOMEM;
    }
    *tp = (struct sealed_tp){.base.table = &tp_sealed, .inner = inner};
    tp->secret = memcpy(kept, secret, BOX_SECRET);
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->graveyard);
    TAILQ_INIT(&tp->free_frames);
    STAILQ_INIT(&tp->told);
    *out = &tp->base;
    return KEEL_OK;
}

keel_status tp_net_open(const struct tp_config *config, const uint8_t *secret, struct tp **out)
{
    struct tp *inner;
    if (!secret)
        return tp_ofi.open(config, out);
    keel_status status = tp_stream.open(config, &inner);
    return status == KEEL_OK ? tp_sealed_open(inner, secret, out) : status;
}
