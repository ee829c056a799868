/* Mutexes of the job: each rank is home to some, any rank locks any. The lock of a process that dies goes to the next
 * who waits, who is told; nobody is let in beside a holder that lives.
 *
 *  order     who waits is served in the order of ranks, going round from the one that unlocks: no rank passes another
 *            that waits twice.
 *            The threads of one rank take their turns among themselves.
 *  memory    a lock also orders the program's operations: what the holder before had completed (puts that returned,
 *            operations that were waited for
 *            or fenced) the next one sees.
 *  blocks    until the mutex is free. A process that holds one and is stopped, or computes, is waited for; so is a node
 *            that does not answer
 *            and is not declared dead, longer than KEEL_TIMEOUT_MS, also by keel_mutex_try and keel_mutex_unlock.
 *  threads   any; another thread of the rank may unlock.
 *  errors    KEEL_ERR_ARG, also for mutexes that were freed; KEEL_ERR_STATE before keel_init; KEEL_ERR_DATA_LOST: the
 *            nodes of the home and its copies died together; those of
 *            keel/rma.h but KEEL_ERR_TIMEOUT. After an error of keel_mutex_lock or _try the caller does not hold the
 *            mutex; after one of
 *            keel_mutex_unlock other than KEEL_ERR_DATA_LOST it still does, and may try again. */
#ifndef KEEL_MUTEX_H
#define KEEL_MUTEX_H

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct keel_mutexes keel_mutexes;

/* Collective over all live ranks: per_rank mutexes, numbered from 0, at each rank, all free. They survive any one node
 * at a time; any two, if a segment with three copies (KEEL_REDUNDANCY_TRIPLE) was allocated by all ranks before them. A
 * restarted rank calls it again, in the order of its segments (keel_segment_alloc), and gets those that exist.
 * blocks    until all live ranks have called it.
 * errors    as keel_segment_alloc. */
KEEL_MUST_CHECK keel_status keel_mutexes_create(int per_rank, keel_mutexes **out);
/* Collective. NULL is allowed (on all ranks). None of them may be held or waited for.
 * blocks    until all live ranks have called it.
 * errors    KEEL_ERR_STATE also: this process holds one; nothing is done, and the others wait for it. */
keel_status keel_mutexes_free(keel_mutexes *mutexes);
/* Take the rank's mutex of that number. *dead (NULL is allowed): the rank whose process died while it held it, so that
 * what the mutex protects may be half-done; -1: none. It is told to one holder, or, if that one dies, too, to the next.
 * blocks    for ever if the thread holds it already. */
KEEL_MUST_CHECK keel_status keel_mutex_lock(keel_mutexes *mutexes, int rank, int number, int *dead);
/* The same without waiting: KEEL_IN_PROGRESS if somebody else has it.
 * blocks    not for a holder; for nodes, as above. */
KEEL_MUST_CHECK keel_status keel_mutex_try(keel_mutexes *mutexes, int rank, int number, int *dead);
/* errors    KEEL_ERR_STATE: this process does not hold it. */
KEEL_MUST_CHECK keel_status keel_mutex_unlock(keel_mutexes *mutexes, int rank, int number);

#ifdef __cplusplus
}
#endif
#endif
