/* Children that are not ours by birth: a subreaper (PR_SET_CHILD_SUBREAPER) inherits what its descendants leave behind.
 */
#ifndef KEEL_PM_ORPHANS_H
#define KEEL_PM_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* Reap children that have ended, except those that keep() claims (keep may be NULL). */
void orphans_reap(bool (*keep)(void *user, pid_t pid), void *user);
/* Kill and reap all children but the claimed ones, again and again until none is left: killing one hands its children
 * to us. Those that we may not kill (another real user: sudo) are left, with a warning.
 * blocks    until they are gone, a second at most. */
void orphans_kill(bool (*keep)(void *user, pid_t pid), void *user);
/* The letter of its state and its parent, as the kernel has them; 0: it is not there. */
char process_state(pid_t pid, pid_t *parent);
/* Its children by its main thread, which does all forking here; also those that have ended and were not waited for.
 * Their number, -1: it cannot be known. */
int process_children(pid_t pid, pid_t *pids, int max);
/* A pidfd of that process if it is below `through`, and that below us; -1: somebody else's, or gone. So what another
 * has named is never killed for it. */
int descendants_open(pid_t pid, pid_t through);
#endif
