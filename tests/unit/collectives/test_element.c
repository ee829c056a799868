#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <complex.h>
#include <string.h>

#include "collectives/element.h"

/* Each type and operation: the four results of (a, b) pairs are asserted for arrays long enough for vector code and
 * its rest. */
#define CHECK(TYPE, T, OP, A, B, WANT)                                                                                 \
    do {                                                                                                               \
        const struct element e = {.type = ELEMENT_##TYPE, .op = ELEMENT_##OP};                                         \
        T a[19], b[19], d[19];                                                                                         \
        for (int i = 0; i < 19; i++) {                                                                                 \
            a[i] = (T)(A);                                                                                             \
            b[i] = (T)(B);                                                                                             \
        }                                                                                                              \
        assert_true(element_valid(&e));                                                                                \
        assert_int_equal(element_size(&e), sizeof(T));                                                                 \
        element_combine(&e, d, a, b, 19, NULL);                                                                        \
        for (int i = 0; i < 19; i++)                                                                                   \
            assert_true(d[i] == (T)(WANT));                                                                            \
        element_combine(&e, a, a, b, 19, NULL);                                                                        \
        assert_memory_equal(a, d, sizeof d);                                                                           \
        for (int i = 0; i < 19; i++)                                                                                   \
            a[i] = (T)(A);                                                                                             \
        element_combine(&e, b, a, b, 19, NULL);                                                                        \
        assert_memory_equal(b, d, sizeof d);                                                                           \
    } while (0)

#define CHECK_ARITHMETIC(TYPE, T)                                                                                      \
    do {                                                                                                               \
        CHECK(TYPE, T, SUM, 3 + i, 4, 7 + i);                                                                          \
        CHECK(TYPE, T, PROD, 3 + i, 4, 12 + 4 * i);                                                                    \
    } while (0)
#define CHECK_ORDER(TYPE, T)                                                                                           \
    do {                                                                                                               \
        CHECK(TYPE, T, MIN, i, 9, i < 9 ? i : 9);                                                                      \
        CHECK(TYPE, T, MAX, i, 9, i > 9 ? i : 9);                                                                      \
    } while (0)
#define CHECK_BITS(TYPE, T)                                                                                            \
    do {                                                                                                               \
        CHECK(TYPE, T, AND, i, 6, i & 6);                                                                              \
        CHECK(TYPE, T, OR, i, 6, i | 6);                                                                               \
        CHECK(TYPE, T, XOR, i, 6, i ^ 6);                                                                              \
    } while (0)

// NOLINTNEXTLINE(readability-function-size): a list of macros, each a loop
static void test_element_all_types_and_operations(void **state)
{
    (void)state;
    CHECK_ARITHMETIC(INT32, int32_t);
    CHECK_ARITHMETIC(INT64, int64_t);
    CHECK_ARITHMETIC(UINT32, uint32_t);
    CHECK_ARITHMETIC(UINT64, uint64_t);
    CHECK_ARITHMETIC(FLOAT, float);
    CHECK_ARITHMETIC(DOUBLE, double);
    CHECK_ORDER(INT32, int32_t);
    CHECK_ORDER(INT64, int64_t);
    CHECK_ORDER(UINT32, uint32_t);
    CHECK_ORDER(UINT64, uint64_t);
    CHECK_ORDER(FLOAT, float);
    CHECK_ORDER(DOUBLE, double);
    CHECK_BITS(BYTE, uint8_t);
    CHECK_BITS(INT32, int32_t);
    CHECK_BITS(INT64, int64_t);
    CHECK_BITS(UINT32, uint32_t);
    CHECK_BITS(UINT64, uint64_t);
    CHECK(COMPLEX_FLOAT, float complex, SUM, 1 + 2 * I, 3 - I, 4 + I);
    CHECK(COMPLEX_FLOAT, float complex, PROD, 1 + 2 * I, 3 - I, 5 + 5 * I);
    CHECK(COMPLEX_DOUBLE, double complex, SUM, 1 + 2 * I, 3 - I, 4 + I);
    CHECK(COMPLEX_DOUBLE, double complex, PROD, 1 + 2 * I, 3 - I, 5 + 5 * I);
    CHECK(INT32, int32_t, MIN, -5, 3, -5);
    CHECK(INT64, int64_t, MAX, -5, -7, -5);
    CHECK(UINT64, uint64_t, MAX, UINT64_MAX, 1, UINT64_MAX);
    CHECK(INT32, int32_t, SUM, INT32_MAX, 1, INT32_MIN); /* wraps */
}

struct pair {
    double value;
    int64_t place;
};
struct small_pair {
    float value;
    int32_t pad;
    int64_t place;
};

static void test_element_minloc_and_maxloc_take_the_lowest_of_equal_places(void **state)
{
    (void)state;
    struct element min = {.type = ELEMENT_DOUBLE, .op = ELEMENT_MINLOC},
                   max = {.type = ELEMENT_FLOAT, .op = ELEMENT_MAXLOC};
    struct pair a[2] = {{1.5, 7}, {2.5, 7}}, b[2] = {{1.5, 3}, {0.5, 3}}, d[2];
    assert_int_equal(element_size(&min), sizeof a[0]);
    element_combine(&min, d, a, b, 2, NULL);
    assert_true(d[0].place == 3 && d[1].place == 3 && d[1].value == 0.5);
    element_combine(&min, d, b, a, 2, NULL);
    assert_true(d[0].place == 3);
    struct small_pair x = {4, 0, 2}, y = {4, 0, 1}, z = {5, 0, 9};
    element_combine(&max, &x, &x, &y, 1, NULL);
    assert_int_equal(x.place, 1);
    element_combine(&max, &x, &x, &z, 1, NULL);
    assert_true(x.place == 9 && x.value == 5);
}

static void minus(const void *left, void *right, size_t n, void *context)
{
    const int32_t *l = left;
    int32_t *r = right;
    (*(int *)context)++;
    for (size_t i = 0; i < n; i++)
        r[i] = l[i] - r[i];
}

static void test_element_users_operation_keeps_left_and_right(void **state)
{
    (void)state;
    int calls = 0;
    struct element e = {.type = ELEMENT_INT32, .op = ELEMENT_USER, .user = minus, .context = &calls};
    int32_t a[3] = {10, 20, 30}, b[3] = {1, 2, 3}, d[3], scratch[3];
    element_combine(&e, d, a, b, 3, NULL);
    assert_true(d[0] == 9 && d[2] == 27 && b[0] == 1);
    element_combine(&e, b, a, b, 3, NULL);
    assert_true(b[0] == 9 && a[0] == 10);
    b[0] = 4;
    element_combine(&e, a, a, b, 3, scratch);
    assert_true(a[0] == 6 && b[0] == 4);
    assert_int_equal(calls, 3);
}

static void test_element_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct element bad[] = {
        {.type = ELEMENT_DOUBLE, .op = ELEMENT_AND},
        {.type = ELEMENT_COMPLEX_FLOAT, .op = ELEMENT_MAX},
        {.type = ELEMENT_COMPLEX_DOUBLE, .op = ELEMENT_MINLOC},
        {.type = ELEMENT_BYTE, .op = ELEMENT_SUM},
        {.type = ELEMENT_INT32, .op = ELEMENT_USER},
        {.type = ELEMENT_TYPES, .op = ELEMENT_SUM},
        {.type = ELEMENT_INT32, .op = ELEMENT_OPS},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(element_valid(&bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_element_all_types_and_operations),
        cmocka_unit_test(test_element_minloc_and_maxloc_take_the_lowest_of_equal_places),
        cmocka_unit_test(test_element_users_operation_keeps_left_and_right),
        cmocka_unit_test(test_element_what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("element", tests, NULL, NULL);
}
