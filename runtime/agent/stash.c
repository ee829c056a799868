#include "runtime/agent/stash.h"

#include <stdlib.h>
#include <string.h>

bool stash_keep(struct stash *s, struct conn *conn, const struct wire *w, const void *body)
{
    struct stashed *one = malloc(sizeof *one + w->len);
    if (!one)
        return false;
    *one = (struct stashed){.conn = conn, .wire = *w};
    if (w->len)
        memcpy(one->body, body, w->len);
    *s->tail = one;
    s->tail = &one->next;
    return true;
}

struct stashed *stash_take(struct stash *s)
{
    struct stashed *all = s->first;
    stash_init(s);
    return all;
}

void stash_look(struct stash *s, bool (*is_done)(void *user, const struct stashed *one), void *user)
{
    struct stashed **link = &s->first;
    while (*link) {
        struct stashed *one = *link;
        if (is_done(user, one)) {
            *link = one->next;
            free(one);
        } else {
            link = &one->next;
        }
    }
    s->tail = link;
}

void stash_free(struct stash *s)
{
    for (struct stashed *one = stash_take(s), *next; one; one = next) {
        next = one->next;
        free(one);
    }
}
