/* Who joins a running job. The states are drawn in join.c. */
#ifndef KEEL_DETECT_JOIN_H
#define KEEL_DETECT_JOIN_H

#include "detect/datagram.h"

/* Who joins: what it asks whom. */
struct joining {
    bool born; /* no more */
    int asked;
    uint64_t since;         /* this one */
    uint64_t heard, others; /* it, and anybody, said something */
    uint64_t next, rto;
};

bool join_begin(struct member *m);                               /* false: out of memory */
void join_receive(struct member *m, const struct datagram *msg); /* while we are unborn */
void join_tick(struct member *m);
uint64_t join_deadline(const struct member *m);
void join_stranger(struct member *m, const struct datagram *msg); /* from one that is not born, as far as we know */
bool join_is_other(const struct member *m, const struct batch *batch); /* it bears somebody else under our id */
void join_bear(struct member *m, const struct view_event *e);
#endif
