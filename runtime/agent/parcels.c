#include "runtime/agent/parcels.h"

#include "runtime/agent/ranks.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/wire/parcel.h"

/* A process of this node is to run that life of the rank, by this view or by one that the sender has first. */
static bool is_to_come(const struct agent *a, struct life to)
{
    if (life_is_none(to) || to.rank >= a->view.ranks || ranks_of(a, to))
        return false;
    const struct view_rank *k = &a->view.rank[to.rank];
    const struct life here = view_life(&a->view, to.rank);
    return k->state == RANK_RUNNING && (life_is_before(here, to) || (life_equal(here, to) && k->node == a->self));
}

/* The receiver looks at the view page: it takes nothing of a life that is not there. */
static bool is_known(const struct agent *a, struct life sender)
{
    return !life_is_before(view_life(&a->view, sender.rank), sender);
}

static bool has_to_wait(const struct agent *a, const struct msg_parcel *p)
{
    return !a->view.stopped && (is_to_come(a, p->receiver) || !is_known(a, p->sender));
}

/* False: the receiver is not there. */
static bool pass_on(const struct agent *a, const struct msg_parcel *p, const struct wire *w, const void *body)
{
    const struct proc *to = ranks_of(a, p->receiver);
    if (!to || !to->conn || !to->conn->ep)
        return false;
    FAULT_POINT("parcel.passing");
    agent_answer(to->conn, w, body);
    return true;
}

void parcels_take(struct agent *a, struct conn *from, const struct wire *w)
{
    struct msg_parcel p;
    struct wire back;
    msg_parcel_decode(w, &p);
    if (!life_equal(p.sender, from->life)) {
        log_error("rank %d sends in the name of rank %d", from->life.rank, p.sender.rank);
        return;
    }
    if ((has_to_wait(a, &p) && stash_keep(&a->parcels, NULL, w, w + 1)) || pass_on(a, &p, w, w + 1) ||
        w->type == WIRE_PARCEL_BACK)
        return;
    msg_parcel_back_encode(&p, &back);
    agent_answer(from, &back, NULL);
}

static bool goes_on(void *user, const struct stashed *s)
{
    const struct agent *a = user;
    struct msg_parcel p;
    msg_parcel_decode(&s->wire, &p);
    if (has_to_wait(a, &p))
        return false;
    (void)pass_on(a, &p, &s->wire, s->body); /* or nobody wants it any more, and the sender knows from the view */
    return true;
}

void parcels_look(struct agent *a)
{
    stash_look(&a->parcels, goes_on, a);
}
