/* Messages that are kept in the order in which they came: what cannot be executed yet (execute.h), what is for a
 * process that is still to come (parcels.h). */
#ifndef KEEL_AGENT_STASH_H
#define KEEL_AGENT_STASH_H

#include <stdbool.h>

#include "runtime/wire/wire.h"

struct conn;

struct stashed {
    struct stashed *next;
    struct conn *conn; /* where it came; NULL: that does not count */
    struct wire wire;
    uint8_t body[];
};

struct stash {
    struct stashed *first, **tail;
};

/* A stash is where it was made until stash_free: it points into itself. */
static inline void stash_init(struct stash *s)
{
    *s = (struct stash){.tail = &s->first};
}
/* Copies header and body. False: out of memory. */
bool stash_keep(struct stash *s, struct conn *conn, const struct wire *w, const void *body);
/* All of them, the caller's to free one by one; the stash is empty then. */
struct stashed *stash_take(struct stash *s);
/* Look at each in order; one that is done with is freed. */
void stash_look(struct stash *s, bool (*is_done)(void *user, const struct stashed *one), void *user);
/* It is empty then. Also of an all-zero one. */
void stash_free(struct stash *s);
#endif
