#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "apps/npb/lu_flow.h"

enum { N = 12, DIRECTIONS = 3, AT = 6 };

static const double dt = 0.01, damping = 0.25;

/* A line of gas through the cube. */
static void make_line(int direction, gas u[N])
{
    for (int i = 0; i < N; i++) {
        double at[DIRECTIONS] = {0.3, 0.4, 0.7};
        at[direction] = i / (N - 1.0);
        u[i] = lu_exact(at[0], at[1], at[2]);
    }
}

/* What the direction does to point AT, as line number point is changed by so much of x. */
static gas changes(int direction, int point, double much, const gas *x)
{
    struct lu_line line = {N, direction, 0, 1, N - 1};
    gas u[N], out[N];
    make_line(direction, u);
    for (int m = 0; m < LU_PARTS; m++)
        u[point].part[m] += much * x->part[m];
    memset(out, 0, sizeof out);
    lu_line_add(&line, u, out);
    return out[AT - 1];
}

/* Its derivative along x, by differences, without the fourth differences, which the blocks leave out. */
static gas derivative(int direction, int point, double fourth, const gas *x)
{
    const double step = 1e-4;
    gas more = changes(direction, point, step, x), less = changes(direction, point, -step, x), out;
    for (int m = 0; m < LU_PARTS; m++)
        out.part[m] = (more.part[m] - less.part[m]) / (2 * step) + damping * fourth * x->part[m];
    return out;
}

static void expect_near(double got, double expected)
{
    if (!(fabs(got - expected) < 1e-6 * (1 + fabs(expected))))
        fail_msg("%.12g is not %.12g", got, expected);
}

static const gas x = {{0.7, -0.2, 0.5, 0.3, -0.9}};

static void test_lu_blocks_of_neighbours_are_derivatives_of_the_changes(void **state)
{
    (void)state;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int side = -1; side <= 1; side += 2) {
            gas u[N], sum = {{1, 2, 3, 4, 5}}, exact = derivative(direction, AT + side, -4, &x);
            make_line(direction, u);
            lu_neighbour_add(N, dt, direction, side, &u[AT + side], &x, &sum);
            for (int m = 0; m < LU_PARTS; m++)
                expect_near(sum.part[m] - (m + 1), -dt * exact.part[m]);
        }
}

/* The own block is one, less what the neighbours' on both sides, with the same gas, are together. */
static void test_lu_own_block_is_solved(void **state)
{
    (void)state;
    gas here = lu_exact(0.3, 0.6, 0.7), solution = lu_own_solve(N, dt, &here, &x), sum = {{0}};
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int side = -1; side <= 1; side += 2)
            lu_neighbour_add(N, dt, direction, side, &here, &solution, &sum);
    for (int m = 0; m < LU_PARTS; m++)
        expect_near(solution.part[m] - sum.part[m], x.part[m]);
}

/* Slabs of a line give what the whole line gives. */
static void test_lu_line_in_two_pieces_is_the_same_to_the_bit(void **state)
{
    (void)state;
    for (int cut = 2; cut < N - 1; cut++) {
        gas u[N], whole[N], pieces[N];
        int first = cut - 2;
        struct lu_line all = {N, 1, 0, 1, N - 1}, low = {N, 1, 0, 1, cut}, high = {N, 1, first, cut, N - 1};
        make_line(1, u);
        memset(whole, 0, sizeof whole);
        memset(pieces, 0, sizeof pieces);
        lu_line_add(&all, u, whole);
        lu_line_add(&low, u, pieces);
        lu_line_add(&high, u + first, pieces + cut - 1);
        assert_memory_equal(whole, pieces, sizeof whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lu_blocks_of_neighbours_are_derivatives_of_the_changes),
        cmocka_unit_test(test_lu_own_block_is_solved),
        cmocka_unit_test(test_lu_line_in_two_pieces_is_the_same_to_the_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
