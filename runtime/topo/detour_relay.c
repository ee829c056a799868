/* Who holds a message where nodes relay, and where it goes on: a depth-first search over the nodes. Each node that it has
 * not been at is entered at most once, and left backwards at most once; where that fails it forgets what it has met, and
 * begins again. */
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

static void mark_met(struct detour *d, const struct detour_source *s, const struct detour_met *met, uint64_t now,
                     enum doubt doubt, uint8_t value)
{
    for (uint32_t i = 0; i < s->faults.used; i++)
        if (!s->faults.entry[i].works && doubt != TRY_ALL && (doubt == TRY_NONE || now < s->faults.entry[i].retry_ns))
            detour_mark(d, s->faults.entry[i].cable, value);
    for (int i = 0; i < met->ncables; i++)
        detour_mark(d, met->cable[i], value);
    for (int i = 0; i < met->nnodes; i++)
        if (met->node[i] != fabric_home(d->fabric, s->endpoint))
            mark_node(d, met->node[i], value);
}

/* returns hops, or -1 */
static int search(struct detour *d, const struct detour_source *s, int32_t dest, const struct detour_met *met,
                  enum doubt most, uint64_t now, struct rng *rng, struct detour_path *path)
{
    const struct detour_query q = {.from = fabric_home(d->fabric, s->endpoint), .dest = dest, .both_ends = true};
    int hops = -1;
    for (enum doubt doubt = TRY_NONE; doubt <= most && hops < 0; doubt++) {
        mark_met(d, s, met, now, doubt, 1);
        hops = detour_search(d, &q, rng, path);
        mark_met(d, s, met, now, doubt, 0);
    }
    return hops;
}

/* The node at the end of the first hop between nodes. */
static int32_t next_node(const struct detour *d, const struct detour_source *s, const struct detour_path *path,
                         int32_t dest)
{
    struct detour_walk w;
    int32_t link;
    detour_walk_begin(&w, d->fabric, fabric_home(d->fabric, s->endpoint), path, dest);
    while ((link = detour_walk_next(&w)) >= 0 && d->fabric->firm && d->fabric->firm[link])
        ;
    while (w.at >= d->fabric->endpoints && detour_walk_next(&w) >= 0) /* from its rail to the node itself */
        ;
    return w.at;
}

enum detour_relayed detour_relay(struct detour *d, const struct detour_source *s, int32_t dest,
                                 const struct detour_met *met, uint64_t now, struct rng *rng, struct detour_path *path)
{
    if (search(d, s, dest, met, TRY_ALL, now, rng, path) >= 0)
        return DETOUR_ON;
    const struct detour_met cables = {.cable = met->cable, .ncables = met->ncables};
    if (met->ntrail == 0)
        return DETOUR_NO_WAY;
    int32_t back = met->trail[met->ntrail - 1];
    bool direct = search(d, s, back, &cables, TRY_DUE, now, rng, path) >= 0 && next_node(d, s, path, back) == back;
    return direct ? DETOUR_BACK : DETOUR_NO_WAY;
}
