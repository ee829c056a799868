#include "runtime/client/job/moving.h"

#include <stdio.h>
#include <unistd.h>

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
