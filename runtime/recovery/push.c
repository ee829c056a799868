#include "runtime/recovery/push.h"

#include <stdlib.h>
#include <string.h>

#include <keel/segment.h>

#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/redundancy/replica.h"

enum {
    PUSH_WINDOW = 96, /* messages on their way to the new shadow */
    PUSH_BURST = 8,   /* blocks per round of the loop, so that requests are served in between */
    DOUBT_END = 1,    /* WIRE_DOUBT count: that was the last one */
    PATCH_ANSWER = 1, /* WIRE_PATCH count: answers a WIRE_FETCH */
    BLOCK_LOST = 1,   /* WIRE_SNAP_BLOCK count: there are no bytes, they died with another node */
    TASKS_PER_MESSAGE = WIRE_BODY_MAX / sizeof(struct dedup_task),
};
static_assert(sizeof(struct dedup_origin) <= WIRE_BODY_MAX, "an origin's record fits one message");

/* ---- doubts ---- */

static void add_doubt(struct agent *a, struct doubt **list, const struct doubt *doubt)
{
    struct doubt *d = malloc(sizeof *d);
    if (!d) {
        node_break(a, "out of memory");
        return;
    }
    *d = *doubt;
    d->next = *list;
    *list = d;
}

static void free_doubts(struct doubt **list)
{
    while (*list) {
        struct doubt *d = *list;
        *list = d->next;
        free(d);
    }
}

void push_add_doubt(struct agent *a, int rank, uint32_t incarnation, const struct patch *patch)
{
    add_doubt(a, &a->doubts, &(struct doubt){.rank = rank, .incarnation = incarnation, .patch = *patch});
}

void push_close(struct agent *a)
{
    free_doubts(&a->doubts);
    for (int slot = 0; slot < a->view.nodes; slot++)
        free_doubts(&a->push[slot].told);
}

static void forget_settled_doubts(struct agent *a)
{
    struct doubt **link = &a->doubts;
    while (*link) {
        struct doubt *d = *link;
        if (a->view.slot[d->patch.slot].mode != SLOT_SYNC) {
            *link = d->next;
            free(d);
        } else {
            link = &d->next;
        }
    }
}

static bool has_torn(const struct agent *a, int slot)
{
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->patch.slot == slot && d->patch.torn)
            return true;
    return false;
}

static bool overlaps_torn(const struct agent *a, const struct wire *w)
{
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->patch.torn && d->patch.slot == w->slot && d->patch.seg == w->seg &&
            d->patch.offset < w->offset + w->count && w->offset < d->patch.offset + d->patch.len)
            return true;
    return false;
}

/* ---- sync: the shadow's side ---- */

static void tell_doubts(struct agent *a, int slot)
{
    const struct view_slot *s = &a->view.slot[slot];
    struct wire w = {.type = WIRE_DOUBT, .slot = (uint16_t)slot, .a = (int64_t)s->changed};
    for (const struct doubt *d = a->doubts; d; d = d->next) {
        if (d->patch.slot != slot)
            continue;
        w.seg = d->patch.seg;
        w.offset = d->patch.offset;
        w.b = (int64_t)d->patch.len;
        peer_send(&a->peers, s->primary, &w, NULL, a->now);
    }
    FAULT_POINT("push.doubts_half_told");
    w.count = DOUBT_END;
    w.b = 0;
    peer_send(&a->peers, s->primary, &w, NULL, a->now);
}

/* The primary asks for our bytes because its own may be torn. If the writer wrote here first, ours are whole. If it wrote
 * here second, and had begun, the primary's are whole: our doubt, told before, brings them here. */
static void answer_fetch(struct agent *a, int from, const struct wire *w)
{
    struct wire answer = {
        .type = WIRE_PATCH, .slot = w->slot, .seg = w->seg, .offset = w->offset, .count = PATCH_ANSWER, .a = w->a};
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    const void *body = NULL;
    if (copy && copy->base && (w->flags & WIRE_F_SECOND || !overlaps_torn(a, w))) {
        answer.len = w->count;
        body = copy->base + w->offset;
    }
    peer_send(&a->peers, from, &answer, body, a->now);
}

/* ---- sync: the primary's side ---- */

static void fetch(struct agent *a, int slot, const struct patch *patch)
{
    struct push *p = &a->push[slot];
    for (uint64_t done = 0; done < patch->len; done += WIRE_BODY_MAX) {
        uint64_t n = patch->len - done < WIRE_BODY_MAX ? patch->len - done : WIRE_BODY_MAX;
        struct wire w = {.type = WIRE_FETCH,
                         .flags = patch->second ? WIRE_F_SECOND : 0,
                         .slot = (uint16_t)slot,
                         .seg = patch->seg,
                         .offset = patch->offset + done,
                         .count = (uint32_t)n,
                         .a = (int64_t)p->generation};
        p->last_seq = peer_send(&a->peers, a->view.slot[slot].shadow, &w, NULL, a->now);
        p->fetches++;
    }
}

