/* Two levels: the places of a node among themselves, where messages are cheap, and one leader of each node with the
 * others. Nodes count by number, so the order of a sum does not change when a node's places move to another machine
 * together. */
#include "collectives/schedule_int.h"

#include <stdlib.h>

struct levels {
    struct team local, leaders;
    int *memory;
};

/* first[node]: its leader, the first of its places; of the root's node the root, which is also the first leader. */
static bool find_levels(struct levels *l, const struct schedule_shape *shape, int root)
{
    int n = shape->places, nodes = 0;
    for (int i = 0; i < n; i++)
        nodes = shape->node[i] >= nodes ? shape->node[i] + 1 : nodes;
    l->memory = malloc((2 * (size_t)n + (size_t)nodes) * sizeof *l->memory);
    if (!l->memory)
        return false;
    int *local = l->memory, *leaders = local + n, *first = leaders + n;
    for (int i = n - 1; i >= 0; i--)
        first[shape->node[i]] = i;
    if (root >= 0)
        first[shape->node[root]] = root;
    l->local = (struct team){.place = local, .me = -1, .tag = 0};
    l->leaders = (struct team){.place = leaders, .me = -1, .tag = PART};
    int head = first[shape->node[shape->me]];
    local[l->local.n++] = head;
    if (root >= 0)
        leaders[l->leaders.n++] = root;
    for (int i = 0; i < n; i++) {
        if (shape->node[i] == shape->node[shape->me] && i != head)
            local[l->local.n++] = i;
        if (first[shape->node[i]] == i && i != root)
            leaders[l->leaders.n++] = i;
    }
    for (int i = 0; i < l->local.n; i++)
        l->local.me = local[i] == shape->me ? i : l->local.me;
    for (int i = 0; i < l->leaders.n; i++)
        l->leaders.me = leaders[i] == shape->me ? i : l->leaders.me;
    return true;
}

void build_two_level(struct schedule *s, const struct schedule_shape *shape)
{
    bool rooted = shape->kind != SCHEDULE_ALLREDUCE;
    struct schedule_region data = region(SCHEDULE_OUT, 0);
    struct levels l = {0};
    if (!find_levels(&l, shape, rooted ? shape->root : -1)) {
        s->failed = true;
        return;
    }
    bool leader = l.leaders.me >= 0;
    if (shape->kind != SCHEDULE_BCAST) {
        add_copy(s, data, region(SCHEDULE_IN, 0), shape->len);
        part_reduce(s, &l.local, data, shape->len);
    }
    if (leader && shape->kind == SCHEDULE_BCAST)
        part_bcast(s, &l.leaders, data, shape->len);
    else if (leader && shape->kind == SCHEDULE_REDUCE)
        part_reduce(s, &l.leaders, data, shape->len);
    else if (leader)
        part_allreduce(s, &l.leaders, data, shape->len);
    l.local.tag = 2 * PART;
    if (shape->kind != SCHEDULE_REDUCE)
        part_bcast(s, &l.local, data, shape->len);
    free(l.memory);
}
