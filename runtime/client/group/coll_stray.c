/* Messages of groups that are not known here: kept while something is being created, else answered. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "collectives/message.h"
#include "runtime/client/client.h"
#include "runtime/client/group/coll_int.h"

uint64_t coll_made_number(const struct client *c, uint64_t id)
{
    for (size_t i = 0; i < c->coll.n_made; i++)
        if (c->coll.made[i].id == id)
            return c->coll.made[i].number;
    return 0;
}

bool coll_remember_made(struct client *c, uint64_t id, uint64_t number)
{
    struct coll *k = &c->coll;
    for (size_t i = 0; i < k->n_made; i++)
        if (k->made[i].id == id) {
            k->made[i].number = number;
            return true;
        }
    if (k->n_made == k->cap_made) {
        size_t cap = k->cap_made ? 2 * k->cap_made : 16;
        struct made_count *more = realloc(k->made, cap * sizeof *more);
        if (!more)
            return false;
        k->made = more;
        k->cap_made = cap;
    }
    k->made[k->n_made++] = (struct made_count){id, number};
    return true;
}

static void drop_stray(struct client *c, struct stray **link)
{
    struct stray *s = *link;
    *link = s->next;
    if (!*link)
        c->coll.strays_tail = link;
    c->coll.stray_bytes -= s->len;
    free(s);
}

void coll_stray(struct client *c, uint64_t group, int from, bool creating, const void *data, size_t len)
{
    struct message_head h;
    uint64_t made = creating ? coll_made_number(c, group) : UINT64_MAX;
    bool done = creating && message_head_read(data, len, &h) && engine_number(h.seq) <= made;
    if (done || (!creating && !c->coll.creating)) {
        (void)coll_note(c, from, PARCEL_GONE, group, made); /* memory for it is reserved, here and below */
        return;
    }
    struct stray *s = c->coll.stray_bytes + len <= STRAY_BYTES_MAX ? malloc(sizeof *s + len) : NULL;
    if (!s) { /* the sender's timers and attempts make it good */
        (void)coll_note(c, from, PARCEL_LOST, group, 0);
        return;
    }
    *s =
        (struct stray){.group = group, .from = from, .life = c->coll.life[from].life, .creating = creating, .len = len};
    memcpy(s->data, data, len);
    *c->coll.strays_tail = s;
    c->coll.strays_tail = &s->next;
    c->coll.stray_bytes += len;
}

void coll_strays_of(struct client *c, struct keel_group *g, uint64_t now)
{
    for (struct stray **link = &c->coll.strays; *link;) {
        struct stray *s = *link;
        int member = group_member_of(g->ranks, s->from);
        if (s->group != group_id(g->ranks)) {
            link = &s->next;
            continue;
        }
        if (g->engine && member >= 0 && coll_member_lives(g, member))
            engine_receive(g->engine, member, s->data, s->len, now);
        drop_stray(c, link);
    }
    if (g->engine)
        coll_wake_at(c, engine_deadline(g->engine));
}

/* The senders that have died say nothing any more. */
void coll_strays_view(struct client *c)
{
    for (struct stray **link = &c->coll.strays; *link;) {
        if ((*link)->life == c->coll.life[(*link)->from].life)
            link = &(*link)->next;
        else
            drop_stray(c, link);
    }
}

void coll_strays_told(struct client *c, uint64_t now)
{
    if (!c->coll.strays_left || c->coll.creating)
        return;
    c->coll.strays_left = false;
    for (struct stray **link = &c->coll.strays; *link;) {
        if ((*link)->creating) {
            link = &(*link)->next;
            continue;
        }
        if (!coll_note(c, (*link)->from, PARCEL_GONE, (*link)->group, UINT64_MAX)) {
            c->coll.strays_left = true;
            coll_wake_at(c, now + COLL_MISSED_NS);
            return;
        }
        drop_stray(c, link);
    }
}

void coll_created(struct client *c)
{
    if (--c->coll.creating)
        return;
    c->coll.strays_left = true;
    coll_strays_told(c, c->env.now(c->env.user));
}
