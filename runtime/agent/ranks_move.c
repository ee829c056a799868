/* Ranks of this node that go on elsewhere (ADR 0170): one that somebody asks for, and those that the plan of the view
 * (view/plan.h) sends on.
 *
 *   stays ── the plan names a node, and the slot's data are there ──► ASKED ── it ends at a point of its program, or
 *     ▲                                                                 │      where it is after a while ──► moved
 *     └── by a later plan it stays, or goes to a node whose data ───────┘
 *         are not there yet; one that has accepted goes where that
 *         plan sends it, or begins again here, also if it accepts
 *         only then, as its program was told before
 *
 * A rank whose program has called keel_finalize stays, or, if it was told that it is to go, begins elsewhere when its
 * process has ended; either may take as long as it likes with what it does then.
 *
 * Nobody waits for another rank of its line: where it goes there may be ranks of a slot that is to go on itself. Those
 * of one slot go together (wire/leave.h). */
#include "runtime/agent/agent.h"
#include "runtime/agent/ranks.h"
#include "runtime/base/fault.h"
#include "runtime/view/plan.h"
#include "runtime/wire/leave.h"

static bool may_move(const struct agent *a, struct life life)
{
    const struct view *v = &a->view;
    const struct view_rank *k = life.rank >= 0 && life.rank < v->ranks ? &v->rank[life.rank] : NULL;
    return k && !v->stopped && view_ranks_begin_again(v) && k->state == RANK_RUNNING && !k->left &&
           life_equal(view_life(v, life.rank), life) && k->node == a->self;
}

/* It can be asked to go there. */
static bool may_go(const struct agent *a, const struct proc *proc, int to)
{
    return may_move(a, proc->life) && to >= 0 && to < a->members && a->view.alive[to] && to != a->self &&
           !proc->exited && !proc->released && proc->intents;
}

/* False: its program has called keel_finalize. */
static bool hold(struct proc *proc)
{
    uint32_t was = RELEASE_NONE; /* ACCEPTED: it was told before, and has accepted since */
    return atomic_compare_exchange_strong(&proc->intents->released, &was, RELEASE_HELD) || was != RELEASE_LEFT;
}

/* At the end of that collective. False: as in hold. */
static bool ask(struct agent *a, struct proc *proc, int to, uint32_t order, uint64_t at)
{
    uint32_t was = RELEASE_HELD;
    atomic_store(&proc->intents->leave_at, at);
    atomic_store(&proc->intents->asked_ns, a->now);
    if (!atomic_compare_exchange_strong(&proc->intents->released, &was, RELEASE_ASKED) && was == RELEASE_LEFT)
        return false;
    proc->released = true;
    proc->released_at = a->now;
    proc->lingers = false;
    proc->moves_to = to;
    proc->move_order = order;
    agent_say(a, "released", J_INT("rank", proc->life.rank), J_UINT("incarnation", proc->life.incarnation),
              J_INT("to", to));
    FAULT_POINT("procs.releasing");
    a->ops.release(a->ops.user, proc);
    return true;
}

bool ranks_release(struct agent *a, struct life life, int to, uint32_t order)
{
    struct proc *proc = ranks_of(a, life);
    return proc && may_go(a, proc, to) && hold(proc) && ask(a, proc, to, order, 0);
}

void ranks_moved(struct agent *a, struct proc *proc)
{
    if (life_is_none(proc->life) || a->view.stopped) {
        ranks_free(a, proc);
        return;
    }
    bool complete = atomic_load(&proc->intents->moved) == MOVED_COMPLETE && atomic_load(&proc->intents->open) == 0;
    proc->exited = true;
    struct view_event e = view_event_of_life(VIEW_RANK_MOVED, proc->life);
    e.c = (uint32_t)(proc->released ? proc->moves_to : a->self); /* it has ended as it was to stay: it begins again */
    e.d = view_moved_word(complete, proc->move_order);
    FAULT_POINT("procs.moved");
    a->ops.submit(a->ops.user, &e);
}

static void stays(struct agent *a, struct proc *proc)
{
    proc->released = false;
    agent_say(a, "stays", J_INT("rank", proc->life.rank), J_UINT("incarnation", proc->life.incarnation));
    FAULT_POINT("procs.staying");
    a->ops.stay(a->ops.user, proc);
}

