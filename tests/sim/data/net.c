#include <stdlib.h>

#include "tests/sim/data/net_int.h"

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
    tp->base.table = &net_table;
    tp->net = n;
    tp->owner = owner;
    tp->host = owner->node;
    tp->near = near;
    tp->id = ++n->next_id;
    net_items_init(&tp->arrived);
    tp->ready_tail = &tp->ready;
    tp->next = n->tps;
    n->tps = tp;
    return &tp->base;
}

void net_pair(struct tp *agent, void *user, struct tp_ep **agent_ep, struct tp *rank, void *rank_user,
              struct tp_ep **rank_ep)
{
    struct heap *outer = heap_enter(NULL);
    struct sim_ep *a = net_ep_new(tp_of(agent), user, EP_UP, true),
                  *r = net_ep_new(tp_of(rank), rank_user, EP_UP, true);
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
        net_hang_up(ep);
    while (tp->reqs) {
        net_refuse(tp->reqs->from, tp, KEEL_ERR_LINK);
        net_req_end(tp, tp->reqs);
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
                net_lose_some(ep);
                for (struct item *i = q->first; i; i = i->next)
                    if (i->kind == ITEM_CLOSE) /* nobody says good-bye */
                        i->kind = ITEM_MESSAGE, i->to = NULL;
            }
}

void net_cut(struct net *n, int from, int to, bool cut)
{
    if (!cut && !n->cut[from][to]) /* healed before its time was over */
        return;
    n->cut[from][to] += cut ? 1 : -1;
    if (n->cut[from][to])
        return;
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        for (struct sim_ep *ep = tp->eps; tp->host == from && ep; ep = ep->next)
            if (ep->out.stalled && net_target_host(ep) == to) {
                ep->out.stalled = false;
                ep->out.scheduled = true;
                sched_at(n->sched, n->sched->now + sched_below(n->sched, 10 * MS), net_channel_run, ep, 0);
            }
}

void net_break(struct net *n, int a, int b, double p)
{
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        for (struct sim_ep *ep = tp->eps; tp->host == a && ep; ep = ep->next)
            if (!ep->near && ep->state == EP_UP && ep->peer && ep->peer->tp->host == b && ep->peer->state == EP_UP &&
                sched_chance(n->sched, p)) {
                n->breaks++;
                net_lose_some(ep);
                net_lose_some(ep->peer);
                net_send_close(ep, KEEL_ERR_LINK);
                net_send_close(ep->peer, KEEL_ERR_LINK);
            }
}

static void woken(void *arg, uint64_t unused)
{
    (void)unused;
    struct sim_ep *ep = arg;
    ep->out.stuck = false;
    if (!ep->out.scheduled && !ep->out.stalled)
        net_channel_run(ep, 0);
}

void net_stick(struct net *n, int host, double p, uint64_t ns)
{
    for (struct sim_tp *tp = n->tps; tp; tp = tp->next)
        for (struct sim_ep *ep = tp->eps; tp->host == host && tp->owner->rank < 0 && ep; ep = ep->next)
            if (!ep->near && ep->state == EP_UP && ep->peer && ep->peer->tp->owner->rank >= 0 && !ep->out.stuck &&
                sched_chance(n->sched, p)) {
                ep->out.stuck = true;
                sched_at(n->sched, n->sched->now + ns, woken, ep, 0);
            }
}

uint64_t net_delay(struct net *n)
{
    uint64_t d = sched_between(n->sched, n->delay_min, 2 * n->delay_max);
    return sched_chance(n->sched, n->spike) ? d + sched_below(n->sched, n->spike_ns) : d;
}

static void items_free(struct items *q)
{
    for (struct item *i; (i = net_items_take(q)) != NULL;)
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
