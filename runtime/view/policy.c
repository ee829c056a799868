#include "runtime/view/policy.h"

#include <string.h>

#include "runtime/view/plan.h"
#include "runtime/view/view_int.h"

static int members(const struct view *v)
{
    return view_ids(v);
}

/* ---- domains ---- */

static int nodes_apart(const struct view *v, int a, int b)
{
    const struct copy_rule *c = &v->copies;
    for (int level = c->levels; level > 0; level--) {
        const int *domain = &c->domain[(level - 1) * members(v)];
        if (domain[a] != domain[b])
            return level;
    }
    return 0;
}

/* Of the node and each of the copyset's live copies. */
static int apart_from_all(const struct view *v, const struct view_copyset *g, int node)
{
    int least = v->copies.levels;
    for (int i = 0; i < g->copies; i++)
        if (v->alive[g->copy[i].node] && nodes_apart(v, g->copy[i].node, node) < least)
            least = nodes_apart(v, g->copy[i].node, node);
    return least;
}

int policy_apart(const struct view *v, const struct view_copyset *g)
{
    int most = 0;
    for (int i = 0; i < g->copies; i++)
        for (int k = 0; k < i; k++)
            if (nodes_apart(v, g->copy[i].node, g->copy[k].node) > most)
                most = nodes_apart(v, g->copy[i].node, g->copy[k].node);
    return most;
}

/* ---- the ring ---- */

/* The domains' numbers of the highest level first, then the nodes'. */
static bool stands_before(const struct view *v, int a, int b)
{
    int level = nodes_apart(v, a, b);
    if (!level)
        return a < b;
    const int *domain = &v->copies.domain[(level - 1) * members(v)];
    return domain[a] < domain[b];
}

void policy_begin(struct view *v)
{
    for (int s = 0; s < v->nodes; s++) {
        int place = s;
        if (v->copies.levels) {
            place = 0;
            for (int other = 0; other < v->nodes; other++)
                place += stands_before(v, other, s);
        }
        v->ring[place] = s;
    }
}

void policy_replace(struct view *v, int node, int spare)
{
    for (int place = 0; place < v->nodes; place++)
        if (v->ring[place] == spare)
            return; /* it has a place by another slot */
    for (int place = 0; place < v->nodes; place++)
        if (v->ring[place] == node)
            v->ring[place] = spare;
}

void policy_look(struct view *v)
{
    memset(v->load, 0, (size_t)(CLASSES * members(v)) * sizeof *v->load);
    for (int g = 0; g < v->nodes * CLASSES; g++)
        for (int i = 0; i < v->copyset[g].copies; i++)
            policy_count(v, g, v->copyset[g].copy[i].node);
    for (int m = 0; m < members(v); m++)
        v->live[m] = -1;
    v->live_nodes = 0;
    for (int place = 0; place < v->nodes; place++)
        if (v->alive[v->ring[place]])
            v->live[v->ring[place]] = v->live_nodes++;
}

void policy_count(struct view *v, int copyset, int node)
{
    v->load[(int)copyset_class(copyset) * members(v) + node]++;
}

void policy_uncount(struct view *v, int copyset, int node)
{
    v->load[(int)copyset_class(copyset) * members(v) + node]--;
}

/* ---- a further copy ---- */

/* It takes no copy to be filled. A copyset that starts again has nothing to fill. */
static bool is_full(const struct view *v, const struct view_copyset *g, int node)
{
    return v->full[node] && g->copies > 0;
}

static bool can_have(const struct view *v, const struct view_copyset *g, int node)
{
    return v->alive[node] && !is_full(v, g, node) && view_copy_at(g, node) < 0;
}

bool policy_can_have(const struct view *v, int copyset, int node)
{
    return can_have(v, &v->copyset[copyset], node);
}

struct candidate {
    int node;
    int apart, load;
    bool idle;
    int far;   /* in the ring, from the nearest copy */
    int order; /* from the primary on */
};

static int ring_distance(const struct view *v, int a, int b)
{
    int there = v->live[a] - v->live[b];
    there = there < 0 ? -there : there;
    return there < v->live_nodes - there ? there : v->live_nodes - there;
}

