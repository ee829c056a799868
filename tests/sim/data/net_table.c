#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/shm/shm.h"
#include "tests/sim/data/net_int.h"
#include "tests/sim/data/state.h"

enum { QUEUE_MAX = 64 * 1024 * 1024 };

struct sim_ep *net_ep_new(struct sim_tp *tp, void *user, enum ep_state state, bool near)
{
    struct sim_ep *ep = sim_alloc(sizeof *ep);
    ep->base.tp = &tp->base;
    ep->base.user = user;
    ep->tp = tp;
    ep->state = state;
    ep->near = near;
    ep->next = tp->eps;
    tp->eps = ep;
    net_channel_init(tp->net, ep);
    return ep;
}

static keel_status sim_open(const struct tp_config *config, struct tp **out)
{
    (void)config;
    (void)out;
    return KEEL_ERR_SYSTEM; /* net_open */
}

static void sim_close(struct tp *base)
{
    net_owner_died(base);
}

static keel_status sim_listen(struct tp *base, struct tp_addr *out)
{
    struct sim_tp *tp = tp_of(base);
    bool did = tp->listening;
    tp->listening = true;
    *out = (struct tp_addr){.len = sizeof tp->id};
    memcpy(out->bytes, &tp->id, sizeof tp->id);
    return did ? KEEL_ERR_STATE : KEEL_OK; /* and where it listens is told all the same */
}

static keel_status sim_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                               struct tp_ep **out)
{
    struct sim_tp *tp = tp_of(base);
    assert(!tp->dead && len <= TP_HELLO_MAX);
    struct heap *outer = heap_enter(NULL);
    struct sim_ep *ep = net_ep_new(tp, user, EP_CONNECTING, false);
    memcpy(&ep->target, to->bytes, sizeof ep->target);
    struct item *i = net_item_new(ITEM_ASK, NULL, len);
    memcpy(i->bytes, hello, len);
    net_put_in(ep, i);
    *out = &ep->base;
    heap_enter(outer);
    return KEEL_OK;
}

void net_req_end(struct sim_tp *tp, struct tp_connreq *req)
{
    struct tp_connreq **link = &tp->reqs;
    while (*link != req)
        link = &(*link)->next;
    *link = req->next;
    struct ready **told = &tp->ready;
    while (*told) {
        struct ready *r = *told;
        if (r->event.req == req) {
            *told = r->next;
            free(r);
        } else {
            told = &r->next;
        }
    }
    tp->ready_tail = told;
    free(req);
}

static keel_status sim_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct sim_tp *tp = tp_of(base);
    struct heap *outer = heap_enter(NULL);
    struct sim_ep *from = req->from, *ep = net_ep_new(tp, user, EP_UP, false);
    ep->peer = from;
    from->peer = ep;
    net_tell_ep(ep, TP_CONNECTED, KEEL_OK);
    if (from->state == EP_CLOSED)
        net_send_close(from, KEEL_ERR_LINK);
    else
        net_put_in(ep, net_item_new(ITEM_CONNECTED, from, 0));
    net_req_end(tp, req);
    *out = &ep->base;
    heap_enter(outer);
    return KEEL_OK;
}

static void sim_reject(struct tp *base, struct tp_connreq *req)
{
    struct heap *outer = heap_enter(NULL);
    net_refuse(req->from, tp_of(base), KEEL_ERR_AUTH);
    net_req_end(tp_of(base), req);
    heap_enter(outer);
}

static void sim_disconnect(struct tp_ep *base)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    assert(!ep->destroyed);
    struct heap *outer = heap_enter(NULL);
    net_hang_up(ep);
    heap_enter(outer);
}

static void sim_ep_destroy(struct tp_ep *base)
{
    if (!base)
        return;
    struct sim_ep *ep = (struct sim_ep *)base;
    assert(!ep->destroyed);
    struct heap *outer = heap_enter(NULL);
    net_hang_up(ep);
    net_forget_arrived(ep->tp, ep);
    net_forget_ready(ep->tp, ep, true);
    ep->destroyed = true;
    heap_enter(outer);
}

static keel_status sim_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    struct sim_tp *tp = tp_of(base);
    if (net_region_find(tp, key))
        return KEEL_ERR_ARG;
    struct region *r = sim_alloc(sizeof *r), **slot = &tp->region[(key ^ key >> 16 ^ key >> 32) % REGION_SLOTS];
    *r = (struct region){.next = *slot, .key = key, .memory = memory, .len = len};
    *slot = r;
    return KEEL_OK;
}

static void sim_unreg(struct tp *base, uint64_t key)
{
    struct sim_tp *tp = tp_of(base);
    struct region **link = &tp->region[(key ^ key >> 16 ^ key >> 32) % REGION_SLOTS];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    struct region *r = *link;
    if (!r)
        return;
    *link = r->next;
    free(r);
}

