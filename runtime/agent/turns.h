/* Giving the processor away while there is much to do that nobody waits for. Pure.
 *
 * Whoever fills a copy gives it away after each round: a rank that waits for an answer, or the agent that must give it,
 * may have none. But a processor that was given to somebody who computes comes back only after some milliseconds: so
 * who gets it back uses it for as long as it was away. */
#ifndef KEEL_AGENT_TURNS_H
#define KEEL_AGENT_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct turns {
    uint64_t keep_until; /* of the processor time used */
};

/* used: processor time of this thread. Is it time? */
static inline bool turns_due(const struct turns *t, uint64_t used)
{
    return used >= t->keep_until;
}

/* It was given away for so long. */
static inline void turns_back(struct turns *t, uint64_t used, uint64_t away_ns)
{
    t->keep_until = used + away_ns;
}
#endif
