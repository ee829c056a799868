/* The sliding methods.
 *
 * A slide takes the failed node's slot and those beyond it one step along a dimension, up to a layer without slots. In
 * 1D that is one line; in kD it is all lines spanned by k-1 further dimensions, moved together, so that the slots stay
 * a regular grid with one empty layer where the failed node is. Routes that ran straight still run straight, across the
 * empty layer.
 *
 * Which dimension first: always the first one of the order that works, never in turn. A line that has slid has used up
 * its spare; a node whose lines have all slid can no longer be handled. With a slides in one dimension and b in another
 * these nodes are a * b many, which an uneven split keeps small. */
#include "runtime/topo/place.h"

static void push(struct place_plan *plan, int32_t slot, int32_t from, int32_t to)
{
    plan->moves[plan->count++] = (struct place_move){.slot = slot, .from = from, .to = to};
}

static void reverse(struct place_plan *plan)
{
    for (int32_t i = 0, j = plan->count - 1; i < j; i++, j--) {
        struct place_move t = plan->moves[i];
        plan->moves[i] = plan->moves[j];
        plan->moves[j] = t;
    }
}

/* How many steps a slide from this coordinate may take before it meets the end of the line or itself. */
static int room(const struct place *p, int c, int dim, int dir)
{
    int n = p->grid.size[dim];
    if (p->grid.torus[dim])
        return n - 1;
    return dir == GRID_UP ? n - 1 - c : c;
}

/* Coordinate t steps further, as an offset from coordinate 0. */
static int32_t step_offset(const struct place *p, int c, int dim, int dir, int t)
{
    int n = p->grid.size[dim], to = dir == GRID_UP ? c + t : c - t;
    return (to < 0 ? to + n : to >= n ? to - n : to) * p->grid.stride[dim];
}

/* One line: every slot goes to the next live node, up to the first free one. Dead nodes on the way are stepped over. */
static bool slide_line(const struct place *p, int32_t node, int dim, int dir, struct place_plan *plan)
{
    int c = p->coord[node][dim], steps = room(p, c, dim, dir);
    int32_t base = node - c * p->grid.stride[dim], from = node, slot = plan->slot;
    bool longer = false;
    plan->count = 0;
    for (int t = 1; t <= steps; t++) {
        int32_t to = base + step_offset(p, c, dim, dir, t), next = p->slot_at[to];
        if (next == PLACE_DEAD)
            continue;
        if (plan->count < plan->most)
            push(plan, slot, from, to);
        else
            longer = true;
        if (next == PLACE_FREE) {
            reverse(plan);
            plan->bounded |= longer;
            return !longer;
        }
        from = to;
        slot = next;
    }
    return false;
}

static bool layer_empty(const struct place *p, int32_t base, const int32_t *off, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (p->slot_at[base + off[i]] >= 0)
            return false;
    return true;
}

/* A slide of all lines spanned by across: the layers of the failed node and beyond, up to the first one without
 * slots. */
struct slab {
    int c, dim, dir;
    int32_t base;       /* the node of coordinate 0 in dim, and of the first line */
    int layers;         /* that move; 0: there is no empty one to move to */
    const int32_t *off; /* [n] the nodes of a layer */
    int32_t n;
};

static struct slab find_slab(const struct place *p, int32_t node, int dim, int dir, unsigned across)
{
    struct slab s = {.c = p->coord[node][dim], .dim = dim, .dir = dir, .off = p->section[across], .layers = 1};
    int steps = room(p, s.c, dim, dir);
    s.n = p->section_len[across];
    s.base = node - s.c * p->grid.stride[dim];
    for (int d = 0; d < p->grid.ndims; d++)
        if (across >> d & 1)
            s.base -= p->coord[node][d] * p->grid.stride[d];
    while (s.layers <= steps && !layer_empty(p, s.base + step_offset(p, s.c, dim, dir, s.layers), s.off, s.n))
        s.layers++;
    if (s.layers > steps)
        s.layers = 0;
    return s;
}

/* Node i of layer t, as an offset from the base. */
static inline int32_t slab_node(const struct place *p, const struct slab *s, int t, int32_t i)
{
    return step_offset(p, s->c, s->dim, s->dir, t) + s->off[i];
}

/* Lines along the first dimension lie one behind the other in memory; along others it is the layers. */
static bool by_lines(const struct slab *s)
{
    return s->dim == 0;
}

static inline bool slab_moves(const struct place *p, int32_t at, int32_t node)
{
    return p->slot_at[at] >= 0 || at == node;
}

int32_t place_slide_moves(const struct place *p, int32_t node, int dim, int dir, unsigned across, int32_t most)
{
    struct slab s = find_slab(p, node, dim, dir, across);
    int32_t moves = s.layers ? 0 : -1, outer = by_lines(&s) ? s.n : s.layers, inner = by_lines(&s) ? s.layers : s.n;
    for (int32_t k = 0; k < outer && moves >= 0; k++) {
        bool dead = false;
        for (int32_t j = 0; j < inner; j++) {
            int t = by_lines(&s) ? j : k;
            int32_t i = by_lines(&s) ? k : j;
            bool on = slab_moves(p, s.base + slab_node(p, &s, t, i), node);
            moves += on;
            dead = dead || (on && p->slot_at[s.base + slab_node(p, &s, t + 1, i)] == PLACE_DEAD);
        }
        if (dead || moves > most)
            moves = -1;
    }
    return moves;
}

