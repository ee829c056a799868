#include "tests/sim/data/net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/transport/shm.h"

enum { QUEUE_MAX = 64 * 1024 * 1024, REGION_SLOTS = 64 };

enum item_kind { ITEM_ASK, ITEM_CONNECTED, ITEM_MESSAGE, ITEM_WRITE, ITEM_READ, ITEM_DATA, ITEM_DONE, ITEM_CLOSE };

/* An operation that asked for an event. Lives as long as its end of the connection. */
struct posted {
    struct posted *next;
    struct tp_op *op;
    bool over;
};

struct item {
    struct item *next;
    enum item_kind kind;
    uint64_t at;
    struct sim_ep *to; /* NULL: ITEM_ASK */
    struct posted *posted;
    keel_status status;
    uint64_t key, offset;
    uint8_t *dst; /* ITEM_READ, ITEM_DATA: of the origin */
    bool first, last;
    size_t len;
    uint8_t bytes[];
};

struct items {
    struct item *first, **tail;
};

/* One direction of a connection. */
struct channel {
    struct items flying;
    uint64_t delay, ns_per_kib, free_at, last_at;
    bool scheduled, stalled;
    size_t queued;
};

enum ep_state { EP_CONNECTING, EP_UP, EP_CLOSED };

struct region {
    struct region *next;
    uint64_t key;
    uint8_t *memory;
    size_t len;
};

struct sim_ep {
    struct tp_ep base;
    struct sim_tp *tp;
    struct sim_ep *next; /* of the tp */
    struct sim_ep *peer;
    enum ep_state state;
    bool near, destroyed;
    uint64_t target; /* listener that it asks */
    struct channel out;
    struct posted *posted;
    const struct region *writes_to; /* found by the key of a write when its first piece came, for the others */
    struct region was;
};

struct tp_connreq {
    struct sim_ep *from;
    struct tp_connreq *next;
    bool answered;
    size_t len;
    uint8_t hello[TP_HELLO_MAX];
};

struct ready {
    struct ready *next;
    struct tp_event event;
    struct item *item; /* holds the bytes */
};

struct sim_tp {
    struct tp base;
    struct net *net;
    struct sim_tp *next;
    struct process *owner;
    int host;
    bool near, listening, dead;
    uint64_t id;
    struct sim_ep *eps;
    struct items arrived;
    struct ready *ready, **ready_tail;
    struct item *held; /* messages the caller looks at until the next poll */
    struct tp_connreq *reqs;
    struct region *region[REGION_SLOTS];
};

static void channel_run(void *arg, uint64_t unused);

static struct sim_tp *tp_of(struct tp *tp)
{
    return (struct sim_tp *)tp;
}

static void items_init(struct items *q)
{
    q->first = NULL;
    q->tail = &q->first;
}

static void items_add(struct items *q, struct item *i)
{
    i->next = NULL;
    *q->tail = i;
    q->tail = &i->next;
}

static struct item *items_take(struct items *q)
{
    struct item *i = q->first;
    if (!i)
        return NULL;
    q->first = i->next;
    if (!q->first)
        q->tail = &q->first;
    return i;
}

/* ---- what the owner sees ---- */

static void tell(struct sim_tp *tp, const struct tp_event *e, struct item *item)
{
    struct ready *r = sim_alloc(sizeof *r);
    r->event = *e;
    r->item = item;
    *tp->ready_tail = r;
    tp->ready_tail = &r->next;
    process_signal(tp->owner);
}

static void tell_ep(struct sim_ep *ep, enum tp_event_type type, keel_status status)
{
    tell(ep->tp, &(struct tp_event){.type = type, .status = status, .ep = &ep->base}, NULL);
}

static void posted_over(struct sim_ep *ep, struct posted *p, keel_status status)
{
    if (!p || p->over)
        return;
    p->over = true;
    if (p->op)
        tell(ep->tp, &(struct tp_event){.type = TP_DONE, .status = status, .ep = &ep->base, .op = p->op}, NULL);
}

