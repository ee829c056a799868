#include "runtime/recovery/recover.h"

#include <stdlib.h>
#include <string.h>

#include <keel/segment.h>

#include "collectives/barrier.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/recovery/push.h"
#include "runtime/redundancy/replica.h"

/* What the writer may have left in one copy only. */
static void keep_doubts(struct agent *a, const struct conn *c)
{
    uint64_t first = c->puts > CONN_RING ? c->puts - CONN_RING : 0;
    for (uint64_t i = first; i < c->puts; i++)
        push_add_doubt(a, c->rank, c->incarnation, &c->ring[i % CONN_RING]);
    for (int i = 0; i < CONN_OPEN; i++)
        if (c->open[i].len)
            push_add_doubt(a, c->rank, c->incarnation, &c->open[i]);
}

static bool conn_is_dead(const struct agent *a, const struct conn *c)
{
    return c->incarnation < a->rank_fence[c->rank] || a->node_fence[c->node];
}

static void fence(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        const struct view_event *e = &events[i];
        if (e->type == VIEW_NODE_DEAD && e->a < (uint32_t)a->members && !a->node_fence[e->a]) {
            a->node_fence[e->a] = true;
            peer_kill(&a->peers, (int)e->a);
        } else if (e->type == VIEW_RANK_DEAD && e->a < (uint32_t)a->view.ranks && e->b >= a->rank_fence[e->a]) {
            a->rank_fence[e->a] = e->b + 1;
            node_note_intents(a, (int)e->a, e->b);
        }
    }
    for (struct conn *c = a->conns, *next; c; c = next) {
        next = c->next;
        if (!conn_is_dead(a, c))
            continue;
        keep_doubts(a, c);
        node_drop_conn(a, c);
    }
}

void recover_prepare(struct agent *a, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    if (epoch <= a->view.epoch)
        return;
    FAULT_POINT("recover.prepare_received");
    replica_freeze(a);
    barrier_freeze(a->barrier);
    fence(a, events, n);
    FAULT_POINT("recover.fenced");
    a->preparing = proposal;
    recover_try_answer(a);
}

void recover_try_answer(struct agent *a)
{
    if (!a->preparing || !replica_drained(a))
        return;
    uint64_t proposal = a->preparing;
    a->preparing = 0;
    node_prepared(a, proposal, recover_value(barrier_completed(a->barrier), a->collectives));
    FAULT_POINT("recover.answered");
}

void recover_show_view(struct agent *a)
{
    const struct view *v = &a->view;
    for (int s = 0; s < v->nodes; s++) { /* before the deaths: who knows of one uses the routes that follow from it */
        atomic_store_explicit(&page_slot(a->page, s)->lost_at, v->slot[s].lost_at, memory_order_release);
        atomic_store_explicit(&page_slot(a->page, s)->route, route_make(&v->slot[s]), memory_order_release);
    }
    for (int m = 0; m < a->members; m++)
        atomic_store_explicit(&page_node(a->page, m)->alive, v->alive[m], memory_order_release);
    for (int r = 0; r < v->ranks; r++) {
        uint64_t where = (uint64_t)(uint32_t)v->rank[r].node << 32 | v->rank[r].incarnation;
        atomic_store_explicit(&page_rank(a->page, r)->where, where, memory_order_release);
    }
    atomic_store_explicit(&a->page->epoch, v->epoch, memory_order_release);
}

/* Unreplicated parts died with their node: say so instead of serving zeros. */
static void mark_lost_parts(struct agent *a, uint64_t epoch)
{
    for (int slot = 0; slot < a->view.nodes; slot++) {
        if (a->view.slot[slot].primary != a->self || a->view.slot[slot].lost_at != epoch)
            continue;
        for (uint32_t seg = 0; seg < a->store.count; seg++)
            if (a->store.segment[seg].known && !a->store.segment[seg].freed &&
                a->store.segment[seg].redundancy == KEEL_REDUNDANCY_NONE)
                store_mark_lost(&a->store, seg, slot);
    }
}

