/* Segments of a rank's program: made, by all or by a group, and freed. */
#include <string.h>

#include "collectives/group.h"
#include "runtime/client/op/mutex.h"
#include "runtime/client/op/task.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/segment_group.h"
#include "tests/sim/data/program_int.h"

bool program_data_lost(struct program *p, keel_status status, const char *call)
{
    struct world *w = p->w;
    if (status == KEEL_OK)
        return false;
    if (p->over)
        return true;
    if (status == KEEL_ERR_NOMEM && w->setup.each && !w->setup.kills)
        runner_exit(p->r, 3);
    if (status == KEEL_ERR_NOMEM && w->setup.fail_at) /* as an application would */
        runner_kill(p->r, 6);
    for (int g = 0; g < w->setup.nodes * CLASSES; g++)
        if (w->model->lost[g])
            w->hopeless = true; /* what the pools, or the runtime, keep there is gone */
    if (!w->hopeless)
        world_fail(w, "rank %d.%u: %s says %s", p->r->rank, p->r->incarnation, call, keel_status_name(status));
    return true;
}

/* Who returns with it finds it everywhere: looking straight into the agents, at each whole copy of their views. */
static void expect_made(struct world *w, uint32_t seg)
{
    for (int i = 0; i < w->members; i++) {
        const struct agent *a = &w->node[i].agent;
        const struct store_segment *s = !a->store.bucket || w->model->dead[i] || w->model->tainted[i] || a->broken
                                            ? NULL
                                            : store_find(&a->store, seg);
        for (int slot = 0; s && slot < w->setup.nodes; slot++) {
            const struct view_copyset *g = &a->view.copyset[copyset_of(slot, s->redundancy)];
            int at = view_copy_at(g, i);
            if (at >= 0 && g->copy[at].whole && !s->copy[slot].base && !s->copy[slot].lost)
                world_fail(w, "segment %u is there, and node %d has no copy of slot %d", seg, i, slot);
        }
    }
}

/* All are told the same. */
static void told_of_vast(struct program *p, int i, keel_status status)
{
    struct planned *s = &p->w->model->planned[i];
    s->refused = s->refused || status != KEEL_OK;
    if (status == KEEL_OK ? s->refused : s->made)
        world_fail(p->w, "rank %d: allocation %d says %s, and another one to others", p->r->rank, i,
                   keel_status_name(status));
    if (status == KEEL_OK)
        expect_made(p->w, p->seg[i]->index);
}

/* Those of the first processes that live make it; a death, or a member that stands still, may keep them from it. */
static bool allocate_in_group(struct program *p, int i)
{
    struct world *w = p->w;
    struct client *c = &p->r->client;
    struct planned *s = &w->model->planned[i];
    keel_group *g = NULL;
    if (p->r->incarnation > 0)
        return true;
    program_begin(p, "keel_group_shrink");
    keel_status status = coll_shrink(c->coll.world, &g);
    program_ended(p, status, false);
    int n = status == KEEL_OK ? group_size(g->ranks) : 0;
    size_t bytes[RANKS_MAX], part[RANKS_MAX] = {0};
    for (int member = 0; member < n; member++) {
        int rank = group_rank(g->ranks, member);
        part[rank] = bytes[member] = s->part[rank];
    }
    program_begin(p, "keel_segment_alloc_group");
    if (status == KEEL_OK)
        do
            status = segment_alloc_group(g, bytes, s->redundancy, &p->seg[i]);
        while (g->unfinished);
    program_ended(p, status, false);
    world_trace(w, "rank %d.%u: a segment of %d members: %s", p->r->rank, p->r->incarnation, n,
                keel_status_name(status));
    if (p->over || model_is_zombie(w, p->r->rank, 0))
        return !p->over;
    if (s->vast && (status == KEEL_OK || status == KEEL_ERR_NOMEM))
        told_of_vast(p, i, status);
    if (s->vast && status == KEEL_ERR_NOMEM)
        return true;
    if (status == KEEL_ERR_RANK_DEAD || status == KEEL_ERR_REVOKED || status == KEEL_ERR_TIMEOUT)
        return true;
    if (program_data_lost(p, status, "keel_segment_alloc_group"))
        return false;
    int64_t index = p->seg[i]->index;
    if (s->made && (s->index != index || memcmp(s->part, part, (size_t)w->setup.ranks * sizeof *part) != 0))
        world_fail(w, "rank %d: the group's segment has number %lld, not %lld, or other members", p->r->rank,
                   (long long)index, (long long)s->index);
    memcpy(s->part, part, (size_t)w->setup.ranks * sizeof *part);
    s->index = index;
    s->made = true;
    return true;
}

