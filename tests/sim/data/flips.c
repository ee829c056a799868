/* Bits that flip in copies at rest, where the scrubber is on: when all ranks wait at a gate, nothing is under way and
 * everything is healed, in one copy of some block, or in all but one of three, in the same bit. Each is to be told, as
 * mended, and all copies are what they were before ranks go on. */
#include "tests/sim/data/flips.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/data/check.h"

enum { REST_PASSES = 3 }; /* of each scrubber, in which it keeps the sums */

struct flips {
    int gate;                 /* at which it waits, from 1 */
    uint64_t rest[NODES_MAX]; /* the passes in which nothing goes on any more */
    bool done;
    int segment, slot, n, node[COPIES_MAX];
    bool told[COPIES_MAX];
    size_t at;
    uint8_t was, is;
};

static bool may_flip(const struct world *w, int segment, int slot)
{
    const struct planned *s = &w->model->planned[segment];
    const struct view_copyset *g = &w->model->view.copyset[copyset_of(slot, (unsigned)s->redundancy)];
    if (s->index < 0 || s->freed || s->lost[slot] || s->redundancy == KEEL_REDUNDANCY_NONE || g->copies < 2 ||
        g->mode != COPYSET_DIRECT)
        return false;
    for (int i = 0; i < g->copies; i++) {
        size_t bytes;
        if (!g->copy[i].whole || !check_copy(w, g->copy[i].node, segment, slot, &bytes))
            return false;
    }
    return true;
}

static uint8_t *byte_of(const struct world *w, const struct flips *f, int i)
{
    size_t bytes;
    return (uint8_t *)check_copy(w, f->node[i], f->segment, f->slot, &bytes) + f->at;
}

/* False: there is nothing of which there are two copies. */
static bool choose(struct world *w, struct flips *f)
{
    struct sched *s = &w->sched;
    for (int tries = 0; tries < 64; tries++) {
        f->segment = (int)sched_below(s, (uint64_t)w->model->segments);
        f->slot = (int)sched_below(s, (uint64_t)w->setup.nodes);
        if (may_flip(w, f->segment, f->slot))
            break;
        f->segment = -1;
    }
    if (f->segment < 0)
        return false;
    const struct view_copyset *g =
        &w->model->view.copyset[copyset_of(f->slot, (unsigned)w->model->planned[f->segment].redundancy)];
    int first = (int)sched_below(s, (uint64_t)g->copies);
    size_t bytes;
    f->n = (int)sched_between(s, 1, (uint64_t)g->copies - 1);
    for (int i = 0; i < f->n; i++) {
        f->node[i] = g->copy[(first + i) % g->copies].node;
        f->told[i] = false;
    }
    (void)check_copy(w, f->node[0], f->segment, f->slot, &bytes);
    f->at = sched_below(s, bytes);
    f->was = *byte_of(w, f, 0);
    f->is = f->was ^ (uint8_t)(1u << sched_below(s, 8));
    return true;
}

static bool is_mended(const struct world *w, const struct flips *f)
{
    for (int i = 0; i < f->n; i++)
        if (!f->told[i] || *byte_of(w, f, i) != f->was)
            return false;
    return true;
}

static void rest_begins(const struct world *w, struct flips *f)
{
    for (int i = 0; i < w->members; i++)
        f->rest[i] = w->node[i].agent.scrub.pass;
}

static bool has_rested(const struct world *w, const struct flips *f)
{
    for (int i = 0; i < w->members; i++)
        if (!w->node[i].dead && w->node[i].agent.scrub.pass < f->rest[i] + REST_PASSES)
            return false;
    return true;
}

void flips_not_quiet(struct world *w)
{
    if (w->flips && !w->flipped)
        rest_begins(w, w->flips);
}

bool flips_are_over(struct world *w)
{
    if (!w->setup.flips)
        return true;
    if (!w->healing)
        return w->gates + 1 < w->model->gates; /* the last one waits for it */
    struct flips *f = w->flips ? w->flips : (w->flips = sim_alloc(sizeof *w->flips));
    if (f->gate != w->gates + 1) {
        *f = (struct flips){.gate = w->gates + 1};
        rest_begins(w, f);
    }
    if (f->done || (w->flipped && !is_mended(w, f)) || !has_rested(w, f))
        return f->done;
    f->done = w->flipped || !choose(w, f);
    w->flipped = !f->done;
    for (int i = 0; w->flipped && i < f->n; i++) {
        *byte_of(w, f, i) = f->is;
        world_say(w, "a bit flips: segment %d, slot %d, byte %zu of the copy on node %d", f->segment, f->slot, f->at,
                  f->node[i]);
    }
    return f->done;
}

void flips_told(struct world *w, const char *members)
{
    struct flips *f = w->flips;
    char segment[48], node[32];
    for (int i = 0; w->flipped && i < f->n; i++) {
        snprintf(segment, sizeof segment, "\"segment\":%lld,\"slot\":%d,",
                 (long long)w->model->planned[f->segment].index, f->slot);
        snprintf(node, sizeof node, "\"node\":%d,\"mended\":\"yes\"", f->node[i]);
        if (strstr(members, segment) && strstr(members, node) && !f->told[i]) {
            f->told[i] = true;
            return;
        }
    }
    world_fail(w, "the scrubber tells of a change that was none, or does not mend it: %s", members);
}
