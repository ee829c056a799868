/* What calls of groups ask and say of the messages that they have sent. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/client/stream/courier_int.h"

void courier_keep(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now)
{
    for (int r = 0; r < c->size; r++)
        for (struct parcel *p = courier_stream(c, r)->head; p; p = p->next) {
            if (!p->borrowed || p->tag.group != group || (seq && p->tag.seq != seq) || !(p->kept = malloc(p->len)))
                continue; /* without memory they are waited for */
            memcpy(p->kept, p->data, p->len);
            p->data = p->kept;
            p->borrowed = false;
            courier_stream(c, r)->loose += parcel_weight(p);
            coll_delivered(c, p->tag.group, p->tag.seq, r, now);
        }
}

void courier_drop(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now)
{
    for (int r = 0; r < c->size; r++) {
        struct stream *s = courier_stream(c, r);
        for (struct parcel *p = s->head; p; p = p->next) {
            if (!p->borrowed || p->tag.group != group || p->tag.seq != seq)
                continue;
            p->borrowed = false;
            p->hollow = true;
            p->data = NULL;
            s->hollow++;
            s->loose += parcel_weight(p);
            coll_delivered(c, p->tag.group, p->tag.seq, r, now);
        }
        if (s->hollow)
            courier_pump(c, r, now);
    }
}

void courier_arrived(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now)
{
    for (int r = 0; r < c->size; r++) {
        uint64_t last = 0;
        for (const struct parcel *p = courier_stream(c, r)->head; p; p = p->next)
            if (p->borrowed && p->tag.group == group && p->tag.seq == seq)
                last = p->first + p->pieces - 1;
        courier_acknowledged(c, r, last, now);
    }
}

/* It is stopped, and a call has waited for it long enough: there is no room to it before it goes on. */
static bool is_stopped(const struct client *c, int rank)
{
    if (c->coll.stream[rank].given_up)
        return true;
    for (const struct keel_group *g = c->coll.groups; g; g = g->next) {
        int blamed = g->engine && engine_revoked(g->engine) ? engine_blamed(g->engine) : -1;
        if (blamed >= 0 && group_rank(g->ranks, blamed) == rank)
            return true;
    }
    return false;
}

bool courier_has_given_up(const struct client *c, int rank)
{
    return is_stopped(c, rank);
}

bool courier_has_engine_of(const struct client *c, int rank, bool (*of)(const struct keel_group *, const void *),
                           const void *arg)
{
    const struct parcel *p = c->coll.life[rank].life ? c->coll.stream[rank].at : NULL;
    while (p && !(p->tag.kind == PARCEL_ENGINE && (!p->tag.group || of(p->tag.group, arg))))
        p = p->next;
    return p && !is_stopped(c, rank);
}

static bool is_that(const struct keel_group *g, const void *group)
{
    return g == group;
}

int courier_engine_to(const struct client *c, const struct keel_group *group)
{
    int r = 0;
    while (r < c->size && !courier_has_engine_of(c, r, is_that, group))
        r++;
    return r < c->size ? r : -1;
}

bool courier_has_engine(const struct client *c, const struct keel_group *group)
{
    return courier_engine_to(c, group) >= 0;
}

bool courier_has_unsent(const struct client *c, int rank, uint32_t kind)
{
    const struct parcel *p = c->coll.stream[rank].at;
    while (p && p->next)
        p = p->next;
    return p && p->first > c->coll.stream[rank].sent && p->tag.kind == kind;
}
