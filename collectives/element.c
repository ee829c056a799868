#include "collectives/element.h"

#include <complex.h>
#include <string.h>

#include "runtime/base/rounding.h"

static const size_t size_of[ELEMENT_TYPES] = {1, 4, 8, 4, 8, 4, 8, 8, 16};

enum { PAIR_SIZE = 16, PAIR_PLACE = 8 };

static bool is_complex(enum element_type t)
{
    return t == ELEMENT_COMPLEX_FLOAT || t == ELEMENT_COMPLEX_DOUBLE;
}

static bool is_pair(enum element_op op)
{
    return op == ELEMENT_MINLOC || op == ELEMENT_MAXLOC;
}

bool element_valid(const struct element *e)
{
    if ((unsigned)e->type >= ELEMENT_TYPES || (unsigned)e->op >= ELEMENT_OPS)
        return false;
    bool bits = e->op == ELEMENT_AND || e->op == ELEMENT_OR || e->op == ELEMENT_XOR;
    if (e->op == ELEMENT_USER)
        return e->user;
    if (e->type == ELEMENT_BYTE)
        return bits;
    if (bits)
        return e->type <= ELEMENT_UINT64;
    return e->op <= ELEMENT_PROD || !is_complex(e->type);
}

size_t element_size(const struct element *e)
{
    if (e->op == ELEMENT_USER && e->user_size)
        return e->user_size;
    return is_pair(e->op) ? PAIR_SIZE : size_of[e->type];
}

/* One loop per type and operation: the compiler makes them vector loops. Macros, as no function can take a type. */
/* NOLINTBEGIN(bugprone-macro-parentheses): types stand in no parentheses */
#define LOOP(T, EXPR)                                                                                                  \
    do {                                                                                                               \
        T *d = dst;                                                                                                    \
        const T *l = left, *r = right;                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const T a = l[i], b = r[i];                                                                                \
            d[i] = (T)(EXPR);                                                                                          \
        }                                                                                                              \
        return true;                                                                                                   \
    } while (0)

#define SUM_AND_PROD(T, ARITH)                                                                                         \
    static bool T##_sum_prod(enum element_op op, void *dst, const void *left, const void *right, size_t n)             \
    {                                                                                                                  \
        if (op == ELEMENT_SUM)                                                                                         \
            LOOP(T, (ARITH)a + (ARITH)b);                                                                              \
        if (op == ELEMENT_PROD)                                                                                        \
            LOOP(T, (ARITH)a *(ARITH)b);                                                                               \
        return false;                                                                                                  \
    }

#define ORDERED(T)                                                                                                     \
    static void T##_loc(enum element_op op, void *dst, const void *left, const void *right, size_t n)                  \
    {                                                                                                                  \
        for (size_t i = 0; i < n * PAIR_SIZE; i += PAIR_SIZE) {                                                        \
            T a, b;                                                                                                    \
            int64_t at_a, at_b;                                                                                        \
            const char *l = (const char *)left + i, *r = (const char *)right + i;                                      \
            memcpy(&a, l, sizeof a);                                                                                   \
            memcpy(&b, r, sizeof b);                                                                                   \
            memcpy(&at_a, l + PAIR_PLACE, sizeof at_a);                                                                \
            memcpy(&at_b, r + PAIR_PLACE, sizeof at_b);                                                                \
            bool better = op == ELEMENT_MINLOC ? b < a : b > a;                                                        \
            memmove((char *)dst + i, better || (a == b && at_b < at_a) ? r : l, PAIR_SIZE);                            \
        }                                                                                                              \
    }                                                                                                                  \
    static bool T##_order(enum element_op op, void *dst, const void *left, const void *right, size_t n)                \
    {                                                                                                                  \
        if (op == ELEMENT_MIN)                                                                                         \
            LOOP(T, b < a ? b : a);                                                                                    \
        if (op == ELEMENT_MAX)                                                                                         \
            LOOP(T, b > a ? b : a);                                                                                    \
        if (op != ELEMENT_MINLOC && op != ELEMENT_MAXLOC)                                                              \
            return false;                                                                                              \
        T##_loc(op, dst, left, right, n);                                                                              \
        return true;                                                                                                   \
    }

#define BITS(T)                                                                                                        \
    static bool T##_bits(enum element_op op, void *dst, const void *left, const void *right, size_t n)                 \
    {                                                                                                                  \
        if (op == ELEMENT_AND)                                                                                         \
            LOOP(T, a &b);                                                                                             \
        if (op == ELEMENT_OR)                                                                                          \
            LOOP(T, a | b);                                                                                            \
        if (op == ELEMENT_XOR)                                                                                         \
            LOOP(T, a ^ b);                                                                                            \
        return false;                                                                                                  \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

typedef float complex complex_float;
typedef double complex complex_double;

/* Signed sums and products wrap, like those of the machine: computed as unsigned. */
SUM_AND_PROD(int32_t, uint32_t)
SUM_AND_PROD(int64_t, uint64_t)
SUM_AND_PROD(uint32_t, uint32_t)
SUM_AND_PROD(uint64_t, uint64_t)
SUM_AND_PROD(float, float)
SUM_AND_PROD(double, double)
SUM_AND_PROD(complex_float, complex_float)
SUM_AND_PROD(complex_double, complex_double)
ORDERED(int32_t)
ORDERED(int64_t)
ORDERED(uint32_t)
ORDERED(uint64_t)
ORDERED(float)
ORDERED(double)
BITS(uint8_t)
BITS(uint32_t)
BITS(uint64_t)

typedef bool (*kernel)(enum element_op op, void *dst, const void *left, const void *right, size_t n);

static const kernel kernels[ELEMENT_TYPES][3] = {
    [ELEMENT_BYTE] = {uint8_t_bits},
    [ELEMENT_INT32] = {int32_t_sum_prod, int32_t_order, uint32_t_bits},
    [ELEMENT_INT64] = {int64_t_sum_prod, int64_t_order, uint64_t_bits},
    [ELEMENT_UINT32] = {uint32_t_sum_prod, uint32_t_order, uint32_t_bits},
    [ELEMENT_UINT64] = {uint64_t_sum_prod, uint64_t_order, uint64_t_bits},
    [ELEMENT_FLOAT] = {float_sum_prod, float_order},
    [ELEMENT_DOUBLE] = {double_sum_prod, double_order},
    [ELEMENT_COMPLEX_FLOAT] = {complex_float_sum_prod},
    [ELEMENT_COMPLEX_DOUBLE] = {complex_double_sum_prod},
};

/* All members get the same, whatever their processors were told. */
static void combine(const struct element *e, void *dst, const void *left, const void *right, size_t n)
{
    uint64_t before = rounding_usual();
    for (int i = 0; i < 3 && kernels[e->type][i]; i++)
        if (kernels[e->type][i](e->op, dst, left, right, n))
            break;
    rounding_restore(before);
}

void element_combine(const struct element *e, void *dst, const void *left, const void *right, size_t n, void *scratch)
{
    if (e->op != ELEMENT_USER) {
        combine(e, dst, left, right, n);
        return;
    }
    size_t len = n * element_size(e);
    if (dst == right) {
        e->user(left, dst, n, e->context);
        return;
    }
    if (dst == left) { /* the user's operation writes to its right operand */
        memcpy(scratch, right, len);
        e->user(left, scratch, n, e->context);
        memcpy(dst, scratch, len);
        return;
    }
    memcpy(dst, right, len);
    e->user(left, dst, n, e->context);
}