/* Beside the copies of g. */
static struct candidate consider(const struct view *v, int copyset, const struct view_copyset *g, int node)
{
    struct candidate c = {.node = node, .apart = apart_from_all(v, g, node), .idle = v->spare_free[node]};
    c.load = v->load[(int)copyset_class(copyset) * members(v) + node];
    int first = g->copies ? g->copy[0].node : copyset_slot(copyset);
    c.order = (node - first + members(v)) % members(v);
    if (v->live[node] < 0)
        return c;
    c.far = v->live_nodes;
    for (int i = 0; i < g->copies; i++)
        if (v->live[g->copy[i].node] >= 0 && ring_distance(v, node, g->copy[i].node) < c.far)
            c.far = ring_distance(v, node, g->copy[i].node);
    if (v->live[first] >= 0)
        c.order = (v->live[node] - v->live[first] + v->live_nodes) % v->live_nodes;
    return c;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (a->apart != b->apart)
        return a->apart > b->apart;
    if (a->idle != b->idle)
        return b->idle;
    if (a->load != b->load)
        return a->load < b->load;
    if (a->far != b->far)
        return a->far > b->far;
    return a->order < b->order;
}

/* All copies but that one. */
static struct view_copyset without(const struct view_copyset *g, int k)
{
    struct view_copyset others = *g;
    others.copies--;
    others.copy[k] = g->copy[others.copies];
    return others;
}

bool policy_is_better(const struct view *v, int copyset, int a, int b)
{
    const struct view_copyset *g = &v->copyset[copyset], but_a = without(g, a), but_b = without(g, b);
    struct candidate ca = consider(v, copyset, &but_a, g->copy[a].node),
                     cb = consider(v, copyset, &but_b, g->copy[b].node);
    return is_better(&ca, &cb);
}

static int farthest_copy(const struct view *v, int copyset)
{
    struct candidate best = {.node = -1};
    for (int m = 0; m < members(v); m++) {
        if (!can_have(v, &v->copyset[copyset], m))
            continue;
        struct candidate c = consider(v, copyset, &v->copyset[copyset], m);
        if (best.node < 0 || is_better(&c, &best))
            best = c;
    }
    return best.node;
}

static int next_copy(const struct view *v, int copyset)
{
    const struct view_copyset *g = &v->copyset[copyset];
    int first = g->copies ? g->copy[0].node : copyset_slot(copyset), best = -1, best_cost = 0;
    for (int k = g->copies ? 1 : 0; k < members(v); k++) {
        int m = (first + k) % members(v);
        if (!can_have(v, g, m))
            continue;
        /* copysets of one copy cost only who allocates there */
        int cost = v->spare_free[m] ? 4 * CLASSES * v->nodes : 0;
        for (int c = 1; c < CLASSES; c++)
            cost += v->load[c * members(v) + m];
        if (best < 0 || cost < best_cost) {
            best = m;
            best_cost = cost;
        }
    }
    return best;
}

int policy_copy(const struct view *v, int copyset)
{
    int home = view_slot_node(v, copyset_slot(copyset));
    if (home >= 0 && can_have(v, &v->copyset[copyset], home))
        return home;
    return v->copies.at == COPIES_AT_NEXT ? next_copy(v, copyset) : farthest_copy(v, copyset);
}

/* ---- evenness ---- */

/* May the copyset's k-th copy, which was placed in this view, be on this node just as well? */
static bool may_move(const struct view *v, int copyset, int k, int node)
{
    const struct view_copyset *g = &v->copyset[copyset];
    struct view_copyset others = without(g, k);
    int at = g->copy[k].node;
    return can_have(v, g, node) && v->spare_free[node] == v->spare_free[at] &&
           apart_from_all(v, &others, node) >= apart_from_all(v, &others, at);
}

/* It is not what its ranks' node has, or the one to which they go. */
static bool is_free_to_move(const struct view *v, int copyset, int k)
{
    const struct view_copy *copy = &v->copyset[copyset].copy[k];
    int slot = copyset_slot(copyset);
    return !copy->whole && copy->placed == v->epoch && copy->node != view_slot_node(v, slot) &&
           copy->node != plan_slot_target(v, slot);
}

/* A copyset moves once on a way: two of its copies could meet. */
static bool moves_already(const struct view_step *way, int node, int copyset)
{
    for (; way[node].from >= 0; node = way[node].from)
        if (way[node].copyset == copyset)
            return true;
    return false;
}

