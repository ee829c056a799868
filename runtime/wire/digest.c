#include "runtime/wire/digest.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/wire/digest_long.h"

uint64_t digest(const void *bytes, size_t len, uint64_t seed)
{
#if defined(__x86_64__)
    if (len >= DIGEST_LONG_MIN && __builtin_cpu_supports("avx2"))
        return digest_long(bytes, len, seed);
#endif
    return len ? XXH3_64bits_withSeed(bytes, len, seed) : seed;
}

uint64_t digest_difference(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a, *y = b;
    size_t i = 0;
    if (memcmp(a, b, len) == 0)
        return DIGEST_SAME;
    while (i < len && x[i] == y[i]) /* another process may have stored there meanwhile */
        i++;
    return i < len ? i + 1 : DIGEST_SAME;
}

void digest_pieces(const struct pack *p, const uint8_t *base, uint8_t *answer)
{
    const uint8_t *data = p->data;
    for (uint32_t i = 0; i < p->runs; i++) {
        struct pack_run run = pack_run(p, i);
        uint64_t found = data ? digest_difference(base + run.at, data, run.len) : digest(base + run.at, run.len, 0);
        memcpy(answer + i * sizeof found, &found, sizeof found);
        data = data ? data + run.len : NULL;
    }
}
