#include <stdlib.h>
#include <string.h>

#include "tests/sim/data/net_int.h"

void net_items_init(struct items *q)
{
    q->first = NULL;
    q->tail = &q->first;
}

void net_items_add(struct items *q, struct item *i)
{
    i->next = NULL;
    *q->tail = i;
    q->tail = &i->next;
}

struct item *net_items_take(struct items *q)
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

void net_tell(struct sim_tp *tp, const struct tp_event *e, struct item *item)
{
    struct ready *r = sim_alloc(sizeof *r);
    r->event = *e;
    r->item = item;
    *tp->ready_tail = r;
    tp->ready_tail = &r->next;
    process_signal(tp->owner);
}

void net_tell_ep(struct sim_ep *ep, enum tp_event_type type, keel_status status)
{
    net_tell(ep->tp, &(struct tp_event){.type = type, .status = status, .ep = &ep->base}, NULL);
}

void net_posted_over(struct sim_ep *ep, struct posted *p, keel_status status)
{
    if (!p || p->over)
        return;
    p->over = true;
    if (p->op)
        net_tell(ep->tp, &(struct tp_event){.type = TP_DONE, .status = status, .ep = &ep->base, .op = p->op}, NULL);
}

/* This end sees nothing of the other any more. */
static void ep_close(struct sim_ep *ep, keel_status status)
{
    if (ep->state == EP_CLOSED)
        return;
    ep->state = EP_CLOSED;
    for (struct posted *p = ep->posted; p; p = p->next)
        net_posted_over(ep, p, KEEL_ERR_LINK);
    net_tell_ep(ep, TP_CLOSED, status);
}

/* ---- channels ---- */

static void schedule(struct sim_ep *ep)
{
    struct channel *c = &ep->out;
    if (c->scheduled || c->stalled || c->stuck || !c->flying.first)
        return;
    c->scheduled = true;
    sched_at(ep->tp->net->sched, c->flying.first->at, net_channel_run, ep, 0);
}

void net_channel_init(struct net *n, struct sim_ep *ep)
{
    struct channel *c = &ep->out;
    struct sched *s = n->sched;
    net_items_init(&c->flying);
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

void net_put_in(struct sim_ep *ep, struct item *i)
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
    net_items_add(&c->flying, i);
    schedule(ep);
}

struct item *net_item_new(enum item_kind kind, struct sim_ep *to, size_t len)
{
    struct item *i = sim_alloc(sizeof *i + len);
    i->kind = kind;
    i->to = to;
    i->len = len;
    return i;
}

void net_send_close(struct sim_ep *ep, keel_status status)
{
    struct item *i = net_item_new(ITEM_CLOSE, ep->peer, 0);
    i->status = status;
    ep->out.stuck = false;
    net_put_in(ep, i);
}

/* Of what flies some part from the beginning still arrives. */
void net_lose_some(struct sim_ep *ep)
{
    struct channel *c = &ep->out;
    struct sched *s = ep->tp->net->sched;
    uint64_t n = 0;
    for (const struct item *i = c->flying.first; i; i = i->next)
        n++;
    uint64_t keep = sched_chance(s, 0.3) ? n : sched_chance(s, 0.3) ? 0 : sched_below(s, n + 1);
    struct items kept;
    net_items_init(&kept);
    for (struct item *i; (i = net_items_take(&c->flying)) != NULL;)
        if (keep > 0 || i->kind == ITEM_CLOSE) {
            keep -= keep > 0;
            net_items_add(&kept, i);
        } else {
            free(i);
        }
    c->flying.first = kept.first;
    c->flying.tail = kept.first ? kept.tail : &c->flying.first;
}

void net_forget_arrived(struct sim_tp *tp, const struct sim_ep *ep)
{
    struct items kept;
    net_items_init(&kept);
    for (struct item *i; (i = net_items_take(&tp->arrived)) != NULL;)
        if (i->to != ep)
            net_items_add(&kept, i);
        else
            free(i);
    tp->arrived.first = kept.first;
    tp->arrived.tail = kept.first ? kept.tail : &tp->arrived.first;
}

void net_forget_ready(struct sim_tp *tp, const struct sim_ep *ep, bool all)
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
void net_hang_up(struct sim_ep *ep)
{
    if (ep->state == EP_CLOSED)
        return;
    struct sim_ep *peer = ep->peer;
    net_forget_arrived(ep->tp, ep);
    net_forget_ready(ep->tp, ep, false);
    ep_close(ep, KEEL_ERR_LINK);
    if (peer && peer->state != EP_CLOSED && !ep->near) {
        net_lose_some(ep);
        net_send_close(ep, KEEL_ERR_LINK);
    }
}

