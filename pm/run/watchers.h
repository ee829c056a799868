/* Who reads whose heartbeat, as a file says: one "READER WATCHED" a line, node numbers (spares come last); empty lines
 * and what follows a # are left out. */
#ifndef KEEL_PM_RUN_WATCHERS_H
#define KEEL_PM_RUN_WATCHERS_H

#include <stddef.h>

#include "runtime/base/job_settings.h"

struct watchers {
    int *edges; /* [count][2] */
    int count;
};

/* NULL, or what is wrong, with its line, in `why`. Every node must be read by another. Frees nothing of *w. */
const char *watchers_parse(struct watchers *w, const char *text, int nodes, char *why, size_t why_size);
#endif
