#include "runtime/client/range.h"

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

uint64_t range_take(struct range *r, uint64_t bytes, void *owner)
{
    if (bytes > r->bytes || !has_room(r))
        return 0;
    uint64_t whole = ((bytes + RANGE_PAGE - 1) & ~(uint64_t)(RANGE_PAGE - 1)) + RANGE_PAGE, at = r->base;
    size_t i = 0;
    for (; i < r->n && r->place[i].base - at < whole; i++)
        at = r->place[i].base + r->place[i].bytes;
    if (whole > r->base + r->bytes - at)
        return 0;
    memmove(&r->place[i + 1], &r->place[i], (r->n - i) * sizeof r->place[0]);
    r->place[i] = (struct range_place){at, whole, owner};
    r->n++;
    return at;
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
