#include "runtime/base/clock.h"

#include <time.h>

uint64_t clock_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * KEEL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_thread_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * KEEL_NS_PER_S + (uint64_t)ts.tv_nsec;
}
