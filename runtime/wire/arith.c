#include "runtime/wire/arith.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/base/rounding.h"

typedef void add(void *to, const void *by, size_t n, const void *scale, bool shared);

/* One loop per type. Macros, as no function can take a type.
 * T: a component; U: what it is computed in, so that integers wrap; W: a word of its size.
 * Components that are shared with nobody are added a vector at a time: a multiplication and an addition each, in
 * whatever width, so that every machine and every copy has the same bits. */
enum { VECTOR_BYTES = 32 };

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
static bool is_wide(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define WIDE
static bool is_wide(void)
{
    return false;
}
#endif

/* NOLINTBEGIN(bugprone-macro-parentheses): types stand in no parentheses */
#define VECTORS(T, U, NAME, FOR)                                                                                       \
    FOR static size_t NAME(T *to, const char *by, size_t n, U s)                                                       \
    {                                                                                                                  \
        size_t i = 0, step = VECTOR_BYTES / sizeof *to;                                                                \
        for (; n - i >= step; i += step) {                                                                             \
            T##_vector sum, x;                                                                                         \
            memcpy(&sum, to + i, sizeof sum);                                                                          \
            memcpy(&x, by + i * sizeof *to, sizeof x);                                                                 \
            sum += s * x;                                                                                              \
            memcpy(to + i, &sum, sizeof sum);                                                                          \
        }                                                                                                              \
        return i;                                                                                                      \
    }

#define COMPONENT(T, U, W)                                                                                             \
    typedef U T##_vector __attribute__((vector_size(VECTOR_BYTES)));                                                   \
    VECTORS(T, U, T##_narrow, )                                                                                        \
    VECTORS(T, U, T##_wide, WIDE)                                                                                      \
    static inline void T##_add_to(T *to, U by, bool shared)                                                            \
    {                                                                                                                  \
        if (!shared) {                                                                                                 \
            *to = (T)((U)*to + by);                                                                                    \
            return;                                                                                                    \
        }                                                                                                              \
        _Atomic W *word = (_Atomic W *)(void *)to;                                                                     \
        W before = atomic_load_explicit(word, memory_order_relaxed), after;                                            \
        do {                                                                                                           \
            T sum;                                                                                                     \
            memcpy(&sum, &before, sizeof sum);                                                                         \
            sum = (T)((U)sum + by);                                                                                    \
            memcpy(&after, &sum, sizeof after);                                                                        \
        } while (!atomic_compare_exchange_weak(word, &before, after));                                                 \
    }                                                                                                                  \
    static void T##_real(void *to, const void *by, size_t n, const void *scale, bool shared)                           \
    {                                                                                                                  \
        T *part = to, s, x;                                                                                            \
        memcpy(&s, scale, sizeof s);                                                                                   \
        size_t i = shared ? 0 : is_wide() ? T##_wide(part, by, n, (U)s) : T##_narrow(part, by, n, (U)s);               \
        for (; i < n; i++) {                                                                                           \
            memcpy(&x, (const char *)by + i * sizeof x, sizeof x);                                                     \
            T##_add_to(&part[i], (U)s *(U)x, shared);                                                                  \
        }                                                                                                              \
    }

#define COMPLEX(T, U)                                                                                                  \
    static void T##_complex(void *to, const void *by, size_t n, const void *scale, bool shared)                        \
    {                                                                                                                  \
        T *part = to, s[2], x[2];                                                                                      \
        memcpy(s, scale, sizeof s);                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                                               \
            memcpy(x, (const char *)by + i * sizeof x, sizeof x);                                                      \
            T##_add_to(&part[2 * i], s[0] * x[0] - s[1] * x[1], shared);                                               \
            T##_add_to(&part[2 * i + 1], s[0] * x[1] + s[1] * x[0], shared);                                           \
        }                                                                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

COMPONENT(int32_t, uint32_t, uint32_t)
COMPONENT(int64_t, uint64_t, uint64_t)
COMPONENT(float, float, uint32_t)
COMPONENT(double, double, uint64_t)
COMPLEX(float, float)
COMPLEX(double, double)

static const int32_t one_int32 = 1;
static const int64_t one_int64 = 1;
static const float one_float[2] = {1, 0};
static const double one_double[2] = {1, 0};

static const struct type {
    uint8_t size, align;
    add *add; /* NULL: no accumulate */
    const void *one;
} types[] = {
    [KEEL_BYTE] = {1, 1, NULL, NULL},
    [KEEL_INT32] = {4, 4, int32_t_real, &one_int32},
    [KEEL_INT64] = {8, 8, int64_t_real, &one_int64},
    [KEEL_UINT32] = {4, 4, int32_t_real, &one_int32},
    [KEEL_UINT64] = {8, 8, int64_t_real, &one_int64},
    [KEEL_FLOAT] = {4, 4, float_real, one_float},
    [KEEL_DOUBLE] = {8, 8, double_real, one_double},
    [KEEL_COMPLEX_FLOAT] = {8, 4, float_complex, one_float},
    [KEEL_COMPLEX_DOUBLE] = {16, 8, double_complex, one_double},
};
enum { TYPES = sizeof types / sizeof types[0] };

size_t arith_size(unsigned type)
{
    return type < TYPES ? types[type].size : 0;
}

size_t arith_align(unsigned type)
{
    return type < TYPES ? types[type].align : 0;
}

bool arith_can_add(unsigned type)
{
    return type < TYPES && types[type].add;
}

const void *arith_one(unsigned type)
{
    return type < TYPES ? types[type].one : NULL;
}

void arith_add(unsigned type, void *to, const void *by, size_t n, const void *scale, bool shared)
{
    assert(arith_can_add(type));
    uint64_t before = rounding_usual(); /* else copies on this node and on others could differ */
    types[type].add(to, by, n, scale, shared);
    rounding_restore(before);
}

/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define WORD(T)                                                                                                        \
    static int64_t T##_rmw(enum arith_rmw op, void *word, T a, T b)                                                    \
    {                                                                                                                  \
        _Atomic T *w = word;                                                                                           \
        switch (op) {                                                                                                  \
        case ARITH_ADD:                                                                                                \
            return atomic_fetch_add(w, a);                                                                             \
        case ARITH_SWAP:                                                                                               \
            return atomic_exchange(w, a);                                                                              \
        case ARITH_AND:                                                                                                \
            return atomic_fetch_and(w, a);                                                                             \
        case ARITH_OR:                                                                                                 \
            return atomic_fetch_or(w, a);                                                                              \
        case ARITH_XOR:                                                                                                \
            return atomic_fetch_xor(w, a);                                                                             \
        default:                                                                                                       \
            atomic_compare_exchange_strong(w, &a, b);                                                                  \
            return a;                                                                                                  \
        }                                                                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

WORD(int32_t)
WORD(int64_t)

int64_t arith_rmw(enum arith_rmw op, size_t bytes, void *word, int64_t a, int64_t b)
{
    return bytes == 4 ? int32_t_rmw(op, word, (int32_t)a, (int32_t)b) : int64_t_rmw(op, word, a, b);
}
