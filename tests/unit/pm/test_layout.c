#include "pm/wire/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_layout(int ranks, int nodes, int ppn, const char *digits)
{
    int rank_node[32];
    assert_int_equal(layout_ranks(ranks, nodes, ppn, rank_node), digits != NULL);
    for (int r = 0; digits && r < ranks; r++)
        assert_int_equal(rank_node[r], digits[r] - '0');
}

static void test_layout_without_ppn_is_even(void **state)
{
    (void)state;
    expect_layout(7, 4, 0, "0011223");
    expect_layout(4, 4, 0, "0123");
    expect_layout(5, 4, 0, "00123");
    expect_layout(1, 1, 0, "0");
    expect_layout(3, 4, 0, NULL);
}

static void test_layout_with_ppn_fills_nodes(void **state)
{
    (void)state;
    expect_layout(7, 3, 3, "0001112");
    expect_layout(6, 3, 2, "001122");
    expect_layout(7, 4, 3, NULL); /* node 3 would stay empty */
    expect_layout(7, 2, 3, NULL); /* does not fit */
}

static void expect_mapping(int ranks, int nodes, int ppn, const char *text)
{
    int rank_node[32];
    char out[128], tiny[8];
    assert_true(layout_ranks(ranks, nodes, ppn, rank_node));
    assert_int_equal(layout_pmi_mapping(rank_node, ranks, out, sizeof out), strlen(text));
    assert_string_equal(out, text);
    assert_int_equal(layout_pmi_mapping(rank_node, ranks, tiny, sizeof tiny), strlen(text));
    assert_memory_equal(tiny, text, sizeof tiny - 1);
}

static void test_layout_pmi_mapping_names_every_rank(void **state)
{
    (void)state;
    expect_mapping(8, 4, 2, "(vector,(0,4,2))");
    expect_mapping(7, 4, 0, "(vector,(0,3,2),(3,1,1))");
    expect_mapping(5, 4, 0, "(vector,(0,1,2),(1,3,1))");
    expect_mapping(1, 1, 0, "(vector,(0,1,1))");
}

static void test_layout_max_per_node_is_the_largest_block(void **state)
{
    (void)state;
    int rank_node[8];
    layout_ranks(7, 4, 0, rank_node);
    assert_int_equal(layout_max_per_node(rank_node, 7), 2);
    layout_ranks(7, 3, 3, rank_node);
    assert_int_equal(layout_max_per_node(rank_node, 7), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_without_ppn_is_even),
        cmocka_unit_test(test_layout_with_ppn_fills_nodes),
        cmocka_unit_test(test_layout_pmi_mapping_names_every_rank),
        cmocka_unit_test(test_layout_max_per_node_is_the_largest_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