void ranks_leaves(struct agent *a, struct proc *proc)
{
    if (proc->released)
        stays(a, proc);
}

bool ranks_overdue(struct agent *a, struct proc *proc)
{
    if (proc->exited || !proc->released)
        return false;
    uint32_t was = atomic_load(&proc->intents->released);
    while (was != RELEASE_LEFT && was != RELEASE_OUT)
        if (atomic_compare_exchange_weak(&proc->intents->released, &was, RELEASE_ENDED))
            return true;
    ranks_lingers(a, proc);
    return false;
}

void ranks_lingers(struct agent *a, struct proc *proc)
{
    if (proc->exited || !proc->released || proc->lingers || atomic_load(&proc->intents->released) != RELEASE_OUT)
        return;
    proc->lingers = true;
    agent_say(a, "still_ends", J_INT("rank", proc->life.rank), J_UINT("incarnation", proc->life.incarnation),
              J_UINT("ms", (a->now - proc->released_at) / 1000000));
}

/* ---- by the plan ---- */

/* It has not accepted yet, and does not go. */
static bool take_back(struct agent *a, struct proc *proc)
{
    uint32_t asked = RELEASE_ASKED;
    if (!atomic_compare_exchange_strong(&proc->intents->released, &asked, RELEASE_NONE))
        return false;
    stays(a, proc);
    return true;
}

/* The node that the plan has for a rank of this one now; -1: none, or its data are not there yet. */
static int goes_to(const struct agent *a, int rank)
{
    int to = plan_of_rank(&a->view, rank);
    return to >= 0 && view_slot_ready(&a->view, a->view.rank[rank].slot) ? to : -1;
}

/* Those of the slot that are here, and are to go; and those that have been asked, and have not gone yet. */
static void release_slot(struct agent *a, int slot, int to)
{
    const uint32_t order = plan_order(&a->view, slot);
    uint64_t at = 0;
    int together = 0;
    for (struct proc *p = a->ranks.procs; p; p = p->next) {
        bool is_of_slot = !life_is_none(p->life) && a->view.rank[p->life.rank].slot == slot;
        p->held = is_of_slot && may_go(a, p, to) && hold(p);
        if (p->held)
            at = leave_at(at, atomic_load(&p->intents->collectives));
        else if (is_of_slot && p->released && !p->exited && atomic_load(&p->intents->leave_at) > at)
            at = atomic_load(&p->intents->leave_at);
        together += p->held || (is_of_slot && p->released && !p->exited);
    }
    FAULT_POINT("procs.held");
    for (struct proc *p = a->ranks.procs; p; p = p->next) {
        if (p->held)
            p->by_plan = ask(a, p, to, order, together > 1 ? at : 0);
        p->held = false;
    }
}

/* It goes nowhere any more, or elsewhere. */
static void follow_plan(struct agent *a, struct proc *proc, int to)
{
    if (proc->released && proc->moves_to != to && !take_back(a, proc))
        proc->moves_to = to >= 0 ? to : a->self;
}

/* Of a rank that runs here. */
static struct proc *proc_of(const struct agent *a, int rank)
{
    struct proc *proc = a->view.rank[rank].node == a->self ? ranks_of(a, view_life(&a->view, rank)) : NULL;
    return proc && !proc->exited && proc->intents && (proc->by_plan || !proc->released) ? proc : NULL;
}

void ranks_slide(struct agent *a)
{
    struct proc *proc;
    if (!a->ranks.slides_due || a->recovery.settled < a->view.epoch || a->recovery.preparing)
        return;
    a->ranks.slides_due = false;
    if (!a->view.sliding || a->view.stopped)
        return;
    for (int r = 0; r < a->view.ranks; r++)
        if ((proc = proc_of(a, r)))
            follow_plan(a, proc, goes_to(a, r));
    for (int r = 0; r < a->view.ranks; r++)
        if ((proc = proc_of(a, r)) && !proc->released && goes_to(a, r) >= 0)
            release_slot(a, a->view.rank[r].slot, goes_to(a, r));
}
