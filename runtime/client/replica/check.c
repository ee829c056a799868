#include "runtime/client/replica/check.h"

#include <string.h>

#include "runtime/wire/digest.h"

/* ---- what was done ---- */

void check_init(struct check *c, struct check_entry *ring, size_t places)
{
    *c = (struct check){.ring = ring, .places = places, .stride = places};
}

/* Every second one goes when there is no place left. */
static void mark(struct check *c)
{
    if (c->now.count % c->stride)
        return;
    if (c->marks == CHECK_MARKS) {
        size_t kept = 0;
        c->stride *= 2;
        for (size_t i = 0; i < c->marks; i++)
            if (c->mark[i].number % c->stride == 0)
                c->mark[kept++] = c->mark[i];
        c->marks = kept;
    }
    if (c->now.count % c->stride == 0)
        c->mark[c->marks++] = (struct check_mark){c->now.count, c->now.after};
}

void check_add(struct check *c, const struct check_op *op)
{
    struct check_entry *e = &c->ring[c->now.count & (c->places - 1)];
    e->op = *op;
    c->now.after = e->after = digest(op, sizeof *op, c->now.after);
    c->now.count++;
    mark(c);
}

void check_was_equal(struct check *c)
{
    c->equal = c->now;
    c->marks = 0;
    c->stride = c->places;
}

void check_settle(struct check *c, const struct check_sum *with)
{
    c->now = *with;
    check_was_equal(c);
}

const struct check_entry *check_find(const struct check *c, uint64_t number)
{
    if (number == 0 || number > c->now.count || c->now.count - number >= c->places)
        return NULL;
    return &c->ring[(number - 1) & (c->places - 1)];
}

uint64_t check_oldest(const struct check *c)
{
    uint64_t gone = c->now.count > c->places ? c->now.count - c->places : 0;
    return (gone > c->equal.count ? gone : c->equal.count) + 1;
}

/* ---- the comparison ---- */

static bool same(const struct check_sum *a, const struct check_sum *b)
{
    return a->count == b->count && a->after == b->after;
}

struct check_outcome check_compare(const struct check_sum *sums, const bool *there)
{
    struct check_outcome out = {.verdict = CHECK_EQUAL, .odd = -1, .a = -1, .b = -1};
    int who[CHECK_REPLICAS_MAX], n = 0;
    for (int i = 0; i < CHECK_REPLICAS_MAX; i++)
        if (there[i])
            who[n++] = i;
    for (int i = 1; i < n && out.a < 0; i++)
        if (!same(&sums[who[0]], &sums[who[i]])) {
            out.a = who[0];
            out.b = who[i];
        }
    if (out.a < 0)
        return out;
    out.verdict = CHECK_NO_MAJORITY;
    for (int i = 0; n == 3 && i < 3; i++)
        if (same(&sums[who[(i + 1) % 3]], &sums[who[(i + 2) % 3]])) {
            out.verdict = CHECK_ONE_DIFFERS;
            out.odd = who[i];
        }
    return out;
}

/* ---- the first that differs ---- */

/* The greatest number up to which both were equal, as far as marks say; and, in *until, the least one after which they
 * were not. */
static uint64_t equal_by_marks(const struct check *a, const struct check *b, uint64_t *until)
{
    uint64_t equal = a->equal.count;
    size_t j = 0;
    for (size_t i = 0; i < a->marks; i++) {
        while (j < b->marks && b->mark[j].number < a->mark[i].number)
            j++;
        if (j == b->marks || b->mark[j].number != a->mark[i].number)
            continue;
        if (b->mark[j].after != a->mark[i].after) {
            *until = a->mark[i].number < *until ? a->mark[i].number : *until;
            break;
        }
        equal = a->mark[i].number;
    }
    return equal;
}

/* What stands in the rings from `from` on, which is the first that is in both: nothing before is known there. */
static struct check_first in_rings(const struct check *a, const struct check *b, uint64_t from, uint64_t equal)
{
    uint64_t both = a->now.count < b->now.count ? a->now.count : b->now.count;
    for (uint64_t n = from; n <= both; n++) {
        const struct check_entry *x = check_find(a, n), *y = check_find(b, n);
        if (x->after == y->after)
            continue;
        /* Those before are equal if this one is not, or if that is known. */
        bool first = n > from || equal + 1 >= from;
        return (struct check_first){first ? CHECK_KNOWN : CHECK_WITHIN, first ? n : equal + 1, n};
    }
    if (a->now.count == b->now.count)
        return (struct check_first){.found = CHECK_SAME};
    /* One has done more; if the rings have none in common, they may have parted before. */
    bool first = from <= both || equal == both;
    return (struct check_first){first ? CHECK_KNOWN : CHECK_WITHIN, first ? both + 1 : equal + 1, both + 1};
}

struct check_first check_first(const struct check *a, const struct check *b)
{
    uint64_t until = UINT64_MAX, equal = equal_by_marks(a, b, &until);
    uint64_t oldest_a = check_oldest(a), oldest_b = check_oldest(b), from = oldest_a > oldest_b ? oldest_a : oldest_b;
    if (until < from) /* before the rings begin, and known so by the marks */
        return (struct check_first){CHECK_WITHIN, equal + 1, until};
    return in_rings(a, b, from, equal);
}
