#include "runtime/agent/recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/segments.h"
#include "runtime/agent/strong.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/racks.h"
#include "runtime/view/policy.h"

bool recovery_init(struct recovery *r, int copysets)
{
    *r = (struct recovery){.before = calloc((size_t)copysets, sizeof *r->before)};
    return r->before != NULL;
}

void recovery_fini(struct recovery *r)
{
    free(r->before);
    *r = (struct recovery){0};
}

bool fences_init(struct fences *f, int members, int ranks)
{
    *f = (struct fences){.rank = calloc((size_t)ranks, sizeof *f->rank),
                         .node = calloc((size_t)members, sizeof *f->node),
                         .doomed = calloc((size_t)members, sizeof *f->doomed)};
    return f->rank && f->node && f->doomed;
}

void fences_fini(struct fences *f)
{
    free(f->rank);
    free(f->node);
    free(f->doomed);
    *f = (struct fences){0};
}

/* ---- fencing ---- */

/* What the writer may have left in some copies only becomes a doubt; what is still on its way never arrives. */
static void doubt_conn(struct agent *a, struct conn *c)
{
    for (int i = 0; i < NOTES_MAX; i++)
        if (c->note[i].len) {
            repair_add_doubt(a, c->life, &c->note[i]);
            c->note[i].len = 0;
        }
}

static void fence_node(struct agent *a, int node)
{
    if (a->fences.node[node])
        return;
    a->fences.node[node] = true;
    peer_kill(&a->peers, node);
}

static void fence_life(struct agent *a, struct life life)
{
    if (life.incarnation < a->fences.rank[life.rank])
        return;
    a->fences.rank[life.rank] = life.incarnation + 1;
    ranks_doubt_intents(a, life);
}

static bool is_declared_dead(const struct agent *a, const struct conn *c)
{
    return c->life.incarnation < a->fences.rank[c->life.rank] || a->fences.node[c->node];
}

static void fence(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        const struct view_event *e = &events[i];
        if (e->type == VIEW_NODE_DEAD && e->a < (uint32_t)a->members)
            fence_node(a, (int)e->a);
        else if (e->type == VIEW_RANK_DOUBT && !e->d && e->a < (uint32_t)a->view.ranks)
            ranks_doubt_intents(a, view_event_life(e));
        else if (e->a < (uint32_t)a->view.ranks && view_event_doubts(e, view_event_life(e)))
            fence_life(a, view_event_life(e));
    }
    for (struct conn *c = a->conns, *next; c; c = next) {
        next = c->next;
        bool dead = is_declared_dead(a, c), doubted = dead, fenced = dead;
        for (int i = 0; i < n; i++) {
            doubted = doubted || view_event_doubts(&events[i], c->life);
            fenced = fenced || view_event_fences(&events[i], c->life);
        }
        if (!fenced)
            continue;
        if (dead || c->node != a->self)
            agent_close_conn(a, c); /* a live one connects again; no remote write comes late from this node */
        if (doubted)
            doubt_conn(a, c);
        if (dead)
            agent_drop_conn(a, c);
    }
}

static void bear(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_BORN && events[i].a < (uint32_t)a->members && a->view.alive[events[i].a]) {
            a->fences.node[events[i].a] = false;
            peer_bear(&a->peers, (int)events[i].a);
        }
}

/* Everything that has arrived is handled before connections are cut: a remote write may have taken effect inside the provider
 * whose announcement is still to be looked at. */
static void hand_in(struct agent *a)
{
    for (int i = 0; i < AGENT_POLLS_MAX && agent_poll(a, a->shm) > 0; i++)
        ;
    for (int i = 0; i < AGENT_POLLS_MAX && agent_poll(a, a->net) > 0; i++)
        ;
}

/* From here to the commit nothing completes under a route that names what is cut off: a frozen node that wakes may still
 * serve reads, and the first nodes to commit may have written elsewhere by then. */
static void hide_routes(struct agent *a)
{
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        const struct view_copyset *g = &a->view.copyset[copyset];
        for (int i = 0; i < g->copies; i++)
            if (a->fences.node[g->copy[i].node])
                page_route_write(a->page, copyset, 0, g->lost_at, NULL, 0);
    }
}

