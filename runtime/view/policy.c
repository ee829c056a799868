#include "runtime/view/policy.h"

static int members(const struct view *v)
{
    return v->nodes + v->spares;
}

int policy_spare(const struct view *v)
{
    for (int m = v->nodes; m < members(v); m++)
        if (v->spare_free[m] && v->alive[m])
            return m;
    return -1;
}

/* Copies that the node holds, of groups that have several: the others cost only who allocates there. */
static int copies_on(const struct view *v, int node)
{
    int n = 0;
    for (int g = 0; g < v->nodes * CLASSES; g++)
        n += group_class(g) > 0 && view_copy_at(&v->group[g], node) >= 0;
    return n;
}

/* It takes no copy to be filled. A group that starts again has nothing to fill. */
static bool is_full(const struct view *v, const struct view_group *g, int node)
{
    return v->full[node] && g->copies > 0;
}

int policy_copy(const struct view *v, int group)
{
    const struct view_group *g = &v->group[group];
    int home = v->home[group_slot(group)];
    if (home >= 0 && v->alive[home] && !is_full(v, g, home) && view_copy_at(g, home) < 0)
        return home;
    int first = g->copies ? g->copy[0].node : group_slot(group), best = -1, best_cost = 0;
    for (int k = g->copies ? 1 : 0; k < members(v); k++) {
        int m = (first + k) % members(v);
        if (!v->alive[m] || is_full(v, g, m) || view_copy_at(g, m) >= 0)
            continue;
        int cost = copies_on(v, m) + (v->spare_free[m] ? 4 * CLASSES * v->nodes : 0);
        if (best < 0 || cost < best_cost) {
            best = m;
            best_cost = cost;
        }
    }
    return best;
}

int policy_first_copy(const struct view *v, int group, int i)
{
    int slot = group_slot(group);
    if (i < v->nodes)
        return (slot + i) % v->nodes;
    /* Too few computing nodes: spares keep what is missing. */
    return i < members(v) ? i : -1;
}
