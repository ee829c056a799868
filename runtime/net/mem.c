/* Connections inside one process, for tests and simulation. What one end posts waits in the other end's inbox until
 * that end polls: an end that does not poll is a frozen peer, as with real networks. One lock guards everything, so
 * that ends may live in different threads; nothing here is fast. */
#include "runtime/net/transport.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

enum { INBOX_MAX = 64 * 1024 * 1024 };

enum item_kind { ITEM_MESSAGE, ITEM_WRITE, ITEM_READ };

/* One operation on its way. */
struct item {
    STAILQ_ENTRY(item) link;
    enum item_kind kind;
    struct tp_op *op;
    void *local; /* of the origin */
    uint64_t key, offset;
    size_t len;
    uint8_t bytes[]; /* ITEM_MESSAGE */
};
STAILQ_HEAD(item_list, item);

enum ep_state { EP_CONNECTING, EP_UP, EP_BROKEN /* inbox first, then TP_CLOSED */, EP_CLOSED };

struct mem_ep {
    struct tp_ep base;
    enum ep_state state;
    struct mem_ep *peer;     /* NULL unless EP_UP */
    struct tp_connreq *asks; /* while EP_CONNECTING */
    struct item_list inbox;
    size_t inbox_bytes;
    TAILQ_ENTRY(mem_ep) link;
};
TAILQ_HEAD(ep_list, mem_ep);

struct tp_connreq {
    struct mem_ep *from; /* NULL: it gave up */
    LIST_ENTRY(tp_connreq) link;
    size_t len;
    uint8_t hello[TP_CONNECT_MAX];
};

struct told {
    STAILQ_ENTRY(told) link;
    struct tp_event event;
};

struct region {
    LIST_ENTRY(region) link;
    uint64_t key;
    uint8_t *memory;
    size_t len;
};

struct mem_tp {
    struct tp base;
    uint64_t id;
    int rails, listening; /* how many there are, and on how many of them it does */
    bool armed;
    int bell;
    struct ep_list eps, graveyard;
    STAILQ_HEAD(, told) events;
    struct item_list held; /* messages the caller looks at until the next poll */
    LIST_HEAD(, region) regions;
    LIST_HEAD(, tp_connreq) reqs;
    LIST_ENTRY(mem_tp) link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, mem_tp) tps = LIST_HEAD_INITIALIZER(tps); /* under lock, as all below */
static uint64_t last_id;

static struct mem_tp *tp_of(struct tp *tp)
{
    return (struct mem_tp *)tp;
}

static struct mem_tp *tp_of_ep(const struct mem_ep *ep)
{
    return (struct mem_tp *)ep->base.tp;
}

/* ---- telling ---- */

static void wake(struct mem_tp *tp)
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
    wake(tp);
}

static void tell_ep(struct mem_ep *ep, enum tp_event_type type, keel_status status)
{
    tell(tp_of_ep(ep), (struct tp_event){.type = type, .status = status, .ep = &ep->base});
}

static void tell_done(struct mem_ep *origin, struct tp_op *op, keel_status status)
{
    assert(origin); /* break_at takes what asks for an answer out of both inboxes */
    tell(tp_of_ep(origin), (struct tp_event){.type = TP_DONE, .status = status, .ep = &origin->base, .op = op});
}

static void end(struct mem_ep *ep, keel_status status)
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
            tell_done(origin, item->op, KEEL_ERR_LINK);
        item->op = NULL;
        if (item->kind == ITEM_MESSAGE && !messages_too)
            STAILQ_INSERT_TAIL(&kept, item, link);
        else
            free(item);
    }
    STAILQ_CONCAT(&ep->inbox, &kept);
}

/* The connection breaks at ep's end, which sees TP_CLOSED at once; the other end first reads what has arrived. */
static void break_at(struct mem_ep *ep)
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
        wake(tp_of_ep(peer));
    }
    if (ep->state != EP_CLOSED)
        end(ep, KEEL_ERR_LINK);
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
    pthread_mutex_lock(&lock);
    tp->id = ++last_id;
    LIST_INSERT_HEAD(&tps, tp, link);
    pthread_mutex_unlock(&lock);
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
    struct mem_tp *tp = tp_of_ep(ep);
    break_at(ep);
    struct item *item;
    while ((item = STAILQ_FIRST(&ep->inbox)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->inbox, link);
        free(item);
    }
    forget_events_of(tp, &ep->base);
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}

static void recycle(struct mem_tp *tp)
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
        end(req->from, status);
    }
    LIST_REMOVE(req, link);
    free(req);
}

