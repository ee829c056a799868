#include "runtime/client/keep/layout.h"

#include <string.h>

static size_t pages(size_t bytes)
{
    return (bytes + KEEP_PAGE - 1) & ~(size_t)(KEEP_PAGE - 1);
}

size_t keep_part_bytes(size_t room)
{
    return room > SIZE_MAX / 4 ? 0 : KEEP_PAGE + 2 * (KEEP_PAGE + pages(room));
}

size_t keep_table_at(size_t room, int side)
{
    return KEEP_PAGE + (size_t)side * (KEEP_PAGE + pages(room));
}

size_t keep_bytes_at(size_t room, int side)
{
    return keep_table_at(room, side) + KEEP_PAGE;
}

size_t keep_rounded(size_t bytes)
{
    return (bytes + KEEP_ALIGN - 1) & ~(size_t)(KEEP_ALIGN - 1);
}

int keep_choose(const struct keep_root *root, uint64_t count)
{
    int best = -1;
    for (int i = 0; i < 2; i++)
        if (root->side[i].version && root->side[i].at <= count + 1 &&
            (best < 0 || root->side[i].version > root->side[best].version))
            best = i;
    return best;
}

bool keep_table_is_sound(const struct keep_table *t, size_t room)
{
    uint64_t used = 0;
    if (t->ranges > KEEP_RANGES)
        return false;
    for (uint64_t i = 0; i < t->ranges; i++) {
        const struct keep_entry *e = &t->entry[i];
        if (!memchr(e->name, 0, sizeof e->name) || !*e->name || e->at != used || e->bytes > pages(room))
            return false;
        used += keep_rounded(e->bytes);
    }
    return used == t->used && used <= pages(room);
}

const struct keep_entry *keep_find(const struct keep_table *t, const char *name)
{
    for (uint64_t i = 0; i < t->ranges; i++)
        if (strcmp(t->entry[i].name, name) == 0)
            return &t->entry[i];
    return NULL;
}
