#include "runtime/wire/stripe.h"

#include <string.h>

enum { ALIGN = 64 };

void stripe_init(struct stripe *s, uint64_t offset, uint64_t len, int copies)
{
    memset(s, 0, sizeof *s);
    s->skew = offset % ALIGN;
    uint64_t turn = (uint64_t)copies;
    uint64_t turns = (len + turn * STRIPE_CHUNK_MAX - 1) / (turn * STRIPE_CHUNK_MAX);
    uint64_t chunk = (len + turn * turns - 1) / (turn * turns);
    s->len = len;
    s->copies = copies;
    s->chunk = (chunk + ALIGN - 1) / ALIGN * ALIGN;
}

/* The n-th of the chunks that go to `copy` first. */
static uint64_t offset_of(const struct stripe *s, int copy, uint64_t n)
{
    uint64_t chunk = (uint64_t)s->copies * n + (uint64_t)copy;
    return chunk ? chunk * s->chunk - s->skew : 0;
}

/* The chunks of which the copy is the level-th have this one as their first. */
static int first_of(const struct stripe *s, int copy, int level)
{
    return (copy - level + s->copies) % s->copies;
}

static bool is_ready(const struct stripe *s, int first, int level)
{
    const uint64_t *taken = s->taken[first];
    if (level > 0)
        return taken[level] < s->done[first][level - 1];
    return offset_of(s, first, taken[0]) < s->len && taken[0] - taken[s->copies - 1] < STRIPE_AHEAD;
}

bool stripe_take(struct stripe *s, int copy, struct stripe_piece *piece)
{
    int level = s->copies - 1; /* what others have for the longest time */
    while (level >= 0 && !is_ready(s, first_of(s, copy, level), level))
        level--;
    if (level < 0)
        return false;
    int first = first_of(s, copy, level);
    piece->level = level;
    piece->offset = offset_of(s, first, s->taken[first][level]++);
    uint64_t left = s->len - piece->offset, whole = piece->offset ? s->chunk : s->chunk - s->skew;
    piece->len = left < whole ? left : whole;
    return true;
}

void stripe_done(struct stripe *s, int copy, int level)
{
    s->done[first_of(s, copy, level)][level]++;
}
