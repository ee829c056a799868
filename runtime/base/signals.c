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
