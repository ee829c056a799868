#include "runtime/base/clock.h"

#include <time.h>

static int (*other)(clockid_t clock, struct timespec *now); /* NULL: the C library's */

void clock_read_by(int (*source)(clockid_t clock, struct timespec *now))
{
    other = source;
}

static void read_clock(clockid_t clock, struct timespec *now)
{
    if (__builtin_expect(other != NULL, 0))
        other(clock, now);
    else
        clock_gettime(clock, now);
}

uint64_t clock_now_ns(void)
{
    struct timespec ts;
    read_clock(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * KEEL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_thread_ns(void)
{
    struct timespec ts;
    read_clock(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * KEEL_NS_PER_S + (uint64_t)ts.tv_nsec;
}
