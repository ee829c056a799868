#include "runtime/client/segment/range.h"

#include <stdlib.h>
#include <string.h>

static bool has_room(struct range *r)
{
    if (r->n < r->max)
        return true;
    size_t max = r->max ? 2 * r->max : 16;
    struct range_place *wider = realloc(r->place, max * sizeof *wider);
    if (!wider)
        return false;
    r->place = wider;
    r->max = max;
    return true;
}

/* With a page behind. */
static uint64_t whole(uint64_t bytes)
{
    return ((bytes + RANGE_PAGE - 1) & ~(uint64_t)(RANGE_PAGE - 1)) + RANGE_PAGE;
}

/* The lowest place from `at` on and before `end`; 0: none. *before gets how many places are below it. */
static uint64_t first_fit(const struct range *r, uint64_t at, uint64_t end, uint64_t bytes, size_t *before)
{
    size_t i = 0;
    for (; i < r->n && (r->place[i].base < at || r->place[i].base - at < bytes); i++)
        if (r->place[i].base + r->place[i].bytes > at)
            at = r->place[i].base + r->place[i].bytes;
    *before = i;
    return at <= end && bytes <= end - at ? at : 0;
}

static void insert(struct range *r, size_t i, uint64_t base, uint64_t bytes, void *owner)
{
    memmove(&r->place[i + 1], &r->place[i], (r->n - i) * sizeof r->place[0]);
    r->place[i] = (struct range_place){base, bytes, owner};
    r->n++;
}

uint64_t range_take(struct range *r, uint64_t bytes, void *owner)
{
    size_t i;
    if (bytes > r->bytes || !has_room(r))
        return 0;
    uint64_t at = first_fit(r, r->base, r->base + r->bytes, whole(bytes), &i);
    if (at)
        insert(r, i, at, whole(bytes), owner);
    return at;
}

uint64_t range_above(const struct range *r, uint64_t bytes, uint64_t from)
{
    size_t i;
    uint64_t base = r->base + r->bytes;
    return bytes > r->bytes ? 0 : first_fit(r, from > base ? from : base, base + r->bytes, whole(bytes), &i);
}

bool range_take_above(struct range *r, uint64_t base, uint64_t bytes, void *owner)
{
    size_t i = 0;
    if (!has_room(r))
        return false;
    while (i < r->n && r->place[i].base < base)
        i++;
    insert(r, i, base, whole(bytes), owner);
    return true;
}

/* The place with the greatest base that is not above the address; n: none. */
static size_t search(const struct range *r, uint64_t address)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->place[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : r->n;
}

void range_give(struct range *r, uint64_t base)
{
    size_t i = search(r, base);
    if (i == r->n || r->place[i].base != base)
        return;
    memmove(&r->place[i], &r->place[i + 1], (r->n - i - 1) * sizeof r->place[0]);
    r->n--;
}

void *range_find(const struct range *r, uint64_t address)
{
    size_t i = search(r, address);
    return i < r->n && address - r->place[i].base < r->place[i].bytes ? r->place[i].owner : NULL;
}

void range_fini(struct range *r)
{
    free(r->place);
    r->place = NULL;
    r->n = r->max = 0;
}
