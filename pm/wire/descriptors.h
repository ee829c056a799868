/* How many descriptors a process of ours may have, and how many it needs.
 *
 * Measured for an agent: 45 of its own, 6 for each process of its node, and a pidfd where that is a script, which
 * starts the rank's process; 1 for each rank elsewhere that has reached it, 4 for each other agent; 2 for each launcher
 * that it runs (a pipe, a pidfd), 2 more while that is found; 6 for each rail but the first; 1 for each copy of a
 * segment comes with the program.
 * Strangers take at most 320 more: 128 connections at each of the two listeners of libfabric, 64 at its own
 * (runtime/net/ofi/ofi_sock.c, pm/keeld/console.c).
 */
#ifndef KEEL_PM_DESCRIPTORS_H
#define KEEL_PM_DESCRIPTORS_H

#include <sys/resource.h>

/* Raise the soft limit to the hard one; *before is what it was. */
void descriptors_raise(struct rlimit *before);
/* How many of those needed the limit does not give, 0: none. */
long descriptors_missing(long needed);

static inline long descriptors_of_agent(int processes, int ranks_elsewhere, int agents, int starts)
{
    return 64 + 7 * (long)processes + ranks_elsewhere + 4 * (long)agents + 2 * (long)starts;
}
/* Kept back for a recovery, of those that the limit gives beyond what is needed: a connection for each process of a
 * node that begins elsewhere, 4 for each other agent, and a few for who asks. */
static inline long descriptors_of_recovery(int processes, int agents)
{
    return 8 + (long)processes + 4 * (long)agents;
}
static inline long descriptors_of_rails(int rails)
{
    return rails > 1 ? 6 * (rails - 1L) : 0;
}
/* keelrun: a pipe, a pidfd of the launcher, one of the agent and a connection for each node; 2 more for each of 32 that
 * are being started; 64 for strangers. */
static inline long descriptors_of_keelrun(int nodes)
{
    return 160 + 4 * (long)nodes;
}
#endif
