#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "apps/scf/diis.h"

static double sum(int n, const double *c)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += c[i];
    return s;
}

static void test_diis_two_opposite_errors_cancel(void **state)
{
    (void)state;
    const double a[] = {3, 0, 0}, b[] = {-1, 0, 0};
    double c[2];
    diis_coefficients(2, 3, (const double *const[]){a, b}, c);
    assert_true(fabs(c[0] - 0.25) < 1e-12 && fabs(c[1] - 0.75) < 1e-12);
}

static void test_diis_independent_errors_give_least_norm(void **state)
{
    (void)state;
    /* orthogonal errors of squares 1, 4, 9: c_i is proportional to 1/square */
    const double a[] = {1, 0, 0}, b[] = {0, 2, 0}, d[] = {0, 0, 3};
    double c[3], unit = 1 / (1 + 1 / 4.0 + 1 / 9.0);
    diis_coefficients(3, 3, (const double *const[]){a, b, d}, c);
    assert_true(fabs(c[0] - unit) < 1e-12 && fabs(c[1] - unit / 4) < 1e-12 && fabs(c[2] - unit / 9) < 1e-12);
}

static void test_diis_tiny_errors_are_not_taken_for_singular(void **state)
{
    (void)state;
    const double a[] = {3e-9, 1e-10}, b[] = {-1e-9, 1e-10};
    double c[2];
    diis_coefficients(2, 2, (const double *const[]){a, b}, c);
    assert_true(fabs(c[0] - 0.25) < 1e-9 && fabs(sum(2, c) - 1) < 1e-12);
}

static void test_diis_dependent_errors_drop_the_oldest(void **state)
{
    (void)state;
    const double a[] = {3, 1}, b[] = {3, 1}, d[] = {-1, 1};
    double c[3];
    diis_coefficients(3, 2, (const double *const[]){a, b, d}, c);
    assert_true(c[0] == 0);
    assert_true(fabs(c[1] - 0.25) < 1e-12 && fabs(c[2] - 0.75) < 1e-12);
}

static void test_diis_one_or_zero_error_takes_the_newest(void **state)
{
    (void)state;
    const double a[] = {3, 1}, zero[] = {0, 0};
    double c[2];
    diis_coefficients(1, 2, (const double *const[]){a}, c);
    assert_true(c[0] == 1);
    diis_coefficients(2, 2, (const double *const[]){a, zero}, c);
    assert_true(c[0] == 0 && c[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diis_two_opposite_errors_cancel),
        cmocka_unit_test(test_diis_independent_errors_give_least_norm),
        cmocka_unit_test(test_diis_tiny_errors_are_not_taken_for_singular),
        cmocka_unit_test(test_diis_dependent_errors_drop_the_oldest),
        cmocka_unit_test(test_diis_one_or_zero_error_takes_the_newest),
    };
    return cmocka_run_group_tests_name("scf diis", tests, NULL, NULL);
}
