/* Start and end of an agent: what it is made of, and the first page that its ranks see. */
#include "runtime/agent/agent.h"

#include <stdlib.h>

#include <keel/segment.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/ordering.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/said.h"
#include "runtime/agent/segments.h"
#include "runtime/agent/strong.h"
#include "runtime/agent/scrub.h"
#include "runtime/agent/verify.h"
#include "runtime/view/plan.h"
#include "runtime/wire/system.h"

static keel_status store_memory(void *user, size_t bytes, void **base, int64_t *handle)
{
    const struct agent *a = user;
    return a->ops.memory_make(a->ops.user, bytes, base, handle);
}

static void store_memory_free(void *user, void *base, size_t bytes, int64_t handle)
{
    struct agent *a = user;
    peers_let_go(&a->peers, base, bytes);
    a->ops.memory_free(a->ops.user, base, bytes, handle);
}

static keel_status store_memory_fill(void *user, void *base, int64_t handle, size_t offset, const void *from,
                                     size_t bytes)
{
    const struct agent *a = user;
    return a->ops.memory_fill(a->ops.user, base, handle, offset, from, bytes);
}

static void store_memory_empty(void *user, void *base, int64_t handle, size_t offset, size_t bytes)
{
    struct agent *a = user;
    peers_let_go(&a->peers, (char *)base + offset, bytes);
    a->ops.memory_empty(a->ops.user, base, handle, offset, bytes);
}

static bool make_tables(struct agent *a, const struct agent_config *config)
{
    size_t members = (size_t)a->members, copysets = (size_t)agent_copysets(a);
    a->node_incarnation = calloc(members, sizeof *a->node_incarnation);
    a->dedup = calloc(copysets, sizeof *a->dedup);
    a->forwards = calloc(copysets, sizeof *a->forwards);
    if (!recovery_init(&a->recovery, agent_copysets(a)) || !fences_init(&a->fences, a->members, config->ranks) ||
        !chain_init(&a->relays, a->members) || !segments_init(&a->segments, a->members) || !a->node_incarnation ||
        !stakes_init(&a->stakes, a->members) || !ranks_init(&a->ranks, config->ranks) || !a->dedup || !a->forwards)
        return false;
    for (size_t g = 0; g < copysets; g++)
        if (!dedup_init(&a->dedup[g], config->ranks))
            return false;
    return true;
}

/* Nothing where there is no grid: the page is zeroed. */
static void first_grid(struct page_grid *out, const struct place *p)
{
    _Static_assert((int)PAGE_GRID_DIMS == (int)GRID_MAX_DIMS, "each has its place");
    for (int d = 0; p && d < p->grid.ndims; d++) {
        out->dims++;
        out->size[d] = p->grid.size[d];
        out->slots[d] = p->slot_grid.size[d];
        out->rings |= (uint32_t)p->grid.torus[d] << d;
    }
}

/* Nothing where the program runs once: the page is zeroed. */
static void first_replicas(struct page *page, const struct agent_config *config)
{
    const struct replica_map *m = config->replicas;
    if (!m || !replica_map_is_used(m))
        return;
    page->replicas = (uint32_t)m->replicas;
    page->check = config->check;
    page->on_mismatch = config->on_mismatch;
    page->set_copies = config->set_copies;
    page->on_death = config->on_death;
    for (int r = 0; r < config->ranks; r++)
        page_rank(page, r)->replica = (uint32_t)m->place[r];
}

static void first_rules(struct page *page, const struct agent_config *config)
{
    if (config->inject)
        page->inject = *config->inject;
}

static void first_page(struct agent *a, const struct agent_config *config)
{
    struct page *page = a->page;
    page->magic = PAGE_MAGIC;
    page->nodes = (uint32_t)a->view.nodes;
    page->members = (uint32_t)a->members;
    page->ranks = (uint32_t)a->view.ranks;
    page->self = (uint32_t)a->self;
    first_grid(&page->grid, plan_grid(&a->view));
    first_replicas(page, config);
    first_rules(page, config);
    for (int r = 0; r < a->view.ranks; r++) {
        page_rank(page, r)->slot = (uint32_t)a->view.rank[r].slot;
        page_rank(page, r)->index = (uint32_t)a->view.rank[r].index;
    }
    recover_show_view(a);
}

