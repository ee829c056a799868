/* What goes wrong: at random moments, and at fault points of the code under test. */
#include <string.h>

#include "tests/sim/data/model.h"
#include "tests/sim/data/replicas.h"

struct point sim_point[POINTS_MAX];
int sim_points;

/* ---- limits ---- */

/* May one more node die (or be taken for dead)? A majority of those that are left must remain. */
static bool may_lose_node(const struct world *w, int node)
{
    const struct model *m = w->model;
    int well = 0;
    for (int i = 0; i < m->view.next_id; i++)
        well += !m->dead[i] && !m->tainted[i] && i != node;
    return 2 * well > m->view.next_id && well >= 2 && replicas_may_lose_node(w, node);
}

static int some_node(struct world *w)
{
    return (int)sched_below(&w->sched, (uint64_t)w->members);
}

static struct runner *some_rank(struct world *w)
{
    return world_rank(w, (int)sched_below(&w->sched, (uint64_t)w->setup.ranks));
}

static uint64_t some_time(struct world *w)
{
    struct sched *s = &w->sched;
    return sched_chance(s, 0.5)   ? sched_below(s, 5 * MS)
           : sched_chance(s, 0.7) ? sched_below(s, 60 * MS)
                                  : sched_below(s, 200 * MS);
}

/* ---- cuts ---- */

struct cut {
    struct world *w;
    int from, to;
};

static void cut_ends(void *arg, uint64_t unused)
{
    (void)unused;
    struct cut *c = arg;
    if (c->from < 0)
        return;
    net_cut(&c->w->net, c->from, c->to, false);
    c->from = -1;
}

static void cut(struct world *w, int from, int to, uint64_t ns)
{
    struct cut *c = sim_alloc(sizeof *c);
    *c = (struct cut){w, from, to};
    world_say(w, "%d to %d is cut for %.3f ms", from, to, (double)ns / MS);
    net_cut(&w->net, from, to, true);
    sched_at(&w->sched, w->sched.now + ns, cut_ends, c, 0);
}

/* One path, or a node from all others. */
static void some_cut(struct world *w)
{
    struct sched *s = &w->sched;
    int a = some_node(w), b = some_node(w);
    uint64_t ns = some_time(w);
    bool back = sched_chance(s, 0.6), alone = sched_chance(s, 0.3);
    if (a == b || !may_lose_node(w, a) || !replicas_may_lose_both(w, a, b))
        return;
    w->model->tainted[a] = true;
    for (int i = 0; i < w->members; i++)
        if (i != a && (alone || i == b)) {
            cut(w, a, i, ns);
            if (back)
                cut(w, i, a, ns);
        }
    if (!alone)
        w->model->tainted[b] = true;
}

/* ---- one disaster ---- */

static void freeze_node(struct world *w, int node, bool ranks, uint64_t ns)
{
    if (!may_lose_node(w, node))
        return;
    w->model->tainted[node] = true;
    node_freeze(&w->node[node], ranks, ns);
}

static void strike(void *arg, uint64_t unused)
{
    (void)unused;
    struct world *w = arg;
    struct sched *s = &w->sched;
    if (w->healing)
        return;
    int node = some_node(w);
    struct runner *r = some_rank(w);
    unsigned kind = (unsigned)sched_below(s, DISASTERS);
    while (w->setup.kinds && !(w->setup.kinds >> kind & 1))
        kind = (kind + 1) % DISASTERS;
    switch ((enum disaster)kind) {
    case DISASTER_RANK_KILL:
        if (r && replicas_may_lose_rank(w, r->rank))
            runner_kill(r, 9);
        break;
    case DISASTER_NODE_KILL:
    case DISASTER_NODE_OFF:
        if (may_lose_node(w, node) && !w->node[node].process.frozen)
            node_kill(&w->node[node], kind == DISASTER_NODE_OFF);
        break;
    case DISASTER_RANK_FREEZE:
        if (r)
            runner_freeze(r, some_time(w));
        break;
    case DISASTER_AGENT_FREEZE:
        freeze_node(w, node, false, some_time(w));
        break;
    case DISASTER_NODE_FREEZE:
        freeze_node(w, node, true, some_time(w));
        break;
    case DISASTER_CUT:
        some_cut(w);
        break;
    case DISASTER_BREAK:
        net_break(&w->net, node, some_node(w), 0.7);
        break;
    case DISASTERS:
        break;
    }
}

enum { STUCK_S = 25 }; /* longer than an operation may take */

static void stick(void *arg, uint64_t unused)
{
    (void)unused;
    struct world *w = arg;
    if (!w->healing)
        net_stick(&w->net, some_node(w), 0.5, STUCK_S * SEC);
}

/* A rank that lives is to go on another node that lives, as far as anybody knows. */
static void move(void *arg, uint64_t order)
{
    struct world *w = arg;
    struct runner *r = some_rank(w);
    int to = some_node(w);
    if (w->healing || !r || r->node->dead)
        return;
    struct command c = {
        .type = COMMAND_MOVE, .rank = r->rank, .incarnation = r->incarnation, .node = to, .order = (uint32_t)order};
    node_command(r->node, &c);
}

