/* Between the rooms of a view change:
 *   recover.c          prepare: fencing; the view page; settled
 *   recover_commit.c   the steps of a commit, in the order that the protocol needs
 *   recover_tell.c     what the event log says of it */
#ifndef KEEL_AGENT_RECOVER_INT_H
#define KEEL_AGENT_RECOVER_INT_H

#include "runtime/agent/recover.h"

/* A view on its way through the steps. */
struct commit {
    uint64_t epoch;
    const struct view_event *events; /* [n] */
    int n;
    uint64_t joined; /* the value of ranks that join with this view */
    /* of the view before: */
    struct view_copyset *before; /* [copysets] */
    bool was_whole;              /* nothing was being made equal, and nobody dies in this one */
};

/* One step. The order of the table is the protocol: `why` says what the step may not come before, and what may not come
 * before it, and tests/unit/data/test_commit_order.c holds that. */
struct commit_step {
    const char *name;
    void (*run)(struct agent *a, struct commit *c);
    const char *why;
};
extern const struct commit_step commit_steps[];
extern const int commit_steps_n;

/* recover.c */
void recover_hand_in(struct agent *a);
void recover_fence(struct agent *a, const struct view_event *events, int n);
/* Who is born in the view is fenced no more. */
void recover_bear(struct agent *a, const struct view_event *events, int n);

/* recover_tell.c */
void tell_changes(struct agent *a, const struct view_event *events, int n);
void tell_copysets(struct agent *a, const struct view_copyset *before);
void tell_redundancy(struct agent *a, bool was_whole);
/* Is a copyset being made equal that has a segment? */
bool tell_repairing(const struct agent *a);
#endif
