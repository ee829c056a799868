/* How long answers take, and when a message is said again. */
#ifndef KEEL_DETECT_RTT_H
#define KEEL_DETECT_RTT_H

#include "detect/member.h"

/* How long answers take, as seen here, without the time for which they were kept: half of them came sooner. (Not the
 * mean: what a network delays or loses now and then makes nobody slow.) Who repeats a message earlier only adds to
 * what is under way. */
struct rtt {
    uint64_t half;
};

void rtt_note(struct rtt *rtt, uint64_t took);
/* To the first repetition, by so many hops, and the longest. */
uint64_t rtt_rto(const struct member *m, const struct rtt *rtt, int hops);
uint64_t rtt_rto_max(const struct member *m, const struct rtt *rtt, int hops);
#endif
