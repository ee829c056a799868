/* Who holds a message where nodes relay, and where it goes on: a depth-first search over the nodes. Each node that it
 * has not been at is entered at most once, and left backwards at most once; where that fails it forgets what it has
 * met, and begins again. */
#include "runtime/topo/detour_search.h"

/* Which cables that s takes for broken are tried all the same. */
enum doubt { TRY_NONE, TRY_DUE, TRY_ALL };

/* Every cable of a node: of its router, and of those that hang on it by firm links. */
static void mark_node(struct detour *d, int32_t node, uint8_t value)
{
    const struct fabric *f = d->fabric;
    for (int p = 0; p < f->ports; p++) {
        int32_t link = node * f->ports + p, rail = f->neighbor[link];
        if (rail < 0)
            continue;
        detour_mark(d, fabric_cable(f, link), value);
        for (int k = 0; k < f->ports && f->firm && f->firm[link]; k++)
            if (f->neighbor[rail * f->ports + k] >= 0)
                detour_mark(d, fabric_cable(f, rail * f->ports + k), value);
    }
}

static bool is_node(const struct detour *d, int32_t node)
{
    return node >= 0 && node < d->fabric->endpoints;
}

static void mark_met(struct detour *d, const struct detour_source *s, const struct detour_met *met, uint64_t now,
                     enum doubt doubt, uint8_t value)
{
    for (uint32_t i = 0; i < s->faults.used; i++)
        if (!s->faults.entry[i].works && doubt != TRY_ALL && (doubt == TRY_NONE || now < s->faults.entry[i].retry_ns))
            detour_mark(d, s->faults.entry[i].cable, value);
    for (int i = 0; i < met->ncables; i++)
        if (detour_is_cable(d->fabric, met->cable[i]))
            detour_mark(d, met->cable[i], value);
    for (int i = 0; i < met->nnodes; i++)
        if (is_node(d, met->node[i]) && met->node[i] != fabric_home(d->fabric, s->endpoint))
            mark_node(d, met->node[i], value);
}

/* returns hops, or -1 */
static int search(struct detour *d, const struct detour_source *s, int32_t dest, const struct detour_met *met,
                  uint64_t now, struct rng *rng, struct detour_path *path)
{
    const struct detour_query q = {.from = fabric_home(d->fabric, s->endpoint), .dest = dest, .both_ends = true};
    int hops = -1;
    for (enum doubt doubt = TRY_NONE; doubt <= TRY_ALL && hops < 0; doubt++) {
        mark_met(d, s, met, now, doubt, 1);
        hops = detour_search(d, &q, rng, path);
        mark_met(d, s, met, now, doubt, 0);
    }
    return hops;
}

/* The node that a router is, or hangs on by a firm link; -1: none, it belongs to the network. */
static int32_t node_of(const struct fabric *f, int32_t router)
{
    for (int p = 0; p < f->ports && router >= f->endpoints; p++)
        if (f->neighbor[router * f->ports + p] >= 0 && fabric_firm(f, router * f->ports + p))
            return f->neighbor[router * f->ports + p];
    return router < f->endpoints ? router : -1;
}

/* A link from a router of the holder that leads to the node `back`, and that nothing is marked against. */
static bool link_back(const struct detour *d, int32_t router, int32_t back, struct detour_path *path)
{
    const struct fabric *f = d->fabric;
    for (int p = 0; p < f->ports; p++) {
        int32_t link = router * f->ports + p, to = f->neighbor[link];
        if (to < 0 || d->avoid[link] || fabric_firm(f, link) || node_of(f, to) != back ||
            fabric_next(f, router, to, back) != p)
            continue;
        if (to != back)
            path->via[path->nvia++] = to;
        return true;
    }
    return false;
}

/* By one cable from the holder, or from what hangs on it. */
static bool hop_back(const struct detour *d, int32_t home, int32_t back, struct detour_path *path)
{
    const struct fabric *f = d->fabric;
    path->nvia = 0;
    if (link_back(d, home, back, path))
        return true;
    for (int p = 0; p < f->ports; p++) {
        int32_t rail = f->neighbor[home * f->ports + p];
        if (rail < 0 || !fabric_firm(f, home * f->ports + p))
            continue;
        *path = (struct detour_path){.via = {rail}, .nvia = 1};
        if (link_back(d, rail, back, path))
            return true;
    }
    return false;
}

/* The first node on a path from here. */
static int32_t next_node(const struct detour *d, int32_t home, const struct detour_path *path, int32_t dest)
{
    struct detour_walk w;
    int32_t node = home;
    detour_walk_begin(&w, d->fabric, home, path, dest);
    while ((node < 0 || node == home) && detour_walk_next(&w) >= 0)
        node = node_of(d->fabric, w.at);
    return node;
}

/* Back by one hop between nodes. The message came by it, so it is tried whatever s knows of it, last what is not
 * due. */
static bool go_back(struct detour *d, const struct detour_source *s, const struct detour_met *met, int32_t back,
                    uint64_t now, struct rng *rng, struct detour_path *path)
{
    const struct detour_query q = {.from = fabric_home(d->fabric, s->endpoint), .dest = back, .both_ends = true};
    const struct detour_met cables = {.cable = met->cable, .ncables = met->ncables};
    bool found = false;
    for (enum doubt doubt = TRY_NONE; doubt <= TRY_ALL && !found; doubt++) {
        mark_met(d, s, &cables, now, doubt, 1);
        found = hop_back(d, q.from, back, path) ||
                (detour_search(d, &q, rng, path) >= 0 && next_node(d, q.from, path, back) == back);
        mark_met(d, s, &cables, now, doubt, 0);
    }
    return found;
}

enum detour_relayed detour_relay(struct detour *d, const struct detour_source *s, int32_t dest,
                                 const struct detour_met *met, uint64_t now, struct rng *rng, struct detour_path *path)
{
    if (search(d, s, dest, met, now, rng, path) >= 0)
        return DETOUR_ON;
    int32_t back = met->ntrail > 0 ? met->trail[met->ntrail - 1] : -1;
    if (is_node(d, back) && go_back(d, s, met, back, now, rng, path))
        return DETOUR_BACK;
    return DETOUR_NO_WAY;
}