/* A node has measured something, or somebody asks it whether ranks should move. */
static void weigh(void *arg, uint64_t unused)
{
    struct world *w = arg;
    struct sched *s = &w->sched;
    struct node *n = &w->node[some_node(w)];
    (void)unused;
    struct command c = {.type = COMMAND_WEIGH, .code = (int)sched_below(s, 5)};
    c.value = UINT64_MAX >> (1 + sched_below(s, 62));
    c.event[0] = (struct view_event){.type = VIEW_FIGURE,
                                     .a = sched_below(s, 3) ? FIGURE_PATTERN : FIGURE_SLOT,
                                     .b = view_pattern_word((uint32_t)sched_below(s, 6), true, 1000),
                                     .c = 1000,
                                     .d = c.value};
    if (c.event[0].a == FIGURE_SLOT)
        c.event[0].b = (uint32_t)sched_below(s, (uint64_t)w->setup.nodes + 1);
    if (!w->healing && !n->halted && !n->over && !n->dead)
        node_command(n, &c);
}

/* A block of which it is the primary, as if copies had differed for long. */
static void suspect(void *arg, uint64_t unused)
{
    struct world *w = arg;
    struct sched *s = &w->sched;
    struct node *n = &w->node[some_node(w)];
    struct agent *a = &n->agent;
    (void)unused;
    if (w->healing || n->halted || n->over || n->dead || n->process.frozen || a->scrub.state != SCRUB_SWEEP)
        return;
    uint64_t skip = sched_below(s, 8);
    for (const struct store_segment *g = a->store.first; g; g = g->next)
        for (int slot = 0; slot < a->view.nodes; slot++) {
            int copyset = copyset_of(slot, g->redundancy);
            const struct view_copyset *set = &a->view.copyset[copyset];
            if (set->copy[0].node != a->self || set->copies < 2 || set->mode != COPYSET_DIRECT || !g->copy[slot].base ||
                skip-- > 0)
                continue;
            uint64_t blocks = (g->copy[slot].bytes + SCRUB_BLOCK - 1) / SCRUB_BLOCK;
            a->scrub.seg = g->seg;
            a->scrub.slot = slot;
            a->scrub.offset = sched_below(s, blocks) * SCRUB_BLOCK;
            uint64_t left = g->copy[slot].bytes - a->scrub.offset;
            a->scrub.len = left < SCRUB_BLOCK ? (uint32_t)left : SCRUB_BLOCK;
            a->scrub.asked = false;
            a->scrub.copyset = copyset;
            a->scrub.generation = set->generation;
            a->scrub.until = a->now + SEC;
            a->scrub.state = SCRUB_VIEW;
            struct view_event e = {.type = VIEW_SUSPECT, .a = (uint32_t)copyset, .d = set->generation};
            a->ops.submit(a->ops.user, &e);
            return;
        }
}

struct false_doubt {
    struct world *w;
    int node, about;
};

/* A node's detector doubts another one that is well, as a late heartbeat makes it do; and hears of it again. */
static void doubt(void *arg, uint64_t begins)
{
    const struct false_doubt *d = arg;
    struct command c = {.type = begins ? COMMAND_SUSPECTED : COMMAND_CLEARED, .node = d->about};
    const struct node *n = &d->w->node[d->node];
    if (d->node != d->about && !n->halted && !n->over)
        node_command(&d->w->node[d->node], &c);
}

static void false_doubt(struct world *w, int node, uint64_t in, uint64_t most)
{
    struct sched *s = &w->sched;
    struct false_doubt *d = sim_alloc(sizeof *d);
    *d = (struct false_doubt){w, node, some_node(w)};
    sched_at(s, s->now + in, doubt, d, true);
    sched_at(s, s->now + in + sched_below(s, most), doubt, d, false);
}

void disasters_committed(struct world *w, int node)
{
    if (!w->setup.quiet && sched_chance(&w->sched, 0.3))
        false_doubt(w, node, 0, 3 * MS);
}

void disasters_plan(struct world *w)
{
    struct sched *s = &w->sched;
    for (uint64_t i = w->setup.quiet ? 0 : sched_below(s, 6); i > 0; i--)
        false_doubt(w, some_node(w), sched_below(s, 30 * MS), 10 * MS);
    if (w->setup.script) {
        w->setup.script(w);
        return;
    }
    for (int i = 0; i < w->setup.sticks; i++)
        sched_at(s, sched_below(s, 30 * MS), stick, w, 0);
    for (int i = 0; i < w->setup.moves; i++)
        sched_at(s, sched_below(s, sched_below(s, 2) ? 5 * MS : 60 * MS), move, w, (uint64_t)i);
    for (int i = 0; i < w->setup.scrubs; i++)
        sched_at(s, 2 * MS + sched_below(s, 100 * MS), suspect, w, 0);
    for (int i = 0; i < w->setup.weighings; i++)
        sched_at(s, sched_below(s, sched_below(s, 2) ? 10 * MS : 100 * MS), weigh, w, 0);
    uint64_t at = sched_below(s, 3 * MS);
    for (int i = 0; i < w->setup.disasters; i++) {
        sched_at(s, at, strike, w, 0);
        at += sched_chance(s, 0.4) ? sched_below(s, 300 * US) : sched_below(s, 20 * MS);
    }
}

