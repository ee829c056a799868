#include "detect/idset.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at id or above; s->n: none does. */
static int find(const struct idset *s, int id)
{
    int lo = 0, hi = s->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->r[mid].hi < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool idset_has(const struct idset *s, int id)
{
    int i = find(s, id);
    return i < s->n && s->r[i].lo <= id;
}

int idset_below(const struct idset *s, int id)
{
    int i = find(s, id);
    if (i == s->n)
        return s->count;
    return s->r[i].before + (id > s->r[i].lo ? id - s->r[i].lo : 0);
}

int idset_next(const struct idset *s, int from)
{
    int i = find(s, from);
    if (i == s->n)
        return -1;
    return s->r[i].lo > from ? s->r[i].lo : from;
}

int idset_next_out(const struct idset *s, int from)
{
    int i = find(s, from);
    return i < s->n && s->r[i].lo <= from ? s->r[i].hi + 1 : from; /* ranges do not touch */
}

int idset_nth_out(const struct idset *s, int k)
{
    int lo = 0, hi = s->n; /* the ranges that lie below the k-th: those with at most k ids out of the set before them */
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->r[mid].lo - s->r[mid].before <= k)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == 0 ? k : k + s->r[lo - 1].before + (s->r[lo - 1].hi - s->r[lo - 1].lo + 1);
}

int idset_common(const struct idset *a, const struct idset *b)
{
    int n = 0;
    for (int i = 0, k = 0; i < a->n && k < b->n;) {
        int lo = a->r[i].lo > b->r[k].lo ? a->r[i].lo : b->r[k].lo;
        int hi = a->r[i].hi < b->r[k].hi ? a->r[i].hi : b->r[k].hi;
        if (lo <= hi)
            n += hi - lo + 1;
        if (a->r[i].hi < b->r[k].hi)
            i++;
        else
            k++;
    }
    return n;
}

static bool reserve(struct idset *s, int n)
{
    if (n <= s->cap)
        return true;
    int cap = 2 * s->cap > n ? 2 * s->cap : n;
    struct idrange *r = realloc(s->r, (size_t)cap * sizeof *r);
    if (!r)
        return false;
    s->r = r;
    s->cap = cap;
    return true;
}

static void count_from(struct idset *s, int i)
{
    for (; i < s->n; i++)
        s->r[i].before = i ? s->r[i - 1].before + s->r[i - 1].hi - s->r[i - 1].lo + 1 : 0;
}

static void remove_at(struct idset *s, int i)
{
    s->n--;
    memmove(&s->r[i], &s->r[i + 1], (size_t)(s->n - i) * sizeof *s->r);
}

static bool insert_at(struct idset *s, int i, int lo, int hi)
{
    if (!reserve(s, s->n + 1))
        return false;
    memmove(&s->r[i + 1], &s->r[i], (size_t)(s->n - i) * sizeof *s->r);
    s->r[i].lo = lo;
    s->r[i].hi = hi;
    s->n++;
    return true;
}

bool idset_add(struct idset *s, int id)
{
    int i = find(s, id);
    if (i < s->n && s->r[i].lo <= id)
        return true;
    bool left = i > 0 && s->r[i - 1].hi == id - 1, right = i < s->n && s->r[i].lo == id + 1;
    if (left && right) {
        s->r[i - 1].hi = s->r[i].hi;
        remove_at(s, i);
    } else if (left) {
        s->r[i - 1].hi = id;
    } else if (right) {
        s->r[i].lo = id;
    } else if (!insert_at(s, i, id, id)) {
        return false;
    }
    s->count++;
    count_from(s, i > 0 ? i - 1 : 0);
    return true;
}

bool idset_del(struct idset *s, int id)
{
    int i = find(s, id);
    if (i == s->n || s->r[i].lo > id)
        return true;
    struct idrange *r = &s->r[i];
    if (r->lo == r->hi) {
        remove_at(s, i);
    } else if (r->lo == id) {
        r->lo++;
    } else if (r->hi == id) {
        r->hi--;
    } else {
        int hi = r->hi;
        if (!insert_at(s, i + 1, id + 1, hi))
            return false;
        s->r[i].hi = id - 1;
    }
    s->count--;
    count_from(s, i);
    return true;
}

bool idset_copy(struct idset *to, const struct idset *from)
{
    if (!reserve(to, from->n))
        return false;
    if (from->n)
        memcpy(to->r, from->r, (size_t)from->n * sizeof *to->r);
    to->n = from->n;
    to->count = from->count;
    return true;
}

/* A range behind, or into, the last one. There is room for it. */
static void append(struct idset *s, int lo, int hi)
{
    struct idrange *last = s->n ? &s->r[s->n - 1] : NULL;
    if (last && lo <= last->hi + 1)
        last->hi = hi > last->hi ? hi : last->hi;
    else
        s->r[s->n++] = (struct idrange){.lo = lo, .hi = hi};
}

bool idset_union(struct idset *to, const struct idset *from, const int *ids, int n)
{
    if (!reserve(to, from->n + n))
        return false;
    idset_clear(to);
    for (int i = 0, k = 0; i < from->n || k < n;) {
        if (k == n || (i < from->n && from->r[i].lo <= ids[k])) {
            append(to, from->r[i].lo, from->r[i].hi);
            i++;
        } else {
            append(to, ids[k], ids[k]);
            k++;
        }
    }
    count_from(to, 0);
    if (to->n)
        to->count = to->r[to->n - 1].before + to->r[to->n - 1].hi - to->r[to->n - 1].lo + 1;
    return true;
}

void idset_clear(struct idset *s)
{
    s->n = s->count = 0;
}

void idset_free(struct idset *s)
{
    free(s->r);
    *s = (struct idset){.r = 0};
}
