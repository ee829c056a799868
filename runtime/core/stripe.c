#include "runtime/core/stripe.h"

#include <string.h>

enum { ALIGN = 64 };

void stripe_init(struct stripe *s, uint64_t len)
{
    memset(s, 0, sizeof *s);
    uint64_t pairs = (len + 2 * STRIPE_CHUNK_MAX - 1) / (2 * STRIPE_CHUNK_MAX);
    uint64_t chunk = (len + 2 * pairs - 1) / (2 * pairs);
    s->len = len;
    s->chunk = (chunk + ALIGN - 1) / ALIGN * ALIGN;
}

/* The n-th of the chunks that go to `copy` first. */
static uint64_t offset_of(const struct stripe *s, int copy, uint64_t n)
{
    return (2 * n + (uint64_t)copy) * s->chunk;
}

bool stripe_take(struct stripe *s, int copy, struct stripe_piece *piece)
{
    int other = 1 - copy;
    piece->second = s->second_taken[copy] < s->first_done[other];
    if (piece->second) {
        piece->offset = offset_of(s, other, s->second_taken[copy]++);
    } else {
        piece->offset = offset_of(s, copy, s->first_taken[copy]);
        if (piece->offset >= s->len || s->first_taken[copy] - s->second_taken[other] >= STRIPE_AHEAD)
            return false;
        s->first_taken[copy]++;
    }
    uint64_t left = s->len - piece->offset;
    piece->len = left < s->chunk ? left : s->chunk;
    return true;
}

void stripe_first_done(struct stripe *s, int copy)
{
    s->first_done[copy]++;
}
