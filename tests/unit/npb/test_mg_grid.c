#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "apps/npb/mg_grid.h"
#include "apps/npb/random.h"

enum { N = 8, POINTS = (N + 2) * (N + 2) * (N + 2) };

static const struct grid whole = {.n = N, .planes = N, .first = 0};
static double a[POINTS], out[POINTS], want[POINTS];

static size_t at(size_t n, size_t z, size_t y, size_t x)
{
    return (z * (n + 2) + y) * (n + 2) + x;
}

static void fill(double *array, size_t count)
{
    struct random random = random_at(RANDOM_SEED, 0);
    for (size_t i = 0; i < count; i++)
        array[i] = random_next(&random);
}

/* The weighted sum over the 27 points, as it is defined. */
static double around(const struct weights *w, const double *array, size_t n, size_t z, size_t y, size_t x)
{
    double sum = 0;
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                sum +=
                    w->of[dz * dz + dy * dy + dx * dx] * array[at(n, z + (size_t)dz, y + (size_t)dy, x + (size_t)dx)];
    return sum;
}

static void expect_near(double got, double expected)
{
    if (!(fabs(got - expected) < 1e-13))
        fail_msg("%.17g is not %.17g", got, expected);
}

static void test_grid_apply_is_the_weighted_sum_of_27_points(void **state)
{
    (void)state;
    static const struct weights weights = {{-8.0 / 3, 0.3, 1.0 / 6, 1.0 / 12}};
    fill(a, POINTS);
    memcpy(want, a, sizeof want);
    memset(out, 0, sizeof out);
    grid_apply(&whole, &weights, -1, a, want, out);
    for (size_t z = 1; z <= N; z++)
        for (size_t y = 1; y <= N; y++)
            for (size_t x = 1; x <= N; x++)
                expect_near(out[at(N, z, y, x)], want[at(N, z, y, x)] - around(&weights, a, N, z, y, x));
    assert_true(out[0] == 0 && out[POINTS - 1] == 0); /* the layer is left alone */
}

static void test_grid_restrict_weighs_the_points_around_every_second_one(void **state)
{
    (void)state;
    static const struct weights weights = {{1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16}};
    fill(a, POINTS);
    grid_restrict(&whole, a, out);
    for (size_t z = 1; z <= N / 2; z++)
        for (size_t y = 1; y <= N / 2; y++)
            for (size_t x = 1; x <= N / 2; x++)
                expect_near(out[at(N / 2, z, y, x)], around(&weights, a, N, 2 * z, 2 * y, 2 * x));
}

/* A function that is linear in each direction is found again between the coarse points, and added to what was there. */
static void test_grid_interpolate_adds_linear_functions_exactly(void **state)
{
    (void)state;
    static double coarse[(N / 2 + 2) * (N / 2 + 2) * (N / 2 + 2)];
    for (size_t z = 0; z < N / 2 + 2; z++)
        for (size_t y = 0; y < N / 2 + 2; y++)
            for (size_t x = 0; x < N / 2 + 2; x++)
                coarse[at(N / 2, z, y, x)] = (1 + (double)z) * (2 - (double)y) * (3 + (double)x);
    fill(a, POINTS);
    memcpy(out, a, sizeof out);
    grid_interpolate(&whole, coarse, out);
    for (size_t z = 0; z < N + 2; z++)
        for (size_t y = 0; y < N + 2; y++)
            for (size_t x = 0; x < N + 2; x++)
                expect_near(out[at(N, z, y, x)] - a[at(N, z, y, x)],
                            (1 + (double)z / 2) * (2 - (double)y / 2) * (3 + (double)x / 2));
}

static void test_grid_wrap_makes_planes_periodic(void **state)
{
    (void)state;
    fill(a, POINTS);
    memcpy(out, a, sizeof out);
    grid_wrap_planes(&whole, out);
    for (size_t z = 0; z < N + 2; z++)
        for (size_t y = 0; y < N + 2; y++)
            for (size_t x = 0; x < N + 2; x++) {
                size_t from_y = (y + N - 1) % N + 1, from_x = (x + N - 1) % N + 1;
                bool inside = z >= 1 && z <= N;
                assert_true(out[at(N, z, y, x)] == a[inside ? at(N, z, from_y, from_x) : at(N, z, y, x)]);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_apply_is_the_weighted_sum_of_27_points),
        cmocka_unit_test(test_grid_restrict_weighs_the_points_around_every_second_one),
        cmocka_unit_test(test_grid_interpolate_adds_linear_functions_exactly),
        cmocka_unit_test(test_grid_wrap_makes_planes_periodic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
