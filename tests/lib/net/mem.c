/* Connections inside one process, for tests and simulation. What one end posts waits in the other end's inbox until
 * that end polls: an end that does not poll is a frozen peer, as with real networks. One lock guards everything, so
 * that ends may live in different threads; nothing here is fast. */
#include "tests/lib/net/mem_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

pthread_mutex_t mem_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, mem_tp) tps = LIST_HEAD_INITIALIZER(tps); /* under lock, as all below */
static uint64_t last_id;

/* ---- telling ---- */

void mem_wake(struct mem_tp *tp)
{
    uint64_t one = 1;
    if (!tp->armed)
        return;
    tp->armed = false;
    while (write(tp->bell, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void tell(struct mem_tp *tp, struct tp_event event)
{
    struct told *told = calloc(1, sizeof(*told));
    if (!told)
        abort(); /* a test tool: out of memory is the end of the test */
    told->event = event;
    STAILQ_INSERT_TAIL(&tp->events, told, link);
    mem_wake(tp);
}

static void tell_ep(struct mem_ep *ep, enum tp_event_type type, keel_status status)
{
    tell(mem_tp_of_ep(ep), (struct tp_event){.type = type, .status = status, .ep = &ep->base});
}

void mem_tell_done(struct mem_ep *origin, struct tp_op *op, keel_status status)
{
    assert(origin); /* break_at takes what asks for an answer out of both inboxes */
    tell(mem_tp_of_ep(origin), (struct tp_event){.type = TP_DONE, .status = status, .ep = &origin->base, .op = op});
}

void mem_end(struct mem_ep *ep, keel_status status)
{
    ep->state = EP_CLOSED;
    tell_ep(ep, TP_CLOSED, status);
}

/* What `origin` has posted and `ep` has not yet seen is lost; messages may stay to be read. */
static void lose_inbox(struct mem_ep *ep, struct mem_ep *origin, bool messages_too)
{
    struct item_list kept = STAILQ_HEAD_INITIALIZER(kept);
    struct item *item;
    while ((item = STAILQ_FIRST(&ep->inbox)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->inbox, link);
        if (item->op)
            mem_tell_done(origin, item->op, KEEL_ERR_LINK);
        item->op = NULL;
        if (item->kind == ITEM_MESSAGE && !messages_too)
            STAILQ_INSERT_TAIL(&kept, item, link);
        else
            free(item);
    }
    STAILQ_CONCAT(&ep->inbox, &kept);
}

/* The connection breaks at ep's end, which sees TP_CLOSED at once; the other end first reads what has arrived. */
void mem_break_at(struct mem_ep *ep)
{
    struct mem_ep *peer = ep->peer;
    if (ep->asks) {
        ep->asks->from = NULL;
        ep->asks = NULL;
    }
    if (peer) {
        lose_inbox(ep, peer, true);
        lose_inbox(peer, ep, false);
        peer->state = EP_BROKEN;
        peer->peer = NULL;
        ep->peer = NULL;
        mem_wake(mem_tp_of_ep(peer));
    }
    if (ep->state != EP_CLOSED)
        mem_end(ep, KEEL_ERR_LINK);
}

/* ---- open and close ---- */

static keel_status mem_open(const struct tp_config *config, struct tp **out)
{
    struct mem_tp *tp = calloc(1, sizeof(*tp));
    if (!tp)
        return KEEL_ERR_NOMEM;
    tp->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tp->bell < 0) {
        free(tp);
        return KEEL_ERR_SYSTEM;
    }
    tp->base.table = &tp_mem;
    tp->rails = tp_config_rails(config);
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->graveyard);
    STAILQ_INIT(&tp->events);
    STAILQ_INIT(&tp->held);
    pthread_mutex_lock(&mem_lock);
    tp->id = ++last_id;
    LIST_INSERT_HEAD(&tps, tp, link);
    pthread_mutex_unlock(&mem_lock);
    *out = &tp->base;
    return KEEL_OK;
}

static void forget_events_of(struct mem_tp *tp, const struct tp_ep *ep)
{
    struct told *told = STAILQ_FIRST(&tp->events), *next;
    for (; told; told = next) {
        next = STAILQ_NEXT(told, link);
        if (ep && told->event.ep != ep)
            continue;
        STAILQ_REMOVE(&tp->events, told, told, link);
        free(told);
    }
}

static void destroy_locked(struct mem_ep *ep)
{
    struct mem_tp *tp = mem_tp_of_ep(ep);
    mem_break_at(ep);
    struct item *item;
    while ((item = STAILQ_FIRST(&ep->inbox)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->inbox, link);
        free(item);
    }
    forget_events_of(tp, &ep->base);
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}

void mem_recycle(struct mem_tp *tp)
{
    struct item *item;
    struct mem_ep *ep;
    while ((item = STAILQ_FIRST(&tp->held)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->held, link);
        free(item);
    }
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        free(ep);
    }
}

static void request_end(struct tp_connreq *req, keel_status status)
{
    if (req->from) {
        req->from->asks = NULL;
        mem_end(req->from, status);
    }
    LIST_REMOVE(req, link);
    free(req);
}

