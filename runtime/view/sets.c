/* The sets of a program that runs several times side by side: a set goes on or it is *retired*. Pure.
 *
 * A set is retired, in the view that says so, when one of its ranks has no process any more before its end, has ended
 * with another code than 0, or has asked for the end of the job. It ends as a whole: the agents end the processes that
 * are left of it, and each of them is a death like any other for what it was writing. The job is over when all whole
 * sets have come to their end, or none is left. It does not end with the first that comes there: who is slower has
 * output to show, or may find out that the other one is wrong.
 *
 * Where partners do the part of the dead (docs/adr/0197) a set that loses a process goes on without it, as long as each
 * rank lives in some set, until one of its processes says that nobody can do its part. Codes and what ranks
 * ask for retire the set as before: that is the program's own end, to which its replicas in other sets come, too. A
 * rank that lives in no set retires all. */
#include "runtime/view/view_int.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/signals.h"

void view_replicate(struct view *v, const struct replica_map *map)
{
    v->replicas = map && replica_map_is_used(map) ? map : NULL;
}

bool sets_are_used(const struct view *v)
{
    return v->replicas != NULL;
}

bool view_set_is_whole(const struct view *v, int set)
{
    return v->replicas && !v->loss[set].retired;
}

unsigned view_sets_retired(const struct view *v)
{
    unsigned bits = 0;
    for (int s = 0; v->replicas && s < v->replicas->replicas; s++)
        bits |= (unsigned)v->loss[s].retired << s;
    return bits;
}

void view_take_partners(struct view *v)
{
    v->partners = v->replicas != NULL;
}

unsigned view_rank_lives(const struct view *v, int rank)
{
    unsigned bits = 0;
    for (int s = 0; s < v->replicas->replicas; s++) {
        const struct view_rank *k = &v->rank[replica_native(v->replicas, rank, s)];
        bits |= (unsigned)(!v->loss[s].retired && k->state != RANK_DEAD) << s;
    }
    return bits;
}

/* In any set: its replicas write the same. */
static bool rank_writes(const struct view *v, int rank)
{
    bool any = false;
    for (int s = 0; s < v->replicas->replicas; s++)
        any = any || v->rank[replica_native(v->replicas, rank, s)].writes;
    return any;
}

int view_files_set(const struct view *v)
{
    unsigned sets = (1U << v->replicas->replicas) - 1;
    for (int rank = 0; rank < v->replicas->ranks; rank++)
        sets &= rank_writes(v, rank) ? view_rank_lives(v, rank) : ~view_sets_retired(v);
    return sets ? __builtin_ctz(sets) : -1;
}

/* What came first stays the reason. */
static void retire(struct view *v, int native, struct replica_loss loss)
{
    int set = replica_of(v->replicas, native).set;
    if (v->loss[set].retired)
        return;
    loss.retired = true;
    loss.native = native;
    loss.epoch = loss.epoch ? loss.epoch : v->epoch;
    v->loss[set] = loss;
}

void sets_rank_ended(struct view *v, int native, int node, int code)
{
    set_lost_guest(v, native, node, code);
    retire(v, native, (struct replica_loss){.node = node, .code = code});
}

static struct replica_loss loss_by_death(const struct view *v, int native)
{
    const struct view_death *d = &v->rank[native].death;
    return (struct replica_loss){.node = d->node, .signal = d->signal, .code = 0, .epoch = d->epoch};
}

static void retire_all_with(struct view *v, int rank)
{
    for (int s = 0; s < v->replicas->replicas; s++) {
        int native = replica_native(v->replicas, rank, s);
        retire(v, native, loss_by_death(v, native));
    }
}

static bool any_set_goes_on(const struct view *v)
{
    return view_sets_retired(v) != (1U << v->replicas->replicas) - 1;
}

/* Of all deaths of this view at once, so that their order in the batch does not matter. What several ranks write to one
 * file lies in no set as a whole where one of them is dead in each: nobody can do that. */
void sets_look(struct view *v)
{
    for (int rank = 0; v->replicas && v->partners && rank < v->replicas->ranks; rank++)
        if (!view_rank_lives(v, rank))
            retire_all_with(v, rank);
    if (v->replicas && v->partners && any_set_goes_on(v) && view_files_set(v) < 0)
        v->partners = false;
    for (int r = 0; v->replicas && !v->partners && r < v->ranks; r++)
        if (v->rank[r].state == RANK_DEAD)
            retire(v, r, loss_by_death(v, r));
}

/* The set that was lost last, of those of one view the highest. */
static int last_lost(const struct view *v)
{
    int last = 0;
    for (int s = 1; s < v->replicas->replicas; s++)
        if (v->loss[s].epoch >= v->loss[last].epoch)
            last = s;
    return last;
}

bool sets_are_finished(struct view *v, int *code, char *why, size_t size)
{
    int whole = 0;
    for (int s = 0; s < v->replicas->replicas; s++)
        whole += !v->loss[s].retired;
    if (!whole) {
        int set = last_lost(v);
        const struct replica_loss *loss = &v->loss[set];
        size_t len = strlen(replica_loss_said(v->replicas, set, loss, why, size));
        bool is_last = v->partners && !loss->code;
        snprintf(why + len, size - len, is_last ? ", and no replica of it is left" : ", and no set is left");
        *code = loss->code ? loss->code : loss->signal ? signal_code(loss->signal) : 137;
        return true;
    }
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].state == RANK_RUNNING && view_set_is_whole(v, replica_of(v->replicas, r).set))
            return false;
    *code = 0;
    *why = '\0';
    return true;
}

/* Would a rank live nowhere without it? */
static bool is_last_of_a_rank(const struct view *v, int node)
{
    for (int r = 0; r < v->ranks; r++) {
        struct replica who = replica_of(v->replicas, r);
        unsigned lives = view_rank_lives(v, who.rank);
        if (v->rank[r].node == node && view_rank_takes_part(v, r) && lives == 1U << who.set)
            return true;
    }
    return false;
}

/* Would each set that is whole lose a rank with the node? */
bool sets_end_with(const struct view *v, int node)
{
    if (v->partners)
        return is_last_of_a_rank(v, node);
    bool hit[REPLICAS_MAX] = {false};
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].node == node && view_rank_takes_part(v, r))
            hit[replica_of(v->replicas, r).set] = true;
    for (int s = 0; s < v->replicas->replicas; s++)
        if (!v->loss[s].retired && !hit[s])
            return false;
    return true;
}
