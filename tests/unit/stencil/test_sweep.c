#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "apps/stencil/sweep.h"
#include "cut.h"

enum { SWEEPS = 7, CELLS_MAX = 12 * 11 * 10, RANKS_MAX = 12 };

/* The field after some sweeps, cut for so many ranks who exchange what they need. out: row by row. */
static void sweeps_of(enum stencil s, struct field f, int ranks, bool blocks, double *out)
{
    double *now[RANKS_MAX], *next[RANKS_MAX];
    struct block b[RANKS_MAX];
    assert_true(cut_field(&f, ranks, blocks));
    double *row = malloc(field_largest_halo(&f) * sizeof *row);
    for (int r = 0; r < ranks; r++) {
        b[r] = block_of(&f, r);
        now[r] = malloc(block_size(&b[r]) * sizeof **now);
        next[r] = malloc(block_size(&b[r]) * sizeof **next);
        sweep_begin(&f, &b[r], now[r]);
        sweep_begin(&f, &b[r], next[r]);
    }
    for (int i = 0; i < SWEEPS; i++) {
        for (int r = 0; r < ranks; r++) {
            for (int d = 0; d < STENCIL_DIRECTIONS; d++) {
                int to = b[r].neighbour[d];
                if (to < 0)
                    continue;
                struct box given = block_given(&b[r], d), taken = block_taken(&b[to], direction_back(d));
                box_pack(&b[r], &given, now[r], row);
                box_unpack(&b[to], &taken, now[to], row);
            }
        }
        for (int r = 0; r < ranks; r++) {
            sweep(s, &b[r], now[r], next[r]);
            double *old = now[r];
            now[r] = next[r];
            next[r] = old;
        }
    }
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < b[r].cells[0]; i++)
            for (int j = 0; j < b[r].cells[1]; j++)
                for (int k = 0; k < b[r].cells[2]; k++)
                    out[((b[r].first[0] + i) * f.cells[1] + b[r].first[1] + j) * f.cells[2] + b[r].first[2] + k] =
                        now[r][block_index(&b[r], i + 1, j + 1, k + 1)];
        free(now[r]);
        free(next[r]);
    }
    free(row);
}

static void test_sweep_gives_the_same_bits_however_the_field_is_cut(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        enum stencil s = (enum stencil)(kind / 2);
        struct field f = {.dims = stencil_dims(s),
                          .cells = {12, 11, stencil_dims(s) == 3 ? 10 : 1},
                          .periodic = kind % 2,
                          .corners = stencil_has_corners(s)};
        double whole[CELLS_MAX], cut[CELLS_MAX];
        size_t bytes = 12 * 11 * (size_t)f.cells[2] * sizeof *whole;
        sweeps_of(s, f, 1, false, whole);
        for (int ranks = 2; ranks <= RANKS_MAX; ranks += ranks > 3 ? 4 : 1) {
            for (int blocks = 0; blocks < 2; blocks++) {
                sweeps_of(s, f, ranks, blocks, cut);
                assert_memory_equal(whole, cut, bytes);
            }
        }
    }
}

static void test_sweep_keeps_the_heat_of_a_periodic_field(void **state)
{
    (void)state;
    struct field f = {.dims = 3, .cells = {12, 11, 10}, .periodic = true, .corners = true};
    double before = 0, after = 0, cells[CELLS_MAX], begin[14 * 13 * 12];
    assert_true(cut_field(&f, 1, false));
    struct block b = block_of(&f, 0);
    sweep_begin(&f, &b, begin);
    for (int i = 1; i <= 12; i++)
        for (int j = 1; j <= 11; j++)
            for (int k = 1; k <= 10; k++)
                before += begin[block_index(&b, i, j, k)];
    sweeps_of(STENCIL_27P, f, 1, false, cells);
    for (size_t i = 0; i < CELLS_MAX; i++)
        after += cells[i];
    assert_true(before > 1);
    assert_float_equal(after, before, 1e-9 * before);
}

static void test_sweep_tells_how_much_changed(void **state)
{
    (void)state;
    struct field f = {.dims = 2, .cells = {3, 3, 1}};
    assert_true(cut_field(&f, 1, false));
    struct block b = block_of(&f, 0);
    double from[5 * 5 * 3] = {0}, to[5 * 5 * 3];
    from[block_index(&b, 2, 2, 1)] = 1;
    /* the middle loses 1, the four beside it gain a quarter each */
    assert_float_equal(sweep(STENCIL_5P, &b, from, to), 1 + 4 * 0.0625, 1e-15);
    assert_float_equal(to[block_index(&b, 1, 2, 1)], 0.25, 0);
    assert_float_equal(to[block_index(&b, 1, 1, 1)], 0, 0);
    sweep(STENCIL_9P, &b, from, to);
    assert_float_equal(to[block_index(&b, 1, 1, 1)], 0.05, 1e-15);
    assert_float_equal(to[block_index(&b, 2, 1, 1)], 0.2, 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_gives_the_same_bits_however_the_field_is_cut),
        cmocka_unit_test(test_sweep_keeps_the_heat_of_a_periodic_field),
        cmocka_unit_test(test_sweep_tells_how_much_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
