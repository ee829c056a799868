/* The most recent output of a node, kept for whoever attaches later: whole frames, oldest dropped first. Pure. */
#ifndef KEEL_PM_KEELD_BACKLOG_H
#define KEEL_PM_KEELD_BACKLOG_H

#include "pm/wire/bytes.h"

struct backlog {
    size_t limit; /* bytes of frame bodies kept, at most */
    size_t used;
    struct backlog_entry *first, *last;
};

void backlog_init(struct backlog *b, size_t limit);
void backlog_add(struct backlog *b, const void *frame, size_t len);
void backlog_each(const struct backlog *b, void (*visit)(void *user, const uint8_t *frame, size_t len), void *user);
void backlog_free(struct backlog *b);
#endif
