#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover_int.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/segments.h"
#include "runtime/agent/strong.h"
#include "runtime/base/fault.h"

/* ---- the view is applied ---- */

static void hand_in(struct agent *a, struct commit *c)
{
    (void)c;
    recover_hand_in(a);
}

static void fence(struct agent *a, struct commit *c)
{
    recover_fence(a, c->events, c->n);
}

static bool has_node_death(const struct commit *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->events[i].type == VIEW_NODE_DEAD)
            return true;
    return false;
}

static void keep_old(struct agent *a, struct commit *c)
{
    c->was_whole = !tell_repairing(a) && !has_node_death(c);
    memcpy(c->before, a->view.copyset, (size_t)agent_copysets(a) * sizeof *c->before);
}

static void apply(struct agent *a, struct commit *c)
{
    view_apply(&a->view, c->epoch, c->events, c->n);
}

/* The doubts of writers whose end is in this view count from now on. */
static void date_doubts(struct agent *a, struct commit *c)
{
    for (struct doubt *d = a->repairs.doubts; d; d = d->next) {
        const struct view_rank *k = &a->view.rank[d->writer.rank];
        bool ended = !life_equal(view_life(&a->view, d->writer.rank), d->writer) || k->state != RANK_RUNNING;
        for (int i = 0; i < c->n; i++)
            ended = ended || view_event_doubts(&c->events[i], d->writer);
        if (!d->epoch && ended)
            d->epoch = a->view.epoch;
    }
}

/* A connection over which a remote write to a copyset of an older generation may be half received: it must not go on.
 */
static void drop_old_writes(struct agent *a, struct commit *commit)
{
    for (struct conn *c = a->conns; c; c = c->next)
        for (int i = 0; i < NOTES_MAX; i++) {
            const struct patch *p = &c->note[i];
            const struct store_segment *s = p->len && p->torn ? store_find(&a->store, p->seg) : NULL;
            int copyset = s ? copyset_of(p->slot, s->redundancy) : -1;
            if (copyset >= 0 && a->view.copyset[copyset].generation != commit->before[copyset].generation) {
                agent_close_conn(a, c);
                break;
            }
        }
}

static void segments(struct agent *a, struct commit *c)
{
    segments_view_committed(a, c->before);
}

/* What is sent from here on is not for those who are still in the old view. */
static void date_streams(struct agent *a, struct commit *c)
{
    a->peers.epoch = c->epoch;
}

static void bear(struct agent *a, struct commit *c)
{
    recover_bear(a, c->events, c->n);
}

static void meet(struct agent *a, struct commit *c)
{
    segments_meet(a, c->events, c->n);
}

static void forwards(struct agent *a, struct commit *c)
{
    execute_view_committed(a, c->before);
}

static void strong_gets(struct agent *a, struct commit *c)
{
    (void)c;
    strong_view_committed(a);
}

static void repairs(struct agent *a, struct commit *c)
{
    repair_view_committed(a, c->before);
}

/* ---- it is shown, and execution goes on ---- */

static void joins(struct agent *a, struct commit *c)
{
    ranks_joined(a, c->joined);
}

static void show(struct agent *a, struct commit *c)
{
    (void)c;
    recover_show_view(a);
}

/* Whoever asked for this node's answer to a prepare knows the outcome. */
static void end_prepare(struct agent *a, struct commit *c)
{
    (void)c;
    a->recovery.preparing = 0;
}

static void thaw(struct agent *a, struct commit *c)
{
    (void)c;
    execute_thaw(a);
}

static void take_held(struct agent *a, struct commit *c)
{
    peers_epoch(&a->peers, c->epoch);
}

static void answer_segments(struct agent *a, struct commit *c)
{
    (void)c;
    segments_acked(a);
}

static void let_enter(struct agent *a, struct commit *c)
{
    a->recovery.complete = c->joined > a->recovery.complete ? c->joined : a->recovery.complete;
    atomic_store(&a->page->frozen, 0);
}

static void processes(struct agent *a, struct commit *c)
{
    (void)c;
    ranks_view_committed(a);
}

/* ---- it is told ---- */

