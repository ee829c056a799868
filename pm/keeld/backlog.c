#include "pm/keeld/backlog.h"

#include <stdlib.h>
#include <string.h>

struct backlog_entry {
    struct backlog_entry *next;
    size_t len;
    uint8_t frame[];
};

void backlog_init(struct backlog *b, size_t limit)
{
    *b = (struct backlog){.limit = limit};
}

static void drop_first(struct backlog *b)
{
    struct backlog_entry *e = b->first;
    b->first = e->next;
    if (!b->first)
        b->last = NULL;
    b->used -= e->len;
    free(e);
}

void backlog_add(struct backlog *b, const void *frame, size_t len)
{
    if (len > b->limit)
        return;
    while (b->used + len > b->limit)
        drop_first(b);
    struct backlog_entry *e = pm_alloc(sizeof *e + len);
    e->len = len;
    memcpy(e->frame, frame, len);
    if (b->last)
        b->last->next = e;
    else
        b->first = e;
    b->last = e;
    b->used += len;
}

void backlog_each(const struct backlog *b, void (*visit)(void *user, const uint8_t *frame, size_t len), void *user)
{
    for (const struct backlog_entry *e = b->first; e; e = e->next)
        visit(user, e->frame, e->len);
}

void backlog_free(struct backlog *b)
{
    while (b->first)
        drop_first(b);
}
