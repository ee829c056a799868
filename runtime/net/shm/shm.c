/* Rank and agent of one node: two rings (ring.h) in a sealed memfd, and an eventfd each to be woken by. */
#include "runtime/net/shm/shm_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/log.h"

enum { QUEUE_MAX = 64 * 1024 * 1024 };

static void ring_the_bell(int bell)
{
    uint64_t one = 1;
    while (write(bell, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void end(struct shm_ep *ep)
{
    if (ep->state != EP_UP)
        return;
    ep->state = EP_ENDING;
    shm_tp_of(ep->base.tp)->ending++;
    atomic_store_explicit(&ep->rings->ended, 1, memory_order_release);
    ring_the_bell(ep->peer_bell);
}

static void shm_disconnect(struct tp_ep *tp_ep)
{
    end((struct shm_ep *)tp_ep);
}

/* ---- sending ---- */

static enum ring_result put(struct shm_ep *ep, const void *header, size_t hlen, const void *body, size_t len)
{
    bool bell = false;
    enum ring_result result = ring_put(&ep->tx, header, hlen, body, len, &bell);
    if (bell)
        ring_the_bell(ep->peer_bell);
    return result;
}

static keel_status enqueue(struct shm_ep *ep, const void *header, size_t hlen, const void *body, size_t len)
{
    size_t total = sizeof(struct queued) + hlen + len;
    if (ep->queued_bytes + total > QUEUE_MAX) {
        end(ep);
        return KEEL_ERR_LINK;
    }
    struct queued *message = malloc(total);
    if (!message)
        return KEEL_ERR_NOMEM;
    message->len = hlen + len;
    if (hlen)
        memcpy(message->bytes, header, hlen);
    if (len)
        memcpy(message->bytes + hlen, body, len);
    STAILQ_INSERT_TAIL(&ep->queue, message, link);
    ep->queued_bytes += total;
    return KEEL_OK;
}

static void flush(struct shm_ep *ep)
{
    struct queued *message;
    while ((message = STAILQ_FIRST(&ep->queue)) != NULL) {
        enum ring_result result = put(ep, message->bytes, message->len, NULL, 0);
        if (result == RING_BROKEN)
            end(ep);
        if (result != RING_OK)
            return;
        STAILQ_REMOVE_HEAD(&ep->queue, link);
        ep->queued_bytes -= sizeof(*message) + message->len;
        free(message);
    }
}

static keel_status shm_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                            struct tp_op *op)
{
    struct shm_ep *ep = (struct shm_ep *)tp_ep;
    if (hlen > TP_SHM_MAX || len > TP_SHM_MAX - hlen)
        return KEEL_ERR_ARG;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    enum ring_result result = STAILQ_EMPTY(&ep->queue) ? put(ep, header, hlen, body, len) : RING_NONE;
    if (result == RING_BROKEN) {
        end(ep);
        return KEEL_ERR_LINK;
    }
    keel_status status = result == RING_OK ? KEEL_OK : enqueue(ep, header, hlen, body, len);
    if (status == KEEL_OK && op) {
        op->ep = tp_ep;
        STAILQ_INSERT_TAIL(&shm_tp_of(tp_ep->tp)->done, (struct done *)op, link);
    }
    return status;
}

/* ---- progress ---- */

static void awake(struct shm_tp *tp)
{
    struct shm_ep *ep;
    uint64_t count;
    tp->armed = false;
    while (read(tp->bell, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->own_bell >= 0)
            while (read(ep->own_bell, &count, sizeof(count)) < 0 && errno == EINTR)
                ;
        ring_awake(&ep->rx);
        ring_fed(&ep->tx);
    }
}

/* Messages of one ep; *used counts the arena. false: no room for more, leave the rest for the next poll. */
static bool receive(struct shm_tp *tp, struct shm_ep *ep, struct tp_event *events, int max, int *n, size_t *used)
{
    enum ring_result result = RING_OK;
    size_t len = 0;
    uint64_t before = ep->rx.tail;
    while (*n < max) {
        result = ring_take(&ep->rx, tp->arena + *used, ARENA_BYTES - *used, &len);
        if (result != RING_OK)
            break;
        events[(*n)++] = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = tp->arena + *used, .len = len};
        *used += (len + 7) & ~(size_t)7;
        if (*used > ARENA_BYTES)
            *used = ARENA_BYTES;
    }
    if (ep->rx.tail != before && ring_publish(&ep->rx))
        ring_the_bell(ep->peer_bell);
    if (result == RING_BROKEN) {
        log_error("transport: a ring holds nonsense: dropping the connection");
        end(ep);
    }
    return *n < max && !(result == RING_NONE && len);
}

static int tell_done(struct shm_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct done *done;
    while (n < max && (done = STAILQ_FIRST(&tp->done)) != NULL) {
        struct tp_op *op = (struct tp_op *)done;
        STAILQ_REMOVE_HEAD(&tp->done, link);
        events[n++] = (struct tp_event){.type = TP_DONE, .ep = op->ep, .op = op};
    }
    return n;
}

static int tell_closed(struct shm_tp *tp, struct tp_event *events, int max)
{
    int n = 0;
    struct shm_ep *ep;
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->state != EP_ENDING || n == max)
            continue;
        ep->state = EP_CLOSED;
        tp->ending--;
        events[n++] = (struct tp_event){.type = TP_CLOSED, .status = KEEL_ERR_LINK, .ep = &ep->base};
    }
    return n;
}