static bool may_post(struct sim_ep *ep, size_t len)
{
    assert(!ep->destroyed);
    if (ep->state != EP_UP)
        return false;
    if (ep->out.queued + len <= QUEUE_MAX)
        return true;
    struct heap *outer = heap_enter(NULL);
    net_hang_up(ep);
    heap_enter(outer);
    return false;
}

static struct posted *post(struct sim_ep *ep, struct tp_op *op)
{
    struct posted *p = sim_alloc(sizeof *p);
    p->op = op;
    op->ep = &ep->base;
    p->next = ep->posted;
    ep->posted = p;
    return p;
}

static keel_status sim_send(struct tp_ep *base, const void *header, size_t hlen, const void *body, size_t len,
                            struct tp_op *op)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    size_t most = ep->near ? TP_SHM_MAX : TP_BULK_MAX;
    if (hlen > most || len > most - hlen)
        return KEEL_ERR_ARG;
    if (!may_post(ep, hlen + len))
        return KEEL_ERR_LINK;
    struct item *i = net_item_new(ITEM_MESSAGE, ep->peer, hlen + len);
    memcpy(i->bytes, header, hlen);
    if (len)
        memcpy(i->bytes + hlen, body, len);
    net_put_in(ep, i);
    if (op)
        net_posted_over(ep, post(ep, op), KEEL_OK);
    return KEEL_OK;
}

struct write {
    struct sim_ep *ep;
    const uint8_t *src;
    uint64_t key, offset;
    struct posted *posted;
};

static void write_piece(void *arg, size_t from, size_t len, bool last)
{
    const struct write *w = arg;
    struct item *i = net_item_new(ITEM_WRITE, w->ep->peer, len);
    i->key = w->key;
    i->offset = w->offset + from;
    i->posted = w->posted;
    i->first = from == 0;
    i->last = last;
    if (len)
        memcpy(i->bytes, w->src + from, len);
    net_put_in(w->ep, i);
}

static keel_status sim_write(struct tp_ep *base, const void *src, size_t len, uint64_t key, uint64_t offset,
                             struct tp_op *op)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    if (!may_post(ep, len))
        return KEEL_ERR_LINK;
    struct write w = {ep, src, key, offset, post(ep, op)};
    net_in_pieces(ep->tp->net, len, write_piece, &w);
    return KEEL_OK;
}

static keel_status sim_read(struct tp_ep *base, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    if (!may_post(ep, 0))
        return KEEL_ERR_LINK;
    struct item *i = net_item_new(ITEM_READ, ep->peer, 0);
    i->key = key;
    i->offset = offset;
    i->dst = state_place(dst);
    i->status = (keel_status)len;
    i->posted = post(ep, op);
    net_put_in(ep, i);
    return KEEL_OK;
}

static int sim_poll(struct tp *base, struct tp_event *events, int max)
{
    struct sim_tp *tp = tp_of(base);
    if (!tp->held && !tp->arrived.first && !tp->ready)
        return 0;
    struct heap *outer = heap_enter(NULL);
    for (struct item *i; (i = tp->held) != NULL;) {
        tp->held = i->next;
        free(i);
    }
    for (struct item *i; (i = net_items_take(&tp->arrived)) != NULL;) {
        if (i->to->state == EP_CLOSED)
            free(i);
        else
            net_take_effect(i);
    }
    int n = 0;
    for (struct ready *r; n < max && (r = tp->ready) != NULL; n++) {
        tp->ready = r->next;
        if (!tp->ready)
            tp->ready_tail = &tp->ready;
        events[n] = r->event;
        if (r->item) {
            r->item->next = tp->held;
            tp->held = r->item;
        }
        free(r);
    }
    heap_enter(outer);
    return n;
}

static bool sim_moved(const struct tp_ep *base, struct tp_moved *moved)
{
    const struct sim_ep *ep = (const struct sim_ep *)base;
    *moved = (struct tp_moved){ep->received, ep->taken, ep->out.flying.first != NULL};
    return true;
}

static int sim_wait_fd(struct tp *tp)
{
    (void)tp;
    return -1;
}

bool net_has_work(const struct tp *base)
{
    const struct sim_tp *tp = (const struct sim_tp *)base;
    return tp->ready || tp->arrived.first;
}

static bool sim_arm(struct tp *tp)
{
    return !net_has_work(tp);
}

const struct tp_table net_table = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .listen = sim_listen,
    .connect = sim_connect,
    .accept = sim_accept,
    .reject = sim_reject,
    .disconnect = sim_disconnect,
    .ep_destroy = sim_ep_destroy,
    .reg = sim_reg,
    .unreg = sim_unreg,
    .send = sim_send,
    .write = sim_write,
    .read = sim_read,
    .moved = sim_moved,
    .poll = sim_poll,
    .wait_fd = sim_wait_fd,
    .arm = sim_arm,
};
