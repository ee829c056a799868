/* Which processes that keelrun did not start make a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/client/job/bootstrap.h"

enum { NAME = 8, MOST = 8 };

static void assert_places(const char (*machines)[NAME], int n, int wanted, int nodes, const int *expected)
{
    int rank_node[MOST];
    assert_int_equal(bootstrap_place(machines[0], NAME, n, wanted, rank_node), nodes);
    for (int r = 0; r < n && nodes > 0; r++)
        assert_int_equal(rank_node[r], expected[r]);
}

static void test_join_machines_are_nodes_in_the_order_of_their_first_ranks(void **state)
{
    (void)state;
    assert_places((const char[][NAME]){"a", "a", "b", "b"}, 4, 0, 2, (int[]){0, 0, 1, 1});
    assert_places((const char[][NAME]){"b", "a", "c", "a", "b"}, 5, 0, 3, (int[]){0, 1, 2, 1, 0});
    assert_places((const char[][NAME]){"a"}, 1, 0, 1, (int[]){0});
}

static void test_join_one_machine_is_cut_into_blocks(void **state)
{
    (void)state;
    const char all[][NAME] = {"a", "a", "a", "a", "a"};
    assert_places(all, 5, 1, 1, (int[]){0, 0, 0, 0, 0});
    assert_places(all, 5, 2, 2, (int[]){0, 0, 0, 1, 1});
    assert_places(all, 4, 4, 4, (int[]){0, 1, 2, 3});
    assert_places(all, 3, 7, 3, (int[]){0, 1, 2});
}

static void test_join_several_machines_are_not_cut(void **state)
{
    (void)state;
    assert_places((const char[][NAME]){"a", "b"}, 2, 2, -1, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_machines_are_nodes_in_the_order_of_their_first_ranks),
        cmocka_unit_test(test_join_one_machine_is_cut_into_blocks),
        cmocka_unit_test(test_join_several_machines_are_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
