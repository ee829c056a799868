/* Pure. */
#include "runtime/base/signals.h"

#include <stdio.h>
#include <string.h>

const char *signal_name(int number, char *out, size_t size)
{
    const char *abbreviation = sigabbrev_np(number);
    if (abbreviation)
        snprintf(out, size, "SIG%s", abbreviation);
    else
        snprintf(out, size, "signal %d", number);
    return out;
}

const char *signal_did(int number, char *out, size_t size)
{
    char name[16];
    if (number == SIGNAL_HIDDEN)
        snprintf(out, size, "ended without keel_finalize inside its script");
    else
        snprintf(out, size, "was killed by %s", signal_name(number, name, sizeof name));
    return out;
}

int signal_code(int number)
{
    return number == SIGNAL_HIDDEN ? 1 : 128 + number;
}