static void mem_close(struct tp *base)
{
    struct mem_tp *tp = tp_of(base);
    struct region *region;
    pthread_mutex_lock(&lock);
    LIST_REMOVE(tp, link);
    while (!LIST_EMPTY(&tp->reqs))
        request_end(LIST_FIRST(&tp->reqs), KEEL_ERR_LINK); // NOLINT(clang-analyzer-unix.Malloc): it is off the list
    while (!TAILQ_EMPTY(&tp->eps))
        destroy_locked(TAILQ_FIRST(&tp->eps));
    forget_events_of(tp, NULL);
    recycle(tp);
    pthread_mutex_unlock(&lock);
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
    struct mem_tp *tp = tp_of(base);
    if (tp->listening == tp->rails)
        return KEEL_ERR_STATE;
    pthread_mutex_lock(&lock);
    *out = (struct tp_addr){.len = sizeof(tp->id), .rail = (uint16_t)tp->listening++};
    memcpy(out->bytes, &tp->id, sizeof(tp->id));
    pthread_mutex_unlock(&lock);
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
    if (len > TP_CONNECT_MAX || to->len != sizeof(uint64_t) || to->rail >= tp_of(base)->rails)
        return KEEL_ERR_ARG;
    struct tp_connreq *req = calloc(1, sizeof(*req));
    pthread_mutex_lock(&lock);
    struct mem_ep *ep = req ? ep_new(tp_of(base), user, EP_CONNECTING) : NULL;
    struct mem_tp *target = listener_at(to);
    if (!ep) {
        free(req);
    } else if (!target) {
        free(req);
        end(ep, KEEL_ERR_NODE_DEAD);
    } else {
        req->from = ep;
        req->len = len;
        if (len)
            memcpy(req->hello, hello, len);
        ep->asks = req;
        LIST_INSERT_HEAD(&target->reqs, req, link);
        tell(target, (struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->hello, .len = len});
    }
    pthread_mutex_unlock(&lock);
    if (!ep)
        return KEEL_ERR_NOMEM;
    *out = &ep->base;
    return KEEL_OK;
}

static keel_status mem_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    pthread_mutex_lock(&lock);
    struct mem_ep *ep = ep_new(tp_of(base), user, EP_UP), *from = req->from;
    if (ep && from) {
        ep->peer = from;
        from->peer = ep;
        from->state = EP_UP;
        from->asks = NULL;
        tell_ep(ep, TP_CONNECTED, KEEL_OK);
        tell_ep(from, TP_CONNECTED, KEEL_OK);
    } else if (ep) {
        end(ep, KEEL_ERR_LINK);
    }
    if (ep) {
        LIST_REMOVE(req, link);
        free(req);
    } else {
        request_end(req, KEEL_ERR_AUTH);
    }
    pthread_mutex_unlock(&lock);
    if (!ep)
        return KEEL_ERR_NOMEM;
    *out = &ep->base;
    return KEEL_OK;
}

static void mem_reject(struct tp *base, struct tp_connreq *req)
{
    (void)base;
    pthread_mutex_lock(&lock);
    request_end(req, KEEL_ERR_AUTH);
    pthread_mutex_unlock(&lock);
}

static void mem_disconnect(struct tp_ep *tp_ep)
{
    struct mem_ep *ep = (struct mem_ep *)tp_ep;
    pthread_mutex_lock(&lock);
    if (ep->state != EP_CLOSED)
        break_at(ep);
    pthread_mutex_unlock(&lock);
}

static void mem_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    pthread_mutex_lock(&lock);
    destroy_locked((struct mem_ep *)tp_ep);
    pthread_mutex_unlock(&lock);
}

/* ---- memory ---- */

static struct region *region_find(struct mem_tp *tp, uint64_t key)
{
    struct region *region;
    LIST_FOREACH(region, &tp->regions, link)
        if (region->key == key)
            return region;
    return NULL;
}

static keel_status mem_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    struct mem_tp *tp = tp_of(base);
    struct region *region = calloc(1, sizeof(*region));
    if (!region)
        return KEEL_ERR_NOMEM;
    *region = (struct region){.key = key, .memory = memory, .len = len};
    pthread_mutex_lock(&lock);
    keel_status status = region_find(tp, key) ? KEEL_ERR_ARG : KEEL_OK;
    if (status == KEEL_OK)
        LIST_INSERT_HEAD(&tp->regions, region, link);
    else
        free(region);
    pthread_mutex_unlock(&lock);
    return status;
}

