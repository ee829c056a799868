/* The hall: memory in which the ranks of a node talk without their agent. A ring for messages (net/shm/ring.h) for each
 * ordered pair of the ranks that started on the node, then boards, on which groups of them meet (collectives/board.h);
 * made by the agent, mapped by the ranks. Only the first life of a rank uses it: a ring that somebody died over is
 * never used again, and who takes a dead rank's place goes through the agent. */
#ifndef KEEL_HALL_HALL_H
#define KEEL_HALL_HALL_H

#include "collectives/board.h"
#include "runtime/wire/page.h"
#include "runtime/net/shm/ring.h"

enum {
    HALL_RANKS_MAX = BOARD_MEMBERS_MAX, /* of a node; where there are more they go through the agent */
    HALL_BOARDS_KEPT = 3,               /* for the groups that are always there */
    HALL_BOARDS = 32,
};

/* Bytes of the hall of that slot's ranks, 0: there is none. */
static inline size_t hall_bytes(const struct page *p, uint32_t slot)
{
    size_t n = 0;
    for (int r = 0; r < (int)p->ranks; r++)
        n += page_rank(p, r)->slot == slot;
    return n < 2 || n > HALL_RANKS_MAX ? 0 : n * n * sizeof(struct ring) + HALL_BOARDS * board_size((int)n);
}
#endif
