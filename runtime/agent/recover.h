/* An agent at a view change: fence, then apply, then resume.
 *
 *   prepare    what the events declare dead is cut off (guarantee G6), and nothing completes any more under a route
 *              that
 *              names it; the primaries of this node stop executing and the barrier stops opening; when all that was
 *              forwarded has arrived, the agent answers
 *   commit     the view is applied and shown to the ranks; execution goes on
 *   settled    all agents show the view to their ranks: copies are made equal again (repair.h), ranks join
 *
 * Whoever calls recover_prepare first hands in all messages that have arrived (agent_poll until it gives 0): what a
 * dead writer has announced must be known before its connection is dropped, for its writes may have taken effect. */
#ifndef KEEL_AGENT_RECOVER_H
#define KEEL_AGENT_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/view/view.h"

struct agent;

/* Where this node is between two views. */
struct recovery {
    bool frozen;        /* from the prepare to the commit: nothing is executed */
    uint64_t preparing; /* number of the proposal being prepared, not yet answered; 0: none */
    uint64_t settled;   /* highest settled epoch */
    uint64_t complete; /* by all live ranks, known to be so somewhere: the greatest value of a view (wire/complete.h) */
    struct view_copyset *before; /* [copysets] scratch of a commit: as they were in the view before */
};

/* Who is cut off here, or about to be. */
struct fences {
    uint32_t *rank; /* [ranks] lowest incarnation that may connect */
    bool *node;     /* [members] refused: declared dead, or unborn */
    bool *doomed;   /* [members] believed dead here: it will be declared, or this node ends */
};

/* False: out of memory. The fini frees what was made, also of an all-zero one. */
bool recovery_init(struct recovery *recovery, int copysets);
void recovery_fini(struct recovery *recovery);
bool fences_init(struct fences *fences, int members, int ranks);
void fences_fini(struct fences *fences);

void recover_prepare(struct agent *a, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n);
/* Answer the prepare if nothing of this node's is on its way any more. Called after acknowledgements, too. */
void recover_try_answer(struct agent *a);
/* joined: the value of ranks that join with this view (wire/complete.h). */
void recover_commit(struct agent *a, uint64_t epoch, const struct view_event *events, int n, uint64_t joined);
void recover_settled(struct agent *a, uint64_t epoch);
/* This agent's detector believes the node dead. */
void recover_doomed(struct agent *a, int node);

/* Write the whole view page (at the start and after each commit). */
void recover_show_view(struct agent *a);
#endif
