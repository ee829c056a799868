/* Nodes that come later: some are new, each in racks of its own, and some are one that a view has dead, which comes
 * back to its racks under a number that no node has had. Which racks these are is kept here, apart from the views. */
#include "tests/sim/data/returns.h"

#include <string.h>

#include "tests/sim/data/model.h"

enum { LONGEST_WAIT_MS = 40 };

static int first_joiner(const struct setup *s)
{
    return s->nodes + s->spares;
}

void returns_draw(struct setup *s, struct rng *rng)
{
    bool some = false;
    for (int i = 0; i < s->joiners; i++)
        some |= s->returns[i] = rng_below(rng, 3) > 0;
    if (!some)
        return;
    s->rounds += 4; /* somebody has to die, and there is to be something to do afterwards */
    s->disasters = 4 + (int)rng_below(rng, 6);
    if (rng_below(rng, 3))
        s->kinds = 1 << DISASTER_NODE_KILL | 1 << DISASTER_NODE_OFF;
}

void returns_place(struct setup *s)
{
    int members = first_joiner(s) + s->joiners;
    for (int level = 0; level < s->domain_levels; level++)
        for (int id = first_joiner(s); id < members; id++)
            s->domain[level * members + id] = NODES_MAX + id;
}

void returns_begin(struct world *w)
{
    memcpy(w->rack, w->setup.domain, sizeof w->rack);
}

static bool is_back(const struct setup *s, int node)
{
    for (int i = 0; i < s->joiners; i++)
        if (s->join_was[i] == node + 1)
            return true;
    return false;
}

/* Any of those that the view has dead; -1: none. */
static int who_may_return(struct world *w)
{
    const struct view *v = &w->model->view;
    int found = -1, n = 0;
    for (int m = 0; m < v->next_id; m++)
        if (!v->alive[m] && !is_back(&w->setup, m) && sched_below(&w->sched, (uint64_t)++n) == 0)
            found = m;
    return found;
}

bool returns_may_come(struct world *w, int id)
{
    struct setup *s = &w->setup;
    int i = id - first_joiner(s), was = s->returns[i] ? who_may_return(w) : -1;
    if (was >= 0)
        s->join_was[i] = was + 1;
    return was >= 0 || !s->returns[i] || w->sched.now > s->join_at[i] + LONGEST_WAIT_MS * MS; /* a new one, then */
}

void returns_came(struct world *w, int id)
{
    int was = w->setup.join_was[id - first_joiner(&w->setup)];
    for (int level = 0; level < w->setup.domain_levels && was > 0; level++)
        w->rack[level * w->members + id] = w->rack[level * w->members + was - 1];
}

void returns_settled(struct world *w, const struct node *n)
{
    const struct view *v = &n->agent.view;
    for (int level = 0; level < v->copies.levels; level++)
        for (int m = 0; m < v->next_id && !w->failed; m++) {
            int has = v->copies.domain[level * w->members + m], is = w->rack[level * w->members + m];
            if (has != is)
                world_fail(w, "epoch %llu: node %d has node %d in domain %d of level %d, and it is in %d",
                           (unsigned long long)v->epoch, n->id, m, has, level + 1, is);
        }
}
