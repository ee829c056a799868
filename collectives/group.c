#include "collectives/group.h"

#include <stdlib.h>

#include "runtime/base/bitset.h"

struct group {
    int refs;
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

/* The list becomes the group's, or is freed. */
static enum group_status keep_list(struct group *g, int *list)
{
    g->rank = list;
    g->sorted = malloc((size_t)g->n * sizeof *g->sorted);
    if (!g->sorted)
        return GROUP_NOMEM;
    for (int i = 0; i < g->n; i++)
        g->sorted[i] = i;
    qsort_r(g->sorted, (size_t)g->n, sizeof *g->sorted, by_rank, list);
    for (int i = 1; i < g->n; i++)
        if (list[g->sorted[i]] == list[g->sorted[i - 1]])
            return GROUP_BAD;
    return GROUP_OK;
}

static bool is_stride(const int *list, int n, int *stride)
{
    *stride = n > 1 ? list[1] - list[0] : 1;
    for (int i = 1; i < n; i++)
        if (list[i] - list[i - 1] != *stride)
            return false;
    return *stride != 0;
}

/* Takes list over. */
static enum group_status make(int ranks, int *list, int n, uint64_t number, struct group **out)
{
    enum group_status status = GROUP_OK;
    struct group *g = calloc(1, sizeof *g);
    if (!g) {
        free(list);
        return GROUP_NOMEM;
    }
    *g = (struct group){.refs = 1, .ranks = ranks, .n = n, .first = n ? list[0] : 0, .stride = 1};
    g->id = mix(mix(0, (uint64_t)n), number);
    for (int i = 0; i < n; i++) {
        g->id = mix(g->id, (uint64_t)list[i]);
        if (list[i] < 0 || list[i] >= ranks)
            status = GROUP_BAD;
    }
    if (status != GROUP_OK || is_stride(list, n, &g->stride))
        free(list);
    else
        status = keep_list(g, list);
    if (status == GROUP_OK)
        *out = g;
    else
        group_unref(g);
    return status;
}

static int *new_list(int n)
{
    return malloc((size_t)(n ? n : 1) * sizeof(int));
}

enum group_status group_list(int ranks, const int *list, int n, uint64_t number, struct group **out)
{
    if (ranks < 1 || n < 0 || n > ranks)
        return GROUP_BAD;
    int *copy = new_list(n);
    if (!copy)
        return GROUP_NOMEM;
    for (int i = 0; i < n; i++)
        copy[i] = list[i];
    return make(ranks, copy, n, number, out);
}

enum group_status group_world(int ranks, struct group **out)
{
    if (ranks < 1)
        return GROUP_BAD;
    int *list = new_list(ranks);
    if (!list)
        return GROUP_NOMEM;
    for (int i = 0; i < ranks; i++)
        list[i] = i;
    return make(ranks, list, ranks, 0, out);
}

struct group *group_ref(struct group *g)
{
    g->refs++;
    return g;
}

void group_unref(struct group *g)
{
    if (!g || --g->refs)
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

int group_member(const struct group *g, int rank)
{
    if (rank < 0 || rank >= g->ranks)
        return -1;
    if (g->rank)
        return find(g, rank);
    int member = (rank - g->first) / g->stride;
    return member >= 0 && member < g->n && g->first + member * g->stride == rank ? member : -1;
}

bool group_same(const struct group *a, const struct group *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (group_rank(a, i) != group_rank(b, i))
            return false;
    return true;
}

void group_translate(const struct group *a, const int *from, int n, const struct group *b, int *to)
{
    for (int i = 0; i < n; i++)
        to[i] = group_member(b, group_rank(a, from[i]));
}

/* ------------------------------------------------------------------------------------------------ one from others */

/* Appends those of g that are (not) in filter; no filter: all. */
static int append(int *list, int n, const struct group *g, const struct group *filter, bool inside)
{
    for (int i = 0; i < g->n; i++) {
        int rank = group_rank(g, i);
        if (!filter || (group_member(filter, rank) >= 0) == inside)
            list[n++] = rank;
    }
    return n;
}

enum group_status group_union(const struct group *a, const struct group *b, uint64_t number, struct group **out)
{
    if (a->ranks != b->ranks)
        return GROUP_BAD;
    int *list = new_list(a->n + b->n);
    if (!list)
        return GROUP_NOMEM;
    int n = append(list, 0, a, NULL, true);
    n = append(list, n, b, a, false);
    return make(a->ranks, list, n, number, out);
}

static enum group_status filtered(const struct group *a, const struct group *b, bool inside, uint64_t number,
                                  struct group **out)
{
    if (a->ranks != b->ranks)
        return GROUP_BAD;
    int *list = new_list(a->n);
    if (!list)
        return GROUP_NOMEM;
    int n = append(list, 0, a, b, inside);
    return make(a->ranks, list, n, number, out);
}

enum group_status group_intersection(const struct group *a, const struct group *b, uint64_t number, struct group **out)
{
    return filtered(a, b, true, number, out);
}

enum group_status group_difference(const struct group *a, const struct group *b, uint64_t number, struct group **out)
{
    return filtered(a, b, false, number, out);
}

enum group_status group_include(const struct group *g, const int *members, int n, uint64_t number, struct group **out)
{
    if (n < 0 || n > g->n)
        return GROUP_BAD;
    int *list = new_list(n);
    if (!list)
        return GROUP_NOMEM;
    for (int i = 0; i < n; i++)
        list[i] = group_rank(g, members[i]); /* -1 of a wrong member is no rank and found out */
    return make(g->ranks, list, n, number, out);
}

enum group_status group_exclude(const struct group *g, const int *members, int n, uint64_t number, struct group **out)
{
    struct group *named;
    enum group_status status = group_include(g, members, n, 0, &named);
    if (status != GROUP_OK)
        return status;
    status = group_difference(g, named, number, out);
    group_unref(named);
    return status;
}

enum group_status group_keep(const struct group *g, const uint64_t *members, uint64_t number, struct group **out)
{
    int *list = new_list(g->n), n = 0;
    if (!list)
        return GROUP_NOMEM;
    for (int i = 0; i < g->n; i++)
        if (bitset_has(members, i))
            list[n++] = group_rank(g, i);
    return make(g->ranks, list, n, mix(g->id, number), out);
}

static int by_key(const void *a, const void *b, void *keys)
{
    const int *key = keys;
    int x = *(const int *)a, y = *(const int *)b;
    if (key[x] != key[y])
        return key[x] < key[y] ? -1 : 1;
    return (x > y) - (x < y);
}

enum group_status group_split(const struct group *g, const int *colour, const int *key, int mine, uint64_t number,
                              struct group **out)
{
    if (mine < 0)
        return GROUP_BAD;
    int *list = new_list(g->n), n = 0;
    if (!list)
        return GROUP_NOMEM;
    for (int i = 0; i < g->n; i++)
        if (colour[i] == mine)
            list[n++] = i;
    qsort_r(list, (size_t)n, sizeof *list, by_key, (void *)key);
    for (int i = 0; i < n; i++)
        list[i] = group_rank(g, list[i]);
    return make(g->ranks, list, n, mix(number, (uint64_t)mine), out);
}