/* The slot of a node moves one layer on, if there is one. returns   false when the node there is dead. */
static inline bool push_step(const struct place *p, int32_t from, int32_t to, int32_t node, struct place_plan *plan)
{
    if (!slab_moves(p, from, node))
        return true;
    push(plan, from == node ? plan->slot : p->slot_at[from], from, to);
    return p->slot_at[to] != PLACE_DEAD;
}

bool place_slide_along(const struct place *p, int32_t node, int dim, int dir, unsigned across, struct place_plan *plan)
{
    if (!across)
        return slide_line(p, node, dim, dir, plan);
    if (plan->most < INT32_MAX && place_slide_moves(p, node, dim, dir, across, INT32_MAX) > plan->most) {
        plan->bounded = true;
        return false;
    }
    struct slab s = find_slab(p, node, dim, dir, across);
    int32_t outer = by_lines(&s) ? s.n : s.layers, inner = by_lines(&s) ? s.layers : s.n;
    plan->count = 0;
    for (int32_t k = 0; k < outer && s.layers; k++)
        for (int32_t j = 0; j < inner; j++) {
            int t = s.layers - 1 - (by_lines(&s) ? j : k);
            int32_t i = by_lines(&s) ? k : j;
            if (!push_step(p, s.base + slab_node(p, &s, t, i), s.base + slab_node(p, &s, t + 1, i), node, plan))
                return false;
        }
    return s.layers;
}

/* Upwards first, where the spares are; on a torus the shorter way to the spares first. */
static bool slide_dim(const struct place *p, int32_t node, int dim, unsigned across, struct place_plan *plan)
{
    int c = p->coord[node][dim];
    int first =
        room(p, c, dim, GRID_UP) <= 0 || (p->grid.torus[dim] && 2 * c < p->grid.size[dim]) ? GRID_DOWN : GRID_UP;
    return place_slide_along(p, node, dim, first, across, plan) ||
           place_slide_along(p, node, dim, !first, across, plan);
}

/* The nearest free node. When an earlier failure in one of this node's lines went to a side, another side is preferred.
 */
static bool slide_0d(const struct place *p, int32_t node, struct place_plan *plan)
{
    const struct grid *g = &p->grid;
    unsigned avoid = 0;
    for (int d = 0; d < g->ndims && p->layout.r > 1; d++) {
        int side = p->last_side[(size_t)d * (size_t)g->nodes + (size_t)(node - p->coord[node][d] * g->stride[d])];
        if (side)
            avoid |= 1u << (side - 1);
    }
    int32_t best = avoid ? place_nearest(p, node, avoid) : -1;
    if (best < 0)
        best = place_nearest(p, node, 0);
    if (best < 0)
        return false;
    push(plan, plan->slot, node, best);
    plan->zero = true;
    return true;
}

static struct place_order place_order_default(void)
{
    return (struct place_order){.dim = {1, 0, 2, 3, 4, 5}};
}

/* What a method's step carries in its argument: q, which end of the further dimensions is first, and how each place of
 * the order differs from the default one, so that a bare q stands for that. */
enum { ARG_HIGH = 1 << 4, ARG_DIMS = 5 };

void *place_slide_arg(int q, const struct place_order *o)
{
    struct place_order base = place_order_default();
    intptr_t arg = q | (o->high_first ? ARG_HIGH : 0);
    for (int i = 0; i < GRID_MAX_DIMS; i++)
        arg |= (intptr_t)(o->dim[i] ^ base.dim[i]) << (ARG_DIMS + 3 * i);
    return (void *)arg;
}

/* All slides of order k along dim. */
static bool slide_sets(const struct place *p, int32_t node, int k, int dim, bool high_first, struct place_plan *plan)
{
    unsigned sets = 1u << p->grid.ndims;
    for (unsigned i = 0; i < sets; i++) {
        unsigned across = high_first ? sets - 1 - i : i;
        if (!(across >> dim & 1) && __builtin_popcount(across) == k - 1 && slide_dim(p, node, dim, across, plan))
            return true;
    }
    return false;
}

bool place_slide(const struct place *p, int32_t node, struct place_plan *plan, void *arg)
{
    intptr_t code = (intptr_t)arg;
    int k = (int)(code & 0xf);
    if (k == 0)
        return slide_0d(p, node, plan);
    struct place_order base = place_order_default();
    for (int i = 0; i < GRID_MAX_DIMS; i++) {
        int dim = base.dim[i] ^ (int)(code >> (ARG_DIMS + 3 * i) & 7);
        if (dim < p->grid.ndims && slide_sets(p, node, k, dim, code & ARG_HIGH, plan))
            return true;
    }
    return false;
}
