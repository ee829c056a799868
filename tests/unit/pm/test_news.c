/* What keelrun tells about deaths. */
#include "pm/run/news.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 3, SPARES = 1, RANKS = 6 };
static const uint64_t S = 1000000000;
static const int rank_node[RANKS] = {0, 0, 1, 1, 2, 2};

static char told[2048];

static void say(void *user, const char *line)
{
    (void)user;
    strcat(told, line);
    strcat(told, "\n");
}

static struct news started_with_room(char **names, int room)
{
    struct news n;
    told[0] = '\0';
    news_init(&n, NODES, SPARES, room, RANKS, rank_node, names, say, NULL);
    news_keels(&n);
    news_started(&n, 5 * S);
    return n;
}

static struct news started(char **names)
{
    return started_with_room(names, 0);
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): initialisers */
#define VIEW(n, epoch, t, ranks, alive_) news_view(n, epoch, (const int[])ranks, (const bool[])alive_, t)
#define SET(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static void test_news_job_without_mishap_tells_nothing(void **state)
{
    (void)state;
    struct news n = started(NULL);
    for (int r = 0; r < RANKS; r++)
        news_ended(&n, rank_node[r], r, 100 + r, 0);
    news_over(&n, 0);
    assert_string_equal(told, "");
    news_fini(&n);
}

static void test_news_a_method_that_has_no_way_to_a_node_that_is_free_is_the_reason(void **state)
{
    (void)state;
    struct news n = started(NULL);
    n.method = "2D";
    n.free = 1;
    VIEW(&n, 1, 6 * S, SET(-1, -1, 1, 1, 2, 2), SET(false, true, true, true));
    n.free = 2;
    VIEW(&n, 2, 7 * S, SET(-1, -1, 3, -1, 2, 2), SET(false, false, true, true));
    n.free = 0;
    VIEW(&n, 3, 8 * S, SET(-1, -1, 3, -1, -1, -1), SET(false, false, false, true));
    assert_string_equal(told, "node 0 died 1.0 s after the start; the job goes on without ranks 0 and 1: "
                              "--substitution 2D has no way to the node that is free\n"
                              "node 1 died 2.0 s after the start; the job goes on without rank 3: --substitution 2D "
                              "has no way to any of the 2 nodes that are free; rank 2 continues on node 3\n"
                              "node 2 died 3.0 s after the start; the job goes on without ranks 4 and 5\n");
    told[0] = '\0';
    news_fini(&n);
}

static void test_news_node_that_cannot_start_a_rank_is_told_of_at_once_and_where_it_continues_by_the_view(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_refused(&n, 3, -1, "no descriptors");
    news_refused(&n, 1, 2, "no descriptors");
    assert_string_equal(told, "node 3 has no process ready for a rank: no descriptors\n"
                              "node 1 could not start rank 2: no descriptors\n");
    told[0] = '\0';
    VIEW(&n, 1, 6 * S, SET(0, 0, 1, 1, 2, 2), SET(true, true, true, true)); /* of something else */
    assert_string_equal(told, "");
    VIEW(&n, 2, 6 * S, SET(0, 0, 3, 1, 2, 2), SET(true, true, true, true));
    assert_string_equal(told, "rank 2 continues on node 3\n");
    told[0] = '\0';
    VIEW(&n, 3, 6 * S, SET(0, 0, 3, -1, 2, 2), SET(true, true, true, true)); /* another node said that first */
    news_refused(&n, 1, 3, "no memory");
    news_refused(&n, 3, 2, "no memory");
    VIEW(&n, 4, 6 * S, SET(0, 0, -1, -1, 2, 2), SET(true, true, true, true));
    assert_string_equal(told, "node 1 could not start rank 3: no memory; the job goes on without rank 3\n"
                              "node 3 could not start rank 2: no memory\n"
                              "the job goes on without rank 2\n");
    told[0] = '\0';
    news_over(&n, 0);
    assert_string_equal(told, "the job ended with exit code 0 after the loss of 2 ranks\n");
    news_fini(&n);
}

