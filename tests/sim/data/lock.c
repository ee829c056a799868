#include "tests/sim/data/lock.h"

#include "tests/sim/data/model.h"

void lock_plan(struct world *w, int segment, int per_rank)
{
    for (int home = 0; home < w->setup.ranks; home++)
        for (int number = 0; number < per_rank; number++) {
            struct lock *l = sim_alloc(sizeof *l);
            *l = (struct lock){
                .next = w->model->locks, .segment = segment, .home = home, .number = number, .holder = -1};
            w->model->locks = l;
        }
}

struct lock *lock_find(const struct world *w, int segment, int home, int number)
{
    struct lock *l = w->model->locks;
    while (l && (l->segment != segment || l->home != home || l->number != number))
        l = l->next;
    return l;
}

static bool has_died(const struct world *w, int rank)
{
    const struct view_rank *k = &w->model->view.rank[rank];
    return k->incarnation > 0 || k->state == RANK_DEAD;
}

void lock_taken(struct world *w, struct runner *r, struct lock *l, int dead)
{
    if (model_is_zombie(w, r->rank, r->incarnation) || model_is_lost(w, l->segment, l->home))
        return;
    world_trace(w, "rank %d.%u has mutex %d of rank %d, after %d.%u; dead: %d", r->rank, r->incarnation, l->number,
                l->home, l->holder, l->incarnation, dead);
    if (l->holder >= 0 && !model_is_zombie(w, l->holder, l->incarnation))
        world_fail(w, "rank %d.%u has mutex %d of rank %d, and so has rank %d.%u", r->rank, r->incarnation, l->number,
                   l->home, l->holder, l->incarnation);
    else if (l->holder >= 0 && dead < 0)
        world_fail(w, "rank %d.%u has mutex %d of rank %d, and was not told that rank %d.%u died with it", r->rank,
                   r->incarnation, l->number, l->home, l->holder, l->incarnation);
    else if (dead >= 0 && (dead >= w->setup.ranks || !has_died(w, dead)))
        world_fail(w, "rank %d.%u has mutex %d of rank %d, and was told that rank %d, which lives, died with it",
                   r->rank, r->incarnation, l->number, l->home, dead);
    l->locked++;
    l->inherited += l->holder >= 0;
    l->holder = r->rank;
    l->incarnation = r->incarnation;
}

void lock_given_back(struct world *w, const struct runner *r, struct lock *l)
{
    if (l->holder == r->rank && l->incarnation == r->incarnation)
        l->holder = -1;
    else if (l->holder >= 0 && !model_is_zombie(w, r->rank, r->incarnation) && !model_is_lost(w, l->segment, l->home))
        world_fail(w, "rank %d.%u gives mutex %d of rank %d back, which rank %d.%u has", r->rank, r->incarnation,
                   l->number, l->home, l->holder, l->incarnation);
}
