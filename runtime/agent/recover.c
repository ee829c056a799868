#include "runtime/agent/recover_int.h"

#include <stdlib.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/repair.h"
#include "runtime/base/fault.h"
#include "runtime/view/plan.h"

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

void recover_fence(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        const struct view_event *e = &events[i];
        if (e->type == VIEW_NODE_DEAD && e->a < (uint32_t)a->members)
            fence_node(a, (int)e->a);
        else if (e->type == VIEW_RANK_DOUBT && !e->d && e->a < (uint32_t)a->view.ranks)
            ranks_doubt_intents(a, view_event_life(e));
        else if (e->a < (uint32_t)a->view.ranks &&
                 (e->type == VIEW_RANK_MOVED || view_event_doubts(e, view_event_life(e))))
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

void recover_bear(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_BORN && events[i].a < (uint32_t)a->members && a->view.alive[events[i].a]) {
            a->fences.node[events[i].a] = false;
            peer_bear(&a->peers, (int)events[i].a);
        }
}

/* Everything that has arrived is handled before connections are cut: a remote write may have taken effect inside the
 * provider whose announcement is still to be looked at. */
void recover_hand_in(struct agent *a)
{
    for (int i = 0; i < AGENT_POLLS_MAX && agent_poll(a, a->shm) > 0; i++)
        ;
    for (int i = 0; i < AGENT_POLLS_MAX && agent_poll(a, a->net) > 0; i++)
        ;
}

/* From here to the commit nothing completes under a route that names what is cut off: a frozen node that wakes may
 * still serve reads, and the first nodes to commit may have written elsewhere by then. */
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
    recover_hand_in(a);
    execute_freeze(a);
    atomic_store(&a->page->frozen, 1);
    recover_fence(a, events, n);
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

static void show_sets(struct agent *a)
{
    uint32_t at_home = 0;
    for (int s = 0; a->view.replicas && s < a->view.replicas->replicas; s++)
        at_home |= (uint32_t)view_set_is_at_home(&a->view, s) << s;
    atomic_store_explicit(&a->page->sets_at_home, at_home, memory_order_release);
    for (int s = 0; s < REPLICAS_MAX; s++) {
        const struct replica_loss *loss = &a->view.loss[s];
        uint32_t is = !loss->retired ? 0 : loss->coming ? loss->coming : PAGE_SET_OVER;
        atomic_store_explicit(&a->page->set[s], is, memory_order_release);
    }
}

static enum page_part part_of(const struct view *v, int rank)
{
    const struct view_rank *k = &v->rank[rank];
    if (k->node < 0 || k->node == view_slot_node(v, k->slot))
        return PAGE_PART_HERE;
    bool goes_on = plan_of_rank(v, rank) >= 0;
    return goes_on || plan_slot_target(v, k->slot) == k->node ? PAGE_PART_COMES : PAGE_PART_STAYS;
}

void recover_show_view(struct agent *a)
{
    const struct view *v = &a->view;
    /* before the ranks: who goes on without one must find that its set does not */
    show_sets(a);
    for (int copyset = 0; copyset < agent_copysets(a);
         copyset++) /* before the deaths: who knows of one uses what follows from it */
        show_route(a, copyset);
    for (int m = 0; m < a->members; m++) {
        atomic_store_explicit(&page_node(a->page, m)->died, v->node_death[m].epoch, memory_order_release);
        atomic_store_explicit(&page_node(a->page, m)->place, plan_place(v, m), memory_order_relaxed);
        atomic_store_explicit(&page_node(a->page, m)->alive, v->alive[m], memory_order_release);
    }
    for (int r = 0; r < v->ranks; r++) {
        struct page_rank *k = page_rank(a->page, r);
        uint64_t where = (uint64_t)(uint32_t)v->rank[r].node << 32 | v->rank[r].incarnation;
        health_show_rank(k, &v->rank[r]);
        atomic_store_explicit(&k->part, part_of(v, r), memory_order_relaxed);
        atomic_store_explicit(&k->where, where, memory_order_release);
        atomic_store_explicit(&k->doubted, v->rank[r].doubted, memory_order_release);
    }
    show_lives(a);
    atomic_store_explicit(&a->page->begins_again, view_ranks_begin_again(v), memory_order_release);
    atomic_store_explicit(&a->page->next_id, (uint32_t)v->next_id, memory_order_release);
    /* behind all else: who waits for it finds its set retired, if that lacked somebody */
    atomic_store_explicit(&a->page->bound, a->partners && !v->partners, memory_order_release);
    atomic_store_explicit(&a->page->epoch, v->epoch, memory_order_release);
}

void recover_settled(struct agent *a, uint64_t epoch)
{
    if (epoch > a->recovery.settled)
        a->recovery.settled = epoch;
    FAULT_POINT("recover.settled");
    repair_view_settled(a);
    ranks_view_settled(a);
}