void disasters_heal(struct world *w)
{
    for (int a = 0; a < w->members; a++)
        for (int b = 0; b < w->members; b++)
            while (w->net.cut[a][b] > 1)
                net_cut(&w->net, a, b, false); /* the last one by its own event, at most 200 ms from now */
}

/* ---- fault points ---- */

static struct point *point_named(const char *name)
{
    for (int i = 0; i < sim_points; i++)
        if (strcmp(sim_point[i].name, name) == 0)
            return &sim_point[i];
    if (sim_points == POINTS_MAX)
        return &sim_point[0];
    sim_point[sim_points].name = name;
    return &sim_point[sim_points++];
}

/* Its name is passed again and again by the same few pointers. */
static struct point *point_of(const char *name)
{
    static struct {
        const char *name;
        struct point *point;
    } known[4 * POINTS_MAX];
    size_t at = ((uintptr_t)name ^ (uintptr_t)name >> 9) % (4 * POINTS_MAX);
    if (known[at].name != name) {
        known[at].name = name;
        known[at].point = point_named(name);
    }
    return known[at].point;
}

struct pair {
    struct world *w;
    int node, rank; /* what is to die later; -1: not that */
};

static void other_dies(void *arg, uint64_t unused)
{
    (void)unused;
    struct pair *p = arg;
    struct runner *r = p->rank >= 0 ? world_rank(p->w, p->rank) : NULL;
    if (r)
        runner_kill(r, 9);
    else if (p->node >= 0 && may_lose_node(p->w, p->node))
        node_kill(&p->w->node[p->node], false);
}

/* The rank, and a node before it, with it or behind it. In between the rank does nothing. */
static void kill_pair(struct world *w, struct runner *r, uint64_t gap)
{
    struct pair *p = sim_alloc(sizeof *p);
    int node = some_node(w);
    *p = (struct pair){w, node, -1};
    if (node == r->process.node || !may_lose_node(w, node))
        p->node = -1;
    if (p->node >= 0 && sched_chance(&w->sched, 0.5)) {
        *p = (struct pair){w, -1, r->rank};
        runner_freeze(r, gap + MS);
        node_kill(&w->node[node], false);
    } else {
        runner_kill(r, 9);
    }
    sched_at(&w->sched, w->sched.now + gap, other_dies, p, 0);
}

static void act(struct world *w, const struct aim *a, struct process *p)
{
    struct node *n = &w->node[p->node];
    struct runner *r = p->rank >= 0 ? p->user : NULL;
    world_say(w, "at %s of node %d, rank %d:", a->point, p->node, p->rank);
    switch (a->action) {
    case AIM_KILL:
        if (r) {
            if (replicas_may_lose_rank(w, r->rank))
                runner_kill(r, 9);
            break;
        } /* fall through */
    case AIM_NODE:
        if (may_lose_node(w, n->id))
            node_kill(n, false);
        break;
    case AIM_OFF:
        if (may_lose_node(w, n->id))
            node_kill(n, true);
        break;
    case AIM_FREEZE:
        if (r) {
            runner_freeze(r, a->ns);
            break;
        } /* fall through */
    case AIM_FREEZE_NODE:
        freeze_node(w, n->id, true, a->ns);
        break;
    case AIM_STALL:
        process_spend(p, a->ns);
        break;
    case AIM_PAIR:
        if (r)
            kill_pair(w, r, a->ns);
        break;
    }
}

static bool is_aimed_at(const struct world *w, const struct aim *a, const struct process *p)
{
    return (a->node < 0 || a->node == p->node) && (a->rank < 0 || a->rank == p->rank) &&
           (!a->flips || replicas_has_flipped(w, p->rank));
}

void disasters_point(const char *name)
{
    struct world *w = world_now;
    struct process *p = process_current();
    struct point *point = point_of(name);
    point->passed++;
    if (!w || !p || w->failed || w->healing)
        return;
    for (int i = 0; i < w->setup.aims; i++) {
        struct aim *a = &w->setup.aim[i];
        if (a->done || a->point[0] != name[0] || strcmp(a->point, name) != 0 || !is_aimed_at(w, a, p) ||
            ++a->passed < a->nth)
            continue;
        a->done = true;
        point->acted++;
        act(w, a, p);
    }
    if (sched_chance(&w->sched, w->setup.yield))
        process_spend(p, sched_chance(&w->sched, 0.05) ? sched_below(&w->sched, MS) : sched_below(&w->sched, 5 * US));
}
