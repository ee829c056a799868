/* Times as users write them: "3", "0.5s", "500ms", "2min". Pure. */
#ifndef KEEL_PM_DURATION_H
#define KEEL_PM_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* A number, maybe with a fraction, and s, ms or min after it; without a unit it is in seconds, and *unit false. False:
 * it is no time, or no whole number of milliseconds below 10^12. */
bool duration_parse(const char *text, int64_t *ms, bool *unit);
#endif