static int shm_poll(struct tp *base, struct tp_event *events, int max)
{
    struct shm_tp *tp = shm_tp_of(base);
    struct shm_ep *ep, *first = TAILQ_FIRST(&tp->eps);
    size_t used = 0;
    int n = 0;
    if (tp->armed)
        awake(tp);
    if (!TAILQ_EMPTY(&tp->graveyard))
        shm_bury(tp);
    if (!STAILQ_EMPTY(&tp->done))
        n = tell_done(tp, events, max);
    if (tp->ending && STAILQ_EMPTY(&tp->done))
        n += tell_closed(tp, events + n, max - n);
    bool more = true;
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->state != EP_UP)
            continue;
        bool over = atomic_load_explicit(&ep->rings->ended, memory_order_acquire);
        if (!STAILQ_EMPTY(&ep->queue))
            flush(ep);
        if (more && n < max)
            more = receive(tp, ep, events, max, &n, &used);
        if (over && !ring_has_record(&ep->rx))
            end(ep);
    }
    if (!more && first != TAILQ_LAST(&tp->eps, ep_list)) { /* the next poll starts with another rank */
        TAILQ_REMOVE(&tp->eps, first, link);
        TAILQ_INSERT_TAIL(&tp->eps, first, link);
    }
    return n;
}

static int shm_wait_fd(struct tp *base)
{
    return shm_tp_of(base)->epoll_fd;
}

static bool shm_arm(struct tp *base)
{
    struct shm_tp *tp = shm_tp_of(base);
    struct shm_ep *ep;
    if (tp->ending || !STAILQ_EMPTY(&tp->done))
        return false;
    tp->armed = true; /* the next poll clears the flags, whatever comes of this */
    TAILQ_FOREACH(ep, &tp->eps, link) {
        if (ep->state != EP_UP)
            continue;
        if (!ring_sleep(&ep->rx))
            return false;
        if (!STAILQ_EMPTY(&ep->queue) && !ring_starve(&ep->tx, STAILQ_FIRST(&ep->queue)->len))
            return false;
    }
    return true;
}

/* ---- what rings do not do ---- */

static keel_status no_listen(struct tp *tp, struct tp_addr *out)
{
    (void)tp, (void)out;
    return KEEL_ERR_STATE;
}
static keel_status no_connect(struct tp *tp, const struct tp_addr *to, const void *hello, size_t len, void *user,
                              struct tp_ep **out)
{
    (void)tp, (void)to, (void)hello, (void)len, (void)user, (void)out;
    return KEEL_ERR_STATE;
}
static keel_status no_accept(struct tp *tp, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    (void)tp, (void)req, (void)user, (void)out;
    return KEEL_ERR_STATE;
}
static void no_reject(struct tp *tp, struct tp_connreq *req)
{
    (void)tp, (void)req;
}
static keel_status no_reg(struct tp *tp, void *memory, size_t len, uint64_t key)
{
    (void)tp, (void)memory, (void)len, (void)key;
    return KEEL_ERR_STATE;
}
static void no_unreg(struct tp *tp, uint64_t key)
{
    (void)tp, (void)key;
}
static keel_status no_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                            struct tp_op *op)
{
    (void)ep, (void)src, (void)len, (void)key, (void)offset, (void)op;
    return KEEL_ERR_STATE;
}
static keel_status no_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    (void)ep, (void)dst, (void)len, (void)key, (void)offset, (void)op;
    return KEEL_ERR_STATE;
}

const struct tp_table tp_shm = {
    .name = "shm",
    .open = shm_open_config,
    .close = shm_close,
    .listen = no_listen,
    .connect = no_connect,
    .accept = no_accept,
    .reject = no_reject,
    .disconnect = shm_disconnect,
    .ep_destroy = shm_ep_destroy,
    .reg = no_reg,
    .unreg = no_unreg,
    .send = shm_send,
    .write = no_write,
    .read = no_read,
    .poll = shm_poll,
    .wait_fd = shm_wait_fd,
    .arm = shm_arm,
};
