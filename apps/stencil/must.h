/* What the ranks of keel-stencil do when a call of Keel's fails: a line, and the end of the job. */
#ifndef APPS_STENCIL_MUST_H
#define APPS_STENCIL_MUST_H

#include <stddef.h>

#include <keel/keel.h>

void must(keel_status status, const char *what);
/* Private memory, zeroed, of Keel's (keel_local_free). */
void *reserve(size_t bytes);
#endif