void recover_prepare(struct agent *a, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    if (epoch <= a->view.epoch)
        return;
    FAULT_POINT("recover.prepare_received");
    hand_in(a);
    execute_freeze(a);
    atomic_store(&a->page->frozen, 1);
    fence(a, events, n);
    hide_routes(a);
    peers_hurry(&a->peers);
    FAULT_POINT("recover.fenced");
    a->recovery.preparing = proposal;
    recover_try_answer(a);
}

void recover_try_answer(struct agent *a)
{
    if (!a->recovery.preparing || a->broken || !execute_drained(a))
        return;
    uint64_t proposal = a->recovery.preparing;
    a->recovery.preparing = 0;
    a->ops.prepared(a->ops.user, proposal, ranks_complete(a));
    FAULT_POINT("recover.answered");
}

void recover_doomed(struct agent *a, int node)
{
    if (node >= 0 && node < a->members)
        a->fences.doomed[node] = true;
    recover_try_answer(a);
}

/* ---- applying ---- */

static void show_route(struct agent *a, int copyset)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    int nodes[COPIES_MAX];
    bool hidden = g->copies == 0;
    for (int i = 0; i < g->copies; i++) {
        nodes[i] = g->copy[i].node;
        hidden = hidden || a->fences.node[nodes[i]];
    }
    enum route_mode mode = g->mode == COPYSET_DIRECT   ? ROUTE_DIRECT
                           : view_whole_copies(g) == 1 ? ROUTE_FILLING
                                                       : ROUTE_THROUGH;
    page_route_write(a->page, copyset, hidden ? 0 : route_tag(mode, g->generation), g->lost_at, nodes, g->copies);
}

/* Who takes part in collectives, and each change of it. */
static void show_lives(struct agent *a)
{
    const struct view *v = &a->view;
    struct page *page = a->page;
    uint64_t showing = atomic_load_explicit(&page->showing, memory_order_relaxed),
             changes = atomic_load_explicit(&page->changes, memory_order_relaxed);
    atomic_store_explicit(&page->showing, showing + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (int r = 0; r < v->ranks; r++) {
        struct page_rank *k = page_rank(page, r);
        uint64_t life = view_rank_takes_part(v, r) ? (uint64_t)v->rank[r].incarnation + 1 : 0;
        if (atomic_load_explicit(&k->life, memory_order_relaxed) == life)
            continue;
        atomic_store_explicit(&k->life, life, memory_order_relaxed);
        atomic_store_explicit(&k->joined, v->rank[r].joined, memory_order_relaxed);
        atomic_store_explicit(&k->changed, v->epoch, memory_order_relaxed);
        uint64_t after = a->ranks.joined[r];
        atomic_store_explicit(&k->after, after, memory_order_relaxed);
        page->change[changes++ % PAGE_CHANGES] =
            (struct page_change){.epoch = v->epoch, .life = life, .after = after, .rank = (uint32_t)r};
    }
    atomic_store_explicit(&page->changes, changes, memory_order_release);
    atomic_store_explicit(&page->showing, showing + 2, memory_order_release);
}

void recover_show_view(struct agent *a)
{
    const struct view *v = &a->view;
    for (int copyset = 0; copyset < agent_copysets(a);
         copyset++) /* before the deaths: who knows of one uses what follows from it */
        show_route(a, copyset);
    for (int m = 0; m < a->members; m++) {
        atomic_store_explicit(&page_node(a->page, m)->died, v->node_death[m].epoch, memory_order_release);
        atomic_store_explicit(&page_node(a->page, m)->alive, v->alive[m], memory_order_release);
    }
    for (int r = 0; r < v->ranks; r++) {
        struct page_rank *k = page_rank(a->page, r);
        uint64_t where = (uint64_t)(uint32_t)v->rank[r].node << 32 | v->rank[r].incarnation;
        health_show_rank(k, &v->rank[r]);
        atomic_store_explicit(&k->where, where, memory_order_release);
        atomic_store_explicit(&k->doubted, v->rank[r].doubted, memory_order_release);
    }
    show_lives(a);
    atomic_store_explicit(&a->page->next_id, (uint32_t)v->next_id, memory_order_release);
    atomic_store_explicit(&a->page->epoch, v->epoch, memory_order_release);
}

/* The doubts of writers whose end is in this view count from now on. */
static void date_doubts(struct agent *a, const struct view_event *events, int n)
{
    for (struct doubt *d = a->doubts; d; d = d->next) {
        const struct view_rank *k = &a->view.rank[d->writer.rank];
        bool ended = !life_equal(view_life(&a->view, d->writer.rank), d->writer) || k->state != RANK_RUNNING;
        for (int i = 0; i < n; i++)
            ended = ended || view_event_doubts(&events[i], d->writer);
        if (!d->epoch && ended)
            d->epoch = a->view.epoch;
    }
}

/* A connection over which a remote write to a copyset of an older generation may be half received: it must not go on.
 */
static void drop_old_writes(struct agent *a, const struct view_copyset *before)
{
    for (struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++) {
            const struct patch *p = &c->note[i];
            const struct store_segment *s = p->len && p->torn ? store_find(&a->store, p->seg) : NULL;
            int copyset = s ? copyset_of(p->slot, s->redundancy) : -1;
            if (copyset >= 0 && a->view.copyset[copyset].generation != before[copyset].generation) {
                agent_close_conn(a, c);
                break;
            }
        }
}

static void thaw(struct agent *a, uint64_t joined)
{
    a->recovery.complete = joined > a->recovery.complete ? joined : a->recovery.complete;
    atomic_store(&a->page->frozen, 0); /* after the view: who sees this sees that */
}

/* ---- telling ---- */

static void tell_changes(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        if (events[i].type == VIEW_NODE_DEAD)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("dead_node", events[i].a));
        else if (events[i].type == VIEW_RANK_DEAD)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("dead_rank", events[i].a));
        else if (events[i].type == VIEW_NODE_BORN)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("born_node", events[i].a));
    }
}

