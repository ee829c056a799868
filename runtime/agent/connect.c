#include "runtime/agent/connect.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/base/log.h"
#include "runtime/net/hello.h"

/* An ep is about to be destroyed: later events of this batch must not refer to it. */
static void forget_ep(struct agent *a, const struct tp_ep *ep)
{
    for (int i = a->batch.at + 1; i < a->batch.n; i++)
        if (a->batch.events[i].ep == ep)
            a->batch.events[i].ep = NULL;
}

void agent_answer(struct conn *c, const struct wire *w, const void *body)
{
    if (!c || !c->ep)
        return;
    keel_status status = tp_send(c->ep, w, sizeof *w, body, w->len, NULL);
    if (status != KEEL_OK && status != KEEL_ERR_LINK) /* with that, TP_CLOSED comes by itself */
        tp_disconnect(c->ep);
}

void agent_close_conn(struct agent *a, struct conn *c)
{
    if (!c->ep)
        return;
    forget_ep(a, c->ep);
    tp_ep_destroy(c->ep);
    c->ep = NULL;
}

void agent_drop_conn(struct agent *a, struct conn *c)
{
    for (struct proc *p = a->ranks.procs; p; p = p->next)
        if (p->conn == c)
            p->conn = NULL;
    struct conn **link = &a->conns;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    if (a->ranks.conn[c->life.rank] == c)
        a->ranks.conn[c->life.rank] = NULL;
    agent_close_conn(a, c);
    execute_forget(a, c);
    free(c);
}

static struct conn *find_conn(struct agent *a, const struct hello *hello)
{
    for (struct conn *c = a->conns; c; c = c->next)
        if (c->life.rank == hello->rank && c->life.incarnation == hello->incarnation && c->node == hello->node)
            return c;
    return NULL;
}

static bool admit_rank(struct agent *a, const struct hello *hello, struct tp_connreq *req)
{
    if (hello->rank >= a->view.ranks || hello->incarnation < a->fences.rank[hello->rank])
        return false;
    struct conn *c = find_conn(a, hello);
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c)
            return false;
        c->life = life_of(hello->rank, (uint32_t)hello->incarnation);
        c->node = hello->node;
        c->next = a->conns;
        a->conns = c;
        if (c->node == a->self)
            a->ranks.conn[c->life.rank] = c;
    }
    if (!hello_is_new(hello, &c->attempt))
        return false;
    agent_close_conn(a, c);
    if (a->net->table->accept(a->net, req, c, &c->ep) != KEEL_OK)
        c->ep = NULL;
    return true;
}

static bool admit_agent(struct agent *a, const struct hello *hello, struct tp_connreq *req)
{
    struct peer *peer = &a->peers.peer[hello->node];
    if (hello->incarnation != a->node_incarnation[hello->node] || !hello_is_new(hello, &peer->attempt))
        return false;
    struct tp_ep *ep;
    if (a->net->table->accept(a->net, req, peer, &ep) != KEEL_OK)
        return true; /* it tries again */
    if (peer->in)
        forget_ep(a, peer->in);
    peer_accepted(&a->peers, hello->node, ep);
    return true;
}

static void admit(struct agent *a, const struct newcomer *e)
{
    struct hello hello;
    bool ours = hello_open(e->hello, e->len, a->secret, a->job, a->self, a->incarnation, &hello) && hello.node >= 0 &&
                hello.node < a->members;
    if (ours && !a->fences.node[hello.node] &&
        (hello.rank < 0 ? admit_agent(a, &hello, e->req) : admit_rank(a, &hello, e->req)))
        return;
    a->net->table->reject(a->net, e->req);
    a->newcomers.refused++;
    if (ours) /* from the dead, or overtaken by the next attempt */
        log_info("a connection of node %d, rank %d was refused: it is declared dead, or this attempt is not its last",
                 hello.node, hello.rank);
    else
        log_warn_some("a connection without this job's authenticator was refused");
    if ((a->newcomers.refused & (a->newcomers.refused - 1)) == 0) /* 1, 2, 4, ...: strangers do not fill the log */
        agent_say(a, "refused", J_UINT("count", a->newcomers.refused));
}

void connect_asked(struct agent *a, const struct tp_event *e)
{
    struct newcomer *new = malloc(sizeof *new + e->len);
    if (!new) { /* it tries again */
        a->net->table->reject(a->net, e->req);
        return;
    }
    *new = (struct newcomer){.req = e->req, .len = e->len};
    if (e->len)
        memcpy(new->hello, e->data, e->len);
    struct newcomer **link = &a->newcomers.first;
    while (*link)
        link = &(*link)->next;
    *link = new;
}

void connect_all(struct agent *a)
{
    while (a->newcomers.first) {
        struct newcomer *new = a->newcomers.first;
        a->newcomers.first = new->next;
        if (a->broken)
            a->net->table->reject(a->net, new->req);
        else
            admit(a, new);
        free(new);
    }
}
