/* How much of a stream that fills a copy may be on its way: as much as keeps the way busy, and little more, for
 * operations of ranks wait behind it at the other agent. Pure.
 *
 * What decides is how many blocks wait somewhere instead of being worked on. A block takes `short_ns` from being sent
 * to being acknowledged when only PACE_MIN are on their way (found out in the first PACE_BASE blocks, and anew every
 * PACE_ANEW_NS); of a window of W blocks that take `time` each, W * (1 - short/time) wait. Fewer than PACE_LOW: one
 * more may be on its way. More than PACE_HIGH: fewer by half of those. All times are means, so that it does not matter
 * by how much they vary: where ranks and agents share processors some blocks take many times as long as others, however
 * few are on their way, and to wait for those would leave the way idle. A `short_ns` that is found to be twice what
 * blocks take with more on their way had such blocks in it. */
#ifndef KEEL_AGENT_PACE_H
#define KEEL_AGENT_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { PACE_MIN = 2, PACE_MAX = 32, PACE_LOW = 1, PACE_HIGH = 3, PACE_BASE = 16, PACE_ANEW_NS = 100000000 };

struct pace {
    unsigned window;   /* blocks; 0: nothing was sent yet */
    uint64_t short_ns; /* 0: being found out */
    uint64_t sum_ns;
    unsigned samples;      /* in the sum: acknowledged since the window changed */
    uint64_t found_at;     /* when it was */
    unsigned before;       /* the window until it was to be found out anew */
    uint64_t old_until;    /* position: what was sent before the window changed says nothing of this one */
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
