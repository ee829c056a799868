/* What this node's ranks wait for, gathered for the process half (plane.h, waits): their notes (wire/wait.h), and what
 * this agent knows of those they wait for. The agent asks about these itself, so that the answer is there when a rank
 * does nothing but wait; and looks whether its own processes are stopped, so that others need not ask.
 *
 * Ranks of other nodes that wait for this agent wait for whom it waits for: the nodes of other copies that have been
 * waited for from one look to the next, and have acknowledged nothing; and those that live while a view is being
 * made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/agent/health.h"
#include "runtime/agent/repair.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/plane/plane_int.h"

enum {
    LOOK_NS = 500000000,
    ASKS = 16,             /* each time; of more they take turns */
    FRESH_NS = 2000000000, /* what was heard of a process so long ago still counts */
};

struct report {
    struct json_writer out;
    bool any_wait, any_stopped, any_behind;
    int asks;
    bool *rank, *node; /* [ranks], [members]: they are waited for */
};

static void ask_about(struct plane *p, struct report *r, const struct wait_said *w)
{
    struct agent *a = &p->agent;
    bool of_node = w->whom == WAIT_FOR_NODE, known;
    int rank = of_node || w->whom == WAIT_FOR_VIEW || w->rank >= a->view.ranks ? -1 : w->rank;
    int node = rank >= 0 ? a->view.rank[rank].node : of_node && w->node < a->members ? w->node : -1;
    known = rank >= 0 ? r->rank[rank] : node >= 0 && r->node[node];
    if (rank >= 0)
        r->rank[rank] = true;
    if (node >= 0)
        r->node[node] = true;
    if (known)
        return;
    int turns = p->waits_asks / ASKS + 1;
    if ((rank >= 0 || (node >= 0 && node != a->self)) && r->asks++ % turns == (int)(p->waits_looks % (unsigned)turns)) {
        struct control ask = {.node = node, .a = rank, .b = (int64_t)a->now};
        health_ask(a, &ask);
    }
}

/* A rank waits until copies here are equal, or whole. */
static void ask_about_copies(struct plane *p, struct report *r)
{
    struct agent *a = &p->agent;
    for (int m = 0; m < a->members; m++) {
        if (r->node[m] || !repair_goes_on_with(a, m))
            continue;
        struct control ask = {.node = m, .a = -1, .b = (int64_t)a->now};
        r->node[m] = true;
        health_ask(a, &ask);
    }
}

static void put_waits(struct plane *p, struct report *r)
{
    for (const struct process *k = p->processes; k; k = k->next)
        for (int i = 0; k->intents && k->proc && k->proc->life.rank >= 0 && !k->proc->exited && i < WAIT_NOTES; i++) {
            struct wait_said w;
            if (!wait_note_read(&k->intents->wait[i], &w))
                continue;
            if (p->agent.now < w.since_ns + WAIT_SAID_NS)
                continue;
            int rank = w.rank < p->agent.view.ranks ? w.rank : -1, node = w.node < p->agent.members ? w.node : -1;
            json_open(&r->out, NULL, '{');
            json_put_all(&r->out,
                         J_ALL(J_INT("rank", k->proc->life.rank), J_TEXT("call", wait_call_name(w.call)),
                               J_TEXT("whom", wait_whom_name(w.whom)), J_INT("for_rank", rank < 0 ? -1 : rank),
                               J_INT("for_node", node < 0 ? -1 : node), J_UINT("since_ns", w.since_ns & INT64_MAX)));
            json_close(&r->out, '}');
            r->any_wait = true;
            ask_about(p, r, &w);
            if (w.whom == WAIT_FOR_VIEW)
                ask_about_copies(p, r);
        }
}

static void put_stopped(struct plane *p, struct report *r)
{
    struct agent *a = &p->agent;
    for (int rank = 0; rank < a->view.ranks; rank++) {
        const struct page_rank *k = page_rank(a->page, rank);
        bool stopped = a->view.rank[rank].node == a->self && health_is_stopped(a, rank);
        if (!stopped && r->rank[rank] && atomic_load_explicit(&k->looked, memory_order_relaxed) + FRESH_NS > a->now)
            stopped = atomic_load_explicit(&k->process, memory_order_relaxed) == PAGE_PROCESS_STOPPED;
        if (!stopped)
            continue;
        json_put(&r->out, J_INT(NULL, rank));
        r->any_stopped = true;
    }
}