static void test_news_rank_that_crashed_for_good_is_remembered(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 3, 76, SIGKILL);
    VIEW(&n, 1, 6 * S, SET(0, 0, 1, -1, 2, 2), SET(true, true, true, true));
    assert_int_equal(n.fault.signal, 0);
    news_ended(&n, 1, 2, 77, SIGSEGV);
    news_begun(&n, 1, 2);
    assert_int_equal(n.fault.signal, 0);
    news_ended(&n, 1, 2, 78, SIGBUS);
    VIEW(&n, 2, 6 * S, SET(0, 0, -1, -1, 2, 2), SET(true, true, true, true));
    news_ended(&n, 0, 0, 79, SIGABRT);
    VIEW(&n, 3, 6 * S, SET(-1, 0, -1, -1, 2, 2), SET(true, true, true, true));
    assert_int_equal(n.fault.rank, 2);
    assert_int_equal(n.fault.signal, SIGBUS);
    assert_true(n.fault.again);
    news_fini(&n);
}

static void test_news_killed_rank_begins_again_on_its_node(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 2, 77, SIGSEGV);
    assert_string_equal(told, "");
    news_begun(&n, 1, 2);
    assert_string_equal(told, "rank 2 (pid 77, node 1) was killed by SIGSEGV; started again, 1 of 3\n");
    news_over(&n, 0);
    assert_non_null(strstr(told, "\nthe job ended with exit code 0 after 1 restart of a rank\n"));
    news_fini(&n);
}

/* What its script had said of it before does not count. */
static void test_news_hidden_death_is_told_and_is_a_fault(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 2, 70, 0);
    VIEW(&n, 2, 5 * S, SET(0, 0, -1, 1, 2, 2), SET(true, true, true, true));
    assert_string_equal(told, "");
    news_ended(&n, 1, 2, 77, SIGNAL_HIDDEN);
    assert_string_equal(
        told, "rank 2 (pid 77, node 1) ended without keel_finalize inside its script; the job goes on without it\n");
    assert_int_equal(n.fault.rank, 2);
    assert_int_equal(n.fault.signal, SIGNAL_HIDDEN);
    news_fini(&n);
}

static void test_news_killed_rank_is_left_out_by_a_view(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 2, 77, SIGKILL);
    for (int repeated = 0; repeated < 3; repeated++) /* every agent reports it */
        VIEW(&n, 1, 6 * S, SET(0, 0, -1, 1, 2, 2), SET(true, true, true, true));
    assert_string_equal(told, "rank 2 (pid 77, node 1) was killed by SIGKILL; the job goes on without it\n");
    news_fini(&n);
}

static void test_news_view_that_comes_before_the_death_it_is_about(void **state)
{
    (void)state;
    struct news n = started(NULL);
    VIEW(&n, 1, 6 * S, SET(0, 0, -1, 1, 2, 2), SET(true, true, true, true));
    assert_string_equal(told, "");
    news_ended(&n, 1, 2, 77, SIGKILL);
    assert_string_equal(told, "rank 2 (pid 77, node 1) was killed by SIGKILL; the job goes on without it\n");
    news_fini(&n);
}

static void test_news_node_of_a_program_that_has_not_shown_what_it_is(void **state)
{
    (void)state;
    struct news n = started(NULL);
    n.keels = false;
    VIEW(&n, 1, 6 * S, SET(0, 0, -1, 3, 2, 2), SET(true, false, true, true));
    news_keels(&n);
    VIEW(&n, 2, 7 * S, SET(0, 0, -1, 3, -1, -1), SET(true, false, false, true));
    assert_string_equal(told,
                        "node 1 died 1.0 s after the start; the job goes on without rank 2; rank 3 continues on node 3 "
                        "if the program calls keel_init\n"
                        "node 2 died 2.0 s after the start; the job goes on without ranks 4 and 5\n");
    news_fini(&n);
}

static void test_news_node_dies_and_its_ranks_continue(void **state)
{
    (void)state;
    char *names[] = {"a", "b", "c", "d"};
    struct news n = started(names);
    VIEW(&n, 1, 17 * S + S / 3, SET(0, 0, 1, 1, 3, 3), SET(true, true, false, true));
    assert_string_equal(told, "node 2 (c) died 12.3 s after the start; ranks 4 and 5 continue on node 3 (d)\n");
    news_begun(&n, 3, 4);
    news_begun(&n, 3, 5);
    news_over(&n, 0);
    assert_string_equal(strchr(told, '\n') + 1, "the job ended with exit code 0 after the loss of 1 node\n");
    news_fini(&n);
}

