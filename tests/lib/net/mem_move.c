/* Memory, transfers and progress of connections inside one process (mem.c). */
#include "tests/lib/net/mem_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INBOX_MAX = 64 * 1024 * 1024 };

/* ---- memory ---- */

static struct region *region_find(struct mem_tp *tp, uint64_t key)
{
    struct region *region;
    LIST_FOREACH(region, &tp->regions, link)
        if (region->key == key)
            return region;
    return NULL;
}

keel_status mem_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    struct mem_tp *tp = mem_tp_of(base);
    struct region *region = calloc(1, sizeof(*region));
    if (!region)
        return KEEL_ERR_NOMEM;
    *region = (struct region){.key = key, .memory = memory, .len = len};
    pthread_mutex_lock(&mem_lock);
    keel_status status = region_find(tp, key) ? KEEL_ERR_ARG : KEEL_OK;
    if (status == KEEL_OK)
        LIST_INSERT_HEAD(&tp->regions, region, link);
    else
        free(region);
    pthread_mutex_unlock(&mem_lock);
    return status;
}

void mem_unreg(struct tp *base, uint64_t key)
{
    pthread_mutex_lock(&mem_lock);
    struct region *region = region_find(mem_tp_of(base), key);
    if (region) {
        LIST_REMOVE(region, link);
        free(region);
    }
    pthread_mutex_unlock(&mem_lock);
}

/* ---- transfers ---- */

static keel_status post(struct mem_ep *ep, struct item *item)
{
    keel_status status = KEEL_OK;
    pthread_mutex_lock(&mem_lock);
    if (ep->state != EP_UP || !ep->peer) {
        status = KEEL_ERR_LINK;
    } else if (item->kind == ITEM_MESSAGE && ep->peer->inbox_bytes + item->len > INBOX_MAX) {
        mem_break_at(ep);
        status = KEEL_ERR_LINK;
    } else {
        if (item->op)
            item->op->ep = &ep->base;
        STAILQ_INSERT_TAIL(&ep->peer->inbox, item, link);
        if (item->kind == ITEM_MESSAGE)
            ep->peer->inbox_bytes += item->len;
        mem_wake(mem_tp_of_ep(ep->peer));
    }
    pthread_mutex_unlock(&mem_lock);
    if (status != KEEL_OK)
        free(item);
    return status;
}

keel_status mem_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len, struct tp_op *op)
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

keel_status mem_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return rma(ep, ITEM_WRITE, (void *)(uintptr_t)src, len, key, offset, op);
}

keel_status mem_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    return rma(ep, ITEM_READ, dst, len, key, offset, op);
}

/* ---- progress ---- */

static void access_memory(struct mem_ep *ep, struct item *item)
{
    struct region *region = region_find(mem_tp_of_ep(ep), item->key);
    struct mem_ep *origin = ep->peer;
    assert(origin);
    if (!region || item->offset > region->len || item->len > region->len - item->offset) {
        mem_tell_done(origin, item->op, KEEL_ERR_LINK);
        mem_break_at(ep);
        return;
    }
    if (item->len && item->kind == ITEM_WRITE)
        memcpy(region->memory + item->offset, item->local, item->len);
    else if (item->len)
        memcpy(item->local, region->memory + item->offset, item->len);
    mem_tell_done(origin, item->op, KEEL_OK);
}

static int work_inbox(struct mem_ep *ep, struct tp_event *events, int max)
{
    struct mem_tp *tp = mem_tp_of_ep(ep);
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
            mem_tell_done(ep->peer, item->op, KEEL_OK);
        STAILQ_INSERT_TAIL(&tp->held, item, link);
        events[n++] = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = item->bytes, .len = item->len};
    }
    if (ep->state == EP_BROKEN && STAILQ_EMPTY(&ep->inbox))
        mem_end(ep, KEEL_ERR_LINK);
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

int mem_poll(struct tp *base, struct tp_event *events, int max)
{
    struct mem_tp *tp = mem_tp_of(base);
    struct mem_ep *ep;
    uint64_t count;
    pthread_mutex_lock(&mem_lock);
    while (read(tp->bell, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    tp->armed = false;
    mem_recycle(tp);
    int n = take_told(tp, events, max);
    TAILQ_FOREACH(ep, &tp->eps, link)
        n += work_inbox(ep, events + n, max - n);
    pthread_mutex_unlock(&mem_lock);
    return n;
}

int mem_wait_fd(struct tp *base)
{
    return mem_tp_of(base)->bell;
}

bool mem_arm(struct tp *base)
{
    struct mem_tp *tp = mem_tp_of(base);
    struct mem_ep *ep;
    pthread_mutex_lock(&mem_lock);
    bool idle = STAILQ_EMPTY(&tp->events) && STAILQ_EMPTY(&tp->held);
    TAILQ_FOREACH(ep, &tp->eps, link)
        idle &= STAILQ_EMPTY(&ep->inbox) && ep->state != EP_BROKEN;
    tp->armed = idle;
    pthread_mutex_unlock(&mem_lock);
    return idle;
}
