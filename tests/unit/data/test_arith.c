/* Accumulates and atomics on elements, against sums that are computed one element at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <complex.h>
#include <limits.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/wire/arith.h"
#include "seed.h"

enum { N = 37 };

/* One element as a number: small integers, so that every type holds them exactly. */
static double complex element_get(unsigned type, const void *at)
{
    int32_t i;
    int64_t l;
    float f[2] = {0};
    double d[2] = {0};
    switch (type) {
    case KEEL_INT32:
    case KEEL_UINT32:
        memcpy(&i, at, sizeof i);
        return i;
    case KEEL_INT64:
    case KEEL_UINT64:
        memcpy(&l, at, sizeof l);
        return (double)l;
    case KEEL_FLOAT:
    case KEEL_COMPLEX_FLOAT:
        memcpy(f, at, arith_size(type));
        return f[0] + f[1] * (double complex)I;
    default:
        memcpy(d, at, arith_size(type));
        return d[0] + d[1] * (double complex)I;
    }
}

static void element_set(unsigned type, void *at, int re, int im)
{
    int32_t i = re;
    int64_t l = re;
    float f[2] = {(float)re, (float)im};
    double d[2] = {re, im};
    const void *from = type == KEEL_INT32 || type == KEEL_UINT32          ? (void *)&i
                       : type == KEEL_INT64 || type == KEEL_UINT64        ? (void *)&l
                       : type == KEEL_FLOAT || type == KEEL_COMPLEX_FLOAT ? (void *)f
                                                                          : (void *)d;
    memcpy(at, from, arith_size(type));
}

static int some(struct rng *rng)
{
    return (int)rng_below(rng, 201) - 100;
}

static void test_arith_add_of_every_type_scales_and_adds_each_element(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int round = 0; round < 200; round++)
        for (unsigned type = KEEL_INT32; type <= KEEL_COMPLEX_DOUBLE; type++) {
            _Alignas(16) uint8_t to[16 * N + 16], by[16 * N + 1], scale[16], before[sizeof to];
            size_t size = arith_size(type), n = rng_below(&rng, N + 1), odd = rng_below(&rng, 2);
            for (size_t i = 0; i <= n; i++)
                element_set(type, to + i * size, some(&rng), some(&rng));
            for (size_t i = 0; i < n; i++)
                element_set(type, by + odd + i * size, some(&rng), some(&rng));
            element_set(type, scale, some(&rng), some(&rng));
            memcpy(before, to, sizeof to);
            const void *by_what = round % 5 ? scale : arith_one(type);
            arith_add(type, to, by + odd, n, by_what, round % 2);
            for (size_t i = 0; i < n; i++) {
                double complex want = element_get(type, before + i * size) +
                                      element_get(type, by_what) * element_get(type, by + odd + i * size);
                assert_true(element_get(type, to + i * size) == want);
            }
            assert_memory_equal(to + n * size, before + n * size, size);
        }
}

static void test_arith_add_of_integers_wraps(void **state)
{
    (void)state;
    int32_t narrow = INT_MAX, two = 2, one = 1;
    arith_add(KEEL_INT32, &narrow, &one, 1, &two, false);
    assert_int_equal(narrow, INT_MIN + 1);
    int64_t wide = INT64_MAX, big = INT64_MAX;
    arith_add(KEEL_INT64, &wide, &big, 1, &big, true);
    assert_int_equal(wide, (int64_t)((uint64_t)INT64_MAX + (uint64_t)INT64_MAX * (uint64_t)INT64_MAX));
}

static void test_arith_types_have_their_sizes(void **state)
{
    (void)state;
    assert_int_equal(arith_size(KEEL_BYTE), 1);
    assert_int_equal(arith_size(KEEL_COMPLEX_DOUBLE), 16);
    assert_int_equal(arith_size(KEEL_COMPLEX_FLOAT), 8);
    assert_int_equal(arith_align(KEEL_COMPLEX_FLOAT), 4);
    assert_int_equal(arith_size(KEEL_COMPLEX_DOUBLE + 1), 0);
    assert_false(arith_can_add(KEEL_BYTE));
    assert_false(arith_can_add(UINT_MAX));
    for (unsigned type = 0; type <= KEEL_COMPLEX_DOUBLE; type++)
        assert_true(arith_size(type) <= ARITH_SCALE_MAX);
}

static void test_arith_rmw_gives_what_was_there(void **state)
{
    (void)state;
    const struct {
        enum arith_rmw op;
        int64_t before, a, b, after;
    } cases[] = {
        {ARITH_ADD, 5, -7, 0, -2},
        {ARITH_SWAP, 5, -7, 0, -7},
        {ARITH_CAS, 5, 5, 9, 9},
        {ARITH_CAS, 5, 6, 9, 5},
        {ARITH_AND, 0x0ff0, 0x3c3c, 0, 0x0c30},
        {ARITH_OR, 0x0ff0, 0x3c3c, 0, 0x3ffc},
        {ARITH_XOR, -1, 1, 0, -2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t wide = cases[i].before;
        assert_int_equal(arith_rmw(cases[i].op, 8, &wide, cases[i].a, cases[i].b), cases[i].before);
        assert_int_equal(wide, cases[i].after);
        int32_t narrow[2] = {(int32_t)cases[i].before, 77};
        assert_int_equal(arith_rmw(cases[i].op, 4, narrow, cases[i].a, cases[i].b), cases[i].before);
        assert_int_equal(narrow[0], cases[i].after);
        assert_int_equal(narrow[1], 77);
    }
}

/* Of numbers whose sum every way of rounding rounds to something else, and of subnormal ones, which some processors
 * are told to make zero. */
static void add_some(double *sums, bool shared)
{
    static const double by[4] = {1e-16, -1e-16, 1e-300, 1};
    const double scale = 1e-8;
    sums[0] = 1;
    sums[1] = -1;
    sums[2] = 3e-308;
    sums[3] = 1e-17;
    arith_add(KEEL_DOUBLE, sums, by, 4, &scale, shared);
}

#if defined(__x86_64__)
enum { FLUSH_TO_ZERO = 0x8040, ALL_TRAPS_OFF = 0x1f80, SOME_TRAPS_OFF = 0x0f80 };

static void test_arith_add_is_the_same_whatever_the_processor_was_told(void **state)
{
    (void)state;
    const unsigned told[] = {ALL_TRAPS_OFF | 0x2000, ALL_TRAPS_OFF | 0x4000, ALL_TRAPS_OFF | 0x6000,
                             ALL_TRAPS_OFF | FLUSH_TO_ZERO, SOME_TRAPS_OFF};
    double usual[4], sums[4];
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        for (int shared = 0; shared < 2; shared++) {
            add_some(usual, shared);
            unsigned before = __builtin_ia32_stmxcsr();
            __builtin_ia32_ldmxcsr(told[i]);
            add_some(sums, shared);
            unsigned after = __builtin_ia32_stmxcsr();
            __builtin_ia32_ldmxcsr(before);
            assert_int_equal(after, told[i]);
            assert_memory_equal(sums, usual, sizeof sums);
        }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arith_add_of_every_type_scales_and_adds_each_element),
        cmocka_unit_test(test_arith_add_of_integers_wraps),
        cmocka_unit_test(test_arith_types_have_their_sizes),
        cmocka_unit_test(test_arith_rmw_gives_what_was_there),
#if defined(__x86_64__)
        cmocka_unit_test(test_arith_add_is_the_same_whatever_the_processor_was_told),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