/* This end sees nothing of the other any more. */
static void ep_close(struct sim_ep *ep, keel_status status)
{
    if (ep->state == EP_CLOSED)
        return;
    ep->state = EP_CLOSED;
    for (struct posted *p = ep->posted; p; p = p->next)
        posted_over(ep, p, KEEL_ERR_LINK);
    tell_ep(ep, TP_CLOSED, status);
}

/* ---- channels ---- */

static void schedule(struct sim_ep *ep)
{
    struct channel *c = &ep->out;
    if (c->scheduled || c->stalled || !c->flying.first)
        return;
    c->scheduled = true;
    sched_at(ep->tp->net->sched, c->flying.first->at, channel_run, ep, 0);
}

static void channel_init(struct net *n, struct sim_ep *ep)
{
    struct channel *c = &ep->out;
    struct sched *s = n->sched;
    items_init(&c->flying);
    if (ep->near) {
        c->delay = sched_between(s, 80, 600);
        c->ns_per_kib = 100;
        return;
    }
    c->delay = sched_between(s, n->delay_min, n->delay_max);
    c->ns_per_kib = sched_between(s, 100, 1000);
    if (sched_chance(s, n->slow)) {
        c->delay *= sched_between(s, 1, 40);
        c->ns_per_kib *= sched_between(s, 1, 60);
    }
}

static void put_in(struct sim_ep *ep, struct item *i)
{
    struct channel *c = &ep->out;
    struct net *n = ep->tp->net;
    struct sched *s = n->sched;
    uint64_t start = c->free_at > s->now ? c->free_at : s->now;
    c->free_at = start + i->len * c->ns_per_kib / 1024;
    i->at = c->free_at + c->delay + sched_below(s, c->delay / 4 + 1);
    if (!ep->near && sched_chance(s, n->spike))
        i->at += sched_below(s, n->spike_ns);
    if (i->at < c->last_at)
        i->at = c->last_at;
    c->last_at = i->at;
    c->queued += i->len;
    n->items++;
    items_add(&c->flying, i);
    schedule(ep);
}

static struct item *item_new(enum item_kind kind, struct sim_ep *to, size_t len)
{
    struct item *i = sim_alloc(sizeof *i + len);
    i->kind = kind;
    i->to = to;
    i->len = len;
    return i;
}

static void send_close(struct sim_ep *ep, keel_status status)
{
    struct item *i = item_new(ITEM_CLOSE, ep->peer, 0);
    i->status = status;
    put_in(ep, i);
}

/* Of what flies some part from the beginning still arrives. */
static void lose_some(struct sim_ep *ep)
{
    struct channel *c = &ep->out;
    struct sched *s = ep->tp->net->sched;
    uint64_t n = 0;
    for (const struct item *i = c->flying.first; i; i = i->next)
        n++;
    uint64_t keep = sched_chance(s, 0.3) ? n : sched_chance(s, 0.3) ? 0 : sched_below(s, n + 1);
    struct items kept;
    items_init(&kept);
    for (struct item *i; (i = items_take(&c->flying)) != NULL;)
        if (keep > 0 || i->kind == ITEM_CLOSE) {
            keep -= keep > 0;
            items_add(&kept, i);
        } else {
            free(i);
        }
    c->flying.first = kept.first;
    c->flying.tail = kept.first ? kept.tail : &c->flying.first;
}

static void forget_arrived(struct sim_tp *tp, const struct sim_ep *ep)
{
    struct items kept;
    items_init(&kept);
    for (struct item *i; (i = items_take(&tp->arrived)) != NULL;)
        if (i->to != ep)
            items_add(&kept, i);
        else
            free(i);
    tp->arrived.first = kept.first;
    tp->arrived.tail = kept.first ? kept.tail : &tp->arrived.first;
}

static void forget_ready(struct sim_tp *tp, const struct sim_ep *ep, bool all)
{
    struct ready **link = &tp->ready;
    while (*link) {
        struct ready *r = *link;
        if (r->event.ep == &ep->base && (all || r->event.type == TP_RECV)) {
            *link = r->next;
            free(r->item);
            free(r);
        } else {
            link = &r->next;
        }
    }
    tp->ready_tail = link;
}