static void send_patch(struct agent *a, int slot, const struct patch *patch)
{
    uint64_t seq = replica_send_bytes(a, a->view.slot[slot].shadow, WIRE_PATCH, patch);
    if (seq)
        a->push[slot].last_seq = seq;
}

/* This copy is whole now: the shadow gets whatever either side doubts, and the slot goes on. */
static void own_copy_whole(struct agent *a, int slot)
{
    struct push *p = &a->push[slot];
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->patch.slot == slot && !d->patch.torn)
            send_patch(a, slot, &d->patch);
    for (const struct doubt *d = p->told; d; d = d->next)
        send_patch(a, slot, &d->patch);
    free_doubts(&p->told);
    p->own_done = true;
    if (p->torn) {
        p->torn = false;
        replica_unstash(a);
    }
}

/* First whole bytes for what may be torn here: nothing of this copy goes to the shadow before it has them. */
static void start_sync(struct agent *a, int slot)
{
    for (const struct doubt *d = a->doubts; d; d = d->next)
        if (d->patch.slot == slot && d->patch.torn)
            fetch(a, slot, &d->patch);
    if (a->push[slot].fetches == 0)
        own_copy_whole(a, slot);
}

static void receive_doubt(struct agent *a, int from, const struct wire *w)
{
    struct push *p = &a->push[w->slot];
    const struct view_slot *s = &a->view.slot[w->slot];
    /* The shadow has settled the view that made the slot SYNC, and so has this node committed it. */
    if (s->primary != a->self || s->shadow != from || s->mode != SLOT_SYNC || (uint64_t)w->a != s->changed)
        return;
    if (w->count == DOUBT_END) {
        FAULT_POINT("push.doubts_told");
        p->shadow_done = true;
        return;
    }
    struct patch patch = {.seg = w->seg, .slot = w->slot, .offset = w->offset, .len = (uint64_t)w->b};
    if (p->own_done)
        send_patch(a, w->slot, &patch);
    else
        add_doubt(a, &p->told, &(struct doubt){.patch = patch});
}

static void receive_patch(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    struct push *p = &a->push[w->slot];
    const struct view_slot *s = &a->view.slot[w->slot];
    bool answer = w->count == PATCH_ANSWER;
    if (answer && (!p->active || (uint64_t)w->a != p->generation || s->shadow != from))
        return; /* of an older sync */
    FAULT_POINT("push.patch_received");
    if (copy && copy->base && w->len <= copy->bytes && w->offset <= copy->bytes - w->len)
        memcpy(copy->base + w->offset, body, w->len);
    if (answer && --p->fetches == 0)
        own_copy_whole(a, w->slot);
}

/* ---- rebuild: the primary's side ---- */

static uint64_t send_to_shadow(struct agent *a, int slot, struct wire *w, const void *body)
{
    w->slot = (uint16_t)slot;
    uint64_t seq = peer_send(&a->peers, a->view.slot[slot].shadow, w, body, a->now);
    a->push[slot].last_seq = seq;
    return seq;
}

static void send_dedup(struct agent *a, int slot)
{
    const struct dedup *d = &a->dedup[slot];
    for (int r = 0; r < d->ranks; r++)
        if (d->origin[r]) {
            struct wire w = {.type = WIRE_SNAP_ORIGIN, .len = sizeof *d->origin[r]};
            send_to_shadow(a, slot, &w, d->origin[r]);
        }
    struct dedup_task batch[TASKS_PER_MESSAGE];
    size_t n = 0;
    for (size_t i = 0; i <= d->task_capacity; i++) {
        bool end = i == d->task_capacity;
        if (!end && d->task[i].steps)
            batch[n++] = d->task[i];
        if (n && (end || n == TASKS_PER_MESSAGE)) {
            struct wire w = {.type = WIRE_SNAP_TASKS, .len = (uint32_t)(n * sizeof batch[0])};
            send_to_shadow(a, slot, &w, batch);
            n = 0;
        }
    }
}

uint64_t push_send_segment(struct agent *a, int node, uint32_t seg)
{
    const struct store_segment *g = &a->store.segment[seg];
    struct wire w = {.type = WIRE_SEGMENT,
                     .seg = seg,
                     .a = (int64_t)g->bytes_per_rank,
                     .b = g->redundancy,
                     .task = g->instance,
                     .flags = g->freed ? WIRE_F_FREED : 0};
    return peer_send(&a->peers, node, &w, NULL, a->now);
}

