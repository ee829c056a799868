#include "runtime/wire/shape.h"

#include <stdlib.h>
#include <string.h>

/* One more level around what is there. */
static bool add_level(struct shape *s, uint64_t count, const uint64_t stride[SHAPE_SIDES])
{
    for (int side = 0; side < SHAPE_SIDES; side++) {
        uint64_t more;
        if (__builtin_mul_overflow(count - 1, stride[side], &more) ||
            __builtin_add_overflow(s->extent[side], more, &s->extent[side]) || s->extent[side] > SIZE_MAX)
            return false;
    }
    s->count[s->levels] = count;
    for (int side = 0; side < SHAPE_SIDES; side++)
        s->stride[side][s->levels] = stride[side];
    s->levels++;
    return true;
}

bool shape_init(struct shape *s, int levels, const size_t *count, const size_t *global, const size_t *local)
{
    memset(s, 0, sizeof *s);
    if (levels < 0 || levels > SHAPE_LEVELS_MAX)
        return false;
    for (int i = 0; i <= levels; i++)
        if (count[i] == 0)
            return true;
    s->run = s->extent[SHAPE_GLOBAL] = s->extent[SHAPE_LOCAL] = count[0];
    for (int i = 0; i < levels; i++)
        if (count[i + 1] > 1 && !add_level(s, count[i + 1], (const uint64_t[SHAPE_SIDES]){global[i], local[i]}))
            return false;
    return true;
}

void shape_merge(struct shape *s)
{
    int joined = 0;
    while (joined < s->levels && s->stride[SHAPE_GLOBAL][joined] == s->run && s->stride[SHAPE_LOCAL][joined] == s->run)
        s->run *= s->count[joined++]; /* the extent, which fits */
    s->levels -= joined;
    memmove(s->count, s->count + joined, (size_t)s->levels * sizeof *s->count);
    for (int side = 0; side < SHAPE_SIDES; side++)
        memmove(s->stride[side], s->stride[side] + joined, (size_t)s->levels * sizeof *s->stride[side]);
}

bool shape_is_apart(const struct shape *s, enum shape_side side)
{
    uint64_t covered = s->run;
    unsigned done = 0;
    for (int k = 0; k < s->levels; k++) {
        int least = -1;
        for (int i = 0; i < s->levels; i++)
            if (!(done >> i & 1) && (least < 0 || s->stride[side][i] < s->stride[side][least]))
                least = i;
        if (s->stride[side][least] < covered)
            return false;
        covered += (s->count[least] - 1) * s->stride[side][least];
        done |= 1u << least;
    }
    return true;
}

bool shape_is_aligned(const struct shape *s, enum shape_side side, uint64_t align)
{
    for (int i = 0; i < s->levels; i++)
        if (s->stride[side][i] % align)
            return false;
    return s->run % align == 0;
}

uint64_t shape_runs(const struct shape *s)
{
    uint64_t runs = s->run > 0;
    for (int i = 0; i < s->levels; i++)
        if (__builtin_mul_overflow(runs, s->count[i], &runs))
            return UINT64_MAX;
    return runs;
}

void shape_walk_init(struct shape_walk *w, const struct shape *s)
{
    *w = (struct shape_walk){.shape = s, .over = s->run == 0};
}

bool shape_walk_next(struct shape_walk *w, uint64_t place[SHAPE_SIDES])
{
    const struct shape *s = w->shape;
    if (w->over)
        return false;
    memcpy(place, w->place, sizeof w->place);
    for (int i = 0; i < s->levels; i++) {
        bool again = ++w->at[i] == s->count[i];
        for (int side = 0; side < SHAPE_SIDES; side++)
            w->place[side] += again ? -(s->count[i] - 1) * s->stride[side][i] : s->stride[side][i];
        if (!again)
            return true;
        w->at[i] = 0;
    }
    w->over = true;
    return true;
}

uint64_t shape_walk_row(struct shape_walk *w, uint64_t place[SHAPE_SIDES], uint64_t stride[SHAPE_SIDES])
{
    const struct shape *s = w->shape;
    if (w->over)
        return 0;
    uint64_t n = s->levels ? s->count[0] - w->at[0] : 1;
    for (int side = 0; side < SHAPE_SIDES; side++) {
        stride[side] = s->levels ? s->stride[side][0] : 0;
        w->place[side] += (n - 1) * stride[side];
        place[side] = w->place[side] - (n - 1) * stride[side];
    }
    w->at[0] += n - 1;
    uint64_t last[SHAPE_SIDES];
    (void)shape_walk_next(w, last);
    return n;
}

static int by_place(const void *a, const void *b)
{
    const struct shape_span *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

bool shape_spans_are_apart(struct shape_span *span, size_t n)
{
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = span[i - 1].at <= span[i].at;
    if (!sorted)
        qsort(span, n, sizeof *span, by_place);
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (span[i].len == 0)
            continue;
        if (span[i].at < end)
            return false;
        end = span[i].at + span[i].len;
    }
    return true;
}