static void mem_unreg(struct tp *base, uint64_t key)
{
    pthread_mutex_lock(&lock);
    struct region *region = region_find(tp_of(base), key);
    if (region) {
        LIST_REMOVE(region, link);
        free(region);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- transfers ---- */

static keel_status post(struct mem_ep *ep, struct item *item)
{
    keel_status status = KEEL_OK;
    pthread_mutex_lock(&lock);
    if (ep->state != EP_UP || !ep->peer) {
        status = KEEL_ERR_LINK;
    } else if (item->kind == ITEM_MESSAGE && ep->peer->inbox_bytes + item->len > INBOX_MAX) {
        break_at(ep);
        status = KEEL_ERR_LINK;
    } else {
        if (item->op)
            item->op->ep = &ep->base;
        STAILQ_INSERT_TAIL(&ep->peer->inbox, item, link);
        if (item->kind == ITEM_MESSAGE)
            ep->peer->inbox_bytes += item->len;
        wake(tp_of_ep(ep->peer));
    }
    pthread_mutex_unlock(&lock);
    if (status != KEEL_OK)
        free(item);
    return status;
}

static keel_status mem_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                            struct tp_op *op)
{
    if (hlen > TP_FRAME_MAX || len > TP_FRAME_MAX - hlen)
        return KEEL_ERR_ARG;
    struct item *item = calloc(1, sizeof(*item) + hlen + len);
    if (!item)
        return KEEL_ERR_NOMEM;
    item->kind = ITEM_MESSAGE;
    item->op = op;
    item->len = hlen + len;
    if (hlen)
        memcpy(item->bytes, header, hlen);
    if (len)
        memcpy(item->bytes + hlen, body, len);
    return post((struct mem_ep *)ep, item);
}

static keel_status rma(struct tp_ep *ep, enum item_kind kind, void *local, size_t len, uint64_t key, uint64_t offset,
                       struct tp_op *op)
{
    struct item *item = calloc(1, sizeof(*item));
    if (!item)
        return KEEL_ERR_NOMEM;
    *item = (struct item){.kind = kind, .op = op, .local = local, .len = len, .key = key, .offset = offset};
    return post((struct mem_ep *)ep, item);
}

static keel_status mem_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                             struct tp_op *op)
{
    return rma(ep, ITEM_WRITE, (void *)(uintptr_t)src, len, key, offset, op);
}

static keel_status mem_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return rma(ep, ITEM_READ, dst, len, key, offset, op);
}

/* ---- progress ---- */

static void access_memory(struct mem_ep *ep, struct item *item)
{
    struct region *region = region_find(tp_of_ep(ep), item->key);
    struct mem_ep *origin = ep->peer;
    assert(origin);
    if (!region || item->offset > region->len || item->len > region->len - item->offset) {
        tell_done(origin, item->op, KEEL_ERR_LINK);
        break_at(ep);
        return;
    }
    if (item->len && item->kind == ITEM_WRITE)
        memcpy(region->memory + item->offset, item->local, item->len);
    else if (item->len)
        memcpy(item->local, region->memory + item->offset, item->len);
    tell_done(origin, item->op, KEEL_OK);
}

static int work_inbox(struct mem_ep *ep, struct tp_event *events, int max)
{
    struct mem_tp *tp = tp_of_ep(ep);
    struct item *item;
    int n = 0;
    while (n < max && (item = STAILQ_FIRST(&ep->inbox)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->inbox, link);
        if (item->kind != ITEM_MESSAGE) {
            access_memory(ep, item);
            free(item);
            continue;
        }
        ep->inbox_bytes -= item->len;
        if (item->op) /* as a network that takes no more than the receiver does; the bytes were copied */
            tell_done(ep->peer, item->op, KEEL_OK);
        STAILQ_INSERT_TAIL(&tp->held, item, link);
        events[n++] = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = item->bytes, .len = item->len};
    }
    if (ep->state == EP_BROKEN && STAILQ_EMPTY(&ep->inbox))
        end(ep, KEEL_ERR_LINK);
    return n;
}

static int take_told(struct mem_tp *tp, struct tp_event *events, int max)
{
    struct told *told;
    int n = 0;
    while (n < max && (told = STAILQ_FIRST(&tp->events)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->events, link);
        events[n++] = told->event;
        free(told);
    }
    return n;
}

static int mem_poll(struct tp *base, struct tp_event *events, int max)
{
    struct mem_tp *tp = tp_of(base);
    struct mem_ep *ep;
    uint64_t count;
    pthread_mutex_lock(&lock);
    while (read(tp->bell, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    tp->armed = false;
    recycle(tp);
    int n = take_told(tp, events, max);
    TAILQ_FOREACH(ep, &tp->eps, link)
        n += work_inbox(ep, events + n, max - n);
    pthread_mutex_unlock(&lock);
    return n;
}

static int mem_wait_fd(struct tp *base)
{
    return tp_of(base)->bell;
}

static bool mem_arm(struct tp *base)
{
    struct mem_tp *tp = tp_of(base);
    struct mem_ep *ep;
    pthread_mutex_lock(&lock);
    bool idle = STAILQ_EMPTY(&tp->events) && STAILQ_EMPTY(&tp->held);
    TAILQ_FOREACH(ep, &tp->eps, link)
        idle &= STAILQ_EMPTY(&ep->inbox) && ep->state != EP_BROKEN;
    tp->armed = idle;
    pthread_mutex_unlock(&lock);
    return idle;
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
