#include "runtime/base/words.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { WORD = 8, VECTOR = 32, VECTORS_MIN = 64, ALIGNS_MIN = 1024 };

/* Else the compiler makes a call of memcpy of the loop. */
#define STAYS_A_LOOP() __asm__ volatile("" ::: "memory")

/* From here on `to` or `from` is aligned to words. A vector that is so, but not to its own length, may be split where a
 * line of the cache ends, never within a word. Each returns how much it has copied. */
#if defined(__x86_64__)
__attribute__((target("avx"))) static size_t vectors_of_32(uint8_t *to, const uint8_t *from, size_t len)
{
    size_t at = 0;
    for (; at + 128 <= len; at += 128) {
        const __m256i *s = (const void *)(from + at);
        __m256i a = _mm256_loadu_si256(s), b = _mm256_loadu_si256(s + 1), c = _mm256_loadu_si256(s + 2),
                d = _mm256_loadu_si256(s + 3), *t = (void *)(to + at);
        _mm256_storeu_si256(t, a);
        _mm256_storeu_si256(t + 1, b);
        _mm256_storeu_si256(t + 2, c);
        _mm256_storeu_si256(t + 3, d);
        STAYS_A_LOOP();
    }
    for (; at + 32 <= len; at += 32) {
        _mm256_storeu_si256((void *)(to + at), _mm256_loadu_si256((const void *)(from + at)));
        STAYS_A_LOOP();
    }
    return at;
}

static size_t vectors_of_16(uint8_t *to, const uint8_t *from, size_t len)
{
    size_t at = 0;
    for (; at + 16 <= len; at += 16) {
        _mm_storeu_si128((void *)(to + at), _mm_loadu_si128((const void *)(from + at)));
        STAYS_A_LOOP();
    }
    return at;
}

static size_t vectors(uint8_t *to, const uint8_t *from, size_t len)
{
    return __builtin_cpu_supports("avx") ? vectors_of_32(to, from, len) : vectors_of_16(to, from, len);
}
#else
static size_t vectors(uint8_t *to, const uint8_t *from, size_t len)
{
    (void)to;
    (void)from;
    (void)len;
    return 0;
}
#endif

/* Less than a word. */
static inline void part(uint8_t *to, const uint8_t *from, size_t len)
{
    size_t at = 0;
    if (len & 4) {
        memcpy(to, from, 4);
        at = 4;
    }
    if (len & 2) {
        memcpy(to + at, from + at, 2);
        at += 2;
    }
    if (len & 1)
        to[at] = from[at];
}

/* at is where a word of the shared side begins; returns where it ends at or behind `end`. */
static inline size_t words(uint8_t *to, const uint8_t *from, size_t at, size_t end)
{
    for (; at < end; at += WORD) {
        uint64_t word;
        memcpy(&word, from + at, WORD);
        memcpy(to + at, &word, WORD);
        STAYS_A_LOOP();
    }
    return at;
}

/* Vectors that are stored across lines of the cache take twice as long, as in memory from malloc, which lies 16 bytes
 * into a page, most do: so words first, until what is written to is aligned, where that comes to whole words. */
static inline size_t unaligned(const uint8_t *to)
{
    size_t bytes = -(uintptr_t)to % VECTOR;
    return bytes % WORD == 0 ? bytes : 0;
}

/* head: bytes before the first whole word of the shared side. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t len, size_t head)
{
    if (head) {
        head = head < len ? head : len;
        part(to, from, head);
    }
    size_t end = head + (len - head) / WORD * WORD, at = head;
    if (end - head >= VECTORS_MIN) {
        if (end - head >= ALIGNS_MIN)
            at = words(to, from, at, at + unaligned(to + at));
        at += vectors(to + at, from + at, end - at);
    }
    (void)words(to, from, at, end);
    if (end < len)
        part(to + end, from + end, len - end);
}

static size_t head_of(const void *shared)
{
    return -(uintptr_t)shared % WORD;
}

void words_store_run(void *shared, const void *own, size_t len)
{
    copy(shared, own, len, head_of(shared));
}

void words_load_run(void *own, const void *shared, size_t len)
{
    copy(own, shared, len, head_of(shared));
}
