#include "pm/run/restore.h"

#include "pm/wire/quit.h"
#include "runtime/save/save.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void restore_begin(const struct options *o)
{
    char whole[PATH_MAX], path[SAVE_PATH], why[SAVE_WHY];
    (void)unsetenv(SAVE_ENV); /* what another job began with */
    if (!o->restore)
        return;
    if (!realpath(o->restore, whole))
        pm_quit(2, "--restore %s: %s", o->restore, strerror(errno));
    if (!save_find(whole, path, why) || !save_verify(path, (uint64_t)o->job.ranks, why))
        pm_quit(2, "--restore: %s", why);
    if (setenv(SAVE_ENV, path, 1) != 0) /* not the folder: all ranks are to begin with the same save */
        pm_quit(1, "out of memory");
}
