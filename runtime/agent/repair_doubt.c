#include <stdlib.h>

#include "runtime/agent/ranks.h"
#include "runtime/agent/repair_int.h"
#include "runtime/base/fault.h"
#include "runtime/wire/doubt.h"
#include "runtime/wire/marks.h"

void repair_add_doubt(struct agent *a, struct life writer, const struct patch *patch)
{
    struct doubt *d = malloc(sizeof *d);
    if (!d) {
        agent_break(a, "out of memory for the patches of a dead writer");
        return;
    }
    *d = (struct doubt){.next = a->repairs.doubts, .writer = writer, .patch = *patch};
    a->repairs.doubts = d;
}

/* A proposal that said that the writer gave up, or is dead, was not committed; it lives, and all copies have it now. */
void repair_forget_doubt(struct repairs *repairs, struct life writer, const struct msg_intent *m)
{
    struct doubt **link = &repairs->doubts;
    while (*link) {
        struct doubt *d = *link;
        const struct patch *p = &d->patch;
        if (d->epoch == 0 && life_equal(d->writer, writer) && p->torn && p->put == m->put && p->seg == m->at.seg &&
            p->slot == m->at.slot && p->offset == m->at.offset) {
            *link = d->next;
            free(d);
        } else {
            link = &d->next;
        }
    }
}

static int copyset_of_patch(const struct agent *a, const struct patch *p)
{
    const struct store_segment *s = store_find(&a->store, p->seg);
    return s && p->slot < a->view.nodes ? copyset_of(p->slot, s->redundancy) : -1;
}

/* The copyset was made equal after the writer's end was known, or there is nothing to make it equal with. */
static bool is_settled(const struct agent *a, const struct doubt *d)
{
    int copyset = copyset_of_patch(a, &d->patch);
    if (copyset < 0 || view_copy_at(&a->view.copyset[copyset], a->self) < 0)
        return true;
    const struct view_copyset *g = &a->view.copyset[copyset];
    return d->epoch && g->mode == COPYSET_DIRECT && (g->generation > d->epoch || g->copies == 1);
}

void doubt_forget_settled(struct agent *a)
{
    struct doubt **link = &a->repairs.doubts;
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

static bool is_torn_in(const struct agent *a, int copyset, const struct patch *p)
{
    return p->len && p->torn && copyset_of_patch(a, p) == copyset;
}

bool doubt_has_torn(const struct agent *a, int copyset)
{
    for (const struct doubt *d = a->repairs.doubts; d; d = d->next)
        if (d->epoch && is_torn_in(a, copyset, &d->patch))
            return true;
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, copyset, &c->note[i]))
                return true;
    return false;
}

/* The copyset was made equal, with what living writers had left there. */
void doubt_forget_torn(struct agent *a, int copyset)
{
    for (struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, copyset, &c->note[i]) && c->note[i].generation < a->view.copyset[copyset].generation)
                c->note[i].torn = false;
}

/* Doubts, and what living writers may have torn. What they wrote remotely is cut off (recover.c) and treated like a
 * dead writer's: a copy that is torn must not be where others are filled from. */
void doubt_for_each(struct agent *a, int copyset, doubt_knows *know)
{
    struct patch patch;
    for (const struct doubt *d = a->repairs.doubts; d; d = d->next)
        if (d->epoch && copyset_of_patch(a, &d->patch) == copyset)
            know(a, copyset, d->writer, &d->patch, false);
    for (const struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++)
            if (is_torn_in(a, copyset, &c->note[i]))
                know(a, copyset, c->life, &c->note[i], false);
    atomic_thread_fence(memory_order_seq_cst); /* the route was changed before: with op_store_here */
    for (const struct proc *p = a->ranks.procs; p; p = p->next)
        for (int i = 0; i < INTENT_MAX; i++)
            if (ranks_intent(a, p, i, &patch) && copyset_of_patch(a, &patch) == copyset)
                know(a, copyset, p->life, &patch, true);
}

static void know_piece(struct agent *a, const struct store_segment *s, int copyset, size_t offset, doubt_knows *know)
{
    const struct store_copy *copy = &s->copy[copyset_slot(copyset)];
    size_t piece = layout_piece_bytes(copy->bytes), left = copy->bytes - offset;
    struct patch patch = {
        .seg = s->seg, .slot = (uint16_t)copyset_slot(copyset), .offset = offset, .len = left < piece ? left : piece};
    know(a, copyset, LIFE_NONE, &patch, false); /* of nobody who lives */
}

void doubt_for_each_stored(struct agent *a, int copyset, doubt_knows *know)
{
    int slot = copyset_slot(copyset);
    if (view_slot_node(&a->view, slot) == a->self)
        return;
    for (const struct store_segment *s = a->store.first; s; s = s->next) {
        const struct store_copy *copy = &s->copy[slot];
        if (s->redundancy != copyset_class(copyset) || !copy->base || !copy->bytes)
            continue;
        size_t piece = layout_piece_bytes(copy->bytes);
        const _Atomic uint64_t *holders = holders_of(copy->base, copy->bytes);
        for (size_t at = 0; at < copy->bytes; at += piece)
            if (atomic_load_explicit(&holders[at / piece], memory_order_relaxed))
                know_piece(a, s, copyset, at, know);
    }
}

static void tell_one(struct agent *a, int copyset, struct life writer, const struct patch *patch, bool living)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    struct wire w;
    msg_doubt_encode(
        &(struct msg_doubt){.at = {.seg = patch->seg, .slot = (uint16_t)copyset_slot(copyset), .offset = patch->offset},
                            .bytes = patch->len,
                            .torn = patch->torn,
                            .living = living,
                            .level = patch->level,
                            .put = patch->put,
                            .writer = writer,
                            .generation = g->generation},
        &w);
    agent_tell(a, g->copy[0].node, &w, NULL);
}

void doubt_tell_all(struct agent *a, int copyset)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    doubt_for_each(a, copyset, tell_one);
    FAULT_POINT("push.doubts_half_told");
    struct wire w;
    msg_doubt_end_encode(&(struct msg_doubt_end){.slot = (uint16_t)copyset_slot(copyset),
                                                 .class = copyset_class(copyset),
                                                 .generation = g->generation},
                         &w);
    agent_tell(a, g->copy[0].node, &w, NULL);
}