/* One end drops the connection: it sees nothing more, the other sees some of what was on its way and then the end. */
static void hang_up(struct sim_ep *ep)
{
    if (ep->state == EP_CLOSED)
        return;
    struct sim_ep *peer = ep->peer;
    forget_arrived(ep->tp, ep);
    forget_ready(ep->tp, ep, false);
    ep_close(ep, KEEL_ERR_LINK);
    if (peer && peer->state != EP_CLOSED && !ep->near) {
        lose_some(ep);
        send_close(ep, KEEL_ERR_LINK);
    }
}

/* ---- what arrives ---- */

static struct region *region_find(struct sim_tp *tp, uint64_t key)
{
    struct region *r = tp->region[(key ^ key >> 16 ^ key >> 32) % REGION_SLOTS];
    while (r && r->key != key)
        r = r->next;
    return r;
}

static void answer_access(struct sim_ep *ep, const struct item *i)
{
    struct item *done = item_new(ITEM_DONE, ep->peer, 0);
    done->posted = i->posted;
    put_in(ep, done);
}

/* Where and in how many pieces: calls each(arg, from, len, last). */
static void in_pieces(struct net *n, size_t len, void (*each)(void *arg, size_t from, size_t len, bool last), void *arg)
{
    size_t from = 0;
    for (unsigned left = (unsigned)sched_between(n->sched, 1, n->pieces); left > 1 && len - from > 1; left--) {
        size_t part = 1 + sched_below(n->sched, len - from - 1);
        each(arg, from, part, false);
        from += part;
    }
    each(arg, from, len - from, true);
}

struct answer {
    struct sim_ep *ep;
    const struct item *request;
    const uint8_t *memory;
};

static void answer_piece(void *arg, size_t from, size_t len, bool last)
{
    const struct answer *a = arg;
    struct item *data = item_new(ITEM_DATA, a->ep->peer, len);
    data->dst = a->request->dst + from;
    data->posted = a->request->posted;
    data->last = last;
    memcpy(data->bytes, a->memory + from, len);
    put_in(a->ep, data);
}

static void access_memory(struct sim_ep *ep, const struct item *i)
{
    const struct region *r = i->kind == ITEM_WRITE && !i->first ? ep->writes_to : region_find(ep->tp, i->key);
    size_t len = i->kind == ITEM_READ ? (size_t)i->status : i->len;
    if (!r || i->offset > r->len || len > r->len - i->offset) {
        ep->tp->net->bad_keys++;
        hang_up(ep);
        return;
    }
    if (i->kind == ITEM_WRITE) {
        if (i->first) { /* as a provider does: what is half received goes on, whatever becomes of the key */
            ep->was = *r;
            ep->writes_to = &ep->was;
        }
        memcpy(r->memory + i->offset, i->bytes, i->len);
        if (i->last)
            answer_access(ep, i);
    } else {
        in_pieces(ep->tp->net, len, answer_piece, &(struct answer){ep, i, r->memory + i->offset});
    }
}

/* An item takes effect at its target, which frees it unless it is kept. */
static void take_effect(struct item *i)
{
    struct sim_ep *ep = i->to;
    switch (i->kind) {
    case ITEM_CONNECTED:
        ep->state = EP_UP;
        tell_ep(ep, TP_CONNECTED, KEEL_OK);
        break;
    case ITEM_MESSAGE:
        tell(ep->tp, &(struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = i->bytes, .len = i->len}, i);
        return;
    case ITEM_WRITE:
    case ITEM_READ:
        access_memory(ep, i);
        break;
    case ITEM_DATA:
        if (!i->posted->over)
            memcpy(i->dst, i->bytes, i->len);
        if (i->last)
            posted_over(ep, i->posted, KEEL_OK);
        break;
    case ITEM_DONE:
        posted_over(ep, i->posted, KEEL_OK);
        break;
    case ITEM_CLOSE:
        ep_close(ep, i->status);
        break;
    case ITEM_ASK:
        abort();
    }
    free(i);
}

static struct sim_tp *listener(const struct net *n, uint64_t id)
{
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        if (tp->id == id)
            return tp;
    abort();
}

