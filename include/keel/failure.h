/* Who failed: ask about a node or a rank, be told of deaths, see which links are broken.
 *
 * A death is what a view says (keel_view_epoch): every live rank learns of the same deaths with the same epochs, and
 * none is taken back. What these calls say beyond that is this node's own knowledge at the moment.
 *  threads   any.
 *  blocks    no, but for questions about a node or a rank, and for keel_on_failure, which say so. */
#ifndef KEEL_FAILURE_H
#define KEEL_FAILURE_H

#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum keel_verdict {
    KEEL_ALIVE,       /* it answered after it was asked */
    KEEL_UNDECIDED,   /* no answer in the time given, and nothing is decided: ask again, or wait for the view */
    KEEL_LINK_BROKEN, /* the node lives, others reach it, and the path between it and this node does not work */
    /* its node answers, and its kernel does not run its process: stopped by a signal or a debugger, or in a
     * wait that no signal ends. A process that computes, loops or sleeps is alive. */
    KEEL_RANK_HUNG,
    KEEL_RANK_ENDED, /* its process has ended by itself */
    KEEL_RANK_DEAD,  /* its process died and no other takes its place */
    KEEL_AGENT_HUNG, /* the kernel of the node's host answers and its agent does not; if it goes on the node is dead */
    KEEL_NODE_DEAD,  /* the view says so */
    KEEL_CUT_OFF     /* our own node: it hears too few of the others, and ends if that stays so (keel_on_failure) */
} keel_verdict;

/* The enumerator's name, for example "KEEL_ALIVE"; never NULL. Static storage. */
const char *keel_verdict_name(keel_verdict verdict);

/* The number of nodes 0, 1, ... of the job, spares and dead ones included, and those that came later: it grows when one
 * that was declared dead comes back (keelrun --room). 0 before keel_init. */
int keel_node_count(void);

/* Does the node live? Its agent is asked now, by ours.
 * timeout_ms  the answer is there after at most this time: KEEL_UNDECIDED if nothing is clear by then. A node whose
 *             host does
 *             not answer is declared dead after seconds (keelrun --silence), one whose agent was stopped lives, and is
 *             KEEL_AGENT_HUNG; who asks about it again and again waits for it (keelrun --stopped). 0: nobody is asked;
 *             the verdict is what is known, and KEEL_ALIVE means that nothing else is.
 * threads     any.   blocks  until the verdict, at most timeout_ms.
 * errors      KEEL_ERR_ARG, KEEL_ERR_STATE; KEEL_ERR_FENCED, KEEL_ERR_AGENT_GONE: this process has lost the job.
 * source      GPI-2's gaspi_proc_ping, which does not return while the peer is frozen; this one does. */
keel_status keel_node_status(int node, int timeout_ms, keel_verdict *verdict);
/* The same of a rank: first its node, then its process, wherever it runs now.
 * blocks    as keel_node_status.
 * errors    as keel_node_status. */
keel_status keel_rank_status(int rank, int timeout_ms, keel_verdict *verdict);

typedef struct keel_failure {
    uint64_t epoch;       /* of the view that says so */
    int rank;             /* whose process died, -1: the node died */
    int node;             /* that died, or on which the process ran */
    int signal;           /* that killed the process; 0: its node died; -1: a script has hidden it (keel_failures(3)) */
    int deaths;           /* of a rank: processes that it has lost so far */
    keel_verdict verdict; /* KEEL_RANK_DEAD, KEEL_NODE_DEAD; to a callback also KEEL_CUT_OFF */
} keel_failure;

/* The failures of views later than since_epoch, 0: all since the start of the job; by epoch, in a view nodes before
 * ranks. A process that takes the place of a dead one sees what was before it, too. A rank that died more than once
 * since then is there once, with its last death and their number.
 *   out, max     receives them; max = keel_node_count() + keel_size() is always enough.
 *   *count       receives their number.
 *   *epoch       (or NULL) receives the view up to which this is complete: since_epoch of the next call.
 * threads  any.   blocks  no.
 * errors   KEEL_ERR_ARG, KEEL_ERR_STATE; KEEL_ERR_LIMIT: max is less than *count, and out is unchanged. */
keel_status keel_failures(uint64_t since_epoch, keel_failure *out, size_t max, size_t *count, uint64_t *epoch);

/* A descriptor for poll, select or epoll: readable while there are failures of views that no call of keel_failures has
 * covered. A call that returns KEEL_OK covers all views up to its *epoch: the later ones than since_epoch it gives,
 * those before its caller says that it knows, also if no call has given them. Keel's: not to be read or closed. -1
 * before keel_init, after keel_finalize, or if the system refuses it. */
int keel_failure_fd(void);

/* Call callback(failure, arg) for each failure of a later view, in their order, on a thread of Keel's own on which all
 * signals are blocked. It may call Keel. NULL: no more; then, and in keel_finalize, a call that is being made is waited
 * for, except from inside it. One callback per process: a second one takes the first one's place.
 * A node that hears too few of the others to be on the larger side ends, some seconds later than those would decide
 * without it. Its ranks are told some seconds before: the callback is called with KEEL_CUT_OFF, rank -1, this node and
 * the current epoch, which is no failure of a view. What only this process knows may then be written to a file; it may
 * also go on, if the network heals in time. While it lasts keel_node_status of our own node says KEEL_CUT_OFF.
 * blocks  while a call of the callback before is being made.
 * errors  KEEL_ERR_STATE; KEEL_ERR_SYSTEM: no thread. */
keel_status keel_on_failure(void (*callback)(const keel_failure *failure, void *arg), void *arg);

typedef struct keel_link {
    int a, b;          /* nodes, a < b; both live */
    uint64_t since_ns; /* CLOCK_MONOTONIC of this host */
} keel_link;

/* Links between live nodes that do not work, in one direction or both: the same list on every node, a moment after one
 * end noticed. A link is there until it has worked for a while, so one that flaps is one long entry. At most 64 are
 * kept.
 *   out, max  receives them.   *count  their number.
 * threads  any.   blocks  no.   errors  KEEL_ERR_ARG, KEEL_ERR_STATE; KEEL_ERR_LIMIT: max is less than *count. */
keel_status keel_links(keel_link *out, size_t max, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
