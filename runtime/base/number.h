/* Numbers as a user writes them: 4, -4, 0.5, 1e-3. No blank and no plus, which the C library passes over, and none of
 * its other notations (0x4, inf). */
#ifndef KEEL_BASE_NUMBER_H
#define KEEL_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* All of the text is a number from low to high. *value is written only then. */
bool number_whole(const char *text, int64_t low, int64_t high, int64_t *value);
bool number_real(const char *text, double low, double high, double *value);
/* For texts of another form with numbers in it, before scanf sees them: there is no blank and no plus. */
static inline bool number_none_is_odd(const char *text)
{
    return !strpbrk(text, " \t\n\v\f\r+");
}
#endif
