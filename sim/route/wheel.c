#include "sim/route/wheel.h"

#include <stdlib.h>
#include <string.h>

bool wheel_init(struct wheel *w)
{
    memset(w, 0, sizeof *w);
    w->slot = malloc(WHEEL_SLOTS * sizeof *w->slot);
    w->bits = calloc(WHEEL_SLOTS / 64, sizeof *w->bits);
    if (!w->slot || !w->bits)
        return false;
    for (int i = 0; i < WHEEL_SLOTS; i++)
        w->slot[i] = WHEEL_EMPTY;
    return true;
}

void wheel_fini(struct wheel *w)
{
    free(w->slot);
    free(w->bits);
    free(w->heap);
}

uint64_t wheel_next(const struct wheel *w, uint64_t now)
{
    uint32_t at = (uint32_t)now & (WHEEL_SLOTS - 1);
    uint32_t word = at >> 6;
    uint64_t bits = w->bits[word] & (~0ull << (at & 63));
    if (bits)
        return now + ((word << 6 | (uint32_t)__builtin_ctzll(bits)) - at);
    /* The words behind it, round the wheel, back to its own lower part. */
    for (uint32_t step = 0, next = (word + 1) & 1023; step <= 16; step++) {
        uint64_t sum = w->sum[next >> 6] & (~0ull << (next & 63));
        if (sum) {
            word = (next & ~63u) | (uint32_t)__builtin_ctzll(sum);
            uint32_t i = word << 6 | (uint32_t)__builtin_ctzll(w->bits[word]);
            return now + ((i - at) & (WHEEL_SLOTS - 1));
        }
        next = ((next | 63) + 1) & 1023;
    }
    return UINT64_MAX;
}

static bool before(const struct wheel_far *a, const struct wheel_far *b)
{
    return a->time != b->time ? a->time < b->time : a->code < b->code;
}

bool wheel_push_far(struct wheel *w, uint64_t time, uint32_t code)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 256;
        struct wheel_far *more = realloc(w->heap, cap * sizeof *more);
        if (!more)
            return false;
        w->heap = more;
        w->cap = cap;
    }
    struct wheel_far e = {time, code};
    size_t i = w->n++;
    for (; i && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
    return true;
}

uint32_t wheel_pop_far(struct wheel *w)
{
    uint32_t code = w->heap[0].code;
    struct wheel_far e = w->heap[--w->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->n; i = child) {
        if (child + 1 < w->n && before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!before(&w->heap[child], &e))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = e;
    return code;
}
