#include "sim/place/bound.h"

#include <string.h>

enum { MOST_LINKS = 2 * GRID_MAX_DIMS };

static int links_of(const struct place *p, const struct load *l, int32_t node)
{
    int n = 0;
    if (l->net.tree.nodes)
        return 1;
    for (int d = 0; d < p->grid.ndims; d++)
        n += (grid_neighbor(&p->grid, node, d, GRID_UP) >= 0) + (grid_neighbor(&p->grid, node, d, GRID_DOWN) >= 0);
    return n;
}

static int32_t messages(const struct load *l, int32_t phase, int32_t slot, bool in)
{
    const struct pattern *t = l->pattern;
    const int32_t *at = in ? t->in_at : t->out_at;
    const struct pattern_peer *list = in ? t->in : t->out;
    int32_t n = 0;
    for (int32_t i = at[slot]; i < at[slot + 1]; i++)
        n += list[i].phase == phase;
    return n;
}

/* The slots that need m links or more must not be more than the live nodes that have them. */
static bool is_enough(const struct load *l, int32_t phase, bool in, int32_t c, const int32_t *nodes_with)
{
    int32_t need[MOST_LINKS + 2] = {0};
    for (int32_t r = 0; r < l->pattern->slots; r++) {
        if (l->absent[r])
            continue;
        int32_t links = (messages(l, phase, r, in) + c - 1) / c;
        need[links > MOST_LINKS ? MOST_LINKS + 1 : links]++;
    }
    int32_t slots = 0, nodes = 0;
    for (int m = MOST_LINKS + 1; m > 0; m--) {
        slots += need[m];
        nodes += m <= MOST_LINKS ? nodes_with[m] : 0;
        if (slots > nodes)
            return false;
    }
    return true;
}

int32_t load_bound(const struct place *p, const struct load *l)
{
    int32_t nodes_with[MOST_LINKS + 1] = {0}, sum = 0;
    if (l->convention != LOAD_ALL)
        return 0;
    for (int32_t n = 0; n < p->grid.nodes; n++)
        if (p->slot_at[n] != PLACE_DEAD)
            nodes_with[links_of(p, l, n)]++;
    for (int32_t phase = 0; phase < l->pattern->phases; phase++) {
        int32_t c = 1;
        while (c < l->phase[phase].cap &&
               !(is_enough(l, phase, false, c, nodes_with) && is_enough(l, phase, true, c, nodes_with)))
            c++;
        sum += l->phase[phase].cap ? c : 0;
    }
    return sum;
}