static void update_barrier(struct agent *a, uint64_t joined)
{
    enum { WORDS = BARRIER_NODES_MAX / 64 };
    uint64_t members[WORDS] = {0};
    bool self = false;
    for (int m = 0; m < a->members; m++)
        if (view_node_takes_part(&a->view, m)) {
            members[m / 64] |= (uint64_t)1 << (m % 64);
            self = self || m == a->self;
        }
    if (self && recover_value_instances(joined) > barrier_completed(a->barrier) && !a->takes_part) {
        barrier_join(a->barrier, recover_value_instances(joined));
        a->collectives = recover_value_collectives(joined);
    }
    a->takes_part = self;
    barrier_set_members(a->barrier, members, a->now);
    barrier_thaw(a->barrier, a->now);
}

static void tell_changes(struct agent *a, const struct view_slot *old, const struct view_event *events, int n)
{
    const struct view *v = &a->view;
    for (int i = 0; i < n; i++) {
        if (events[i].type == VIEW_NODE_DEAD)
            node_event(a, "view", ",\"epoch\":%llu,\"dead_node\":%u", (unsigned long long)v->epoch, events[i].a);
        else if (events[i].type == VIEW_RANK_DEAD)
            node_event(a, "view", ",\"epoch\":%llu,\"dead_rank\":%u", (unsigned long long)v->epoch, events[i].a);
    }
    for (int s = 0; s < v->nodes; s++) {
        const struct view_slot *slot = &v->slot[s];
        if (slot->primary == a->self && old[s].primary != a->self)
            node_event(a, "promotion", ",\"slot\":%d,\"from\":%d,\"epoch\":%llu", s, old[s].primary,
                       (unsigned long long)v->epoch);
        if (slot->mode == SLOT_LOST && old[s].mode != SLOT_LOST)
            node_event(a, "data_lost", ",\"slot\":%d,\"epoch\":%llu", s, (unsigned long long)v->epoch);
        if (slot->mode == SLOT_PAIR && old[s].mode == SLOT_REBUILD && slot->primary == a->self)
            node_event(a, "restored", ",\"slot\":%d,\"primary\":%d,\"shadow\":%d", s, slot->primary, slot->shadow);
        if (slot->mode == SLOT_REBUILD && slot->primary == a->self && slot->changed == v->epoch)
            node_event(a, "rebuild", ",\"slot\":%d,\"to\":%d", s, slot->shadow);
    }
}

static void tell_if_whole(struct agent *a, bool was_whole)
{
    int lowest = 0;
    while (lowest < a->members - 1 && !a->view.alive[lowest])
        lowest++;
    if (!was_whole && view_redundancy_whole(&a->view) && lowest == a->self)
        node_event(a, "redundancy_restored", ",\"epoch\":%llu", (unsigned long long)a->view.epoch);
}

void recover_commit(struct agent *a, uint64_t epoch, const struct view_event *events, int n, uint64_t joined)
{
    if (epoch <= a->view.epoch)
        return;
    FAULT_POINT("recover.commit_received");
    /* A member that was cut off gets commits without a prepare. */
    fence(a, events, n);
    bool was_whole = view_redundancy_whole(&a->view);
    barrier_freeze(a->barrier);
    struct view_slot *old = a->slots_before;
    memcpy(old, a->view.slot, (size_t)a->view.nodes * sizeof *old);
    view_apply(&a->view, epoch, events, n);
    mark_lost_parts(a, epoch);
    push_view_committed(a);
    recover_show_view(a);
    a->preparing = 0;
    replica_thaw(a);
    update_barrier(a, joined);
    tell_changes(a, old, events, n);
    tell_if_whole(a, was_whole);
    FAULT_POINT("recover.committed");
}

void recover_settled(struct agent *a, uint64_t epoch)
{
    if (epoch > a->settled)
        a->settled = epoch;
    FAULT_POINT("recover.settled");
    push_view_settled(a);
}
