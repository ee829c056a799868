#include <stdlib.h>

#include "runtime/agent/ranks.h"
#include "runtime/agent/repair_int.h"
#include "runtime/base/fault.h"

void repair_add_doubt(struct agent *a, uint32_t rank, uint32_t incarnation, const struct patch *patch)
{
    struct doubt *d = malloc(sizeof *d);
    if (!d) {
        agent_break(a, "out of memory for the patches of a dead writer");
        return;
    }
    *d = (struct doubt){.next = a->doubts, .rank = rank, .incarnation = incarnation, .patch = *patch};
    a->doubts = d;
}

/* A proposal that said that the writer gave up, or is dead, was not committed; it lives, and all copies have it now. */
void repair_forget_doubt(struct agent *a, uint32_t rank, uint32_t incarnation, const struct wire *w)
{
    struct doubt **link = &a->doubts;
    while (*link) {
        struct doubt *d = *link;
        const struct patch *p = &d->patch;
        if (d->epoch == 0 && d->rank == rank && d->incarnation == incarnation && p->torn && p->put == w->identity &&
            p->seg == w->seg && p->slot == w->slot && p->offset == w->offset) {
            *link = d->next;
            free(d);
        } else {
            link = &d->next;
        }
    }
}

static int group_of_patch(const struct agent *a, const struct patch *p)
{
    const struct store_segment *s = store_find(&a->store, p->seg);
    return s && p->slot < a->view.nodes ? group_of(p->slot, s->redundancy) : -1;
}

/* The group was made equal after the writer's end was known, or there is nothing to make it equal with. */
static bool is_settled(const struct agent *a, const struct doubt *d)
{
    int group = group_of_patch(a, &d->patch);
    if (group < 0 || view_copy_at(&a->view.group[group], a->self) < 0)
        return true;
    const struct view_group *g = &a->view.group[group];
    return d->epoch && g->mode == GROUP_DIRECT && (g->generation > d->epoch || g->copies == 1);
}

void doubt_forget_settled(struct agent *a)
{
    struct doubt **link = &a->doubts;
    while (*link) {
        struct doubt *d = *link;
        if (is_settled(a, d)) {
            *link = d->next;
            free(d);
        } else {
            link = &d->next;
        }
    }
}

static bool is_torn_in(const struct agent *a, int group, const struct patch *p)
{
    return p->len && p->torn && group_of_patch(a, p) == group;
}

bool doubt_has_torn(const struct agent *a, int group)
{
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->epoch && is_torn_in(a, group, &d->patch))
            return true;
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, group, &c->note[i]))
                return true;
    return false;
}

/* The group was made equal, with what living writers had left there. */
void doubt_forget_torn(struct agent *a, int group)
{
    for (struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, group, &c->note[i]) && c->note[i].generation < a->view.group[group].generation)
                c->note[i].torn = false;
}

/* Doubts, and what living writers may have torn. What they wrote remotely is cut off (recover.c) and treated like a dead writer's:
 * a copy that is torn must not be where others are filled from. */
void doubt_for_each(struct agent *a, int group, doubt_knows *know)
{
    struct patch patch;
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->epoch && group_of_patch(a, &d->patch) == group)
            know(a, group, d->rank, d->incarnation, &d->patch, false);
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, group, &c->note[i]))
                know(a, group, (uint32_t)c->rank, c->incarnation, &c->note[i], false);
    atomic_thread_fence(memory_order_seq_cst); /* the route was changed before: with op_store_here */
    for (const struct proc *p = a->procs; p; p = p->next)
        for (int i = 0; i < INTENT_MAX; i++)
            if (ranks_intent(a, p, i, &patch) && group_of_patch(a, &patch) == group)
                know(a, group, (uint32_t)p->rank, p->incarnation, &patch, true);
}

static void tell_one(struct agent *a, int group, uint32_t rank, uint32_t incarnation, const struct patch *patch,
                     bool living)
{
    const struct view_group *g = &a->view.group[group];
    struct wire w = {.type = WIRE_DOUBT,
                     .flags = (uint8_t)((patch->torn ? WIRE_F_TORN : 0) | (living ? WIRE_F_LIVING : 0)),
                     .slot = (uint16_t)group_slot(group),
                     .seg = patch->seg,
                     .offset = patch->offset,
                     .a = (int64_t)patch->len,
                     .b = (int64_t)patch->put,
                     .rank = rank,
                     .incarnation = incarnation,
                     .identity = g->generation,
                     .lane = patch->level};
    agent_tell(a, g->copy[0].node, &w, NULL);
}

void doubt_tell_all(struct agent *a, int group)
{
    const struct view_group *g = &a->view.group[group];
    doubt_for_each(a, group, tell_one);
    FAULT_POINT("push.doubts_half_told");
    struct wire w = {.type = WIRE_DOUBT,
                     .slot = (uint16_t)group_slot(group),
                     .identity = g->generation,
                     .count = DOUBT_END,
                     .step = group_class(group)};
    agent_tell(a, g->copy[0].node, &w, NULL);
}
