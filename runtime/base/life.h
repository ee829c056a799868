/* One life of a rank: one process that runs it, from joining to death. What a process has sent, holds or has left
 * behind is told apart by its life, never by the rank alone. Pure; values, no memory. */
#ifndef KEEL_BASE_LIFE_H
#define KEEL_BASE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct life {
    int rank;             /* -1: none */
    uint32_t incarnation; /* 0 at the start, one more with each process that takes over */
};

/* Of a process that runs no rank. */
#define LIFE_NONE ((struct life){.rank = -1})

static inline struct life life_of(int rank, uint32_t incarnation)
{
    return (struct life){.rank = rank, .incarnation = incarnation};
}
static inline bool life_is_none(struct life l)
{
    return l.rank < 0;
}
static inline bool life_equal(struct life l, struct life m)
{
    return l.rank == m.rank && l.incarnation == m.incarnation;
}
/* Did l run the same rank before m did? Lives of others are in no order: false. */
static inline bool life_is_before(struct life l, struct life m)
{
    return l.rank == m.rank && l.incarnation < m.incarnation;
}
#endif
