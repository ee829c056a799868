/* Arithmetic that is done for others is the same wherever it is done: to the nearest, subnormal numbers as they are,
 * without traps. A thread of the program may have asked its processor for something else (fesetround, -ffast-math,
 * feenableexcept), and its sums would differ from an agent's.
 *
 *     uint64_t before = rounding_usual();
 *     ... arithmetic in a function that is not inlined here ...
 *     rounding_restore(before);
 *
 * Where the thread has nothing unusual this is one look. */
#ifndef KEEL_BASE_ROUNDING_H
#define KEEL_BASE_ROUNDING_H

#include <stdint.h>

enum { ROUNDING_IS_USUAL = 0 };

#if defined(__x86_64__)

enum { ROUNDING_FLAGS = 0x3f, ROUNDING_CONTROL_USUAL = 0x1f80 };

static inline uint64_t rounding_usual(void)
{
    uint32_t now = __builtin_ia32_stmxcsr();
    if (__builtin_expect((now & 0xffff & ~(uint32_t)ROUNDING_FLAGS) == ROUNDING_CONTROL_USUAL, 1))
        return ROUNDING_IS_USUAL;
    __builtin_ia32_ldmxcsr(ROUNDING_CONTROL_USUAL);
    return (uint64_t)1 << 32 | now;
}

static inline void rounding_restore(uint64_t before)
{
    if (before != ROUNDING_IS_USUAL)
        __builtin_ia32_ldmxcsr((uint32_t)before);
}

#elif defined(__aarch64__)

static inline uint64_t rounding_usual(void)
{
    uint64_t now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    if (__builtin_expect(now != 0, 0))
        __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return now;
}

static inline void rounding_restore(uint64_t before)
{
    if (__builtin_expect(before != ROUNDING_IS_USUAL, 0))
        __asm__ volatile("msr fpcr, %0" : : "r"(before) : "memory");
}

#else

#include <fenv.h>

static inline uint64_t rounding_usual(void)
{
    int now = fegetround();
    return now == FE_TONEAREST || fesetround(FE_TONEAREST) != 0 ? ROUNDING_IS_USUAL : (uint64_t)1 << 32 | (unsigned)now;
}

static inline void rounding_restore(uint64_t before)
{
    if (before != ROUNDING_IS_USUAL)
        (void)fesetround((int)(before & 0xffffffff));
}

#endif
#endif