/* The nodes whose acknowledgements have been waited for since the last look, and none of them has come. */
static void put_behind(struct plane *p, struct report *r)
{
    const struct agent *a = &p->agent;
    for (int m = 0; m < a->members; m++) {
        uint64_t acked = agent_waits_for(a, m) ? a->peers.peer[m].acked + 1 : 0;
        bool stands = acked && acked == p->waits_acked[m];
        p->waits_acked[m] = acked;
        if (!stands)
            continue;
        json_put(&r->out, J_INT(NULL, m));
        r->any_behind = r->node[m] = true;
    }
}

/* Of them a view is being made that declares them dead. */
static void put_dying(struct plane *p, struct report *r)
{
    const struct agent *a = &p->agent;
    for (int m = 0; m < a->members; m++)
        if (a->fences.doomed[m] && a->view.alive[m])
            json_put(&r->out, J_INT(NULL, m));
}

static void put_nodes(struct plane *p, struct report *r)
{
    const struct agent *a = &p->agent;
    bool all = agent_makes_view(a);
    for (int m = 0; m < a->members; m++) {
        unsigned doubts = atomic_load_explicit(&page_node(a->page, m)->doubts, memory_order_relaxed);
        bool silent =
            doubts & (PAGE_DOUBT_SUSPECT | PAGE_DOUBT_AGENT) && !(doubts & PAGE_DOUBT_LINK); /* others reach it */
        if (!(r->node[m] || all) || m == a->self || !a->view.alive[m] || a->fences.doomed[m] || !silent)
            continue;
        json_open(&r->out, NULL, '{');
        json_put(&r->out, J_INT("node", m));
        json_put(&r->out, J_BOOL("host", doubts & PAGE_DOUBT_AGENT));
        json_close(&r->out, '}');
    }
}

static void put_links(struct plane *p, struct report *r)
{
    const struct page_links *l = page_links(p->page);
    int n = (int)atomic_load_explicit(&l->n, memory_order_relaxed), self = p->agent.self;
    for (int i = 0; i < n; i++) {
        int a = atomic_load_explicit(&l->link[i].a, memory_order_relaxed),
            b = atomic_load_explicit(&l->link[i].b, memory_order_relaxed);
        if ((a != self && b != self) || !r->node[a == self ? b : a])
            continue;
        json_open(&r->out, NULL, '[');
        json_put_all(&r->out, J_ALL(J_INT(NULL, a), J_INT(NULL, b)));
        json_close(&r->out, ']');
    }
}

static void put_list(struct plane *p, struct report *r, const char *key, void (*put)(struct plane *, struct report *))
{
    json_open(&r->out, key, '[');
    put(p, r);
    json_close(&r->out, ']');
}

/* NULL: nothing is to be said. */
static char *make(struct plane *p)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    struct report r = {.out = json_into_file(f),
                       .rank = calloc((size_t)p->agent.view.ranks, sizeof *r.rank),
                       .node = calloc((size_t)p->agent.members, sizeof *r.node)};
    bool view = agent_makes_view(&p->agent);
    if (f && r.rank && r.node) {
        put_list(p, &r, "waits", put_waits);
        put_list(p, &r, "stopped", put_stopped);
        put_list(p, &r, "behind", put_behind);
        json_put(&r.out, J_BOOL("view", view));
        put_list(p, &r, "dying", put_dying);
        put_list(p, &r, "silent", put_nodes);
        put_list(p, &r, "links", put_links);
    }
    bool good = f && fclose(f) == 0 && r.rank && r.node && (r.any_wait || r.any_stopped || r.any_behind || view);
    p->waits_asks = r.asks;
    p->waits_looks++;
    free(r.rank);
    free(r.node);
    if (good)
        return text;
    free(text);
    return NULL;
}

void waits_look(struct plane *p)
{
    if (p->agent.now < p->waits_at)
        return;
    p->waits_at = p->agent.now + LOOK_NS;
    for (struct process *k = p->processes; k; k = k->next)
        hidden_mute(k);
    if (!p->waits_acked && !(p->waits_acked = calloc((size_t)p->agent.members, sizeof *p->waits_acked)))
        return;
    char *text = p->agent.broken || p->agent.view.stopped ? NULL : make(p);
    bool same = text && p->waits ? strcmp(text, p->waits) == 0 : !text && !p->waits;
    struct upcall *u = same ? NULL : queue_upcall_new(p, UPCALL_WAITS);
    if (!u) {
        free(text);
        return;
    }
    free(p->waits);
    p->waits = text;
    u->text = text ? strdup(text) : NULL;
    queue_upcall(p, u);
}
