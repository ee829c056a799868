#include "pm/run/file_line.h"

#include <stdarg.h>
#include <stdio.h>

bool file_line_wrong(const struct file_line *at, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(at->why, at->len, "line %d: ", at->number);
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < at->len)
        vsnprintf(at->why + n, at->len - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}