static void tell_copyset(struct agent *a, int copyset, const struct view_copyset *old)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    unsigned redundancy = copyset_class(copyset);
    if (g->copies == 0 || g->copy[0].node != a->self || g->generation != a->view.epoch ||
        !segments_use(&a->store, redundancy))
        return;
    if (g->lost_at == a->view.epoch)
        agent_say(a, redundancy ? "data_lost" : "unreplicated_lost", J_INT("slot", copyset_slot(copyset)),
                  J_UINT("redundancy", redundancy), J_UINT("epoch", a->view.epoch));
    else if (old->copies && old->copy[0].node != a->self && !a->view.alive[old->copy[0].node])
        agent_say(a, "promotion", J_INT("slot", copyset_slot(copyset)), J_UINT("redundancy", redundancy),
                  J_INT("from", old->copy[0].node), J_UINT("epoch", a->view.epoch));
    if (g->mode == COPYSET_DIRECT && old->mode == COPYSET_REPAIR && g->copies > 1)
        agent_say(a, "restored", J_INT("slot", copyset_slot(copyset)), J_UINT("redundancy", redundancy),
                  J_INT("primary", g->copy[0].node), J_INT("shadow", g->copy[1].node));
}

/* What is redundant now: copysets of classes that are in use which are being made equal, and those with bytes of the
 * program's that lack copies. */
struct redundancy {
    int repairing, reduced;
    int first_reduced; /* slot */
    int together;      /* of them have their copies, but all in one domain where others are told apart; */
    int level;         /* the highest one's level */
};

static void count_reduced(const struct agent *a, int copyset, struct redundancy *now)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    bool lacks = g->copies <= (int)copyset_class(copyset);
    int apart = lacks || g->copies < 2 ? a->view.copies.levels : policy_apart(&a->view, g);
    if (!lacks && apart == a->view.copies.levels)
        return;
    if (now->reduced++ == 0)
        now->first_reduced = copyset_slot(copyset);
    now->together += !lacks;
    if (!lacks && apart + 1 > now->level)
        now->level = apart + 1;
}