/* ---- what arrives ---- */

struct region *net_region_find(struct sim_tp *tp, uint64_t key)
{
    struct region *r = tp->region[(key ^ key >> 16 ^ key >> 32) % REGION_SLOTS];
    while (r && r->key != key)
        r = r->next;
    return r;
}

static void answer_access(struct sim_ep *ep, const struct item *i)
{
    struct item *done = net_item_new(ITEM_DONE, ep->peer, 0);
    done->posted = i->posted;
    net_put_in(ep, done);
}

/* Where and in how many pieces: calls each(arg, from, len, last). */
void net_in_pieces(struct net *n, size_t len, void (*each)(void *arg, size_t from, size_t len, bool last), void *arg)
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
    struct item *data = net_item_new(ITEM_DATA, a->ep->peer, len);
    data->dst = a->request->dst + from;
    data->posted = a->request->posted;
    data->last = last;
    memcpy(data->bytes, a->memory + from, len);
    net_put_in(a->ep, data);
}

static void access_memory(struct sim_ep *ep, const struct item *i)
{
    const struct region *r = i->kind == ITEM_WRITE && !i->first ? ep->writes_to : net_region_find(ep->tp, i->key);
    size_t len = i->kind == ITEM_READ ? (size_t)i->status : i->len;
    if (!r || i->offset > r->len || len > r->len - i->offset) {
        ep->tp->net->bad_keys++;
        net_hang_up(ep);
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
        net_in_pieces(ep->tp->net, len, answer_piece, &(struct answer){ep, i, r->memory + i->offset});
    }
}

/* An item takes effect at its target, which frees it unless it is kept. */
void net_take_effect(struct item *i)
{
    struct sim_ep *ep = i->to;
    switch (i->kind) {
    case ITEM_CONNECTED:
        ep->state = EP_UP;
        net_tell_ep(ep, TP_CONNECTED, KEEL_OK);
        break;
    case ITEM_MESSAGE:
        net_tell(ep->tp, &(struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = i->bytes, .len = i->len}, i);
        return;
    case ITEM_WRITE:
    case ITEM_READ:
        access_memory(ep, i);
        break;
    case ITEM_DATA:
        if (!i->posted->over)
            memcpy(i->dst, i->bytes, i->len);
        if (i->last)
            net_posted_over(ep, i->posted, KEEL_OK);
        break;
    case ITEM_DONE:
        net_posted_over(ep, i->posted, KEEL_OK);
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

void net_refuse(struct sim_ep *from, struct sim_tp *by, keel_status status)
{
    /* The answer takes as long as the question did; a cut on the way back holds it. */
    (void)by;
    struct item *i = net_item_new(ITEM_CLOSE, from, 0);
    i->status = status;
    if (from->state == EP_CLOSED || from->tp->dead)
        free(i);
    else
        net_take_effect(i);
}

static void asked(struct sim_ep *from, struct item *i)
{
    struct sim_tp *tp = listener(from->tp->net, from->target);
    if (tp->dead || !tp->listening) {
        net_refuse(from, tp, KEEL_ERR_NODE_DEAD);
        free(i);
        return;
    }
    struct tp_connreq *req = sim_alloc(sizeof *req);
    req->from = from;
    req->len = i->len;
    memcpy(req->hello, i->bytes, i->len);
    req->next = tp->reqs;
    tp->reqs = req;
    net_tell(tp, &(struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->hello, .len = req->len}, NULL);
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
        net_take_effect(i);
        return;
    }
    net_items_add(&to->tp->arrived, i);
    process_signal(to->tp->owner);
}

int net_target_host(const struct sim_ep *ep)
{
    return ep->peer ? ep->peer->tp->host : listener(ep->tp->net, ep->target)->host;
}

void net_channel_run(void *arg, uint64_t unused)
{
    (void)unused;
    struct sim_ep *ep = arg;
    struct channel *c = &ep->out;
    struct net *n = ep->tp->net;
    c->scheduled = false;
    if (!c->flying.first || c->stuck)
        return;
    if (c->flying.first->at > n->sched->now) {
        schedule(ep);
        return;
    }
    int to = net_target_host(ep);
    if (!ep->near && n->cut[ep->tp->host][to] && !n->off[to]) {
        c->stalled = true;
        return;
    }
    struct item *i = net_items_take(&c->flying);
    c->queued -= i->len;
    ep->taken += i->len + 1;
    if (ep->peer)
        ep->peer->received += i->len + 1;
    if (n->off[to])
        free(i);
    else
        arrived(ep, i);
    schedule(ep);
}
