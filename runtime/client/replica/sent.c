#include "runtime/client/replica/sent.h"

#include <stdlib.h>

bool sent_add(struct sent *s, const struct sent_range *range)
{
    if (s->n == s->room) {
        size_t wider = s->room ? 2 * s->room : 64;
        struct sent_range *memory = realloc(s->range, wider * sizeof *memory);
        if (!memory)
            return false;
        s->range = memory;
        s->room = wider;
    }
    s->range[s->n] = *range;
    s->range[s->n].order = (uint32_t)s->n;
    s->n++;
    return true;
}

void sent_forget(struct sent *s)
{
    s->n = 0;
}

static int by(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_where(const struct sent_range *a, const struct sent_range *b)
{
    int order = by(a->segment, b->segment);
    return order ? order : by((uint64_t)a->target, (uint64_t)b->target);
}

/* The latest first of those in one place. */
static int by_place(const void *left, const void *right)
{
    const struct sent_range *a = left, *b = right;
    int order = by_where(a, b);
    order = order ? order : by(a->place, b->place);
    order = order ? order : by(b->len, a->len);
    return order ? order : by(b->order, a->order);
}

size_t sent_alike(const struct sent *s, size_t i)
{
    size_t n = 1;
    while (i + n < s->n && by_where(&s->range[i], &s->range[i + n]) == 0)
        n++;
    return n;
}

static bool is_same_place(const struct sent_range *a, const struct sent_range *b)
{
    return by_where(a, b) == 0 && a->place == b->place && a->len == b->len;
}

static bool overlap(const struct sent_range *a, const struct sent_range *b)
{
    return by_where(a, b) == 0 && a->place < b->place + b->len && b->place < a->place + a->len;
}

/* Where several lie in one place the latest stays. */
static void drop_same(struct sent *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->range[i].len && (kept == 0 || !is_same_place(&s->range[kept - 1], &s->range[i])))
            s->range[kept++] = s->range[i];
    s->n = kept;
}

/* An earlier one under a later one is changed. Those that reach to where the next one begins are few: they move
 * together before it, at `open`. */
static void mark_covered(struct sent *s, size_t *open)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct sent_range *r = &s->range[i];
        size_t kept = 0;
        for (size_t k = 0; k < n; k++) {
            struct sent_range *before = &s->range[open[k]];
            if (!overlap(before, r))
                continue;
            if (before->order < r->order)
                before->changed = true;
            else
                r->changed = true;
            open[kept++] = open[k];
        }
        n = kept;
        open[n++] = i;
    }
}

void sent_settle(struct sent *s)
{
    bool apart = true;
    if (s->n > 1)
        qsort(s->range, s->n, sizeof *s->range, by_place);
    drop_same(s);
    for (size_t i = 1; i < s->n && apart; i++)
        apart = !overlap(&s->range[i - 1], &s->range[i]);
    size_t *open = apart ? NULL : malloc(s->n * sizeof *open);
    if (open)
        mark_covered(s, open);
    free(open);
    size_t kept = 0;
    for (size_t i = 0; i < s->n && (apart || open); i++)
        if (!s->range[i].changed)
            s->range[kept++] = s->range[i];
    s->n = kept; /* without memory nothing is known */
}