static struct redundancy redundancy_now(const struct agent *a)
{
    struct redundancy now = {0};
    bool used[CLASSES], holds[CLASSES];
    for (unsigned c = 0; c < CLASSES; c++) {
        used[c] = segments_use(&a->store, c);
        holds[c] = segments_hold(&a->store, c);
    }
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        const struct view_copyset *g = &a->view.copyset[copyset];
        if (!used[copyset_class(copyset)])
            continue;
        now.repairing += g->mode == COPYSET_REPAIR;
        if (holds[copyset_class(copyset)] && a->view.slot_ranks[copyset_slot(copyset)] > 0)
            count_reduced(a, copyset, &now);
    }
    return now;
}

/* Why it is not what was asked for. */
static const char *reason(const struct agent *a, const struct redundancy *now, char *out, size_t size)
{
    const struct view *v = &a->view;
    int could = 0, full = 0;
    if (now->reduced == now->together) {
        snprintf(out, size, "all copies are in one %s", racks_level_name(&v->copies, now->level));
        return out;
    }
    for (int m = 0; m < a->members; m++) {
        could += v->alive[m];
        full += v->alive[m] && v->full[m];
    }
    snprintf(out, size, "%d nodes live, %d of them without memory for more copies", could, full);
    return out;
}

/* Once nothing is being made equal any more, the lowest live node says what there is: all copies, or what is missing. */
static void tell_redundancy(struct agent *a, bool was_whole)
{
    int lowest = 0;
    while (lowest < a->members - 1 && !a->view.alive[lowest])
        lowest++;
    struct redundancy now = redundancy_now(a);
    if (lowest != a->self || now.repairing || was_whole)
        return;
    char why[96];
    if (now.reduced)
        agent_say(a, "redundancy_reduced", J_UINT("epoch", a->view.epoch), J_INT("groups", now.reduced),
                  J_INT("slot", now.first_reduced), J_TEXT("why", reason(a, &now, why, sizeof why)));
    else
        agent_say(a, "redundancy_restored", J_UINT("epoch", a->view.epoch), J_INT("slots", a->view.nodes));
}

static bool has_node_death(const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD)
            return true;
    return false;
}

/* ---- the view ---- */

void recover_commit(struct agent *a, uint64_t epoch, const struct view_event *events, int n, uint64_t joined)
{
    if (epoch <= a->view.epoch)
        return;
    FAULT_POINT("recover.commit_received");
    hand_in(a);
    fence(a, events, n); /* a member that was cut off gets commits without a prepare */
    bool was_whole = redundancy_now(a).repairing == 0 && !has_node_death(events, n);
    struct view_copyset *before = a->recovery.before;
    memcpy(before, a->view.copyset, (size_t)agent_copysets(a) * sizeof *before);
    view_apply(&a->view, epoch, events, n);
    date_doubts(a, events, n);
    segments_view_committed(a, before);
    drop_old_writes(a, before);
    a->peers.epoch = epoch; /* what is sent from here on is not for those who are still in the old view */
    bear(a, events, n);
    segments_meet(a, events, n);
    execute_view_committed(a, before);
    strong_view_committed(a);
    repair_view_committed(a, before);
    ranks_joined(a, joined);
    recover_show_view(a);
    a->recovery.preparing = 0;
    execute_thaw(a);
    peers_epoch(&a->peers, epoch);
    segments_acked(a);
    thaw(a, joined);
    ranks_view_committed(a);
    tell_changes(a, events, n);
    health_committed(a);
    health_stakes(a);
    for (int copyset = 0; copyset < agent_copysets(a); copyset++)
        tell_copyset(a, copyset, &before[copyset]);
    tell_redundancy(a, was_whole);
    FAULT_POINT("recover.committed");
}

void recover_settled(struct agent *a, uint64_t epoch)
{
    if (epoch > a->recovery.settled)
        a->recovery.settled = epoch;
    FAULT_POINT("recover.settled");
    repair_view_settled(a);
    ranks_view_settled(a);
}
