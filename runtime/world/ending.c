/* Ends without exit: replicas compare before them, as they do before exit. */
#include "runtime/world/world.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell(int code)
{
    const struct world_hooks *hooks = world_page() ? atomic_load(&world_hooks) : NULL;
    if (hooks)
        hooks->ending(code);
}

WORLD_API void _exit(int code) // NOLINT(bugprone-reserved-identifier) its name
{
    tell(code);
    NEXT(_exit)(code);
    __builtin_unreachable();
}

WORLD_API void _Exit(int code) // NOLINT(bugprone-reserved-identifier) its name
{
    tell(code);
    NEXT(_exit)(code);
    __builtin_unreachable();
}

WORLD_API void quick_exit(int code)
{
    tell(code);
    NEXT(quick_exit)(code);
    __builtin_unreachable();
}
