#include "sim/place/seen.h"

#include <stdlib.h>

static bool seen_grow(struct seen *s)
{
    size_t cap = s->cap ? s->cap * 2 : 1 << 16;
    uint64_t(*slot)[2] = calloc(cap, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < s->cap; i++) {
        if (!s->slot[i][0] && !s->slot[i][1])
            continue;
        size_t at = s->slot[i][0] & (cap - 1);
        while (slot[at][0] || slot[at][1])
            at = (at + 1) & (cap - 1);
        slot[at][0] = s->slot[i][0];
        slot[at][1] = s->slot[i][1];
    }
    free(s->slot);
    s->slot = slot;
    s->cap = cap;
    return true;
}

int seen_add(struct seen *s, const uint64_t h[2])
{
    bool full = s->most && s->used >= s->most;
    if (!full && s->used * 2 >= s->cap && !seen_grow(s))
        return -1;
    size_t at = h[0] & (s->cap - 1);
    for (; s->slot[at][0] || s->slot[at][1]; at = (at + 1) & (s->cap - 1))
        if (s->slot[at][0] == h[0] && s->slot[at][1] == h[1])
            return 0;
    if (full)
        return 1;
    s->slot[at][0] = h[0];
    s->slot[at][1] = h[1];
    s->used++;
    return 1;
}

void seen_free(struct seen *s)
{
    free(s->slot);
    *s = (struct seen){.most = s->most};
}
