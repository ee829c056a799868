/* Named fault points: places in the protocols where a test lets this process die or freeze. Off (no KEEL_FAULT in the
 * environment) a point is one load and one branch that is never taken.
 *
 *   KEEL_FAULT="POINT:N:ACTION[:node=N][:rank=N][:life=N][,...]"
 *
 * At the N-th passing (from 1) of POINT in one process: ACTION kill (SIGKILL to itself), node (to its agent, which
 * takes its ranks along, and itself) or stop (SIGSTOP). node=, rank= restrict it to the processes of one node, to one
 * rank; life= to one incarnation of a rank (0 unless said: else a rank that took over would die in the same place,
 * until it is given up), or to 1: the agent of a node that comes back.
 * A sweep raises N until no process dies any more (as SQLite sweeps its fault simulator). */
#ifndef KEEL_BASE_FAULT_H
#define KEEL_BASE_FAULT_H

/* Set by fault_init before other threads exist, then only read. */
extern int fault_armed;
/* If it is set (and fault_armed is not 0) it gets the points instead: the simulation of the whole system kills, freezes
 * and interrupts its processes there. */
extern void (*fault_hook)(const char *name);

#define FAULT_POINT(name)                                                                                              \
    do {                                                                                                               \
        if (__builtin_expect(fault_armed, 0))                                                                          \
            fault_pass(name);                                                                                          \
    } while (0)

/* Read KEEL_FAULT. rank is -1 in an agent, node the number that the process was started with, -1 in keelrun. Only the
 * first call counts. A malformed specification is said on stderr and ignored. */
void fault_init(int node, int rank, unsigned life);
/* Any thread. */
void fault_pass(const char *name);
#endif
