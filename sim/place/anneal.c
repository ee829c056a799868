#include "sim/place/anneal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/place/bound.h"
#include "sim/place/state.h"

static const double hottest = 24, coldest = 0.7;
enum { CYCLE = 1 << 17, WEIGHT = 12 }; /* steps of a cycle; of a message too many against a hop */

static const struct load_phase *phase(const struct anneal *a)
{
    return &a->job->load.phase[0];
}

/* What stands above the target, as energy; the hops come on top. */
static int64_t excess(const struct anneal *a)
{
    const struct load_phase *ph = phase(a);
    int64_t sum = 0;
    for (int64_t c = a->target + 1; c <= ph->max; c++)
        sum += (c - a->target) * (c - a->target) * ph->hist[c];
    return sum;
}

static int64_t energy(const struct anneal *a)
{
    return WEIGHT * excess(a) + a->job->load.hops;
}

static void keep_best(struct anneal *a)
{
    a->found = phase(a)->max;
    memcpy(a->best, a->job->load.at, (size_t)a->job->place.slots * sizeof *a->best);
}

const char *anneal_open(struct anneal *a, struct job *j, uint64_t seed, int64_t steps)
{
    *a = (struct anneal){.job = j, .steps = steps};
    if (j->pattern.phases != 1)
        return "only patterns of one phase can be optimised";
    if (j->place.homeless)
        return "there are fewer live nodes than slots";
    a->best = malloc((size_t)j->place.slots * sizeof *a->best);
    a->slot_at = malloc((size_t)j->place.grid.nodes * sizeof *a->slot_at);
    a->live = malloc((size_t)j->place.grid.nodes * sizeof *a->live);
    if (!a->best || !a->slot_at || !a->live)
        return "out of memory";
    memcpy(a->slot_at, j->place.slot_at, (size_t)j->place.grid.nodes * sizeof *a->slot_at);
    for (int32_t n = 0; n < j->place.grid.nodes; n++)
        if (a->slot_at[n] != PLACE_DEAD)
            a->live[a->nlive++] = n;
    rng_seed(&a->rng, seed);
    a->bound = load_bound(&j->place, &j->load);
    keep_best(a);
    a->target = a->found - 1;
    return NULL;
}

void anneal_close(struct anneal *a)
{
    free(a->best);
    free(a->slot_at);
    free(a->live);
    *a = (struct anneal){0};
}

/* The slots whose messages are too many on some link. */
static void fill_pool(struct anneal *a)
{
    const struct load *l = &a->job->load;
    struct load_user users[64];
    a->npool = 0;
    int32_t first = (int32_t)rng_below(&a->rng, (uint64_t)l->links); /* so that none is left out for ever */
    for (int32_t i = 0; i < l->links && a->npool < ANNEAL_POOL; i++) {
        int32_t link = first + i < l->links ? first + i : first + i - l->links;
        if (phase(a)->count[link] <= a->target)
            continue;
        int n = load_users(l, a->slot_at, 0, link, users, 64);
        for (int k = 0; k < n && k < 64; k++)
            for (int32_t m = 0; m < users[k].messages && a->npool < ANNEAL_POOL; m++)
                a->pool[a->npool++] = users[k].slot;
    }
}

/* Where a slot could stand: near one of its peers, where another slot in trouble is, or anywhere. */
static int32_t draw_node(struct anneal *a, int32_t slot)
{
    const struct job *j = a->job;
    const struct grid *g = &j->place.grid;
    const struct pattern *t = &j->pattern;
    uint64_t kind = rng_below(&a->rng, 8);
    if (kind == 0)
        return a->live[rng_below(&a->rng, (uint64_t)a->nlive)];
    if (kind < 4)
        return j->load.at[a->pool[rng_below(&a->rng, (uint64_t)a->npool)]];
    int32_t peers = t->out_at[slot + 1] - t->out_at[slot];
    if (!peers)
        return j->load.at[slot];
    int32_t node = j->load.at[t->out[t->out_at[slot] + (int32_t)rng_below(&a->rng, (uint64_t)peers)].slot];
    for (uint64_t hops = 1 + rng_below(&a->rng, 3); hops > 0; hops--) {
        int32_t next = grid_neighbor(g, node, (int)rng_below(&a->rng, (uint64_t)g->ndims), (int)rng_below(&a->rng, 2));
        node = next >= 0 ? next : node;
    }
    return node;
}

/* The slot goes to the node, and who stands there to the slot's. */
static void change(struct anneal *a, int32_t slot, int32_t node)
{
    struct load *l = &a->job->load;
    int32_t from = l->at[slot], other = a->slot_at[node];
    load_drop(l, slot);
    if (other >= 0) {
        load_drop(l, other);
        load_put(l, other, from);
    }
    load_put(l, slot, node);
    a->slot_at[from] = other;
    a->slot_at[node] = slot;
}

static void try_change(struct anneal *a, double temperature)
{
    struct load *l = &a->job->load;
    int32_t slot = a->pool[rng_below(&a->rng, (uint64_t)a->npool)], node = draw_node(a, slot), from = l->at[slot];
    if (node == from || a->slot_at[node] == PLACE_DEAD)
        return;
    int64_t before = energy(a);
    change(a, slot, node);
    int64_t more = energy(a) - before;
    if (more > 0 && rng_double(&a->rng) >= exp((double)-more / temperature))
        change(a, slot, from);
}