/* Nothing for it and nothing from it, as with a dead one, until it is born. */
static void fence_unborn(struct agent *a, int node)
{
    a->fences.node[node] = true;
    peer_kill(&a->peers, node);
}

keel_status agent_init(struct agent *a, const struct agent_config *config)
{
    *a = (struct agent){.ops = config->ops,
                        .self = config->self,
                        .members = config->nodes + config->spares + config->room,
                        .job = config->job,
                        .secret = config->secret,
                        .incarnation = config->incarnation,
                        .net = config->net,
                        .shm = config->shm,
                        .page = config->page,
                        .now = config->now};
    a->waiters_tail = &a->waiters;
    stash_init(&a->stash);
    stash_init(&a->parcels);
    if (!view_init(&a->view, config->policy, config->nodes, config->spares, config->room, config->ranks,
                   config->rank_node, &config->copies) ||
        (config->grid && !view_place(&a->view, config->grid)) || !make_tables(a, config))
        return KEEL_ERR_NOMEM;
    view_replicate(&a->view, config->replicas);
    a->partners = config->on_death == DEATH_PARTNER ? a->view.replicas : NULL;
    if (a->partners)
        view_take_partners(&a->view);
    said_silent(&a->view, a->segments.silent);
    ordering_init(a);
    struct peers_ops peer_ops = agent_peers_ops(a);
    struct store_ops store_ops = {a, store_memory, store_memory_free, store_memory_fill, store_memory_empty};
    keel_status status =
        peers_init(&a->peers, a->self, a->members, a->net, a->job, a->incarnation, a->secret, &peer_ops);
    a->peers.ways.counts = &a->counts;
    for (int m = a->view.next_id; m < a->members && status == KEEL_OK; m++)
        fence_unborn(a, m);
    if (status == KEEL_OK)
        status = repair_init(a);
    if (status == KEEL_OK)
        status = store_init(&a->store, &store_ops, a->net, a->view.nodes, a->view.slot_ranks);
    if (status == KEEL_OK)
        status = store_define(&a->store, SYSTEM_SEGMENT, SYSTEM_SEGMENT_BYTES, KEEL_REDUNDANCY_TRIPLE, 0);
    if (status == KEEL_OK)
        status = segments_make_copies(a, store_find(&a->store, SYSTEM_SEGMENT));
    if (status != KEEL_OK)
        return status;
    first_page(a, config);
    weighing_init(a);
    scrub_init(&a->scrub, config->scrub_rate);
    return KEEL_OK;
}

void agent_address(struct agent *a, int node, const struct tp_addrs *addrs, uint64_t incarnation)
{
    a->node_incarnation[node] = incarnation;
    peer_address(&a->peers, node, incarnation, addrs);
    page_node(a->page, node)->addrs = *addrs;
    page_node(a->page, node)->incarnation = incarnation;
}

void agent_fini(struct agent *a)
{
    while (a->ranks.procs)
        ranks_free(a, a->ranks.procs);
    while (a->conns)
        agent_drop_conn(a, a->conns);
    segments_fini(&a->segments);
    execute_fini(a);
    stash_free(&a->parcels);
    chain_fini(&a->relays);
    ordering_fini(&a->ordering);
    strong_fini(&a->strong);
    verify_fini(&a->audits);
    scrub_fini(&a->scrub);
    repair_fini(a);
    if (a->peers.peer)
        peers_fini(&a->peers);
    if (a->store.bucket)
        store_fini(&a->store);
    for (int g = 0; a->dedup && g < agent_copysets(a); g++)
        dedup_fini(&a->dedup[g]);
    recovery_fini(&a->recovery);
    free(a->node_incarnation);
    fences_fini(&a->fences);
    stakes_fini(&a->stakes);
    ranks_fini(&a->ranks);
    free(a->dedup);
    free(a->forwards);
    view_fini(&a->view);
}
