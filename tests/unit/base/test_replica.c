/* Who is who in a job with replicas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/base/replica.h"

static void test_replica_map_by_default_has_set_after_set(void **state)
{
    (void)state;
    struct replica_map m;
    assert_true(replica_map_init(&m, 4, 3));
    assert_true(replica_map_is_used(&m));
    assert_int_equal(replica_map_natives(&m), 12);
    for (int native = 0; native < 12; native++) {
        struct replica r = replica_of(&m, native);
        assert_int_equal(r.rank, native % 4);
        assert_int_equal(r.set, native / 4);
        assert_int_equal(replica_native(&m, r.rank, r.set), native);
    }
    replica_map_fini(&m);
    assert_false(replica_map_is_used(&m));
}

static void test_replica_map_as_it_is_said_goes_there_and_back(void **state)
{
    (void)state;
    static const int native[] = {0, 2, 5, 3, 1, 4};
    struct replica_map m;
    assert_true(replica_map_init_from(&m, 3, 2, native));
    for (int set = 0; set < 2; set++)
        for (int rank = 0; rank < 3; rank++) {
            int at = replica_native(&m, rank, set);
            assert_int_equal(at, native[set * 3 + rank]);
            assert_int_equal(replica_of(&m, at).rank, rank);
            assert_int_equal(replica_of(&m, at).set, set);
        }
    replica_map_fini(&m);
}

static void test_replica_map_with_a_native_rank_twice_or_unknown_is_none(void **state)
{
    (void)state;
    static const int twice[] = {0, 1, 1, 3}, high[] = {0, 1, 2, 4}, low[] = {0, -1, 2, 3};
    struct replica_map m;
    assert_false(replica_map_init_from(&m, 2, 2, twice));
    assert_false(replica_map_init_from(&m, 2, 2, high));
    assert_false(replica_map_init_from(&m, 2, 2, low));
    assert_null(m.native);
}

static void test_replica_map_of_a_job_without_replicas_changes_nothing(void **state)
{
    (void)state;
    struct replica_map none = {0};
    char name[REPLICA_NAME];
    assert_false(replica_map_is_used(&none));
    assert_int_equal(replica_of(&none, 7).rank, 7);
    assert_int_equal(replica_of(&none, 7).set, 0);
    assert_int_equal(replica_native(&none, 7, 0), 7);
    assert_string_equal(replica_name(&none, 7, name), "rank 7");
}

static void test_replica_map_with_two_of_a_rank_on_a_node_names_the_rank(void **state)
{
    (void)state;
    struct replica_map m;
    int rank = -1;
    assert_true(replica_map_init(&m, 4, 2));
    assert_true(replica_map_is_apart(&m, (int[]){0, 0, 1, 1, 2, 2, 3, 3}, &rank));
    /* two sets on a node, but never of one rank */
    assert_true(replica_map_is_apart(&m, (int[]){0, 0, 1, 1, 1, 1, 0, 0}, &rank));
    assert_false(replica_map_is_apart(&m, (int[]){0, 0, 1, 1, 2, 2, 1, 3}, &rank));
    assert_int_equal(rank, 2);
    replica_map_fini(&m);
    /* each pair is looked at, not only neighbours */
    assert_true(replica_map_init(&m, 1, 3));
    assert_false(replica_map_is_apart(&m, (int[]){0, 1, 0}, &rank));
    assert_false(replica_map_is_apart(&m, (int[]){0, 1, 1}, &rank));
    assert_true(replica_map_is_apart(&m, (int[]){0, 1, 2}, &rank));
    replica_map_fini(&m);
}

static void test_replica_map_of_sets_that_are_not_alike_names_two_ranks(void **state)
{
    (void)state;
    struct replica_map m;
    int rank[2], set;
    assert_true(replica_map_init(&m, 4, 2));
    assert_true(replica_map_is_even(&m, (int[]){0, 0, 1, 1, 5, 5, 3, 3}, rank, &set));
    assert_false(replica_map_is_even(&m, (int[]){0, 0, 1, 1, 2, 3, 3, 3}, rank, &set));
    assert_int_equal(rank[0], 0);
    assert_int_equal(rank[1], 1);
    assert_int_equal(set, 1);
    assert_false(replica_map_is_even(&m, (int[]){0, 1, 2, 1, 3, 4, 5, 5}, rank, &set));
    assert_int_equal(rank[0], 1);
    assert_int_equal(rank[1], 3);
    replica_map_fini(&m);
}

static void test_replica_map_number_counts_the_nodes_of_each_set_from_0(void **state)
{
    (void)state;
    static const int expected[] = {0, 0, 1, 2};
    struct replica_map m;
    int number[4];
    assert_true(replica_map_init(&m, 4, 2));
    for (int set = 0; set < 2; set++) {
        replica_map_number(&m, set, (int[]){3, 3, 1, 2, 5, 5, 9, 7}, number);
        assert_memory_equal(number, expected, sizeof expected);
    }
    replica_map_fini(&m);
}

static void test_replica_name_says_rank_and_set(void **state)
{
    (void)state;
    struct replica_map m;
    char name[REPLICA_NAME];
    assert_true(replica_map_init(&m, 4, 2));
    assert_string_equal(replica_name(&m, 3, name), "rank 3 of set 0");
    assert_string_equal(replica_name(&m, 7, name), "rank 3 of set 1");
    replica_map_fini(&m);
}

static void test_replica_loss_says_who_and_how(void **state)
{
    (void)state;
    struct replica_map m;
    char said[128];
    assert_true(replica_map_init(&m, 4, 2));
    struct replica_loss loss = {.native = 7, .node = 5};
    assert_string_equal(replica_loss_said(&m, 1, &loss, said, sizeof said), "set 1 has lost rank 3 (node 5 died)");
    loss.signal = 9;
    assert_string_equal(replica_loss_said(&m, 1, &loss, said, sizeof said),
                        "set 1 has lost rank 3 (it was killed by SIGKILL)");
    loss.code = 2;
    assert_string_equal(replica_loss_said(&m, 1, &loss, said, sizeof said),
                        "set 1 has lost rank 3 (it ended with exit code 2)");
    replica_map_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replica_map_by_default_has_set_after_set),
        cmocka_unit_test(test_replica_map_as_it_is_said_goes_there_and_back),
        cmocka_unit_test(test_replica_map_with_a_native_rank_twice_or_unknown_is_none),
        cmocka_unit_test(test_replica_map_of_a_job_without_replicas_changes_nothing),
        cmocka_unit_test(test_replica_map_with_two_of_a_rank_on_a_node_names_the_rank),
        cmocka_unit_test(test_replica_map_of_sets_that_are_not_alike_names_two_ranks),
        cmocka_unit_test(test_replica_map_number_counts_the_nodes_of_each_set_from_0),
        cmocka_unit_test(test_replica_name_says_rank_and_set),
        cmocka_unit_test(test_replica_loss_says_who_and_how),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
