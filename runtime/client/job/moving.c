#include "runtime/client/job/moving.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/fault.h"
#include "runtime/client/api/calls.h"
#include "runtime/client/api/trace.h"
#include "runtime/client/job/ending.h"
#include "runtime/client/job/process.h"
#include "runtime/client/move.h"
#include "runtime/client/segment/track.h"

/* What the program has for its exit (atexit, destructors) is not run: it would be the end of the rank to them. */
void moving_go(void *user)
{
    struct client *c = &process_client;
    (void)user;
    if (!track_is_clean() || !move_go(c))
        return;
    fflush(NULL);
    trace_end();
    ending_say(0);
    move_ended(c);
    _exit(0);
}

keel_status call_move_mode(keel_moving mode)
{
    if (!process_client.ready)
        return KEEL_ERR_STATE;
    if (mode != KEEL_MOVE_BY_ITSELF && mode != KEEL_MOVE_ASK)
        return KEEL_ERR_ARG;
    process_client.chooses_to_move = mode == KEEL_MOVE_ASK;
    return KEEL_OK;
}

static bool is_to_move(struct client *c)
{
    return atomic_load_explicit(&c->intents->released, memory_order_relaxed) && move_is_due(c);
}

bool call_move_pending(void)
{
    struct client *c = &process_client;
    if (!c->ready || !is_to_move(c))
        return false;
    if (c->chooses_to_move)
        atomic_store(&c->told_to_move, true);
    return true;
}

keel_status call_move(void)
{
    struct client *c = &process_client;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (is_to_move(c)) {
        atomic_fetch_add_explicit(&c->intents->move_points, 1, memory_order_relaxed);
        FAULT_POINT("rank.move_called");
        if (move_may(c))
            moving_go(NULL);
    }
    if (!atomic_load_explicit(&c->intents->released, memory_order_relaxed))
        atomic_store(&c->told_to_move, false); /* the program hears that it stays, and goes on */
    return KEEL_ERR_STATE;
}
