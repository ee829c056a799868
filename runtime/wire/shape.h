/* Descriptors of strided and vector operations: whether they make sense, and the contiguous runs that they consist
 * of. Pure. */
#ifndef KEEL_WIRE_SHAPE_H
#define KEEL_WIRE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHAPE_LEVELS_MAX = 8 };

/* Sides of a piece. */
enum shape_side { SHAPE_GLOBAL, SHAPE_LOCAL, SHAPE_SIDES };

/* A strided descriptor without the levels that have one piece. */
struct shape {
    int levels;
    uint64_t run;                                   /* bytes; 0: there is nothing */
    uint64_t count[SHAPE_LEVELS_MAX];               /* at least 2 */
    uint64_t stride[SHAPE_SIDES][SHAPE_LEVELS_MAX]; /* bytes */
    uint64_t extent[SHAPE_SIDES];                   /* bytes from the first to behind the last */
};

/* count has levels + 1 entries, the strides have levels. False: too many levels, or an extent that no size_t holds. */
bool shape_init(struct shape *s, int levels, const size_t *count, const size_t *global, const size_t *local);
/* Levels that go on without a gap on both sides become part of the run. */
void shape_merge(struct shape *s);
/* Are the runs on that side known to be apart, by each stride being at least the extent of what has smaller ones? */
bool shape_is_apart(const struct shape *s, enum shape_side side);
/* Does everything on that side start and end at multiples of align, if the first byte does? */
bool shape_is_aligned(const struct shape *s, enum shape_side side, uint64_t align);
uint64_t shape_runs(const struct shape *s);

struct shape_walk {
    const struct shape *shape;
    uint64_t at[SHAPE_LEVELS_MAX];
    uint64_t place[SHAPE_SIDES];
    bool over;
};

void shape_walk_init(struct shape_walk *w, const struct shape *s);
/* The next run: where it begins on both sides. False: there is none. */
bool shape_walk_next(struct shape_walk *w, uint64_t place[SHAPE_SIDES]);

/* The next runs that lie at one stride from each other: how many, where the first begins, and the strides. 0: there
 * is none. */
uint64_t shape_walk_row(struct shape_walk *w, uint64_t place[SHAPE_SIDES], uint64_t stride[SHAPE_SIDES]);

/* Places of vector pieces; sorted by this call. Do none of them overlap? */
struct shape_span {
    uint64_t at, len;
};
bool shape_spans_are_apart(struct shape_span *span, size_t n);
#endif
