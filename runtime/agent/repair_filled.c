#include <string.h>

#include "runtime/agent/repair_int.h"
#include "runtime/agent/segments.h"
#include "runtime/base/fault.h"
#include "runtime/wire/snap.h"

/* What of it is lost says the primary. A segment that was being allocated when the last copy died may have been known
 * here and not there: then it begins anew with all other contents, and is not lost. */
static void snap_begin(struct agent *a, int copyset)
{
    FAULT_POINT("push.snapshot_begun");
    for (struct store_segment *s = a->store.first; s; s = s->next)
        if (s->redundancy == copyset_class(copyset))
            s->copy[copyset_slot(copyset)].lost = false;
    dedup_fini(&a->dedup[copyset]);
    if (!dedup_init(&a->dedup[copyset], a->view.ranks))
        agent_break(a, "out of memory for the records of operations");
}

static void snap_tasks(struct agent *a, int copyset, uint32_t len, const void *body)
{
    struct dedup_task t;
    for (uint32_t i = 0; i < len / sizeof t; i++) {
        memcpy(&t, (const char *)body + i * sizeof t, sizeof t);
        if (t.steps && !dedup_task_reserve(&a->dedup[copyset], t.task, t.round))
            agent_break(a, "out of memory for the records of tasks");
        else if (t.steps)
            dedup_task_record(&a->dedup[copyset], t.task, t.round, t.steps - 1);
    }
}

static void snap_block(struct agent *a, const struct wire *w, const void *body)
{
    struct msg_snap_block m;
    msg_snap_block_decode(w, &m);
    int slot = m.snap.slot;
    struct store_segment *s = store_find(&a->store, m.seg);
    if (!s)
        return;
    if (m.lost) {
        store_mark_lost(&a->store, s, slot);
        return;
    }
    if (a->segments.declined && !s->copy[slot].base)
        return; /* the view that takes this copy away is coming */
    if (store_make(&a->store, s, slot, a->view.copyset[copyset_of(slot, s->redundancy)].generation) != KEEL_OK) {
        segments_decline(a);
        return;
    }
    FAULT_POINT("push.snapshot_block");
    a->repairs.blocks++;
    a->repairs.block_came = true;
    counter_add(&a->counts, COUNTER_filled_bytes, m.len);
    const struct store_copy *copy = &s->copy[slot];
    if (repair_is_in_range(copy, m.offset, m.len) && store_fill(&a->store, copy, m.offset, body, m.len) != KEEL_OK) {
        store_drop(&a->store, s, slot); /* with a hole in it: what follows finds nothing either */
        a->repairs.of[copyset_of(slot, s->redundancy)].filled = 0;
        segments_decline(a);
    }
}

bool repair_is_filled(const struct agent *a, int copyset)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    int at = view_copy_at(g, a->self);
    return at >= 0 && a->repairs.of[copyset].filled == g->copy[at].placed + 1;
}

/* It counts as whole when it says that it is, not when everything has come: for some of that there may have been no
 * memory. */
static void snap_end(struct agent *a, int copyset, const struct msg_snap *snap)
{
    struct wire here;
    msg_snap_here_encode(snap, &here);
    for (struct store_segment *s = a->store.first; s; s = s->next) {
        const struct store_copy *copy = &s->copy[snap->slot];
        if (s->redundancy != snap->class || copy->base || copy->lost)
            continue;
        /* The primary has freed it, and we will. */
        if (a->segments.declined ||
            store_make(&a->store, s, snap->slot, a->view.copyset[copyset].generation) != KEEL_OK) {
            segments_decline(a);
            return;
        }
    }
    FAULT_POINT("push.snapshot_end");
    a->repairs.of[copyset].filled = snap->placed + 1;
    agent_tell(a, a->view.copyset[copyset].copy[0].node, &here, NULL);
}

/* Only from the primary, and only for the copy that was placed here when it says. */
void filled_receive(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct msg_snap snap;
    struct msg_snap_begin begin;
    msg_snap_decode(w, &snap);
    int copyset = repair_copyset_of(a, snap.slot, snap.class);
    if (copyset < 0)
        return;
    const struct view_copyset *g = &a->view.copyset[copyset];
    int copy = view_copy_at(g, a->self);
    if (g->copy[0].node != from || copy < 1 || g->copy[copy].whole || g->copy[copy].placed != snap.placed)
        return;
    switch (w->type) {
    case WIRE_SNAP_BEGIN:
        snap_begin(a, copyset);
        msg_snap_begin_decode(w, &begin);
        a->forwards[copyset] = begin.forwards;
        break;
    case WIRE_SNAP_ORIGIN:
        if (!dedup_origin_load(&a->dedup[copyset], body, w->len))
            agent_break(a, "cannot keep what is known of operations");
        break;
    case WIRE_SNAP_TASKS:
        snap_tasks(a, copyset, w->len, body);
        break;
    case WIRE_SNAP_BLOCK:
        snap_block(a, w, body);
        break;
    default:
        snap_end(a, copyset, &snap);
        break;
    }
}
