/* The system of keel-hpccg: boxes that are stacked are the same system as one box. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/hpccg/problem.h"

static struct problem make(size_t nx, size_t ny, size_t nz, bool lowest, bool highest)
{
    struct problem p = {.nx = nx, .ny = ny, .nz = nz, .plane = nx * ny, .rows = problem_rows(nx, ny, nz)};
    p.value = calloc(p.rows, PROBLEM_COUPLINGS * sizeof *p.value);
    p.column = calloc(p.rows, PROBLEM_COUPLINGS * sizeof *p.column);
    p.right = calloc(p.rows, sizeof *p.right);
    assert_non_null(p.value);
    assert_non_null(p.column);
    assert_non_null(p.right);
    problem_fill(&p, lowest, highest);
    return p;
}

static void discard(struct problem *p)
{
    free(p->value);
    free(p->column);
    free(p->right);
}

static void test_problem_of_ones_is_the_right_side(void **state)
{
    (void)state;
    struct problem p = make(3, 4, 5, true, true);
    double v[3 * 4 * 7], out[3 * 4 * 5];
    for (size_t i = 0; i < problem_reach(&p); i++)
        v[i] = 1;
    problem_multiply(&p, v, out);
    assert_memory_equal(out, p.right, sizeof out);
    assert_true(p.right[0] == 27 - 7);                    /* a corner */
    assert_true(p.right[(2 * 4 + 1) * 3 + 1] == 27 - 26); /* inside */
    discard(&p);
}

/* What row `row` has for each of `all` unknowns. */
static void row_of(const struct problem *p, size_t row, double *all)
{
    for (int n = 0; n < PROBLEM_COUPLINGS; n++)
        all[p->column[row * PROBLEM_COUPLINGS + (size_t)n]] += p->value[row * PROBLEM_COUPLINGS + (size_t)n];
}

static void test_problem_stacked_boxes_are_one_system(void **state)
{
    (void)state;
    enum { X = 3, Y = 2, Z = 2, BOXES = 3, PLANE = X * Y, ALL = PLANE * (Z * BOXES + 2) };
    struct problem whole = make(X, Y, Z * BOXES, true, true);
    for (size_t box = 0; box < BOXES; box++) {
        struct problem part = make(X, Y, Z, box == 0, box == BOXES - 1);
        for (size_t row = 0; row < part.rows; row++) {
            double of_part[ALL] = {0}, of_whole[ALL] = {0};
            row_of(&part, row, of_part + box * part.rows);
            row_of(&whole, box * part.rows + row, of_whole);
            assert_memory_equal(of_part, of_whole, sizeof of_part);
        }
        discard(&part);
    }
    discard(&whole);
}

static void test_problem_is_symmetric(void **state)
{
    (void)state;
    enum { N = 3, ALL = N * N * (N + 2) };
    struct problem p = make(N, N, N, true, true);
    static double a[N * N * N][ALL];
    for (size_t row = 0; row < p.rows; row++)
        row_of(&p, row, a[row]);
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < p.rows; j++)
            assert_true(a[i][j + p.plane] == a[j][i + p.plane]);
    discard(&p);
}

static void test_problem_too_large_for_an_index_has_no_rows(void **state)
{
    (void)state;
    assert_int_equal(problem_rows(1000000, 1000000, 1000000), 0);
    assert_int_equal(problem_rows(1000, 1000, 1000), 0);
    assert_int_equal(problem_rows(100, 100, 100), 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_of_ones_is_the_right_side),
        cmocka_unit_test(test_problem_stacked_boxes_are_one_system),
        cmocka_unit_test(test_problem_is_symmetric),
        cmocka_unit_test(test_problem_too_large_for_an_index_has_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
