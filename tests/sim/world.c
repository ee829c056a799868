/* Virtual time, network and the run itself. */
#include "tests/sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/bitset.h"

void sim_fail(struct world *w, int node, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("FAILED: %s --nodes %d --seed %llu: at %.3f ms, node %d: ", w->sc.name, w->sc.n - w->sc.joiners,
           (unsigned long long)w->sc.seed, (double)(w->now - SEC) / MS, node);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\nrepeat: tests/sim/sim --scenario %s --nodes %d --seed %llu --verbose\n", w->sc.name,
           w->sc.n - w->sc.joiners, (unsigned long long)w->sc.seed);
    exit(1);
}

/* ------------------------------------------------------------------------------------------------ event queue */

static bool before(const struct event *a, const struct event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

struct event *world_push(struct world *w, uint64_t t, enum event_kind kind, int node, int from)
{
    if (w->n_heap == w->cap_heap) {
        w->cap_heap = w->cap_heap ? 2 * w->cap_heap : 1024;
        w->heap = realloc(w->heap, (size_t)w->cap_heap * sizeof *w->heap);
    }
    struct event e = {.t = t > w->now ? t : w->now, .order = w->order++, .kind = kind, .node = node, .from = from};
    int i = w->n_heap++;
    while (i > 0 && before(&e, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = e;
    return &w->heap[i];
}

static struct event pop(struct world *w)
{
    struct event top = w->heap[0], last = w->heap[--w->n_heap];
    int i = 0;
    for (;;) {
        int c = 2 * i + 1;
        if (c >= w->n_heap)
            break;
        if (c + 1 < w->n_heap && before(&w->heap[c + 1], &w->heap[c]))
            c++;
        if (!before(&w->heap[c], &last))
            break;
        w->heap[i] = w->heap[c];
        i = c;
    }
    if (w->n_heap)
        w->heap[i] = last;
    return top;
}

/* ------------------------------------------------------------------------------------------------ network */

/* From a to b. */
bool world_path(const struct world *w, int a, int b)
{
    if (w->nodes[a].off || w->nodes[b].off || w->nodes[a].side != w->nodes[b].side)
        return false;
    for (int i = 0; i < w->n_links_down; i++)
        if ((w->links_down[i].a == a && w->links_down[i].b == b) ||
            (w->links_down[i].a == b && w->links_down[i].b == a && !w->links_down[i].one_way))
            return false;
    return true;
}

uint64_t world_delay(struct world *w)
{
    const struct net *net = &w->sc.net;
    uint64_t d = net->delay_ns + rng_below(&w->rng, net->jitter_ns + 1);
    if (net->slow > 0 && rng_double(&w->rng) < net->slow)
        d += rng_below(&w->rng, net->slow_ns + 1);
    return d;
}

void world_send(struct world *w, enum event_kind kind, int from, int to, const void *data, size_t len)
{
    bool datagram = kind == EV_DATAGRAM;
    if (!world_path(w, from, to))
        return;
    if (datagram && rng_double(&w->rng) < w->sc.net.loss)
        return;
    if (kind == EV_BARRIER && rng_double(&w->rng) < w->sc.net.loss / 4) /* the connection broke under it */
        return;
    int copies = datagram && rng_double(&w->rng) < w->sc.net.duplicate ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        struct event *e = world_push(w, w->now + world_delay(w), kind, to, from);
        e->len = (uint32_t)len;
        e->data = malloc(len ? len : 1);
        memcpy(e->data, data, len);
    }
    w->datagrams++;
}

void world_exit(struct world *w, struct simnode *s)
{
    if (s->dead)
        return;
    s->dead = true;
    for (int i = 0; i < w->sc.n; i++)
        if (bitset_has(s->watchers, i) && world_path(w, s->id, i))
            world_push(w, w->now + world_delay(w), EV_BROKEN, i, s->id);
}

/* ------------------------------------------------------------------------------------------------ failures */

/* It begins when all ids below its own were born, as whoever is asked for an id would see to. */
static void join(struct world *w, const struct action *a)
{
    struct simnode *s = &w->nodes[a->node];
    int next = 0;
    for (int i = 0; i < w->sc.n; i++)
        if (!w->nodes[i].dead && member_next_id(w->nodes[i].m) > next)
            next = member_next_id(w->nodes[i].m);
    if (next < a->node) {
        if (w->now < SEC + w->sc.end / 2)
            world_push(w, w->now + 50 * MS, EV_ACTION, a->node, -1)->value = (uint64_t)(a - w->sc.actions);
        return;
    }
    s->dead = s->off = false;
    node_init(w, a->node);
}

static void act(struct world *w, const struct action *a)
{
    struct simnode *s = &w->nodes[a->node];
    if (!s->m && a->kind != ACT_JOIN)
        return; /* nobody is there yet */
    if (!w->first_action)
        w->first_action = w->now;
    if (w->sc.verbose)
        printf("%10.3f  action %d node %d peer %d for %.1f ms\n", (double)(w->now - SEC) / MS, (int)a->kind, a->node,
               a->peer, (double)a->duration / MS);
    switch (a->kind) {
    case ACT_KILL:
        s->tainted = true;
        world_exit(w, s);
        break;
    case ACT_POWER_OFF:
        s->tainted = s->off = s->dead = true;
        break;
    case ACT_FREEZE:
        if (!s->frozen && w->now > s->thaw_at + w->sc.params.late_ns) /* else it had hardly time to breathe */
            s->frozen_since = w->now;
        s->frozen = true;
        s->how = a->peer;
        if (w->now + a->duration > s->thaw_at)
            s->thaw_at = w->now + a->duration;
        if (s->thaw_at - s->frozen_since >
            (s->how == FREEZE_HOST ? w->sc.params.limit_ns : w->sc.params.stopped_ns) / 3 * 2)
            s->tainted = true;
        break;
    case ACT_CUT: /* peer: side */
        s->side = a->peer;
        s->tainted = true;
        w->n_cut++;
        if (w->n_cut > 1 ||
            /* a cut-off group has voters: who is found dead when it heals is for the quorum to say */
            w->sc.may_lose_quorum)
            for (int i = 0; i < w->sc.n; i++)
                w->nodes[i].tainted = true;
        break;
    case ACT_HEAL:
        for (int i = 0; i < w->sc.n; i++)
            w->nodes[i].side = 0;
        break;
    case ACT_ONE_WAY:
    case ACT_LINK_DOWN:
        w->links_down[w->n_links_down].one_way = a->kind == ACT_ONE_WAY;
        w->links_down[w->n_links_down].a = a->node;
        w->links_down[w->n_links_down++].b = a->peer;
        if (w->sc.may_lose_quorum || w->sc.n < 4) /* too few others to vouch for them */
            s->tainted = w->nodes[a->peer].tainted = true;
        break;
    case ACT_LINK_MEND:
        for (int i = 0; i < w->n_links_down; i++)
            if (w->links_down[i].a == a->node && w->links_down[i].b == a->peer)
                w->links_down[i--] = w->links_down[--w->n_links_down];
        break;
    case ACT_LINK_UP:
        w->n_links_down = 0;
        break;
    case ACT_JOIN:
        join(w, a);
        break;
    case ACT_HANG:
        s->tainted = s->hung = true;
        s->hang_since = w->now;
        break;
    }
}

static void dispatch(struct world *w, struct event *e)
{
    struct simnode *s = &w->nodes[e->node];
    if (e->kind == EV_ACTION) {
        act(w, &w->sc.actions[e->value]);
        return;
    }
    bool frozen = s->frozen && w->now < s->thaw_at;
    if (e->kind == EV_PROBE && !s->dead && !s->off && world_path(w, e->from, e->node) &&
        !(frozen && s->how == FREEZE_HOST))
        world_push(w, w->now + world_delay(w), EV_KERNEL, e->from, e->node)->value = frozen && s->how == FREEZE_AGENT;
    if (s->frozen && w->now < s->thaw_at) { /* it waits in its socket, or its timer is overdue */
        struct event *later = world_push(w, s->thaw_at, e->kind, e->node, e->from);
        later->len = e->len;
        later->value = e->value;
        later->data = e->data;
        e->data = NULL;
        return;
    }
    s->frozen = false;
    if (e->from >= 0 && e->kind != EV_REFUSED && e->kind != EV_KERNEL && e->kind != EV_BROKEN &&
        e->kind != EV_READ_DONE && !world_path(w, e->from, e->node))
        return;
    node_event(s, e);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* nodes, ms from the first failure to the last commit, messages and reads per node and second, events per second of
 * processor time, bytes of a core at the start. */
static void print_figures(const struct world *w, double cpu, size_t bytes)
{
    printf("%-12s %6d nodes  %7.1f ms  %6.1f messages/node/s  %5.2f M events/s  %6zu bytes/node\n", w->sc.name, w->sc.n,
           w->last_commit ? (double)(w->last_commit - w->first_action) / MS : 0,
           (double)w->datagrams / w->sc.n / ((double)w->sc.end / SEC), (double)w->events / cpu / 1e6, bytes);
}

bool world_run(const struct scenario *sc)
{
    struct world w = {.sc = *sc, .now = SEC};
    rng_seed(&w.rng, sc->seed * 7919u + (uint64_t)sc->n);
    w.nodes = calloc((size_t)sc->n, sizeof *w.nodes);
    w.target = sc->barriers;
    size_t bytes = 0;
    for (int i = 0; i < sc->n; i++)
        if (i < sc->n - sc->joiners)
            bytes += node_init(&w, i);
        else
            w.nodes[i] = (struct simnode){.id = i, .w = &w, .dead = true, .off = true};
    bytes /= (size_t)sc->n;
    double cpu = cpu_s();
    for (int i = 0; i < sc->n_actions; i++)
        world_push(&w, SEC + sc->actions[i].at, EV_ACTION, sc->actions[i].node, -1)->value = (uint64_t)i;
    while (w.n_heap && w.heap[0].t <= SEC + sc->end) {
        struct event e = pop(&w);
        w.now = e.t;
        w.events++;
        dispatch(&w, &e);
        free(e.data); // NOLINT(clang-analyzer-unix.Malloc): pop gives each event once
    }
    world_check_end(&w);
    if (sc->measure)
        print_figures(&w, cpu_s() - cpu, bytes);
    if (sc->verbose)
        printf("%llu events, %llu datagrams, %llu epochs\n", (unsigned long long)w.events,
               (unsigned long long)w.datagrams, (unsigned long long)w.n_history);
    for (int i = 0; i < sc->n; i++)
        if (w.nodes[i].m)
            node_fini(&w.nodes[i]);
    for (int i = 0; i < w.n_heap; i++)
        free(w.heap[i].data);
    free(w.heap);
    free(w.nodes);
    free(w.history);
    return true;
}
