/* Copying into memory that another processor reads next, and that it has read before. A plain store has to call each
 * line in from the reader's caches first: pieces of 32 KiB, one written while the other is read, pass at 1.5 to 2 GB/s.
 * These go past the caches, and the same passes at 8.5 GB/s; 8 KiB that all give to all take 2.4 us instead of 4.5. */
#ifndef KEEL_BASE_STREAM_H
#define KEEL_BASE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { STREAM_MIN = 2048 };

/* As memcpy; what is stored after it is seen after it. */
static inline void stream_copy(void *dst, const void *src, size_t len)
{
#if defined(__SSE2__)
    enum { LINE = 64 };
    if (len >= STREAM_MIN) {
        size_t at = (LINE - (uintptr_t)dst % LINE) % LINE;
        uint8_t *to = dst;
        const uint8_t *from = src;
        memcpy(to, from, at);
        for (; at + LINE <= len; at += LINE) {
            const __m128i *s = (const void *)(from + at);
            __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1), c = _mm_loadu_si128(s + 2),
                    d = _mm_loadu_si128(s + 3), *t = (void *)(to + at);
            _mm_stream_si128(t, a);
            _mm_stream_si128(t + 1, b);
            _mm_stream_si128(t + 2, c);
            _mm_stream_si128(t + 3, d);
        }
        _mm_sfence();
        memcpy(to + at, from + at, len - at);
        return;
    }
#endif
    memcpy(dst, src, len);
}
#endif
