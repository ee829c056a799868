/* Monotonic time in nanoseconds. Only this file and the event loops read a clock: protocol code gets `now` as an
 * argument. */
#ifndef KEEL_BASE_CLOCK_H
#define KEEL_BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

#define KEEL_NS_PER_US 1000ull
#define KEEL_NS_PER_MS 1000000ull
#define KEEL_NS_PER_S 1000000000ull

/* CLOCK_MONOTONIC: comparable between processes of one host, not between hosts. */
uint64_t clock_now_ns(void);
/* Processor time that the calling thread has used. */
uint64_t clock_thread_ns(void);
/* Where clock_gettime is not the host's clock, source is. Before any thread. */
void clock_read_by(int (*source)(clockid_t clock, struct timespec *now));
#endif
