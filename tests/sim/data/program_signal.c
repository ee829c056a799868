/* Signals. A word that anybody adds to, and one that the rank before adds to, in each part of each segment: the model
 * counts what is added like the accumulates of a sum. In some stages each rank tells the next one that it has come
 * there, and waits for the one before. */
#include <stdlib.h>

#include "tests/sim/data/program_int.h"
#include "runtime/client/op/rma.h"
#include "runtime/client/op/signal.h"

static struct sum *find_bell(const struct program *p, int segment, int rank, enum bell bell)
{
    struct sum *s = p->w->model->sums;
    while (s && (s->segment != segment || s->rank != rank || s->bell != bell))
        s = s->next;
    return s;
}

static keel_status add(struct program *p, struct sum *bell, int64_t value)
{
    struct adding *a = model_add(p->w, p->r, bell, 0, 1, (double)value);
    program_begin(p, "keel_signal");
    keel_status status = signal_send(&p->r->client, p->seg[bell->segment], bell->rank, bell->offset, value);
    program_ended(p, status, true);
    world_trace(p->w, "rank %d: signal of %lld to rank %d, segment %d: %s", p->r->rank, (long long)value, bell->rank,
                bell->segment, keel_status_name(status));
    model_status(p->w, p->r, bell->segment, bell->rank, status, "keel_signal");
    model_add_done(p->w, a, status);
    return status;
}

/* All that was complete before, and nothing that nobody has added. */
static void check_got(struct program *p, const struct sum *bell, int64_t got, double complete)
{
    double most = bell->done[0];
    for (const struct adding *a = bell->adding; a; a = a->next)
        most += a->value;
    if (model_is_zombie(p->w, p->r->rank, p->r->incarnation) || model_is_lost(p->w, bell->segment, bell->rank))
        return;
    if ((double)got < complete || (double)got > most)
        world_fail(p->w, "rank %d.%u: a word of signals is %lld; %.0f were complete, and %.0f begun", p->r->rank,
                   p->r->incarnation, (long long)got, complete, most);
}

/* What it is waited for holds already. */
static void wait_for_what_came(struct program *p, struct sum *bell)
{
    struct sched *s = program_random(p);
    double complete = bell->done[0];
    int64_t got = 0, low = (int64_t)complete;
    keel_compare how = sched_chance(s, 0.5) ? KEEL_GE : sched_chance(s, 0.5) ? KEEL_GT : KEEL_NE;
    int from = sched_chance(s, 0.3) ? KEEL_ANY_RANK : (int)sched_below(s, (uint64_t)p->w->setup.ranks);
    program_begin(p, "keel_wait_until what has come");
    keel_status status = signal_wait(&p->r->client, p->seg[bell->segment], bell->offset, how,
                                     how == KEEL_GE ? low : low - 1, from, &got);
    program_ended(p, status, true);
    model_status(p->w, p->r, bell->segment, bell->rank, status, "keel_wait_until");
    if (status == KEEL_OK)
        check_got(p, bell, got, complete);
}

void program_signal(struct program *p, int segment)
{
    struct sched *s = program_random(p);
    if (p->w->model->planned[segment].of_group)
        return;
    if (sched_chance(s, 0.3)) {
        wait_for_what_came(p, find_bell(p, segment, p->r->rank, BELL_OF_ALL));
        return;
    }
    int rank = (int)sched_below(s, (uint64_t)p->w->setup.ranks);
    if (sched_chance(s, 0.6) && !program_put_to(p, segment, rank))
        return; /* as keel_put_signal: nothing is added */
    (void)add(p, find_bell(p, segment, rank, BELL_OF_ALL), (int64_t)sched_between(s, 1, 9));
}

static bool again(const struct program *p, keel_status status)
{
    return !p->over && !p->w->failed && (status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_NOMEM);
}

void program_chain_tell(struct program *p, int stage)
{
    int next = (p->r->rank + 1) % p->w->setup.ranks;
    struct sum *bell = find_bell(p, 0, next, BELL_OF_ONE);
    keel_status status;
    if (!p->seg[0])
        return;
    (void)program_put_to(p, 0, next);
    do {
        int64_t is = 0;
        program_begin(p, "a get of a word of signals");
        status = rma_get_strong(&p->r->client, p->seg[0], next, bell->offset, &is, sizeof is);
        program_ended(p, status, true);
        model_status(p->w, p->r, 0, next, status, "a get of a word of signals");
        if (status == KEEL_OK && is < stage)
            status = add(p, bell, stage - is);
    } while (again(p, status));
}

static bool has_gone(const struct program *p, int rank)
{
    const struct view_rank *k = &p->w->model->view.rank[rank];
    return k->incarnation > 0 || k->state == RANK_DEAD || k->node < 0 || k->left;
}

void program_chain_wait(struct program *p, int stage)
{
    int before = (p->r->rank + p->w->setup.ranks - 1) % p->w->setup.ranks;
    struct sum *bell = find_bell(p, 0, p->r->rank, BELL_OF_ONE);
    keel_status status = KEEL_ERR_TIMEOUT;
    while (p->seg[0] && again(p, status)) {
        int64_t got = 0;
        double complete = bell->done[0];
        program_begin(p, "keel_wait_until a signal");
        status = signal_wait(&p->r->client, p->seg[0], bell->offset, KEEL_GE, stage, before, &got);
        program_ended(p, status, false);
        world_trace(p->w, "rank %d.%u: stage %d of rank %d: %lld, %s", p->r->rank, p->r->incarnation, stage, before,
                    (long long)got, keel_status_name(status));
        if (status == KEEL_ERR_RANK_DEAD && has_gone(p, before))
            return;
        model_status(p->w, p->r, 0, p->r->rank, status, "keel_wait_until");
        if (status == KEEL_OK)
            check_got(p, bell, got, complete);
    }
}
