#include <string.h>

#include "runtime/agent/repair_int.h"
#include "runtime/agent/segments.h"
#include "runtime/base/fault.h"
#include "runtime/wire/snap.h"

enum {
    BLOCK = 64 * 1024,
    BLOCKS = 1, /* per round of the loop: what others ask for waits for no more than one to be sent */
    TASKS_PER_MESSAGE = WIRE_BODY_MAX / sizeof(struct dedup_task),
};

/* Copies that go on being filled by this primary. */
void fill_keep(struct repair *r, const struct view_copyset *g, bool was_primary)
{
    struct fill old[COPIES_MAX];
    memcpy(old, r->fill, sizeof old);
    for (int i = 0; i < COPIES_MAX; i++) {
        r->fill[i] = (struct fill){.node = i < g->copies ? g->copy[i].node : -1,
                                   .placed = i < g->copies ? g->copy[i].placed : 0};
        for (int k = 0; was_primary && k < COPIES_MAX; k++)
            if (i < g->copies && !g->copy[i].whole && old[k].node == r->fill[i].node &&
                old[k].placed == r->fill[i].placed)
                r->fill[i] = old[k];
    }
}

static struct msg_snap snap_of(int copyset, uint64_t placed)
{
    return (struct msg_snap){
        .slot = (uint16_t)copyset_slot(copyset), .class = copyset_class(copyset), .placed = placed};
}

static void send_dedup(struct agent *a, int copyset, int node, uint64_t placed)
{
    const struct dedup *d = &a->dedup[copyset];
    struct msg_snap_seen seen = {.snap = snap_of(copyset, placed)};
    struct wire w;
    for (int r = 0; r < d->ranks; r++)
        if (d->origin[r]) {
            seen.len = (uint32_t)dedup_origin_bytes(d->origin[r]);
            msg_snap_origin_encode(&seen, &w);
            agent_tell(a, node, &w, d->origin[r]);
        }
    struct dedup_task batch[TASKS_PER_MESSAGE];
    size_t n = 0;
    for (size_t i = 0; i <= d->task_capacity; i++) {
        bool end = i == d->task_capacity;
        if (!end && d->task[i].steps)
            batch[n++] = d->task[i];
        if (n && (end || n == TASKS_PER_MESSAGE)) {
            seen.len = (uint32_t)(n * sizeof batch[0]);
            msg_snap_tasks_encode(&seen, &w);
            agent_tell(a, node, &w, batch);
            n = 0;
        }
    }
}

void fill_begin(struct agent *a, int copyset, struct fill *f)
{
    struct wire begin;
    msg_snap_begin_encode(
        &(struct msg_snap_begin){.snap = snap_of(copyset, f->placed), .forwards = a->forwards[copyset]}, &begin);
    agent_tell(a, f->node, &begin, NULL);
    FAULT_POINT("push.rebuild_begun");
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        segments_tell(a, f->node, s);
    send_dedup(a, copyset, f->node, f->placed);
    f->begun = true;
    f->started_at = a->now;
    if (segments_use(&a->store, copyset_class(copyset)))
        agent_say(a, "rebuild", J_INT("slot", copyset_slot(copyset)), J_UINT("redundancy", copyset_class(copyset)),
                  J_INT("to", f->node));
}

static const struct store_segment *segment_from(const struct agent *a, uint32_t seg, unsigned redundancy)
{
    const struct store_segment *best = NULL;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        if (s->seg >= seg && s->redundancy == redundancy && (!best || s->seg < best->seg))
            best = s;
    return best;
}

/* Send the next block; false when all are sent. */
static bool fill_block(struct agent *a, int copyset, struct fill *f)
{
    int slot = copyset_slot(copyset);
    struct msg_snap_block block = {.snap = snap_of(copyset, f->placed)};
    struct wire w;
    for (;;) {
        const struct store_segment *s = store_find(&a->store, f->seg);
        if (!s || s->redundancy != copyset_class(copyset)) {
            s = segment_from(a, f->seg, copyset_class(copyset));
            if (!s)
                return false;
            f->seg = s->seg;
            f->offset = 0;
        }
        const struct store_copy *copy = &s->copy[slot];
        block.seg = s->seg;
        block.lost = copy->lost;
        block.offset = 0;
        block.len = 0;
        if (copy->lost) {
            msg_snap_block_encode(&block, &w);
            agent_tell(a, f->node, &w, NULL);
        } else if (copy->base && f->offset < copy->bytes) {
            uint64_t end = copy->bytes;
            if (!claim_goes_around(&a->repairs.of[copyset], f, &end))
                continue;
            uint64_t left = end - f->offset;
            block.offset = f->offset;
            block.len = (uint32_t)(left < BLOCK ? left : BLOCK);
            msg_snap_block_encode(&block, &w);
            agent_tell_from_store(a, f->node, &w, copy->base + f->offset);
            a->repairs.blocks++;
            pace_sent(&f->pace, agent_position(a, f->node), a->now);
            f->offset += block.len;
            f->bytes += block.len;
            return true;
        }
        f->seg++;
        f->offset = 0;
    }
}

bool fill_step(struct agent *a, int copyset, struct fill *f)
{
    bool moved = false;
    if (!f->begun) {
        fill_begin(a, copyset, f);
        moved = true;
    }
    if (f->bytes)
        FAULT_POINT("push.rebuild_middle");
    if (a->repairs.block_rests && !f->sent)
        return true; /* in the next round */
    for (int i = 0; i < BLOCKS && !f->sent && pace_may_send(&f->pace, a->peers.peer[f->node].acked, a->now); i++) {
        moved = true;
        if (fill_block(a, copyset, f))
            continue;
        struct msg_snap snap = snap_of(copyset, f->placed);
        struct wire end;
        msg_snap_end_encode(&snap, &end);
        FAULT_POINT("push.rebuild_end");
        agent_tell(a, f->node, &end, NULL);
        f->sent = true;
    }
    return moved;
}

/* Bytes of another copy for those that are filled. */
void fill_around(struct agent *a, int copyset, const struct msg_patch *m, const void *body)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    for (int i = 1; i < g->copies; i++) {
        struct fill *f = &a->repairs.of[copyset].fill[i];
        struct wire block;
        if (g->copy[i].whole)
            continue;
        msg_snap_block_encode(
            &(struct msg_snap_block){
                .snap = snap_of(copyset, f->placed), .seg = m->of.at.seg, .offset = m->of.at.offset, .len = m->len},
            &block);
        agent_tell(a, f->node, &block, body);
        f->bytes += m->len;
    }
}

static void fill_is_here(struct agent *a, struct fill *f)
{
    if (!f->here)
        weighing_filled(a, f->bytes, a->now - f->started_at);
    f->here = true;
}

void fill_receive_here(struct agent *a, int from, const struct wire *w)
{
    struct msg_snap snap;
    msg_snap_decode(w, &snap);
    int copyset = repair_copyset_of(a, snap.slot, snap.class);
    for (int i = 1; copyset >= 0 && i < COPIES_MAX && repair_is_primary(a, &a->view.copyset[copyset]); i++) {
        struct fill *f = &a->repairs.of[copyset].fill[i];
        if (f->node == from && f->placed == snap.placed)
            fill_is_here(a, f);
    }
}

bool fill_all_here(const struct repair *r, const struct view_copyset *g)
{
    for (int i = 1; i < g->copies; i++)
        if (!g->copy[i].whole && !(r->fill[i].sent && r->fill[i].here))
            return false;
    return true;
}
