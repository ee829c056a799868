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

static void test_hosts_list_and_file_are_read(void **state)
{
    (void)state;
    struct host_list h = {0};
    assert_null(host_list_parse(&h, "a,b-1.example,10.0.0.7"));
    assert_null(host_list_parse_file(&h, "# cluster\n  n1:4 \n\nn2 # spare\nn3"));
    assert_int_equal(h.count, 6);
    assert_string_equal(h.names[1], "b-1.example");
    assert_string_equal(h.names[3], "n1");
    assert_string_equal(h.names[4], "n2");
    assert_string_equal(h.names[5], "n3");
    host_list_free(&h);
}

static void test_hosts_bad_names_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a,", ",a", "a,,b", "-oProxyCommand=x", "a b", "a;b", "$(x)"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct host_list h = {0};
        assert_non_null(host_list_parse(&h, bad[i]));
        host_list_free(&h);
    }
    struct host_list h = {0};
    assert_non_null(host_list_parse_file(&h, "# nothing\n"));
    assert_non_null(host_list_parse_file(&h, "-x\n"));
    assert_non_null(host_list_parse_file(&h, ":4\n"));
    host_list_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_without_ppn_is_even),
        cmocka_unit_test(test_layout_with_ppn_fills_nodes),
        cmocka_unit_test(test_layout_pmi_mapping_names_every_rank),
        cmocka_unit_test(test_layout_max_per_node_is_the_largest_block),
        cmocka_unit_test(test_hosts_list_and_file_are_read),
        cmocka_unit_test(test_hosts_bad_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
