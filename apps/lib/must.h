/* What the ranks of the programs in apps share: a call that fails ends the job with a line. */
#ifndef APPS_LIB_MUST_H
#define APPS_LIB_MUST_H

#include <stddef.h>

#include <keel/keel.h>

/* Ends the process, with a line that says which rank could not do what and why, unless the status is KEEL_OK. */
void must(keel_status status, const char *what);
/* Zeroed private memory, given back with keel_local_free. Without any the process ends with a line. */
void *reserve(size_t count, size_t size);
/* Seconds of a clock that only goes forward. */
double now(void);
#endif
