/* What Slurm's scontrol prints. */
#ifndef KEEL_PM_SCONTROL_H
#define KEEL_PM_SCONTROL_H

#include <stddef.h>

/* scontrol show WHAT: both of its outputs, for free(), at most 16 MiB; where it is not there, a line that says so.
 * NULL, and why: a signal has ended it, or it has not ended within ten seconds, for which it blocks at most. Then it
 * and what it has started are killed. */
char *scontrol_show(const char *what, char *why, size_t size);
#endif
