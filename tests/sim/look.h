/* What tests see of a member that it tells nobody: its owner hears of each view as it is committed. */
#ifndef KEEL_TESTS_SIM_LOOK_H
#define KEEL_TESTS_SIM_LOOK_H

#include "detect/member_internal.h"

/* Last committed, 0 at first; and of those which it knows that all have. */
static inline uint64_t look_epoch(const struct member *m)
{
    return m->ledger.epoch;
}

static inline uint64_t look_settled(const struct member *m)
{
    return m->ledger.settled;
}

/* In the last committed view. */
static inline bool look_alive(const struct member *m, int node)
{
    return node >= 0 && node < m->p.n && is_member(m, node);
}

/* The least in it that is >= from >= 0, or -1. */
static inline int look_next(const struct member *m, int from)
{
    int node = idset_next_out(&m->roster.gone, from);
    return node < m->p.n ? node : -1;
}

/* False: it joins, and has not come to its birth in the log. */
static inline bool look_born(const struct member *m)
{
    return m->joining.born;
}

/* Events of a committed epoch, 1 or later, and their number. */
static inline int look_log(const struct member *m, uint64_t epoch, struct view_event events[MEMBER_EVENTS_MAX])
{
    return batch_events(&m->ledger.log[epoch - 1]->batch, events);
}
#endif