static void test_news_node_dies_and_the_job_goes_on_without(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 2, 4, 99, 0);       /* had finished: is not lost */
    news_ended(&n, 2, 5, 98, SIGKILL); /* goes with its node */
    VIEW(&n, 4, 6 * S, SET(0, 0, 1, 1, -1, -1), SET(true, true, false, true));
    assert_string_equal(told, "node 2 died 1.0 s after the start; the job goes on without rank 5\n");
    news_over(&n, 3);
    assert_string_equal(strchr(told, '\n') + 1,
                        "the job ended with exit code 3 after the loss of 1 node, the loss of 1 rank\n");
    news_fini(&n);
}

static void test_news_spare_dies(void **state)
{
    (void)state;
    struct news n = started(NULL);
    VIEW(&n, 1, 6 * S, SET(0, 0, 1, 1, 2, 2), SET(true, true, true, false));
    assert_string_equal(told, "node 3 died 1.0 s after the start; it was a spare\n");
    news_fini(&n);
}

static void test_news_node_comes_back_as_another_one_and_dies_as_that(void **state)
{
    (void)state;
    char *names[] = {"a", "b", "c", "d", "c"};
    struct news n = started_with_room(names, 1);
    VIEW(&n, 1, 6 * S, SET(0, 0, 1, 1, 3, 3), SET(true, true, false, true, false));
    news_returned(&n, 2, 4, 31000);
    VIEW(&n, 2, 37 * S, SET(0, 0, 1, 1, 3, 3), SET(true, true, false, true, true));
    VIEW(&n, 3, 40 * S, SET(0, 0, 1, 1, 4, 4), SET(true, true, false, false, true));
    VIEW(&n, 4, 41 * S, SET(0, 0, 1, 1, -1, -1), SET(true, true, false, false, false));
    news_over(&n, 0);
    assert_string_equal(
        told, "node 2 (c) died 1.0 s after the start; ranks 4 and 5 continue on node 3 (d)\n"
              "node 2 (c) was declared dead 31 s ago, lives, and comes back as node 4, a spare\n"
              "node 3 (d) died 35.0 s after the start; ranks 4 and 5 continue on node 4 (c)\n"
              "node 4 (c) died 36.0 s after the start; the job goes on without ranks 4 and 5\n"
              "the job ended with exit code 0 after the loss of 3 nodes (1 came back), the loss of 2 ranks\n");
    news_fini(&n);
}

/* Node 0 dies, its ranks go to node 1, and those of node 1, which lives, to node 3: their processes end by themselves.
 * What is said of an end by node 1 may come before the view or after it. */
static void test_news_node_to_which_live_ranks_have_moved_dies(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 2, 77, 0);
    VIEW(&n, 1, 6 * S, SET(1, 1, 3, 3, 2, 2), SET(false, true, true, true));
    news_ended(&n, 1, 3, 78, 0);
    news_begun(&n, 3, 2);
    VIEW(&n, 2, 7 * S, SET(1, 1, -1, -1, 2, 2), SET(false, true, true, false));
    news_over(&n, 0);
    assert_string_equal(told, "node 0 died 1.0 s after the start; ranks 0 and 1 continue on node 1\n"
                              "node 3 died 2.0 s after the start; the job goes on without ranks 2 and 3\n"
                              "the job ended with exit code 0 after the loss of 2 nodes, the loss of 2 ranks\n");
    news_fini(&n);
}

static void test_news_rank_is_killed_and_moved(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 2, 77, SIGKILL);
    VIEW(&n, 1, 6 * S, SET(0, 0, 3, 1, 2, 2), SET(true, true, true, true));
    news_over(&n, 0);
    assert_string_equal(told, "rank 2 (pid 77, node 1) was killed by SIGKILL; it continues on node 3\n");
    news_fini(&n);
}

