/* How long who waits looks on before it sleeps, and whether others get the processor meanwhile. Pure.
 *
 * Where each rank has a processor the others run while this one waits, and what they send comes soon: giving the
 * processor away, or sleeping, costs more than looking on, all the more when somebody else wants to run there: the
 * kernel lets him for milliseconds. Two of us that share a processor are parted by it when it sees that both want to
 * run. Where long looks are in vain short ones follow for a while, with which many ranks on few processors get on,
 * and for longer if that happens again. */
#ifndef KEEL_CLIENT_SPIN_H
#define KEEL_CLIENT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/contended.h"

/* Of a process: how long its looks are, and what came of them. */
struct looks {
    uint64_t short_ns, long_ns; /* the longer ones where there may be a processor for each rank; else long_ns is 0 */
    bool once;     /* nothing comes between two looks at the clock, as in a simulation: one is as good as many */
    unsigned vain; /* weight of the long ones of late at whose end nothing had come */
    unsigned good; /* others since then */
    unsigned pause, pauses; /* so many short ones follow; and will, when they are in vain again */
    uint64_t move_at;       /* not before */
    bool few; /* processors: not one for each rank, so whoever waits for an agent heeds who else wants his */
    struct contended contended;
    struct contended computed; /* whoever waits for ranks heeds who computes where he looks */
};

/* A look of one who waits: the processor is offered to others from `keep` on, and it ends at `until`; then say how.
 * `lent`: how much later others' turns may make its end, as they are not time that this process has looked. */
struct spin {
    uint64_t begun, keep, until, lent;
    bool longer, by_agent;
};

/* by_agent: an agent answers what is waited for. */
struct spin spin_begin(struct looks *l, uint64_t now, bool by_agent);
void spin_end(struct looks *l, const struct spin *spin, bool came);
/* After a turn that ended `now`. came: something, though not all that is waited for; the look begins anew. True: look
 * on; false: sleep, as the time is over or others want the processor. */
bool spin_goes_on(struct looks *l, struct spin *spin, uint64_t now, bool came);
/* After a sleep: look for what it woke for. */
void spin_awake(struct looks *l, struct spin *spin, uint64_t now);
/* Others had the processor from `since` until now, if that is longer than offering it takes: the look ends so much
 * later, or at once if they compute. */
void spin_lend(struct looks *l, struct spin *spin, uint64_t since, uint64_t now);
/* Who is waited for runs on the processor that we look on: is it time to go to another one? Not where there is no
 * room. */
bool spin_moves(struct looks *l, uint64_t now);
/* The processor may do something else for a few cycles, as who looks again and again leaves it to its other thread. */
static inline void spin_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
#endif
