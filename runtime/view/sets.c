/* The sets of a program that runs several times side by side: a set is whole or it is *retired*. Pure.
 *
 * A set is retired, in the view that says so, when one of its ranks has no process any more before its end, has ended
 * with another code than 0, or has asked for the end of the job. It ends as a whole: the agents end the processes that
 * are left of it, and each of them is a death like any other for what it was writing. The job is over when all whole
 * sets have come to their end, or none is left. It does not end with the first that comes there: who is slower has
 * output to show, or may find out that the other one is wrong. */
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

/* What came first stays the reason. */
static void retire(struct view *v, int native, struct replica_loss loss)
{
    int set = replica_of(v->replicas, native).set;
    if (v->loss[set].retired)
        return;
    loss.retired = true;
    loss.native = native;
    loss.epoch = v->epoch;
    v->loss[set] = loss;
}

void sets_rank_ended(struct view *v, int native, int node, int code)
{
    retire(v, native, (struct replica_loss){.node = node, .code = code});
}

/* Of all deaths of this view at once, so that their order in the batch does not matter. */
void sets_look(struct view *v)
{
    for (int r = 0; v->replicas && r < v->ranks; r++)
        if (v->rank[r].state == RANK_DEAD)
            retire(v, r,
                   (struct replica_loss){.node = v->rank[r].death.node, .signal = v->rank[r].death.signal, .code = 0});
}

/* The set that was retired last, of those of one view the highest. */
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
        snprintf(why + len, size - len, ", and no set is left");
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

/* Would each set that is whole lose a rank with the node? */
bool sets_end_with(const struct view *v, int node)
{
    bool hit[REPLICAS_MAX] = {false};
    for (int r = 0; r < v->ranks; r++)
        if (v->rank[r].node == node && view_rank_takes_part(v, r))
            hit[replica_of(v->replicas, r).set] = true;
    for (int s = 0; s < v->replicas->replicas; s++)
        if (!v->loss[s].retired && !hit[s])
            return false;
    return true;
}
