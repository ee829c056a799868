#include "runtime/base/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

bool number_whole(const char *text, int64_t low, int64_t high, int64_t *value)
{
    size_t sign = *text == '-', digits = strspn(text + sign, DIGITS);
    if (digits == 0 || text[sign + digits])
        return false;
    errno = 0;
    long long v = strtoll(text, NULL, 10);
    if (errno || v < low || v > high)
        return false;
    *value = v;
    return true;
}

bool number_real(const char *text, double low, double high, double *value)
{
    char *end;
    if (strspn(text, DIGITS "-.") == 0 || text[strspn(text, DIGITS ".eE+-")])
        return false;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !(v >= low && v <= high))
        return false;
    *value = v;
    return true;
}