/* What the runtime allocates for itself has as many copies as the program's own before it. */
static keel_redundancy most_copies(const struct program *p, int before)
{
    keel_redundancy most = KEEL_REDUNDANCY_SHADOW;
    for (int i = 0; i < before; i++) {
        const struct planned *s = &p->w->model->planned[i];
        if (p->seg[i] && !s->of_group && s->redundancy > most)
            most = s->redundancy;
    }
    return most;
}

static bool allocate(struct program *p, int i)
{
    struct world *w = p->w;
    struct planned *s = &w->model->planned[i];
    if (!s->begun && (s->is_pool || s->mutexes))
        s->redundancy = most_copies(p, i);
    model_allocates(w, i);
    if (s->of_group)
        return allocate_in_group(p, i);
    int64_t index = p->r->client.segments.next;
    program_fence(p, -1);
    program_begin(p, "an allocation");
    keel_status status = s->is_pool   ? taskpool_create(&p->r->client, KEEL_OK, s->pool.tasks, &p->pool[i])
                         : s->mutexes ? mutexes_create(&p->r->client, KEEL_OK, s->mutexes, &p->mutexes)
                         : s->part    ? segment_alloc_parts(&p->r->client, s->part, s->redundancy, &p->seg[i])
                                      : segment_alloc(&p->r->client, s->bytes, s->redundancy, &p->seg[i]);
    if (s->mutexes)
        p->mutexes_at = i;
    program_ended(p, status, false);
    if (p->r->incarnation == 0 && !model_is_zombie(w, p->r->rank, 0)) {
        s->made = s->made || status == KEEL_OK;
        s->refused = s->refused || status == KEEL_ERR_NOMEM;
        if (s->vast && status == KEEL_OK)
            expect_made(w, p->seg[i]->index);
        if (s->made && s->refused)
            world_fail(w, "rank %d: allocation %d says %s, and another one to others", p->r->rank, i,
                       keel_status_name(status));
    }
    if (p->r->incarnation > 0 && ((s->refused && status == KEEL_OK) || (s->made && status == KEEL_ERR_NOMEM)))
        world_fail(w, "rank %d.%u: allocation %d says %s, and another one to others", p->r->rank, p->r->incarnation, i,
                   keel_status_name(status));
    if (status == KEEL_ERR_NOMEM && s->vast)
        return !p->over;
    if (status == KEEL_ERR_NOMEM && w->setup.fail_at) /* all get it, and end together */
        runner_exit(p->r, 3);
    if (program_data_lost(p, status, "an allocation"))
        return false;
    if (s->index >= 0 && s->index != index)
        world_fail(w, "rank %d.%u: segment %d has number %lld, not %lld", p->r->rank, p->r->incarnation, i,
                   (long long)index, (long long)s->index);
    s->index = index;
    program_track(p, i);
    return !p->over;
}

static bool release(struct program *p, int i)
{
    struct planned *s = &p->w->model->planned[i];
    program_wait_all(p);
    if (p->over)
        return false;
    program_untrack(p, i);
    program_begin(p, "keel_segment_free");
    s->freed = true;
    keel_status status = segment_free(&p->r->client, p->seg[i]);
    p->seg[i] = NULL;
    program_ended(p, status, false);
    return !program_data_lost(p, status, "keel_segment_free");
}

bool program_change_segments(struct program *p, int stage)
{
    const struct model *m = p->w->model;
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].alloc_at == stage && !allocate(p, i))
            return false;
    for (int i = 0; i < m->segments; i++)
        if (m->planned[i].free_at == stage && p->seg[i] && !release(p, i))
            return false;
    return true;
}
