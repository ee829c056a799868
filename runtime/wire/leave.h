/* When ranks of one slot go to another node together: all at the end of the same collective of all live ranks (rule
 * M18). The others would wait there for the next process of one that has gone before, and that one for its part, which
 * comes behind the last of its slot.
 *
 * The agent holds each of them (intent_page.released) before it reads how many collectives it has completed; the rank
 * writes that number before it looks whether it is held. So who has not been seen to have completed a collective looks
 * at its end, and finds that it is held, or asked. Pure. */
#ifndef KEEL_WIRE_LEAVE_H
#define KEEL_WIRE_LEAVE_H

#include <stdbool.h>
#include <stdint.h>

/* Who comes to no such end for so long goes where it can: it computes, or draws tasks. */
#define LEAVE_TOGETHER_NS 1000000000ULL

/* The collective at whose end ranks go, one of which, which is held, has completed so many: never less than `at`, that
 * of the others. */
static inline uint64_t leave_at(uint64_t at, uint64_t completed)
{
    return completed + 1 > at ? completed + 1 : at;
}

/* Of a rank that is asked, and comes to a point at which it could go. */
static inline bool leave_is_due(uint64_t at, uint64_t completed, uint64_t asked_ns, uint64_t now_ns)
{
    return completed >= at || now_ns >= asked_ns + LEAVE_TOGETHER_NS;
}
#endif
