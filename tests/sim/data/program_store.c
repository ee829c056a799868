/* Plain stores of a rank's program into its own part, and the flushes that bring them to the other copies
 * (runtime/client/segment/twins.h). Nobody writes through Keel while a stage flushes, as keel/update.h asks. */
#include <stdlib.h>

#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/twins.h"
#include "runtime/client/segment/update.h"
#include "tests/sim/data/program_int.h"

void program_track(struct program *p, int segment)
{
    struct client *c = &p->r->client;
    if (!p->w->model->planned[segment].tracked || !p->seg[segment])
        return;
    keel_status status;
    program_begin(p, "keel_segment_track");
    uint8_t *own = segment_map_home(p->seg[segment], &status);
    program_ended(p, own ? KEEL_OK : status, false);
    if (!own)
        return; /* the node has no copy, or this process has come to its end */
    struct twins *t = sim_alloc(sizeof *t);
    uint8_t *twin = sim_alloc(p->seg[segment]->map_bytes[page_rank(c->page, c->rank)->slot]);
    if (twins_init(t, c, p->seg[segment], own, twin) != KEEL_OK)
        world_fail(p->w, "rank %d.%u: no memory to track segment %d", p->r->rank, p->r->incarnation, segment);
    p->twins[segment] = t;
}

void program_untrack(struct program *p, int segment)
{
    struct twins *t = p->twins[segment];
    if (!t)
        return;
    p->twins[segment] = NULL;
    twins_fini(t);
    free(t->twin);
    free(t);
}

/* The bytes, or what the twin has there: a store that takes back what was put meanwhile. */
void program_store(struct program *p, const struct region *g, size_t offset, uint8_t *bytes, size_t len)
{
    struct client *c = &p->r->client;
    struct twins *t = p->twins[g->segment];
    size_t at = (size_t)p->seg[g->segment]->part_at[g->rank] + g->offset + offset;
    for (size_t i = at / t->granule; i <= (at + len - 1) / t->granule; i++)
        (void)twins_take(t, i * t->granule);
    if (sched_chance(program_random(p), 0.3))
        for (size_t i = 0; i < len; i++)
            bytes[i] = t->twin[at + i];
    model_store(p->w, p->r, (struct region *)(uintptr_t)g, offset, bytes, len);
    c->env.copy(c->env.user, t->own + at, bytes, len);
}

/* What is there goes to all copies. */
static void end_update(struct program *p, struct region *g, size_t offset, size_t len)
{
    struct client *c = &p->r->client;
    const struct twins *t = p->twins[g->segment];
    size_t in_part = g->offset + offset, at = (size_t)p->seg[g->segment]->part_at[g->rank] + in_part;
    struct pending *put = model_put(p->w, p->r, g, offset, t->own + at, len);
    program_begin(p, "keel_update_end");
    keel_status status = update_end(c, p->seg[g->segment], in_part, len);
    program_ended(p, status, true);
    model_status(p->w, p->r, g->segment, g->rank, status, "keel_update_end");
    model_put_done(p->w, put, status);
    if (status == KEEL_OK)
        model_updated(p->r, g, offset, len);
}

void program_update(struct program *p, struct region *g, size_t offset, const uint8_t *bytes, size_t len)
{
    struct client *c = &p->r->client;
    uint8_t *at;
    program_begin(p, "keel_update_begin");
    keel_status status = update_begin(c, p->seg[g->segment], g->offset + offset, len, &at);
    program_ended(p, status, false);
    if (status != KEEL_OK || p->over)
        return;
    model_told(p->w, p->r, g, offset, bytes, len);
    c->env.copy(c->env.user, at, bytes, len);
    if (sched_chance(program_random(p), 0.6))
        end_update(p, g, offset, len);
}

/* Those that have not ended yet. */
static void end_updates(struct program *p, int segment)
{
    for (struct region *g = p->w->model->regions; g; g = g->next) {
        const struct pending *q = g->segment == segment && g->rank == p->r->rank ? g->pending : NULL;
        while (q && !(q->told && q->rank == p->r->rank && q->incarnation == p->r->incarnation))
            q = q->next;
        if (q && !p->over)
            end_update(p, g, q->offset, q->len);
    }
}

bool program_flush(struct program *p)
{
    for (int i = 0; i < p->w->model->segments && !p->over; i++) {
        if (!p->twins[i])
            continue;
        program_begin(p, "keel_update_flush");
        keel_status status = twins_flush(p->twins[i], false);
        program_ended(p, status, false);
        model_status(p->w, p->r, i, p->r->rank, status, "keel_update_flush");
        if (status == KEEL_OK)
            model_flushed(p->w, p->r, i);
        if (status == KEEL_OK && sched_chance(program_random(p), 0.5))
            end_updates(p, i);
    }
    return !p->over;
}
