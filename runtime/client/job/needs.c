/* What the program needs of its processes: told to the agent, in whose views it stands (runtime/view/view.h). What is
 * said before keel_init goes at once where keelrun has started the process, so that a death before everybody's
 * keel_init counts, too; and again with keel_init. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <keel/job.h>

#include "runtime/base/export.h"
#include "runtime/client/job/needs.h"
#include "runtime/client/job/process.h"

static atomic_bool all, survives;

static void tell(enum program_needs needs)
{
    struct control r = {.type = CONTROL_NEEDS, .a = needs};
    const struct client_env *env = &process_client.env;
    if (process_client.ready) {
        (void)env->tell(env->user, &r);
        return;
    }
    int fd = process_client.left || !getenv("KEEL_RANK") ? -1 : needs_control_fd(); /* a standby is nobody yet */
    if (fd >= 0)
        (void)send(fd, &r, sizeof r, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void needs_begin(void)
{
    if (atomic_load(&survives)) /* first: who says both goes on */
        tell(NEEDS_NONE);
    if (atomic_load(&all))
        tell(NEEDS_ALL);
}

KEEL_EXPORT void keel_need_all(void)
{
    if (!atomic_exchange(&all, true))
        tell(NEEDS_ALL);
}

KEEL_EXPORT void keel_survive(void)
{
    if (!atomic_exchange(&survives, true))
        tell(NEEDS_NONE);
}

KEEL_EXPORT bool keel_survives(void)
{
    return atomic_load(&survives);
}
