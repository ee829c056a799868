/* How much of a stream that fills a copy may be on its way: as much as keeps the way busy, and no more, for operations of ranks
 * wait behind it at the other agent. Pure.
 *
 * What decides is how long a block takes from being sent to being acknowledged. The shortest time seen is what an idle way takes (every
 * PACE_ANEW blocks that is found out anew, with the smallest window). While blocks take at most SLOW times as long, one more may be on its way after each window that went through; when one
 * takes longer, somebody else needs the way, the processor there or this one, and the window shrinks by a quarter. */
#ifndef KEEL_AGENT_PACE_H
#define KEEL_AGENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { PACE_MIN = 2, PACE_FIRST = 4, PACE_MAX = 32, PACE_SLOW = 3, PACE_ANEW = 512 };

struct pace {
    unsigned window;  /* blocks; 0: nothing was sent yet */
    unsigned good;    /* acknowledged in time since the window changed */
    uint64_t best_ns; /* 0: unknown */
    uint64_t samples;
    uint64_t slow_until;   /* position: what was sent before the window shrank says nothing new */
    unsigned first, count; /* of the ring */
    struct pace_block {
        uint64_t position; /* in the stream */
        uint64_t at;
    } block[PACE_MAX];
};

/* All up to the position `acked` is acknowledged at the time now. May one more block be sent? */
bool pace_may_send(struct pace *p, uint64_t acked, uint64_t now);
/* It was, at that position. */
void pace_sent(struct pace *p, uint64_t position, uint64_t now);
#endif
