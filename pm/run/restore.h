/* What the job is to begin with (--restore): looked at before anything starts, and told to the ranks in their
 * environment. */
#ifndef KEEL_PM_RESTORE_H
#define KEEL_PM_RESTORE_H

#include "pm/run/options.h"

/* Ends the program with one line and exit code 2 if it is not there, not whole, or not of as many ranks. */
void restore_begin(const struct options *o);
#endif