/* Each node on the way hands a copy on to the next one: the first has one less, the last one more. */
static void take_way(struct view *v, int redundancy, int last)
{
    int *load = &v->load[redundancy * members(v)], node = last;
    for (const struct view_step *s = &v->way[node]; s->from >= 0; node = s->from, s = &v->way[node])
        v->copyset[s->copyset].copy[s->copy].node = node;
    load[node]--;
    load[last]++;
}

/* The node hands a copy on, over others if need be, to one that has at least two fewer. */
static bool relieve(struct view *v, int redundancy, int start)
{
    const int *load = &v->load[redundancy * members(v)];
    int first = 0, last = 0;
    for (int m = 0; m < members(v); m++)
        v->way[m].from = -2;
    v->way[start].from = -1;
    for (v->queue[last++] = start; first < last; first++) {
        int at = v->queue[first];
        for (int s = 0; s < v->nodes; s++) {
            int copyset = copyset_of(s, (unsigned)redundancy), k = view_copy_at(&v->copyset[copyset], at);
            if (k < 0 || !is_free_to_move(v, copyset, k) || moves_already(v->way, at, copyset))
                continue;
            for (int m = 0; m < members(v); m++) {
                if (v->way[m].from != -2 || !may_move(v, copyset, k, m))
                    continue;
                v->way[m] = (struct view_step){.from = at, .copyset = copyset, .copy = k};
                v->queue[last++] = m;
                if (load[m] > load[start] - 2)
                    continue;
                take_way(v, redundancy, m);
                return true;
            }
        }
    }
    return false;
}

static bool anything_is_free_to_move(const struct view *v, int redundancy)
{
    for (int s = 0; s < v->nodes; s++)
        for (int k = 0, copyset = copyset_of(s, (unsigned)redundancy); k < v->copyset[copyset].copies; k++)
            if (is_free_to_move(v, copyset, k))
                return true;
    return false;
}

/* Each way taken makes the sum of the squares smaller: it ends. */
void policy_even(struct view *v)
{
    for (int c = 1; c < CLASSES && v->copies.at == COPIES_AT_HALF; c++)
        for (bool moved = anything_is_free_to_move(v, c); moved;) {
            moved = false;
            for (int m = 0; m < members(v); m++)
                moved = (v->alive[m] && relieve(v, c, m)) || moved;
        }
}

/* ---- the start ---- */

static int next_first_copy(const struct view *v, int copyset, int i)
{
    int slot = copyset_slot(copyset);
    if (i < v->nodes)
        return (slot + i) % v->nodes;
    /* Too few computing nodes: spares keep what is missing. */
    return i < v->next_id ? i : -1;
}

int policy_first_copy(const struct view *v, int copyset, int i)
{
    if (v->copies.at == COPIES_AT_NEXT)
        return next_first_copy(v, copyset, i);
    const struct view_copyset *g = &v->copyset[copyset];
    int away = i * v->nodes / ((int)copyset_class(copyset) + 1);
    int node = v->ring[(v->live[copyset_slot(copyset)] + away) % v->nodes];
    if (view_copy_at(g, node) >= 0)
        return -1; /* so few nodes */
    int apart = apart_from_all(v, g, node);
    for (int m = 0; m < v->next_id && apart < v->copies.levels; m++)
        if (view_copy_at(g, m) < 0 && apart_from_all(v, g, m) > apart)
            return -1;
    return node;
}

/* ---- spares ---- */

/* From what is left of the slots whose ranks the dead node ran. */
static int spare_apart(const struct view *v, int node, int spare)
{
    int least = v->copies.levels;
    for (int s = 0; s < v->nodes; s++)
        for (unsigned c = 1; c < CLASSES && view_slot_node(v, s) == node; c++) {
            int apart = apart_from_all(v, &v->copyset[copyset_of(s, c)], spare);
            least = apart < least ? apart : least;
        }
    return least;
}

int policy_spare(const struct view *v, int node)
{
    int best = -1, best_apart = 0;
    for (int m = 0; m < members(v); m++) {
        int apart = view_is_spare(v, m) ? spare_apart(v, node, m) : -1;
        if (apart >= 0 && (best < 0 || apart > best_apart)) {
            best = m;
            best_apart = apart;
        }
    }
    return best;
}
