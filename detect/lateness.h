/* How late the threads are here that must not be: what a limit for silence has to allow for.
 *
 * threads   any.   blocking  for the time that is given, and as much longer as this process gets no processor. */
#ifndef KEEL_DETECT_LATENESS_H
#define KEEL_DETECT_LATENESS_H

#include <stdint.h>

/* A thread of the detector's priority sleeps for ns, a millisecond at a time. By how much the worst sleep was too long;
 * 0 too where there is no thread for it. */
uint64_t lateness_measure(uint64_t ns);
#endif
