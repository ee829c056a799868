/* The one line that tells the user what is wrong with the input or the run. */
#ifndef KEEL_SCF_COMPLAINT_H
#define KEEL_SCF_COMPLAINT_H

#include <stdbool.h>

struct complaint {
    char text[400]; /* one line without newline; empty: nothing to complain of */
};

/* Writes the line, unless there is one already, and returns false, so that a check can end in `return complain(...)`.
 */
bool complain(struct complaint *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