static void say_changes(struct agent *a, struct commit *c)
{
    tell_changes(a, c->events, c->n);
}

static void wake(struct agent *a, struct commit *c)
{
    (void)c;
    health_committed(a);
}

static void stakes(struct agent *a, struct commit *c)
{
    (void)c;
    health_stakes(a);
}

static void choices(struct agent *a, struct commit *c)
{
    weighing_committed(a, c->events, c->n);
}

static void say_copysets(struct agent *a, struct commit *c)
{
    tell_copysets(a, c->before);
}

static void say_redundancy(struct agent *a, struct commit *c)
{
    tell_redundancy(a, c->was_whole);
}

const struct commit_step commit_steps[] = {
    {"hand_in", hand_in,
     "first, before fence: a write of the dead may have taken effect whose announcement is still to be looked at"},
    {"fence", fence,
     "before apply, as in a prepare, without which a member that was cut off gets its commits; date_doubts dates its "
     "doubts"},
    {"keep_old", keep_old, "before apply: most of what follows asks what changed"},
    {"apply", apply, "before all that acts by the new view"},
    {"date_doubts", date_doubts,
     "after apply, which says whose end it is; before repairs: a doubt without a date does not call the primary torn"},
    {"segments", segments,
     "after apply; before show: under a route that ranks see a copy has its key, or is called lost"},
    {"drop_old_writes", drop_old_writes,
     "after apply, by which generations differ; before thaw: no half of an older write comes behind what is executed"},
    {"date_streams", date_streams,
     "after apply; before meet and forwards: who is in the old view still is not to take what they send"},
    {"bear", bear, "before meet: nothing is sent to who is fenced as unborn"},
    {"meet", meet,
     "after bear; before forwards and thaw: who is born hears of a segment before anything about it (J7)"},
    {"forwards", forwards,
     "before thaw and take_held: what those behind a dead copy may lack goes out before what is newer"},
    {"strong_gets", strong_gets,
     "after apply; before thaw, so that answers to questions of an older generation find no question"},
    {"repairs", repairs,
     "after date_doubts; before thaw and take_held: it says where nothing may be executed, as the copy here may be "
     "torn"},
    {"joins", joins, "before show: a life is shown with the value with which it joins"},
    {"show", show,
     "after segments; before thaw, let_enter, processes and wake: who is answered or woken reads this view on the "
     "page"},
    {"end_prepare", end_prepare,
     "anywhere: what was to be answered is decided, and recover_try_answer is not called before the last step"},
    {"thaw", thaw,
     "after repairs and show; before take_held: what waited here was sent before what others say of this view"},
    {"take_held", take_held,
     "after segments, forwards and repairs: a message of this view finds the state of this view"},
    {"answer_segments", answer_segments,
     "after apply, by which nobody waits for the dead, and take_held, by which acknowledgements are here"},
    {"let_enter", let_enter, "after show: a rank that sees that it may enter sees the view"},
    {"processes", processes, "after show: a parcel goes on to a process when the page has the life that it names"},
    {"say_changes", say_changes, "after let_enter: telling is late rather than that ranks wait for it"},
    {"wake", wake, "after show: who is woken reads of the death"},
    {"stakes", stakes, "after apply, and segments, which may add a class"},
    {"choices", choices, "after say_changes: first who died, then what was chosen for it"},
    {"say_copysets", say_copysets, "after say_changes: the line of the view comes before what follows from it"},
    {"say_redundancy", say_redundancy, "after say_copysets: first each copyset that is whole again, then that all are"},
};
const int commit_steps_n = sizeof commit_steps / sizeof commit_steps[0];

void recover_commit(struct agent *a, uint64_t epoch, const struct view_event *events, int n, uint64_t joined)
{
    if (epoch <= a->view.epoch)
        return;
    struct commit c = {.epoch = epoch, .events = events, .n = n, .joined = joined, .before = a->recovery.before};
    FAULT_POINT("recover.commit_received");
    for (int i = 0; i < commit_steps_n; i++)
        commit_steps[i].run(a, &c);
    FAULT_POINT("recover.committed");
}
