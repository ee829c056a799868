/* How long a thread runs before others are asked, where the kernel lets each thread say so (Linux 6.12 and later). */
#ifndef KEEL_BASE_SLICE_H
#define KEEL_BASE_SLICE_H

#include <stdint.h>

/* This thread asks for turns of so many nanoseconds (0.1 to 100 ms): short ones come earlier, and are no more of the
 * processor in all; and who gives the processor away gives away no more than a turn. Under other policies than the
 * usual two, and on older kernels, nothing changes. */
void slice_set(uint64_t ns);
#endif
