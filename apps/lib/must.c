#include "apps/lib/must.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void must(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "%s: rank %d: %s: %s\n", program_invocation_short_name, keel_rank(), what,
            keel_status_text(status));
    exit(1);
}

void *reserve(size_t count, size_t size)
{
    size_t bytes;
    void *memory = __builtin_mul_overflow(count, size, &bytes) ? NULL : keel_local_alloc(bytes > 0 ? bytes : 1);
    if (!memory)
        must(KEEL_ERR_NOMEM, "private memory");
    return memory;
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