/* The view that moves it comes by another node before its end; and of a node that is dead by then, told with that. */
static void test_news_rank_is_killed_and_had_moved(void **state)
{
    (void)state;
    struct news n = started(NULL);
    VIEW(&n, 1, 6 * S, SET(0, 0, 3, 1, 2, 2), SET(true, true, true, true));
    news_ended(&n, 1, 2, 77, SIGSEGV);
    assert_string_equal(told, "rank 2 (pid 77, node 1) was killed by SIGSEGV; it continues on node 3\n");
    VIEW(&n, 2, 6 * S, SET(0, 0, 3, 3, 2, 2), SET(true, false, true, true));
    news_ended(&n, 1, 3, 78, SIGKILL);
    news_over(&n, 0);
    assert_string_equal(told, "rank 2 (pid 77, node 1) was killed by SIGSEGV; it continues on node 3\n"
                              "node 1 died 1.0 s after the start; rank 3 continues on node 3\n"
                              "the job ended with exit code 0 after the loss of 1 node\n");
    news_fini(&n);
}

/* A rank that has ended for good stays where it was. */
static void test_news_node_dies_whose_ranks_have_ended(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, 2, 77, 0);
    news_ended(&n, 1, 3, 78, 0);
    VIEW(&n, 1, 6 * S, SET(0, 0, -1, -1, 2, 2), SET(true, false, true, true));
    assert_string_equal(told, "node 1 died 1.0 s after the start; no rank ran there\n");
    news_fini(&n);
}

static void test_news_numbers_out_of_range_are_left_alone(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_ended(&n, 1, RANKS, 7, SIGSEGV);
    news_ended(&n, NODES + SPARES, 1, 7, SIGSEGV);
    news_ended(&n, -1, -1, 7, SIGSEGV);
    news_begun(&n, 1, RANKS);
    news_over(&n, 0);
    assert_string_equal(told, "");
    news_fini(&n);
}

/* Three sets of two ranks, each on a node: a rank's death is its set's. */
static void test_news_sets_that_are_retired_are_told_once(void **state)
{
    (void)state;
    struct replica_map map;
    struct replica_loss loss[REPLICAS_MAX] = {{.retired = false}};
    struct news n = started(NULL);
    assert_true(replica_map_init(&map, 2, 3));
    n.replicas = &map;
    news_ended(&n, 1, 3, 77, SIGKILL);
    VIEW(&n, 1, 6 * S, SET(0, 0, 1, -1, 2, 2), SET(true, true, true, true));
    loss[1] = (struct replica_loss){.retired = true, .native = 3, .node = 1, .signal = SIGKILL};
    news_sets(&n, loss);
    news_sets(&n, loss);
    news_ended(&n, 1, 2, 78, SIGKILL); /* by its agent */
    assert_string_equal(told, "set 1 has lost rank 1 (it was killed by SIGKILL) and is retired; sets 0 and 2 go on\n");
    told[0] = '\0';
    VIEW(&n, 2, 65 * S / 10, SET(-1, -1, -1, -1, 2, 2), SET(false, true, true, true));
    loss[0] = (struct replica_loss){.retired = true, .native = 0, .node = 0};
    news_sets(&n, loss);
    assert_string_equal(told, "node 0 died 1.5 s after the start\n"
                              "set 0 has lost rank 0 (node 0 died) and is retired; set 2 goes on\n");
    told[0] = '\0';
    loss[1] = (struct replica_loss){.retired = false};
    news_sets(&n, loss);
    news_sets(&n, loss);
    assert_string_equal(told, "set 1 has begun anew and is whole again\n");
    told[0] = '\0';
    loss[1] = (struct replica_loss){.retired = true, .native = 2, .node = 1, .signal = SIGKILL};
    news_sets(&n, loss);
    assert_string_equal(told, "set 1 has lost rank 0 (it was killed by SIGKILL) and is retired; set 2 goes on\n");
    told[0] = '\0';
    loss[2] = (struct replica_loss){.retired = true, .native = 5, .code = 3};
    news_sets(&n, loss); /* the job's end says it */
    news_over(&n, 3);
    assert_string_equal(told, "the job ended with exit code 3 after the loss of 1 node, the loss of 4 sets\n");
    assert_int_equal(n.fault.signal, 0);
    replica_map_fini(&map);
    news_fini(&n);
}

