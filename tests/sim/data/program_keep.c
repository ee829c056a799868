/* Kept memory of a rank (scenario `keeps`): what it has for each version follows from rank and version alone, page by
 * page, of which some change and some do not. So whoever goes back to a version, or reads another rank's, is told
 * whether each byte is of that one version; and the stages say which one all live ranks can go on from. */
#include <stdlib.h>
#include <string.h>

#include "runtime/client/keep/keep.h"
#include "tests/sim/data/program_int.h"

enum { RANGES = 2, PAGE = 4096, CHANGES_ONE_IN = 3 };
static const char *const name[RANGES] = {"field", "odd bytes"};
static const size_t bytes[RANGES] = {5 * PAGE, PAGE + 123};

struct kept {
    uint8_t *range[RANGES];
};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 31;
}

static uint8_t byte_of(int rank, int range, size_t i, uint64_t version)
{
    uint64_t page = mix((uint64_t)rank << 32 | (uint64_t)range << 16 | i / PAGE);
    while (version > 1 && mix(page ^ version) % CHANGES_ONE_IN)
        version--;
    return (uint8_t)mix(page + (version << 20) + i % PAGE / 512);
}

static void fill(uint8_t *to, int rank, int range, uint64_t version)
{
    for (size_t i = 0; i < bytes[range]; i++)
        to[i] = i % 512 ? to[i - 1] : byte_of(rank, range, i, version);
}

static void expect(struct program *p, const char *call, int rank, int range, const uint8_t *got, uint64_t version)
{
    uint8_t *want = sim_alloc(bytes[range]);
    fill(want, rank, range, version);
    for (size_t i = 0; i < bytes[range] && !p->w->failed; i++)
        if (got[i] != want[i])
            world_fail(p->w, "rank %d.%u: %s says version %llu of rank %d, and byte %zu of %s is not of it", p->r->rank,
                       p->r->incarnation, call, (unsigned long long)version, rank, i, name[range]);
    free(want);
}

/* The version that all have committed who have completed so many collectives: a version's number is 1 + its stage. */
static uint64_t version_at(const struct model *m, uint64_t collectives)
{
    while (collectives > 0 && m->stage[collectives - 1].kind != STAGE_KEEP)
        collectives--;
    return collectives;
}

/* A process that takes the rank over goes back: to the last version that the collectives that it need not do any more
 * say, whole. */
static bool go_back(struct program *p)
{
    struct client *c = &p->r->client;
    uint64_t version = 0, since = 0;
    program_begin(p, "keel_keep_restore");
    keel_status status = keep_restore(c, &version, &since);
    program_ended(p, status, false);
    if (program_data_lost(p, status, "keel_keep_restore"))
        return false;
    uint64_t wanted = version_at(p->w->model, c->collectives);
    if (version != wanted || since != c->collectives - version)
        world_fail(p->w, "rank %d.%u goes back to version %llu, %llu collectives behind it, and not to %llu of %llu",
                   p->r->rank, p->r->incarnation, (unsigned long long)version, (unsigned long long)since,
                   (unsigned long long)wanted, (unsigned long long)c->collectives);
    for (int i = 0; i < RANGES && version; i++)
        expect(p, "keel_keep_restore", p->r->rank, i, p->kept_memory->range[i], version);
    p->r->entered = c->collectives;
    return true;
}

bool program_keeps(struct program *p)
{
    struct client *c = &p->r->client;
    p->kept_memory = sim_alloc(sizeof *p->kept_memory);
    program_begin(p, "keel_keep_room");
    keel_status status = keep_room(c, 7 * PAGE);
    program_ended(p, status, false);
    if (program_data_lost(p, status, "keel_keep_room"))
        return false;
    for (int i = 0; i < RANGES; i++) {
        p->kept_memory->range[i] = sim_alloc(bytes[i]);
        memset(p->kept_memory->range[i], 0xee, bytes[i]);
        status = keep_range(c, name[i], p->kept_memory->range[i], bytes[i]);
        if (status != KEEL_OK)
            world_fail(p->w, "keel_keep says %s", keel_status_name(status));
    }
    return p->r->incarnation == 0 || go_back(p);
}

keel_status program_commits(struct program *p, uint64_t version)
{
    for (int i = 0; i < RANGES; i++)
        fill(p->kept_memory->range[i], p->r->rank, i, version);
    keel_status status = keep_commit(&p->r->client, version);
    if (status == KEEL_OK && sched_chance(program_random(p), 0.5)) /* half of a step that a death undoes */
        memset(p->kept_memory->range[0] + PAGE / 2, 0xdd, 2 * PAGE);
    return status;
}

keel_status program_rolls_back(struct program *p)
{
    uint64_t version, wanted = version_at(p->w->model, p->r->client.collectives);
    keel_status status = keep_rollback(&p->r->client, &version);
    if (status == KEEL_OK && version != wanted)
        world_fail(p->w, "rank %d.%u: keel_keep_rollback says version %llu, not %llu", p->r->rank, p->r->incarnation,
                   (unsigned long long)version, (unsigned long long)wanted);
    for (int i = 0; i < RANGES && status == KEEL_OK && version; i++)
        expect(p, "keel_keep_rollback", p->r->rank, i, p->kept_memory->range[i], version);
    return status;
}

/* Another rank's, living or dead. */
void program_reads_kept(struct program *p)
{
    struct world *w = p->w;
    int rank = (int)sched_below(&w->sched, (uint64_t)w->setup.ranks), range = (int)sched_below(&w->sched, RANGES);
    uint8_t *got = sim_alloc(bytes[range]);
    uint64_t version = 0, made = version_at(w->model, p->r->client.collectives);
    program_begin(p, "keel_keep_get");
    keel_status status = keep_get(&p->r->client, rank, name[range], 0, got, bytes[range], &version);
    program_ended(p, status, true);
    if (status == KEEL_OK && w->model->stage[version - 1].kind != STAGE_KEEP)
        world_fail(w, "rank %d has kept version %llu, which nobody has made", rank, (unsigned long long)version);
    if (status == KEEL_OK)
        expect(p, "keel_keep_get", rank, range, got, version);
    else if (status != KEEL_ERR_STATE || (made && w->model->view.rank[rank].state == RANK_RUNNING))
        (void)program_data_lost(p, status, "keel_keep_get");
    free(got);
}
