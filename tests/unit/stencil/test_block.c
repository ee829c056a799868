#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "apps/stencil/block.h"

static struct field field_of(int dims, int i, int j, int k, bool periodic, bool corners)
{
    return (struct field){.dims = dims, .cells = {i, j, k}, .periodic = periodic, .corners = corners};
}

static void test_field_is_cut_into_blocks_as_square_as_can_be(void **state)
{
    (void)state;
    struct field f = field_of(2, 100, 100, 1, false, false);
    assert_true(field_arrange(&f, 12));
    assert_int_equal(f.ranks[0] * f.ranks[1], 12);
    assert_true(f.ranks[0] + f.ranks[1] == 7);
    f = field_of(2, 10, 1000, 1, false, false);
    assert_true(field_arrange(&f, 12));
    assert_int_equal(f.ranks[1], 12); /* the long side */
    f = field_of(3, 64, 64, 64, false, false);
    assert_true(field_arrange(&f, 8));
    assert_int_equal(f.ranks[0], 2);
    assert_int_equal(f.ranks[1], 2);
    assert_int_equal(f.ranks[2], 2);
}

static void test_field_of_fewer_cells_than_ranks_is_not_cut(void **state)
{
    (void)state;
    struct field f = field_of(2, 2, 2, 1, false, false);
    assert_true(field_arrange(&f, 4));
    assert_false(field_arrange(&f, 5));
    assert_false(field_arrange(&f, 3)); /* no side of three cells */
    f = field_of(3, 1, 1, 7, false, false);
    assert_true(field_arrange(&f, 7));
    assert_false(field_arrange(&f, 8));
}

/* Every cell of the field is in one block. */
static void test_blocks_have_each_cell_once(void **state)
{
    (void)state;
    struct field f = field_of(3, 7, 5, 11, false, true);
    for (int ranks = 1; ranks <= 24; ranks++) {
        if (!field_arrange(&f, ranks))
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
    for (int kind = 0; kind < 4; kind++) {
        struct field f = field_of(3, 9, 6, 5, kind & 1, kind & 2);
        assert_true(field_arrange(&f, 12));
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
    assert_true(field_arrange(&f, 9));
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
        cmocka_unit_test(test_field_is_cut_into_blocks_as_square_as_can_be),
        cmocka_unit_test(test_field_of_fewer_cells_than_ranks_is_not_cut),
        cmocka_unit_test(test_blocks_have_each_cell_once),
        cmocka_unit_test(test_neighbours_agree_on_what_they_give_and_take),
        cmocka_unit_test(test_directions_that_a_stencil_without_corners_does_not_need_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
