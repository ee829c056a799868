#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cut.h"

static struct field field_of(int dims, int i, int j, int k, bool periodic, bool corners)
{
    return (struct field){.dims = dims, .cells = {i, j, k}, .periodic = periodic, .corners = corners};
}

static void test_rows_of_cells_are_rows_of_ranks(void **state)
{
    (void)state;
    struct field f = field_of(2, 100, 50, 1, false, false);
    int64_t extent[STENCIL_DIMS];
    field_extent(&f, extent);
    assert_int_equal(extent[0], 50); /* x is the last dimension */
    assert_int_equal(extent[1], 100);
    assert_true(cut_as(&f, 4, 3, 1, false));
    assert_int_equal(f.ranks[0], 4);
    assert_int_equal(f.ranks[1], 3);
    assert_int_equal(f.ranks[2], 1);
    struct block b = block_of(&f, 5); /* the third of the second row */
    assert_int_equal(b.at[0], 1);
    assert_int_equal(b.at[1], 2);
    assert_int_equal(b.first[0], 25);
}

static void test_field_of_fewer_cells_than_ranks_is_not_arranged(void **state)
{
    (void)state;
    struct field f = field_of(2, 2, 2, 1, false, false);
    assert_true(cut_as(&f, 2, 2, 1, false));
    assert_false(cut_as(&f, 1, 3, 1, false));
    assert_false(cut_as(&f, 3, 1, 1, false));
    f = field_of(3, 1, 1, 7, false, false);
    assert_true(cut_as(&f, 1, 1, 7, false));
    assert_false(cut_as(&f, 1, 1, 8, false));
    keel_grid flat = {.dims = 2, .size = {1, 1, 1, 1, 1, 1}, .block = {1, 1, 1, 1, 1, 1}};
    assert_false(field_arrange(&f, &flat));
}

/* Every cell of the field is in one block. */
static void test_blocks_have_each_cell_once(void **state)
{
    (void)state;
    struct field f = field_of(3, 7, 5, 11, false, true);
    for (int n = 2; n <= 49; n++) {
        const int ranks = n / 2;
        if (!cut_field(&f, ranks, n % 2))
            continue;
        unsigned char seen[7][5][11] = {0};
        for (int r = 0; r < ranks; r++) {
            struct block b = block_of(&f, r);
            assert_true(block_size(&b) <= field_largest_block(&f));
            for (int i = 0; i < b.cells[0]; i++)
                for (int j = 0; j < b.cells[1]; j++)
                    for (int k = 0; k < b.cells[2]; k++)
                        seen[b.first[0] + i][b.first[1] + j][b.first[2] + k]++;
        }
        for (size_t c = 0; c < sizeof seen; c++)
            assert_int_equal(((unsigned char *)seen)[c], 1);
    }
}

/* Who is above of one has it below; both mean the same cells of the field. */
static void test_neighbours_agree_on_what_they_give_and_take(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        struct field f = field_of(3, 9, 6, 5, kind & 1, kind & 2);
        assert_true(cut_as(&f, 3, 2, 2, kind & 4));
        for (int r = 0; r < 12; r++) {
            struct block b = block_of(&f, r);
            for (int d = 0; d < STENCIL_DIRECTIONS; d++) {
                int other = b.neighbour[d];
                if (other < 0)
                    continue;
                struct block o = block_of(&f, other);
                assert_int_equal(o.neighbour[direction_back(d)], r);
                struct box given = block_given(&b, d), taken = block_taken(&o, direction_back(d));
                assert_int_equal(box_cells(&given), box_cells(&taken));
                assert_true(box_cells(&given) <= field_largest_halo(&f));
                for (int dim = 0; dim < STENCIL_DIMS; dim++) {
                    int from = b.first[dim] + given.from[dim] - 1, to = o.first[dim] + taken.from[dim] - 1;
                    assert_int_equal((from - to) % f.cells[dim], 0);
                }
            }
        }
    }
}

static void test_directions_that_a_stencil_without_corners_does_not_need_are_none(void **state)
{
    (void)state;
    struct field f = field_of(2, 9, 9, 1, false, false);
    assert_true(cut_as(&f, 3, 3, 1, false));
    struct block middle = block_of(&f, 4), corner = block_of(&f, 0);
    int n = 0, m = 0;
    for (int d = 0; d < STENCIL_DIRECTIONS; d++) {
        n += middle.neighbour[d] >= 0;
        m += corner.neighbour[d] >= 0;
    }
    assert_int_equal(n, 4);
    assert_int_equal(m, 2);
    f.corners = true;
    middle = block_of(&f, 4);
    n = 0;
    for (int d = 0; d < STENCIL_DIRECTIONS; d++)
        n += middle.neighbour[d] >= 0;
    assert_int_equal(n, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_cells_are_rows_of_ranks),
        cmocka_unit_test(test_field_of_fewer_cells_than_ranks_is_not_arranged),
        cmocka_unit_test(test_blocks_have_each_cell_once),
        cmocka_unit_test(test_neighbours_agree_on_what_they_give_and_take),
        cmocka_unit_test(test_directions_that_a_stencil_without_corners_does_not_need_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
