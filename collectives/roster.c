#include "collectives/roster.h"

#include <stdlib.h>

#include "runtime/base/bitset.h"

struct roster {
    int refs, n, live;
    uint64_t epoch;
    int *before;     /* [words] live members before that word; NULL if all live. Behind the bits. */
    uint64_t *after; /* [n], NULL: 0 for all */
    uint64_t bits[];
};

struct roster *roster_room(int n)
{
    unsigned words = BITSET_WORDS(n);
    struct roster *r = calloc(1, sizeof *r + words * (sizeof *r->bits + sizeof *r->before));
    if (r)
        r->refs = 1;
    return r;
}

uint64_t *roster_room_bits(struct roster *room)
{
    return room->bits;
}

void roster_fill(struct roster *r, int n, uint64_t epoch)
{
    unsigned words = BITSET_WORDS(n);
    r->n = n;
    r->live = bitset_count(r->bits, words);
    r->epoch = epoch;
    if (r->live == n)
        return;
    r->before = (int *)(r->bits + words);
    for (unsigned i = 0, sum = 0; i < words; i++) {
        r->before[i] = (int)sum;
        sum += (unsigned)__builtin_popcountll(r->bits[i]);
    }
}

bool roster_set_after(struct roster *r, const uint64_t *after)
{
    r->after = malloc((size_t)r->n * sizeof *after);
    if (r->after)
        memcpy(r->after, after, (size_t)r->n * sizeof *after);
    return r->after;
}

uint64_t roster_last_after(const struct roster *r)
{
    uint64_t last = 0;
    for (int m = r->after ? roster_next(r, 0) : -1; m >= 0; m = roster_next(r, m + 1))
        last = r->after[m] > last ? r->after[m] : last;
    return last;
}

struct roster *roster_for(struct roster *r, uint64_t number)
{
    bool all = true;
    for (int m = roster_next(r, 0); r->after && all && m >= 0; m = roster_next(r, m + 1))
        all = r->after[m] < number;
    if (all)
        return roster_ref(r);
    struct roster *smaller = roster_room(r->n);
    if (!smaller)
        return NULL;
    for (int m = roster_next(r, 0); m >= 0; m = roster_next(r, m + 1))
        if (r->after[m] < number)
            bitset_add(smaller->bits, m);
    roster_fill(smaller, r->n, r->epoch);
    return smaller;
}

struct roster *roster_ref(struct roster *r)
{
    r->refs++;
    return r;
}

void roster_unref(struct roster *r)
{
    if (!r || --r->refs)
        return;
    free(r->after);
    free(r);
}

uint64_t roster_epoch(const struct roster *r)
{
    return r->epoch;
}

int roster_size(const struct roster *r)
{
    return r->n;
}

int roster_live(const struct roster *r)
{
    return r->live;
}

bool roster_has(const struct roster *r, int member)
{
    return member >= 0 && member < r->n && bitset_has(r->bits, member);
}

int roster_place(const struct roster *r, int member)
{
    if (!roster_has(r, member))
        return -1;
    if (!r->before)
        return member;
    uint64_t below = r->bits[member >> 6] & ((1ull << (member & 63)) - 1);
    return r->before[member >> 6] + __builtin_popcountll(below);
}

int roster_member(const struct roster *r, int place)
{
    if (place < 0 || place >= r->live)
        return -1;
    if (!r->before)
        return place;
    unsigned lo = 0, hi = BITSET_WORDS(r->n); /* the last word with before <= place */
    while (hi - lo > 1) {
        unsigned mid = lo + (hi - lo) / 2;
        if (r->before[mid] <= place)
            lo = mid;
        else
            hi = mid;
    }
    uint64_t word = r->bits[lo];
    for (int skip = place - r->before[lo]; skip; skip--)
        word &= word - 1;
    return (int)(lo * 64) + __builtin_ctzll(word);
}

int roster_next(const struct roster *r, int from)
{
    return bitset_next(r->bits, BITSET_WORDS(r->n), from);
}

const uint64_t *roster_bits(const struct roster *r)
{
    return r->bits;
}