static void mem_close(struct tp *base)
{
    struct mem_tp *tp = mem_tp_of(base);
    struct region *region;
    pthread_mutex_lock(&mem_lock);
    LIST_REMOVE(tp, link);
    while (!LIST_EMPTY(&tp->reqs))
        request_end(LIST_FIRST(&tp->reqs), KEEL_ERR_LINK); // NOLINT(clang-analyzer-unix.Malloc): it is off the list
    while (!TAILQ_EMPTY(&tp->eps))
        destroy_locked(TAILQ_FIRST(&tp->eps));
    forget_events_of(tp, NULL);
    mem_recycle(tp);
    pthread_mutex_unlock(&mem_lock);
    while ((region = LIST_FIRST(&tp->regions)) != NULL) {
        LIST_REMOVE(region, link);
        free(region);
    }
    close(tp->bell);
    free(tp);
}

/* ---- connecting ---- */

static keel_status mem_listen(struct tp *base, struct tp_addr *out)
{
    struct mem_tp *tp = mem_tp_of(base);
    if (tp->listening == tp->rails)
        return KEEL_ERR_STATE;
    pthread_mutex_lock(&mem_lock);
    *out = (struct tp_addr){.len = sizeof(tp->id), .rail = (uint16_t)tp->listening++};
    memcpy(out->bytes, &tp->id, sizeof(tp->id));
    pthread_mutex_unlock(&mem_lock);
    return KEEL_OK;
}

static struct mem_ep *ep_new(struct mem_tp *tp, void *user, enum ep_state state)
{
    struct mem_ep *ep = calloc(1, sizeof(*ep));
    if (!ep)
        return NULL;
    ep->base.tp = &tp->base;
    ep->base.user = user;
    ep->state = state;
    STAILQ_INIT(&ep->inbox);
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    return ep;
}

static struct mem_tp *listener_at(const struct tp_addr *addr)
{
    struct mem_tp *tp;
    LIST_FOREACH(tp, &tps, link)
        if (addr->rail < tp->listening && memcmp(addr->bytes, &tp->id, sizeof(tp->id)) == 0)
            return tp;
    return NULL;
}

static keel_status mem_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                               struct tp_ep **out)
{
    if (len > TP_CONNECT_MAX || to->len != sizeof(uint64_t) || to->rail >= mem_tp_of(base)->rails)
        return KEEL_ERR_ARG;
    struct tp_connreq *req = calloc(1, sizeof(*req));
    pthread_mutex_lock(&mem_lock);
    struct mem_ep *ep = req ? ep_new(mem_tp_of(base), user, EP_CONNECTING) : NULL;
    struct mem_tp *target = listener_at(to);
    if (!ep) {
        free(req);
    } else if (!target) {
        free(req);
        mem_end(ep, KEEL_ERR_NODE_DEAD);
    } else {
        req->from = ep;
        req->len = len;
        if (len)
            memcpy(req->hello, hello, len);
        ep->asks = req;
        LIST_INSERT_HEAD(&target->reqs, req, link);
        tell(target, (struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->hello, .len = len});
    }
    pthread_mutex_unlock(&mem_lock);
    if (!ep)
        return KEEL_ERR_NOMEM;
    *out = &ep->base;
    return KEEL_OK;
}

static keel_status mem_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    pthread_mutex_lock(&mem_lock);
    struct mem_ep *ep = ep_new(mem_tp_of(base), user, EP_UP), *from = req->from;
    if (ep && from) {
        ep->peer = from;
        from->peer = ep;
        from->state = EP_UP;
        from->asks = NULL;
        tell_ep(ep, TP_CONNECTED, KEEL_OK);
        tell_ep(from, TP_CONNECTED, KEEL_OK);
    } else if (ep) {
        mem_end(ep, KEEL_ERR_LINK);
    }
    if (ep) {
        LIST_REMOVE(req, link);
        free(req);
    } else {
        request_end(req, KEEL_ERR_AUTH);
    }
    pthread_mutex_unlock(&mem_lock);
    if (!ep)
        return KEEL_ERR_NOMEM;
    *out = &ep->base;
    return KEEL_OK;
}

static void mem_reject(struct tp *base, struct tp_connreq *req)
{
    (void)base;
    pthread_mutex_lock(&mem_lock);
    request_end(req, KEEL_ERR_AUTH);
    pthread_mutex_unlock(&mem_lock);
}

static void mem_disconnect(struct tp_ep *tp_ep)
{
    struct mem_ep *ep = (struct mem_ep *)tp_ep;
    pthread_mutex_lock(&mem_lock);
    if (ep->state != EP_CLOSED)
        mem_break_at(ep);
    pthread_mutex_unlock(&mem_lock);
}

static void mem_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    pthread_mutex_lock(&mem_lock);
    destroy_locked((struct mem_ep *)tp_ep);
    pthread_mutex_unlock(&mem_lock);
}

const struct tp_table tp_mem = {
    .name = "mem",
    .open = mem_open,
    .close = mem_close,
    .listen = mem_listen,
    .connect = mem_connect,
    .accept = mem_accept,
    .reject = mem_reject,
    .disconnect = mem_disconnect,
    .ep_destroy = mem_ep_destroy,
    .reg = mem_reg,
    .unreg = mem_unreg,
    .send = mem_send,
    .write = mem_write,
    .read = mem_read,
    .poll = mem_poll,
    .wait_fd = mem_wait_fd,
    .arm = mem_arm,
};
