/* The same hash as digest(), compiled with AVX2, for processors of x86-64 that have it: nine times as fast for what is
 * long, and no faster for what is short. Pure. */
#ifndef KEEL_WIRE_DIGEST_LONG_H
#define KEEL_WIRE_DIGEST_LONG_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_LONG_MIN = 256 };

uint64_t digest_long(const void *bytes, size_t len, uint64_t seed);
#endif
