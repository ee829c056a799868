#include "runtime/wire/digest_long.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t digest_long(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}
