#include "runtime/protocol/stripe.h"

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

static uint64_t slowest_second(const struct stripe *s, int first)
{
    uint64_t n = UINT64_MAX;
    for (int copy = 0; copy < s->copies; copy++)
        if (copy != first && s->second_taken[copy][first] < n)
            n = s->second_taken[copy][first];
    return n;
}

bool stripe_take(struct stripe *s, int copy, struct stripe_piece *piece)
{
    piece->second = false;
    for (int first = 0; first < s->copies && !piece->second; first++)
        if (first != copy && s->second_taken[copy][first] < s->first_done[first]) {
            piece->second = true;
            piece->offset = offset_of(s, first, s->second_taken[copy][first]++);
        }
    if (!piece->second) {
        piece->offset = offset_of(s, copy, s->first_taken[copy]);
        if (piece->offset >= s->len || s->first_taken[copy] - slowest_second(s, copy) >= STRIPE_AHEAD)
            return false;
        s->first_taken[copy]++;
    }
    uint64_t left = s->len - piece->offset, whole = piece->offset ? s->chunk : s->chunk - s->skew;
    piece->len = left < whole ? left : whole;
    return true;
}

void stripe_first_done(struct stripe *s, int copy)
{
    s->first_done[copy]++;
}
