/* Points of a program at which a rank may end on one node so that its next life begins on another one: its thread has
 * nothing under way there, as at the end of a collective of all live ranks, which begins with a fence. Nothing public
 * yet: what a rank holds in its own memory is lost when it moves, so that programs that can be started again are the
 * ones that can be moved. */
#ifndef KEEL_CLIENT_MOVE_H
#define KEEL_CLIENT_MOVE_H

#include "runtime/client/client.h"

/* The rank was released and has come to such a point: it is counted, and the owner of the client told. */
void move_point_reached(struct client *c);

/* In a thread of the program that holds no lock of the client's. One load where nothing moves, of a line that nobody
 * writes then. */
static inline void move_point(struct client *c)
{
    if (atomic_load_explicit(&c->intents->released, memory_order_relaxed))
        move_point_reached(c);
}
#endif
