/* The data thread's connections: of ranks (here and elsewhere) and of the other agents. Who connects is admitted or refused
 * here, and what comes over a connection is given to the part that it is for. */
#include "runtime/init/plane_int.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/barrier.h"
#include "runtime/base/log.h"
#include "runtime/recovery/push.h"
#include "runtime/redundancy/replica.h"

/* An ep is about to be destroyed: later events of this batch must not refer to it. */
static void forget_ep(struct plane *p, const struct tp_ep *ep)
{
    for (int i = p->batch_at + 1; i < p->batch_n; i++)
        if (p->batch[i].ep == ep)
            p->batch[i].ep = NULL;
}

static void conn_close(struct plane *p, struct conn *c)
{
    if (!c->ep)
        return;
    forget_ep(p, c->ep);
    tp_ep_destroy(c->ep);
    c->ep = NULL;
    c->up = false;
}

void node_drop_conn(struct agent *a, struct conn *c)
{
    struct plane *p = a->owner;
    struct proc *proc = procs_of_conn(p, c);
    if (proc)
        proc->conn = NULL;
    struct conn **link = &a->conns;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    conn_close(p, c);
    replica_forget(a, c);
    free(c);
}

/* ---- other agents ---- */

static void peer_received(void *user, int from, const struct wire *w, const void *body)
{
    struct plane *p = user;
    if (w->type == WIRE_FORWARD)
        replica_forwarded(&p->agent, from, w, body);
    else if (w->type == WIRE_BARRIER)
        barrier_receive(p->agent.barrier, from, body, w->len, p->agent.now);
    else
        push_receive(&p->agent, from, w, body);
}

static void peer_acked(void *user, int node, uint64_t seq)
{
    (void)seq;
    struct plane *p = user;
    replica_acked(&p->agent, node);
    if (p->seg_waits)
        procs_acked(p);
}

static void peer_refused(void *user, int node)
{
    struct plane *p = user;
    helper_refused(p->helper, node);
}

static void peer_broken(void *user, int node)
{
    struct plane *p = user;
    helper_broken(p->helper, node);
}

static void peer_connected(void *user, int node)
{
    (void)user;
    (void)node; /* the stream repeats what was not acknowledged by itself */
}

struct peers_ops conns_peers_ops(struct plane *p)
{
    return (struct peers_ops){p, peer_received, peer_acked, peer_refused, peer_broken, peer_connected};
}

static void barrier_send(void *user, int to, const void *data, size_t len)
{
    struct plane *p = user;
    struct wire w = {.type = WIRE_BARRIER, .len = (uint32_t)len};
    peer_send(&p->agent.peers, to, &w, data, p->agent.now);
}

static void barrier_complete(void *user, uint64_t seq)
{
    procs_barrier_complete(user, seq);
}

struct barrier_ops conns_barrier_ops(struct plane *p)
{
    return (struct barrier_ops){p, barrier_send, barrier_complete};
}

/* ---- requests to connect ---- */

static struct conn *find_conn(struct agent *a, const struct wire_hello *hello)
{
    for (struct conn *c = a->conns; c; c = c->next)
        if (c->rank == hello->rank && c->incarnation == hello->incarnation && c->node == hello->node)
            return c;
    return NULL;
}

static bool admit_rank(struct plane *p, const struct wire_hello *hello, struct tp_connreq *req)
{
    struct agent *a = &p->agent;
    if (hello->rank >= a->view.ranks || hello->incarnation < a->rank_fence[hello->rank])
        return false;
    struct conn *c = find_conn(a, hello);
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c)
            return false;
        c->rank = hello->rank;
        c->incarnation = (uint32_t)hello->incarnation;
        c->node = hello->node;
        c->next = a->conns;
        a->conns = c;
    }
    if (!wire_hello_is_new(hello, &c->attempt))
        return false;
    conn_close(p, c);
    if (a->net->table->accept(a->net, req, c, &c->ep) != KEEL_OK)
        c->ep = NULL;
    return true;
}

static bool admit_agent(struct plane *p, const struct wire_hello *hello, struct tp_connreq *req)
{
    struct agent *a = &p->agent;
    struct peer *peer = &a->peers.peer[hello->node];
    if (hello->incarnation != a->node_incarnation[hello->node] || !wire_hello_is_new(hello, &peer->attempt))
        return false;
    struct tp_ep *ep;
    if (a->net->table->accept(a->net, req, peer, &ep) != KEEL_OK)
        return true; /* it tries again */
    if (peer->in)
        forget_ep(p, peer->in);
    peer_accepted(&a->peers, hello->node, ep);
    return true;
}

static void connection_request(struct plane *p, const struct tp_event *e)
{
    struct agent *a = &p->agent;
    struct wire_hello hello;
    bool admitted = false;
    if (wire_hello_open(e->data, e->len, a->secret, a->job, a->self, a->incarnation, &hello) && hello.node >= 0 &&
        hello.node < a->members && !a->node_fence[hello.node])
        admitted = hello.rank < 0 ? admit_agent(p, &hello, e->req) : admit_rank(p, &hello, e->req);
    if (admitted)
        return;
    a->net->table->reject(a->net, e->req);
    p->rejected++;
    log_warn_some("a connection without this job's authenticator, with a used one, or from the dead, was refused");
    if ((p->rejected & (p->rejected - 1)) == 0) /* 1, 2, 4, ...: strangers do not fill the log */
        node_event(a, "refused", ",\"count\":%llu", (unsigned long long)p->rejected);
}

/* ---- events ---- */

static void conn_event(struct plane *p, struct conn *c, const struct tp_event *e)
{
    if (e->type == TP_CONNECTED) {
        c->up = true;
    } else if (e->type == TP_CLOSED) {
        /* What it was writing stays known until the rank is declared dead, or connects again. */
        conn_close(p, c);
    } else if (e->type == TP_RECV) {
        const struct wire *w = e->data;
        if (e->len < sizeof *w || e->len != sizeof *w + w->len) {
            log_error("malformed message from rank %d", c->rank);
            return;
        }
        if (w->type == WIRE_ENTER)
            node_enter(&p->agent, c, w);
        else
            replica_request(&p->agent, c, w, w + 1);
    }
}

int conns_poll(struct plane *p, struct tp *tp)
{
    struct agent *a = &p->agent;
    p->batch_n = tp_poll(tp, p->batch, PLANE_BATCH);
    p->batch_at = -1;
    if (p->batch_n > 0)
        (void)commands_run(p, true);
    for (p->batch_at = 0; p->batch_at < p->batch_n; p->batch_at++) {
        const struct tp_event *e = &p->batch[p->batch_at];
        if (e->type == TP_CONNREQ) {
            connection_request(p, e);
            continue;
        }
        if (!e->ep)
            continue;
        struct peer *peer = tp_ep_user(e->ep);
        if (peer >= a->peers.peer && peer < a->peers.peer + a->members)
            peer_event(&a->peers, peer, e, a->now);
        else
            conn_event(p, tp_ep_user(e->ep), e);
    }
    return p->batch_n;
}
