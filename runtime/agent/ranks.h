/* This node's ranks, as the agent's data half sees them: who joins, how far they are, what the dead leave behind. */
#ifndef KEEL_AGENT_RANKS_H
#define KEEL_AGENT_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/life.h"
#include "runtime/view/view.h"
#include "runtime/wire/control.h"
#include "runtime/wire/note.h"

struct agent;
struct conn;
struct proc;
struct tp_ep;

struct ranks {
    struct proc *procs;
    struct conn **conn;  /* [ranks] of this node's */
    uint64_t *joined;    /* [ranks] value with which the rank's incarnation joins */
    uint32_t *started;   /* [ranks] 1 + incarnation that was started on this node, 0: none */
    uint32_t needs_told; /* enum program_needs that VIEW_NEEDS was submitted for */
    bool slides_due;     /* somebody may be to go elsewhere, or not to any more */
};

/* False: out of memory. ranks_fini frees what was made, also of an all-zero one; the processes were freed before. */
bool ranks_init(struct ranks *ranks, int count);
void ranks_fini(struct ranks *ranks);

/* For the owner. A process was started; id is unique and never reused. NULL: out of memory. */
struct proc *ranks_started(struct agent *a, int id);
/* The process is this life of its rank from now on. ep: the agent's end of its shared-memory connection, whose user is
 * the returned connection (create it with ranks_conn); intents stay the owner's. *welcome is filled in, for the
 * process. */
struct conn *ranks_conn(struct agent *a, struct proc *proc);
void ranks_welcome(struct agent *a, struct proc *proc, struct life life, struct tp_ep *ep, struct intent_page *intents,
                   struct control_welcome *welcome);
/* A request over its control socket (wire/control.h), but for CONTROL_EVENT, which is the owner's. */
void ranks_control(struct agent *a, struct proc *proc, const struct control *r);
/* The process ended: by exit with code, or by signal (0 if none; base/signals.h: SIGNAL_HIDDEN). Its last requests were
 * handed in before. */
void ranks_exited(struct agent *a, struct proc *proc, int code, int signal);
/* The rank, whose life this node runs, is to go on elsewhere: its process ends, and its next life begins on node `to`.
 * order is the move's number in a plan. False: it is not here, ends already, is on its way, or cannot move; or that
 * node is dead. Deaths meanwhile are dealt with as ever. */
bool ranks_release(struct agent *a, struct life life, int to, uint32_t order);
/* Ranks of this node go where the view's plan sends them, as far as their data are there; those that are released and
 * go nowhere, or elsewhere, by that plan now, stay, or go there. In each round: it looks when a view is settled, or a
 * process has become a rank. */
void ranks_slide(struct agent *a);
/* The process was released, and is waited for no longer. True: the owner ends it, and ranks_moved follows. False: it
 * stays; or it ends by itself, as its program has come to its end. */
bool ranks_overdue(struct agent *a, struct proc *proc);
/* The same for a while already, and it is waited for: a line if it has come to its end and does not end. Once. */
void ranks_lingers(struct agent *a, struct proc *proc);
/* No process could be started here for that life of a rank, or what was started cannot be it and is ended by the owner:
 * by the next view the rank is another node's. The owner says why. */
void ranks_refused(struct agent *a, struct life life);
/* The process ended because it was released, or was ended for it: in place of ranks_exited. */
void ranks_moved(struct agent *a, struct proc *proc);
/* The same as ranks_exited, and the job ends with this code for it. */
void ranks_ended_job(struct agent *a, struct proc *proc, int code);
/* Frees the process; the owner has let go of its intents' memory, or does now. */
void ranks_free(struct agent *a, struct proc *proc);
/* What the program needs (wire/control.h: enum program_needs). */
void ranks_needs(struct agent *a, uint32_t needs);
/* It has written a file. */
void ranks_writes(struct agent *a, int rank);
struct proc *ranks_find(const struct agent *a, int id);

/* For the parts. */
/* Its program has called keel_finalize, which is the rank's end: it goes nowhere. */
void ranks_leaves(struct agent *a, struct proc *proc);
void ranks_doubt_intents(struct agent *a, struct life writer);
/* What the process's i-th intent says it is storing; false: nothing. */
bool ranks_intent(const struct agent *a, const struct proc *proc, int i, struct patch *patch);
void ranks_view_committed(struct agent *a);
void ranks_view_settled(struct agent *a);
/* Ranks that joined on this node get their processes, when the view is settled and the agent has heard of all segments
 * that are theirs. */
void ranks_begin(struct agent *a);
/* What is complete by all live ranks, as far as this node's ranks know (wire/complete.h). */
uint64_t ranks_complete(const struct agent *a);
/* Has a rank of this node still to come to the allocation or free of that number? */
bool ranks_come_to(const struct agent *a, uint64_t number);
/* Of this view: with which value who joins joins. */
void ranks_joined(struct agent *a, uint64_t value);
/* The process of that life; NULL: there is none here. */
struct proc *ranks_of(const struct agent *a, struct life life);
#endif