static void start_rebuild(struct agent *a, int slot)
{
    struct push *p = &a->push[slot];
    struct wire begin = {.type = WIRE_SNAP_BEGIN, .a = (int64_t)p->generation};
    send_to_shadow(a, slot, &begin, NULL);
    FAULT_POINT("push.rebuild_begun");
    for (uint32_t seg = 0; seg < a->store.count; seg++)
        if (a->store.segment[seg].known)
            p->last_seq = push_send_segment(a, a->view.slot[slot].shadow, seg);
    send_dedup(a, slot);
}

/* Send the next block; false when all are sent. */
static bool send_block(struct agent *a, int slot)
{
    struct push *p = &a->push[slot];
    for (; p->seg < a->store.count; p->seg++, p->offset = 0) {
        struct store_copy *copy = store_copy(&a->store, p->seg, slot);
        if (!copy)
            continue;
        struct wire w = {.type = WIRE_SNAP_BLOCK, .seg = p->seg, .offset = p->offset};
        if (copy->lost) {
            w.count = BLOCK_LOST;
            send_to_shadow(a, slot, &w, NULL);
            continue;
        }
        if (p->offset >= copy->bytes)
            continue;
        uint64_t left = copy->bytes - p->offset;
        w.len = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX);
        send_to_shadow(a, slot, &w, copy->base + p->offset);
        p->offset += w.len;
        p->bytes += w.len;
        return true;
    }
    return false;
}

static bool step_rebuild(struct agent *a, int slot)
{
    struct push *p = &a->push[slot];
    const struct peer *peer = &a->peers.peer[a->view.slot[slot].shadow];
    bool moved = false;
    if (p->bytes)
        FAULT_POINT("push.rebuild_middle");
    for (int i = 0; i < PUSH_BURST && !p->own_done && peer->next - 1 - peer->acked < PUSH_WINDOW; i++) {
        moved = true;
        if (!send_block(a, slot)) {
            struct wire end = {.type = WIRE_SNAP_END, .a = (int64_t)p->generation};
            FAULT_POINT("push.rebuild_end");
            send_to_shadow(a, slot, &end, NULL);
            p->own_done = true;
        }
    }
    return moved;
}

/* ---- rebuild: the new shadow's side ---- */

static void snap_begin(struct agent *a, int slot, uint64_t generation)
{
    if (a->view.epoch < generation) {
        /* Operations forwarded now would be dropped for want of a copy, and their records with them. */
        node_break(a, "a snapshot came before the view that asks for it");
        return;
    }
    FAULT_POINT("push.snapshot_begun");
    dedup_fini(&a->dedup[slot]);
    if (!dedup_init(&a->dedup[slot], a->view.ranks))
        node_break(a, "out of memory");
}

static void snap_tasks(struct agent *a, const struct wire *w, const void *body)
{
    struct dedup_task t;
    for (uint32_t i = 0; i < w->len / sizeof t; i++) {
        memcpy(&t, (const char *)body + i * sizeof t, sizeof t);
        if (t.steps && !dedup_task_record(&a->dedup[w->slot], t.task, t.steps - 1))
            node_break(a, "out of memory");
    }
}

static void snap_block(struct agent *a, const struct wire *w, const void *body)
{
    if (w->seg >= a->store.count || !a->store.segment[w->seg].known || a->store.segment[w->seg].freed)
        return;
    if (w->count == BLOCK_LOST) {
        store_mark_lost(&a->store, w->seg, w->slot);
        return;
    }
    if (store_make(&a->store, w->seg, w->slot) != KEEL_OK) {
        node_break(a, "no memory for another node's data");
        return;
    }
    FAULT_POINT("push.snapshot_block");
    struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    if (copy->base && w->len <= copy->bytes && w->offset <= copy->bytes - w->len)
        memcpy(copy->base + w->offset, body, w->len);
}

static void define_segment(struct agent *a, const struct wire *w)
{
    keel_status status = store_define(&a->store, w->seg, (uint64_t)w->a, (uint32_t)w->b, w->task);
    if (w->flags & WIRE_F_FREED) {
        store_free(&a->store, w->seg);
        return;
    }
    if (status == KEEL_OK)
        status = push_make_copies(a, w->seg);
    if (status == KEEL_ERR_MISMATCH)
        log_warn("segment %u: another node's ranks allocate it with other arguments", w->seg); /* the ranks report it */
    else if (status != KEEL_OK)
        node_break(a, "no memory for a segment");
}

