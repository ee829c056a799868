/* Memory of messages between ranks. */
#include <stdlib.h>

#include "runtime/client/stream/courier_int.h"

/* For messages of calls for which there is no memory, so that a call can say at least that: so many to a rank at a
 * time, and to so many ranks. */
enum { PUT_BY_EACH = 2, PUT_BY_RANKS = 64 };

bool courier_put_by(struct client *c)
{
    int n = PUT_BY_EACH * (c->size < PUT_BY_RANKS ? c->size : PUT_BY_RANKS);
    for (int i = 0; i < n; i++) {
        struct parcel *p = calloc(1, sizeof *p);
        if (!p)
            return false;
        p->put_by = true;
        p->next = c->coll.put_by;
        c->coll.put_by = p;
    }
    return true;
}

static struct parcel *take_put_by(struct client *c)
{
    struct parcel *p = c->coll.put_by;
    c->coll.put_by = p ? p->next : NULL;
    return p;
}

static void put_back(struct client *c, struct parcel *p)
{
    if (!p->put_by) {
        free(p);
        return;
    }
    p->next = c->coll.put_by;
    c->coll.put_by = p;
}

void parcel_free(struct client *c, struct stream *s, struct parcel *p)
{
    free(p->kept);
    p->kept = NULL;
    s->put_by -= p->put_by;
    s->hollow -= p->hollow;
    put_back(c, p);
}

struct parcel *parcel_new(struct client *c, const struct stream *s, const struct parcel_tag *tag, size_t len,
                          bool *borrowed)
{
    struct parcel *p = malloc(sizeof *p + (*borrowed ? 0 : len));
    if (p) {
        p->put_by = false;
        return p;
    }
    if (tag->kind == PARCEL_ENGINE && (!len || tag->group) && s->put_by < PUT_BY_EACH) {
        p = take_put_by(c);
        *borrowed = len > 0;
    } else if (tag->kind != PARCEL_ENGINE && !len) {
        p = c->coll.spare;
        c->coll.spare = NULL;
    }
    return p;
}

bool courier_reserve(struct client *c)
{
    if (!c->coll.spare)
        c->coll.spare = calloc(1, sizeof *c->coll.spare);
    if (!c->coll.spare)
        c->coll.spare = take_put_by(c);
    return c->coll.spare;
}

void parcel_free_put_by(struct client *c)
{
    for (struct parcel *p; (p = take_put_by(c)) != NULL;)
        free(p);
}
