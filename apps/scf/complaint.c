#include "apps/scf/complaint.h"

#include <stdarg.h>
#include <stdio.h>

bool complain(struct complaint *why, const char *format, ...)
{
    if (why->text[0] != '\0')
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return false;
}