static void refuse(struct sim_ep *from, struct sim_tp *by, keel_status status)
{
    /* The answer takes as long as the question did; a cut on the way back holds it. */
    (void)by;
    struct item *i = item_new(ITEM_CLOSE, from, 0);
    i->status = status;
    if (from->state == EP_CLOSED || from->tp->dead)
        free(i);
    else
        take_effect(i);
}

static void asked(struct sim_ep *from, struct item *i)
{
    struct sim_tp *tp = listener(from->tp->net, from->target);
    if (tp->dead || !tp->listening) {
        refuse(from, tp, KEEL_ERR_NODE_DEAD);
        free(i);
        return;
    }
    struct tp_connreq *req = sim_alloc(sizeof *req);
    req->from = from;
    req->len = i->len;
    memcpy(req->hello, i->bytes, i->len);
    req->next = tp->reqs;
    tp->reqs = req;
    tell(tp, &(struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->hello, .len = req->len}, NULL);
    free(i);
}

static void arrived(struct sim_ep *from, struct item *i)
{
    if (i->kind == ITEM_ASK) {
        asked(from, i);
        return;
    }
    struct sim_ep *to = i->to;
    if (!to || to->state == EP_CLOSED || to->tp->dead) {
        free(i);
        return;
    }
    if (to->tp->net->card) {
        take_effect(i);
        return;
    }
    items_add(&to->tp->arrived, i);
    process_signal(to->tp->owner);
}

static int target_host(const struct sim_ep *ep)
{
    return ep->peer ? ep->peer->tp->host : listener(ep->tp->net, ep->target)->host;
}

static void channel_run(void *arg, uint64_t unused)
{
    (void)unused;
    struct sim_ep *ep = arg;
    struct channel *c = &ep->out;
    struct net *n = ep->tp->net;
    c->scheduled = false;
    if (!c->flying.first)
        return;
    if (c->flying.first->at > n->sched->now) {
        schedule(ep);
        return;
    }
    int to = target_host(ep);
    if (!ep->near && n->cut[ep->tp->host][to] && !n->off[to]) {
        c->stalled = true;
        return;
    }
    struct item *i = items_take(&c->flying);
    c->queued -= i->len;
    if (n->off[to])
        free(i);
    else
        arrived(ep, i);
    schedule(ep);
}

/* ---- the table ---- */

static struct sim_ep *ep_new(struct sim_tp *tp, void *user, enum ep_state state, bool near)
{
    struct sim_ep *ep = sim_alloc(sizeof *ep);
    ep->base.tp = &tp->base;
    ep->base.user = user;
    ep->tp = tp;
    ep->state = state;
    ep->near = near;
    ep->next = tp->eps;
    tp->eps = ep;
    channel_init(tp->net, ep);
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
    tp->listening = true;
    *out = (struct tp_addr){.len = sizeof tp->id};
    memcpy(out->bytes, &tp->id, sizeof tp->id);
    return KEEL_OK;
}

static keel_status sim_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                               struct tp_ep **out)
{
    struct sim_tp *tp = tp_of(base);
    assert(!tp->dead && len <= TP_HELLO_MAX);
    struct heap *outer = heap_enter(NULL);
    struct sim_ep *ep = ep_new(tp, user, EP_CONNECTING, false);
    memcpy(&ep->target, to->bytes, sizeof ep->target);
    struct item *i = item_new(ITEM_ASK, NULL, len);
    memcpy(i->bytes, hello, len);
    put_in(ep, i);
    *out = &ep->base;
    heap_enter(outer);
    return KEEL_OK;
}

static void req_end(struct sim_tp *tp, struct tp_connreq *req)
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
    struct sim_ep *from = req->from, *ep = ep_new(tp, user, EP_UP, false);
    ep->peer = from;
    from->peer = ep;
    tell_ep(ep, TP_CONNECTED, KEEL_OK);
    if (from->state == EP_CLOSED)
        send_close(from, KEEL_ERR_LINK);
    else
        put_in(ep, item_new(ITEM_CONNECTED, from, 0));
    req_end(tp, req);
    *out = &ep->base;
    heap_enter(outer);
    return KEEL_OK;
}

