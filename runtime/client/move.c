#include "runtime/client/move.h"

#include "runtime/base/fault.h"

void move_point_reached(struct client *c)
{
    atomic_fetch_add_explicit(&c->intents->move_points, 1, memory_order_relaxed);
    FAULT_POINT("rank.move_point");
    if (c->env.moves)
        c->env.moves(c->env.user);
}