bool anneal_burst(struct anneal *a)
{
    if (a->step >= a->steps || a->found <= a->bound || a->found <= 1)
        return false;
    fill_pool(a);
    double part = (double)((a->step - a->cycle) % CYCLE) / CYCLE;
    double temperature = hottest * pow(coldest / hottest, part);
    for (int i = 0; i < ANNEAL_BURST && a->npool; i++)
        try_change(a, temperature);
    a->step += ANNEAL_BURST;
    if (phase(a)->max <= a->target) {
        keep_best(a);
        a->target = a->found - 1;
        a->cycle = a->step;
    }
    return true;
}

struct proof {
    struct anneal *a;
    const atomic_bool *stop;
    int32_t *order; /* the slots, each after one of its peers where it has any */
    int32_t limit;
};

static void order_slots(const struct pattern *t, int32_t *order, bool *known)
{
    int32_t n = 0;
    for (int32_t start = 0; start < t->slots; start++) {
        if (known[start])
            continue;
        known[start] = true;
        order[n] = start;
        for (int32_t at = n++; at < n; at++)
            for (int32_t i = t->out_at[order[at]]; i < t->out_at[order[at] + 1]; i++)
                if (!known[t->out[i].slot]) {
                    known[t->out[i].slot] = true;
                    order[n++] = t->out[i].slot;
                }
    }
}

/* Slots order[k..] on nodes that are left, with no link above the limit. Messages only come on top. */
static bool put_rest(struct proof *p, int32_t k)
{
    struct anneal *a = p->a;
    struct load *l = &a->job->load;
    if (k == a->job->place.slots)
        return true;
    int32_t slot = p->order[k];
    for (int32_t i = 0; i < a->nlive && !atomic_load(p->stop); i++) {
        int32_t node = a->live[i];
        if (a->slot_at[node] != PLACE_FREE || !load_put_within(l, slot, node, p->limit))
            continue;
        a->slot_at[node] = slot;
        if (put_rest(p, k + 1))
            return true;
        a->slot_at[node] = PLACE_FREE;
        load_drop(l, slot);
    }
    return false;
}

/* Every map with fewer messages than found: the first one becomes the best; without any, the best cannot be beaten. */
static void look_for_better(struct proof *p)
{
    struct anneal *a = p->a;
    for (int32_t r = 0; r < a->job->place.slots; r++) {
        a->slot_at[a->job->load.at[r]] = PLACE_FREE;
        load_drop(&a->job->load, r);
    }
    p->limit = a->found - 1;
    if (put_rest(p, 0))
        keep_best(a);
    else if (!atomic_load(p->stop))
        a->bound = a->found;
}

const char *anneal_prove(struct anneal *a, const atomic_bool *stop)
{
    size_t slots = (size_t)a->job->place.slots;
    struct proof p = {.a = a, .stop = stop, .order = calloc(slots, sizeof *p.order)};
    bool *known = calloc(slots, sizeof *known);
    if (p.order && known) {
        order_slots(&a->job->pattern, p.order, known);
        while (a->found > a->bound && !atomic_load(stop))
            look_for_better(&p);
    }
    bool ok = p.order && known;
    free(known);
    free(p.order);
    return ok ? NULL : "out of memory";
}

const char *anneal_save(const struct anneal *a, const char *path, const char *name)
{
    struct state out;
    const char *why = state_begin(&out, name);
    if (why)
        return why;
    fprintf(out.f, "%" PRId64 " %" PRId64 " %d %d", a->step, a->cycle, a->target, a->found);
    for (int i = 0; i < 4; i++)
        fprintf(out.f, " %" PRIu64, a->rng.s[i]);
    fputc('\n', out.f);
    for (int32_t r = 0; r < a->job->place.slots; r++)
        fprintf(out.f, "%d %d\n", a->job->load.at[r], a->best[r]);
    return state_save(&out, path, !ferror(out.f));
}

static bool read_map(struct anneal *a, FILE *f)
{
    struct job *j = a->job;
    for (int32_t n = 0; n < j->place.grid.nodes; n++)
        a->slot_at[n] = j->place.slot_at[n] == PLACE_DEAD ? PLACE_DEAD : PLACE_FREE;
    for (int32_t r = 0; r < j->place.slots; r++)
        load_drop(&j->load, r);
    for (int32_t r = 0; r < j->place.slots; r++) {
        int32_t node;
        if (fscanf(f, "%d %d", &node, &a->best[r]) != 2 || node < 0 || node >= j->place.grid.nodes ||
            a->slot_at[node] != PLACE_FREE || a->best[r] < 0 || a->best[r] >= j->place.grid.nodes)
            return false;
        a->slot_at[node] = r;
        load_put(&j->load, r, node);
    }
    return true;
}

const char *anneal_load(struct anneal *a, const char *path, const char *name)
{
    struct state in;
    const char *why = state_open(&in, path, name);
    bool ok = !why && fscanf(in.f, "%" SCNd64 " %" SCNd64 " %d %d", &a->step, &a->cycle, &a->target, &a->found) == 4;
    for (int i = 0; ok && i < 4; i++)
        ok = fscanf(in.f, "%" SCNu64, &a->rng.s[i]) == 1;
    ok = ok && a->step >= 0 && a->cycle >= 0 && a->cycle <= a->step && a->found >= 0 && a->target < a->found &&
         read_map(a, in.f);
    state_close(&in);
    return why ? why : ok ? NULL : state_damaged;
}
