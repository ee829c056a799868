#include "pm/run/restore.h"

#include "pm/wire/quit.h"
#include "runtime/save/save.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void restore_begin(const struct options *o)
{
    char whole[PATH_MAX], why[SAVE_WHY];
    (void)unsetenv(SAVE_ENV); /* what another job began with */
    if (!o->restore)
        return;
    if (!realpath(o->restore, whole))
        pm_quit(2, "--restore %s: %s", o->restore, strerror(errno));
    if (!save_verify(whole, (uint64_t)o->job.ranks, why))
        pm_quit(2, "--restore: %s", why);
    if (setenv(SAVE_ENV, whole, 1) != 0)
        pm_quit(1, "out of memory");
}