static struct news served_in_both_sets(struct replica_map *map, int of_set_0, int of_set_1)
{
    struct news n = started(NULL);
    assert_true(replica_map_init(map, 3, 2));
    n.replicas = map;
    news_partner(&n, &(struct replica_loss){.native = of_set_0, .signal = SIGKILL}, 1);
    news_partner(&n, &(struct replica_loss){.native = 3 + of_set_1, .signal = SIGKILL}, 0);
    told[0] = '\0';
    return n;
}

/* Sets that end because nobody is left of a rank have not met what replicas cannot do. */
static void test_news_sets_that_went_on_without_somebody_end_with_the_reason(void **state)
{
    (void)state;
    struct replica_map map;
    struct replica_loss loss[REPLICAS_MAX] = {
        {.retired = true, .native = 1, .signal = SIGKILL},
        {.retired = true, .native = 4, .signal = SIGKILL},
    };
    struct news n = served_in_both_sets(&map, 1, 1);
    news_sets(&n, loss);
    assert_string_equal(told, "");
    replica_map_fini(&map);
    news_fini(&n);
    n = served_in_both_sets(&map, 1, 0);
    loss[1].native = 3;
    news_sets(&n, loss);
    assert_string_equal(told, "the program does what no replica can do for another (docs/replicas.md), and rank 1 of "
                              "set 0 is dead\n"
                              "the program does what no replica can do for another (docs/replicas.md), and rank 0 of "
                              "set 1 is dead\n");
    replica_map_fini(&map);
    news_fini(&n);
}

static void test_news_what_auto_chose_is_told_with_its_prices(void **state)
{
    (void)state;
    struct news n = started(NULL);
    news_auto(&n, 2, "1D", 3, "least time", "0D 0.1+2, 1D 0.4+0");
    news_auto(&n, 1, "balance", 1, "nobody knows", "");
    news_auto(&n, -1, "stay", 0, "asked", "stay 0+0.1");
    news_auto(&n, -1, "hybrid(all)", 2, "asked", "stay 0+9, hybrid(all) 0.3+0");
    assert_string_equal(told, "auto: slot 2 goes by 1D, 3 moves: least time (seconds: 0D 0.1+2, 1D 0.4+0)\n"
                              "auto: slot 1 goes by balance, 1 move: nobody knows\n"
                              "auto: 2 slots that live go elsewhere, as by hybrid(all): asked (seconds: stay 0+9, "
                              "hybrid(all) 0.3+0)\n");
    news_fini(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_news_sets_that_are_retired_are_told_once),
        cmocka_unit_test(test_news_sets_that_went_on_without_somebody_end_with_the_reason),
        cmocka_unit_test(test_news_job_without_mishap_tells_nothing),
        cmocka_unit_test(test_news_a_method_that_has_no_way_to_a_node_that_is_free_is_the_reason),
        cmocka_unit_test(test_news_node_that_cannot_start_a_rank_is_told_of_at_once_and_where_it_continues_by_the_view),
        cmocka_unit_test(test_news_rank_that_crashed_for_good_is_remembered),
        cmocka_unit_test(test_news_killed_rank_begins_again_on_its_node),
        cmocka_unit_test(test_news_hidden_death_is_told_and_is_a_fault),
        cmocka_unit_test(test_news_killed_rank_is_left_out_by_a_view),
        cmocka_unit_test(test_news_view_that_comes_before_the_death_it_is_about),
        cmocka_unit_test(test_news_node_of_a_program_that_has_not_shown_what_it_is),
        cmocka_unit_test(test_news_node_dies_and_its_ranks_continue),
        cmocka_unit_test(test_news_node_dies_and_the_job_goes_on_without),
        cmocka_unit_test(test_news_spare_dies),
        cmocka_unit_test(test_news_node_comes_back_as_another_one_and_dies_as_that),
        cmocka_unit_test(test_news_node_to_which_live_ranks_have_moved_dies),
        cmocka_unit_test(test_news_rank_is_killed_and_moved),
        cmocka_unit_test(test_news_rank_is_killed_and_had_moved),
        cmocka_unit_test(test_news_node_dies_whose_ranks_have_ended),
        cmocka_unit_test(test_news_numbers_out_of_range_are_left_alone),
        cmocka_unit_test(test_news_what_auto_chose_is_told_with_its_prices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
