#include "runtime/agent/parcels.h"

#include "runtime/agent/ranks.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

static const struct proc *receiver(const struct agent *a, const struct wire *w)
{
    return ranks_of(a, parcel_life(w->a));
}

/* A process of this node is to run that life of the rank, by this view or by one that the sender has first. */
static bool is_to_come(const struct agent *a, const struct wire *w)
{
    const struct life to = parcel_life(w->a);
    if (life_is_none(to) || to.rank >= a->view.ranks || receiver(a, w))
        return false;
    const struct view_rank *k = &a->view.rank[to.rank];
    const struct life here = view_life(&a->view, to.rank);
    return k->state == RANK_RUNNING && (life_is_before(here, to) || (life_equal(here, to) && k->node == a->self));
}

/* The receiver looks at the view page: it takes nothing of a life that is not there. */
static bool names_sender(const struct agent *a, const struct wire *w)
{
    return !life_is_before(view_life(&a->view, (int)w->rank), wire_life(w));
}

static bool has_to_wait(const struct agent *a, const struct wire *w)
{
    return !a->view.stopped && (is_to_come(a, w) || !names_sender(a, w));
}

/* False: the receiver is not there. */
static bool pass_on(const struct agent *a, const struct wire *w, const void *body)
{
    const struct proc *to = receiver(a, w);
    if (!to || !to->conn || !to->conn->ep)
        return false;
    FAULT_POINT("parcel.passing");
    agent_answer(to->conn, w, body);
    return true;
}

void parcels_take(struct agent *a, struct conn *from, const struct wire *w)
{
    if (!life_equal(wire_life(w), from->life)) {
        log_error("rank %d sends in the name of rank %u", from->life.rank, w->rank);
        return;
    }
    if ((has_to_wait(a, w) && stash_keep(&a->parcels, NULL, w, w + 1)) || pass_on(a, w, w + 1) ||
        w->type == WIRE_PARCEL_BACK)
        return;
    struct wire back = *w;
    back.type = WIRE_PARCEL_BACK;
    back.len = 0;
    agent_answer(from, &back, NULL);
}

static bool goes_on(void *user, const struct stashed *s)
{
    const struct agent *a = user;
    if (has_to_wait(a, &s->wire))
        return false;
    (void)pass_on(a, &s->wire, s->body); /* or nobody wants it any more, and the sender knows from the view */
    return true;
}

void parcels_look(struct agent *a)
{
    stash_look(&a->parcels, goes_on, a);
}
