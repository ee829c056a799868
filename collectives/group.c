#include "collectives/group.h"

#include <stdlib.h>

#include "runtime/base/bitset.h"

struct group {
    int ranks; /* of the job */
    int n;
    int first, stride; /* without a list: member i is rank first + i * stride */
    uint64_t id;
    int *rank;   /* [n], or NULL */
    int *sorted; /* [n] the members by rising rank; with rank only */
};

/* ------------------------------------------------------------------------------------------------ making */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return (h ^ (h >> 31)) + 0x9e3779b97f4a7c15u;
}

static int by_rank(const void *a, const void *b, void *ranks)
{
    const int *rank = ranks;
    int x = rank[*(const int *)a], y = rank[*(const int *)b];
    return (x > y) - (x < y);
}

static bool is_stride(const int *list, int n, int *stride)
{
    *stride = n > 1 ? list[1] - list[0] : 1;
    for (int i = 1; i < n; i++)
        if (list[i] - list[i - 1] != *stride)
            return false;
    return *stride != 0;
}

static int *new_list(int n)
{
    return malloc((size_t)(n ? n : 1) * sizeof(int));
}

struct group *group_room(int n)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    *g = (struct group){.rank = new_list(n), .sorted = new_list(n)};
    if (g->rank && g->sorted)
        return g;
    group_unref(g);
    return NULL;
}

static void trim(int **list, int n)
{
    int *less = realloc(*list, (size_t)n * sizeof **list);
    *list = less ? less : *list;
}

/* The list is in the room, of which so much is needed no more. */
static enum group_status fill(struct group *g, int ranks, int n, int room, uint64_t number)
{
    int *list = g->rank;
    g->ranks = ranks;
    g->n = n;
    g->first = n ? list[0] : 0;
    g->id = mix(mix(0, (uint64_t)n), number);
    for (int i = 0; i < n; i++) {
        g->id = mix(g->id, (uint64_t)list[i]);
        if (list[i] < 0 || list[i] >= ranks)
            return GROUP_BAD;
    }
    if (is_stride(list, n, &g->stride)) {
        free(g->rank);
        free(g->sorted);
        g->rank = g->sorted = NULL;
        return GROUP_OK;
    }
    if (n < room) {
        trim(&g->rank, n);
        trim(&g->sorted, n);
    }
    for (int i = 0; i < n; i++)
        g->sorted[i] = i;
    qsort_r(g->sorted, (size_t)n, sizeof *g->sorted, by_rank, g->rank);
    for (int i = 1; i < n; i++)
        if (g->rank[g->sorted[i]] == g->rank[g->sorted[i - 1]])
            return GROUP_BAD;
    return GROUP_OK;
}

enum group_status group_list_in(struct group *room, int ranks, const int *list, int n, uint64_t number)
{
    for (int i = 0; i < n; i++)
        room->rank[i] = list[i];
    return fill(room, ranks, n, n, number);
}

void group_unref(struct group *g)
{
    if (!g)
        return;
    free(g->rank);
    free(g->sorted);
    free(g);
}

/* ------------------------------------------------------------------------------------------------ asking */

int group_size(const struct group *g)
{
    return g->n;
}

uint64_t group_id(const struct group *g)
{
    return g->id;
}

int group_rank(const struct group *g, int member)
{
    if (member < 0 || member >= g->n)
        return -1;
    return g->rank ? g->rank[member] : g->first + member * g->stride;
}

static int find(const struct group *g, int rank)
{
    int lo = 0, hi = g->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (g->rank[g->sorted[mid]] < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < g->n && g->rank[g->sorted[lo]] == rank ? g->sorted[lo] : -1;
}

int group_member_of(const struct group *g, int rank)
{
    if (rank < 0 || rank >= g->ranks)
        return -1;
    if (g->rank)
        return find(g, rank);
    int member = (rank - g->first) / g->stride;
    return member >= 0 && member < g->n && g->first + member * g->stride == rank ? member : -1;
}

/* ------------------------------------------------------------------------------------------------ one from others */

enum group_status group_include_in(struct group *room, const struct group *g, const int *members, int n,
                                   uint64_t number)
{
    for (int i = 0; i < n; i++)
        room->rank[i] = group_rank(g, members[i]); /* -1 of a wrong member is no rank and found out */
    return fill(room, g->ranks, n, n, number);
}

void group_keep_in(struct group *room, const struct group *g, const uint64_t *members, uint64_t number)
{
    int n = 0;
    for (int i = 0; i < g->n; i++)
        if (bitset_has(members, i))
            room->rank[n++] = group_rank(g, i);
    (void)fill(room, g->ranks, n, g->n, mix(g->id, number)); /* a part of a group is one */
}

static int by_key(const void *a, const void *b, void *keys)
{
    const int *key = keys;
    int x = *(const int *)a, y = *(const int *)b;
    if (key[x] != key[y])
        return key[x] < key[y] ? -1 : 1;
    return (x > y) - (x < y);
}

void group_split_in(struct group *room, const struct group *g, const int *colour, const int *key, int mine,
                    uint64_t number)
{
    int n = 0;
    for (int i = 0; i < g->n; i++)
        if (colour[i] == mine)
            room->rank[n++] = i;
    qsort_r(room->rank, (size_t)n, sizeof *room->rank, by_key, (void *)key);
    for (int i = 0; i < n; i++)
        room->rank[i] = group_rank(g, room->rank[i]);
    (void)fill(room, g->ranks, n, g->n, mix(number, (uint64_t)mine));
}