static void sim_reject(struct tp *base, struct tp_connreq *req)
{
    struct heap *outer = heap_enter(NULL);
    refuse(req->from, tp_of(base), KEEL_ERR_AUTH);
    req_end(tp_of(base), req);
    heap_enter(outer);
}

static void sim_disconnect(struct tp_ep *base)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    assert(!ep->destroyed);
    struct heap *outer = heap_enter(NULL);
    hang_up(ep);
    heap_enter(outer);
}

static void sim_ep_destroy(struct tp_ep *base)
{
    if (!base)
        return;
    struct sim_ep *ep = (struct sim_ep *)base;
    assert(!ep->destroyed);
    struct heap *outer = heap_enter(NULL);
    hang_up(ep);
    forget_arrived(ep->tp, ep);
    forget_ready(ep->tp, ep, true);
    ep->destroyed = true;
    heap_enter(outer);
}

static keel_status sim_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    struct sim_tp *tp = tp_of(base);
    if (region_find(tp, key))
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
    hang_up(ep);
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
    struct item *i = item_new(ITEM_MESSAGE, ep->peer, hlen + len);
    memcpy(i->bytes, header, hlen);
    if (len)
        memcpy(i->bytes + hlen, body, len);
    put_in(ep, i);
    if (op)
        posted_over(ep, post(ep, op), KEEL_OK);
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
    struct item *i = item_new(ITEM_WRITE, w->ep->peer, len);
    i->key = w->key;
    i->offset = w->offset + from;
    i->posted = w->posted;
    i->first = from == 0;
    i->last = last;
    if (len)
        memcpy(i->bytes, w->src + from, len);
    put_in(w->ep, i);
}

static keel_status sim_write(struct tp_ep *base, const void *src, size_t len, uint64_t key, uint64_t offset,
                             struct tp_op *op)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    if (!may_post(ep, len))
        return KEEL_ERR_LINK;
    struct write w = {ep, src, key, offset, post(ep, op)};
    in_pieces(ep->tp->net, len, write_piece, &w);
    return KEEL_OK;
}

static keel_status sim_read(struct tp_ep *base, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    struct sim_ep *ep = (struct sim_ep *)base;
    if (!may_post(ep, 0))
        return KEEL_ERR_LINK;
    struct item *i = item_new(ITEM_READ, ep->peer, 0);
    i->key = key;
    i->offset = offset;
    i->dst = dst;
    i->status = (keel_status)len;
    i->posted = post(ep, op);
    put_in(ep, i);
    return KEEL_OK;
}