keel_status push_make_copies(struct agent *a, uint32_t seg)
{
    for (int slot = 0; slot < a->view.nodes; slot++) {
        const struct view_slot *s = &a->view.slot[slot];
        bool shadow = s->shadow == a->self &&
                      (a->store.segment[seg].redundancy != KEEL_REDUNDANCY_NONE || s->mode == SLOT_REBUILD);
        if (s->primary != a->self && !shadow)
            continue;
        keel_status status = store_make(&a->store, seg, slot);
        if (status != KEEL_OK)
            return status;
    }
    return KEEL_OK;
}

void push_receive(struct agent *a, int from, const struct wire *w, const void *body)
{
    if (w->slot >= a->view.nodes || w->seg >= STORE_SEGMENTS_MAX) {
        log_error("node %d sends a message of type %u for slot %u", from, w->type, w->slot);
        return;
    }
    switch (w->type) {
    case WIRE_SEGMENT:
        define_segment(a, w);
        break;
    case WIRE_SNAP_BEGIN:
        snap_begin(a, w->slot, (uint64_t)w->a);
        break;
    case WIRE_SNAP_ORIGIN:
        if (w->len != sizeof(struct dedup_origin) || !dedup_origin_load(&a->dedup[w->slot], body))
            node_break(a, "cannot keep what is known of operations");
        break;
    case WIRE_SNAP_TASKS:
        snap_tasks(a, w, body);
        break;
    case WIRE_SNAP_BLOCK:
        snap_block(a, w, body);
        break;
    case WIRE_SNAP_END:
        FAULT_POINT("push.snapshot_end");
        break;
    case WIRE_DOUBT:
        receive_doubt(a, from, w);
        break;
    case WIRE_FETCH:
        answer_fetch(a, from, w);
        break;
    case WIRE_PATCH:
        receive_patch(a, from, w, body);
        break;
    default:
        log_error("node %d sends an unknown message of type %u", from, w->type);
    }
}

/* ---- driving it ---- */

static bool is_pushed_here(const struct agent *a, int slot)
{
    const struct view_slot *s = &a->view.slot[slot];
    return s->primary == a->self && (s->mode == SLOT_SYNC || s->mode == SLOT_REBUILD);
}

void push_view_committed(struct agent *a)
{
    forget_settled_doubts(a);
    for (int slot = 0; slot < a->view.nodes; slot++) {
        struct push *p = &a->push[slot];
        const struct view_slot *s = &a->view.slot[slot];
        if (is_pushed_here(a, slot) && p->generation == s->changed)
            continue;
        free_doubts(&p->told);
        memset(p, 0, sizeof *p);
        p->generation = s->changed;
        p->torn = is_pushed_here(a, slot) && s->mode == SLOT_SYNC && has_torn(a, slot);
    }
}

void push_view_settled(struct agent *a)
{
    for (int slot = 0; slot < a->view.nodes; slot++) {
        const struct view_slot *s = &a->view.slot[slot];
        struct push *p = &a->push[slot];
        if (s->changed > a->settled)
            continue;
        if (s->shadow == a->self && s->mode == SLOT_SYNC && !p->own_done) {
            tell_doubts(a, slot);
            p->own_done = true;
        }
        if (!is_pushed_here(a, slot) || p->active || p->finished)
            continue;
        p->active = true;
        p->started_at = a->now;
        if (s->mode == SLOT_SYNC)
            start_sync(a, slot);
        else
            start_rebuild(a, slot);
    }
}

static void finish(struct agent *a, int slot)
{
    struct push *p = &a->push[slot];
    const struct view_slot *s = &a->view.slot[slot];
    if (s->mode == SLOT_REBUILD)
        node_event(a, "copied", ",\"slot\":%d,\"to\":%d,\"bytes\":%llu,\"ms\":%.3f", slot, s->shadow,
                   (unsigned long long)p->bytes, (double)(a->now - p->started_at) / KEEL_NS_PER_MS);
    struct view_event e = {VIEW_RESTORED, (uint32_t)slot, (uint32_t)s->shadow, 0, s->changed};
    FAULT_POINT("push.restored_not_submitted");
    node_submit(a, &e);
    FAULT_POINT("push.restored_submitted");
    p->active = false;
    p->finished = true;
}

bool push_step(struct agent *a)
{
    bool moved = false;
    for (int slot = 0; slot < a->view.nodes; slot++) {
        struct push *p = &a->push[slot];
        if (!p->active || !is_pushed_here(a, slot))
            continue;
        bool sync = a->view.slot[slot].mode == SLOT_SYNC;
        if (!sync)
            moved |= step_rebuild(a, slot);
        bool told = !sync || (p->shadow_done && p->fetches == 0);
        if (p->own_done && told && peer_is_acked(&a->peers, a->view.slot[slot].shadow, p->last_seq))
            finish(a, slot);
    }
    return moved;
}