static int sim_poll(struct tp *base, struct tp_event *events, int max)
{
    struct sim_tp *tp = tp_of(base);
    struct heap *outer = heap_enter(NULL);
    for (struct item *i; (i = tp->held) != NULL;) {
        tp->held = i->next;
        free(i);
    }
    for (struct item *i; (i = items_take(&tp->arrived)) != NULL;) {
        if (i->to->state == EP_CLOSED)
            free(i);
        else
            take_effect(i);
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

static const struct tp_table tp_sim = {
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
    .poll = sim_poll,
    .wait_fd = sim_wait_fd,
    .arm = sim_arm,
};

/* ---- the simulator's side ---- */

void net_init(struct net *n, struct sched *s, int hosts)
{
    *n = (struct net){.sched = s, .hosts = hosts};
    n->card = sched_chance(s, 0.3);
    n->delay_min = sched_between(s, 1 * US, 5 * US);
    n->delay_max = n->delay_min + sched_between(s, 1 * US, 60 * US);
    n->slow = sched_chance(s, 0.5) ? 0.2 : 0;
    n->spike = sched_chance(s, 0.5) ? 0.003 : 0;
    n->spike_ns = 4 * MS;
    n->pieces = (unsigned)sched_between(s, 1, 5);
}

struct tp *net_open(struct net *n, struct process *owner, bool near)
{
    struct sim_tp *tp = sim_alloc(sizeof *tp);
    tp->base.table = &tp_sim;
    tp->net = n;
    tp->owner = owner;
    tp->host = owner->node;
    tp->near = near;
    tp->id = ++n->next_id;
    items_init(&tp->arrived);
    tp->ready_tail = &tp->ready;
    tp->next = n->tps;
    n->tps = tp;
    return &tp->base;
}

void net_pair(struct tp *agent, void *user, struct tp_ep **agent_ep, struct tp *rank, void *rank_user,
              struct tp_ep **rank_ep)
{
    struct heap *outer = heap_enter(NULL);
    struct sim_ep *a = ep_new(tp_of(agent), user, EP_UP, true), *r = ep_new(tp_of(rank), rank_user, EP_UP, true);
    a->peer = r;
    r->peer = a;
    *agent_ep = &a->base;
    *rank_ep = &r->base;
    heap_enter(outer);
}

void net_owner_died(struct tp *base)
{
    struct sim_tp *tp = tp_of(base);
    struct heap *outer = heap_enter(NULL);
    for (struct sim_ep *ep = tp->eps; ep; ep = ep->next)
        hang_up(ep);
    while (tp->reqs) {
        refuse(tp->reqs->from, tp, KEEL_ERR_LINK);
        req_end(tp, tp->reqs);
    }
    tp->dead = true;
    heap_enter(outer);
}

void net_host_off(struct net *n, int host)
{
    n->off[host] = true;
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        for (struct sim_ep *ep = tp->eps; tp->host == host && ep; ep = ep->next)
            if (!ep->near) {
                struct items *q = &ep->out.flying;
                lose_some(ep);
                for (struct item *i = q->first; i; i = i->next)
                    if (i->kind == ITEM_CLOSE) /* nobody says good-bye */
                        i->kind = ITEM_MESSAGE, i->to = NULL;
            }
}

void net_cut(struct net *n, int from, int to, bool cut)
{
    n->cut[from][to] += cut ? 1 : -1;
    if (n->cut[from][to])
        return;
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        for (struct sim_ep *ep = tp->eps; tp->host == from && ep; ep = ep->next)
            if (ep->out.stalled && target_host(ep) == to) {
                ep->out.stalled = false;
                ep->out.scheduled = true;
                sched_at(n->sched, n->sched->now + sched_below(n->sched, 10 * MS), channel_run, ep, 0);
            }
}

void net_break(struct net *n, int a, int b, double p)
{
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        for (struct sim_ep *ep = tp->eps; tp->host == a && ep; ep = ep->next)
            if (!ep->near && ep->state == EP_UP && ep->peer && ep->peer->tp->host == b && ep->peer->state == EP_UP &&
                sched_chance(n->sched, p)) {
                n->breaks++;
                lose_some(ep);
                lose_some(ep->peer);
                send_close(ep, KEEL_ERR_LINK);
                send_close(ep->peer, KEEL_ERR_LINK);
            }
}

uint64_t net_delay(struct net *n)
{
    uint64_t d = sched_between(n->sched, n->delay_min, 2 * n->delay_max);
    return sched_chance(n->sched, n->spike) ? d + sched_below(n->sched, n->spike_ns) : d;
}

static void items_free(struct items *q)
{
    for (struct item *i; (i = items_take(q)) != NULL;)
        free(i);
}

static void ep_free(struct sim_ep *ep)
{
    items_free(&ep->out.flying);
    for (struct posted *p = ep->posted, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(ep);
}

static void tp_free(struct sim_tp *tp)
{
    for (struct sim_ep *ep = tp->eps, *next; ep; ep = next) {
        next = ep->next;
        ep_free(ep);
    }
    items_free(&tp->arrived);
    for (struct ready *r = tp->ready, *next; r; r = next) {
        next = r->next;
        free(r->item);
        free(r);
    }
    for (struct item *i = tp->held, *next; i; i = next) {
        next = i->next;
        free(i);
    }
    for (struct tp_connreq *q = tp->reqs, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    for (int i = 0; i < REGION_SLOTS; i++)
        for (struct region *r = tp->region[i], *next; r; r = next) {
            next = r->next;
            free(r);
        }
    free(tp);
}

void net_fini(struct net *n)
{
    for (struct sim_tp *tp = n->tps, *next; tp; tp = next) {
        next = tp->next;
        tp_free(tp);
    }
    n->tps = NULL;
}
