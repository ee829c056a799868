/* When a set begins anew, where, and when it is whole again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "retired.h"
#include "runtime/view/view.h"
#include "runtime/wire/control.h"

enum { RANKS = 3, SETS = 2, SPARES = 2 }; /* each rank on a node of its own */

static struct replica_map map;
static struct view v;

static int open_sets(void **state)
{
    int rank_node[RANKS * SETS];
    (void)state;
    for (int r = 0; r < RANKS * SETS; r++)
        rank_node[r] = r;
    assert_true(replica_map_init(&map, RANKS, SETS));
    assert_true(view_init(&v, VIEW_DEGRADE, RANKS * SETS, SPARES, 0, RANKS * SETS, rank_node, NULL));
    view_replicate(&v, &map);
    return 0;
}

static int close_sets(void **state)
{
    (void)state;
    view_fini(&v);
    replica_map_fini(&map);
    return 0;
}

static void apply(const struct view_event *events, int n)
{
    view_apply(&v, v.epoch + 1, events, n);
}
static void one(uint32_t type, uint32_t a, uint32_t b)
{
    struct view_event e = {.type = type, .a = a, .b = b, .c = type == VIEW_RANK_DEAD ? SIGKILL : 0};
    apply(&e, 1);
}
static void die(int native)
{
    one(VIEW_RANK_DEAD, (uint32_t)native, v.rank[native].incarnation);
}
static void end(int native)
{
    one(VIEW_RANK_DONE, (uint32_t)native, v.rank[native].incarnation);
}
static void lose(int set)
{
    for (int r = 0; r < RANKS; r++)
        die(replica_native(&map, r, set));
}
static void begin(uint32_t set)
{
    one(VIEW_SET_BEGINS, set, view_set_attempt(&v, (int)set));
}
static void join(uint32_t set)
{
    one(VIEW_SET_JOINS, set, view_set_attempt(&v, (int)set));
}

static void test_set_begins_where_it_was_and_joins(void **state)
{
    (void)state;
    lose(1);
    begin(1);
    assert_true(view_set_is_coming(&v, 1));
    assert_false(view_set_is_whole(&v, 1));
    assert_int_equal(view_set_attempt(&v, 1), 1);
    assert_false(replica_is_over(&v.loss[1], v.rank[RANKS].incarnation));
    assert_true(replica_is_over(&v.loss[1], v.rank[RANKS].incarnation - 1)); /* what was left of it */
    for (int n = RANKS; n < 2 * RANKS; n++) {
        assert_int_equal(v.rank[n].state, RANK_RUNNING);
        assert_int_equal(v.rank[n].node, n);
        assert_int_equal(v.rank[n].incarnation, 1);
        assert_int_equal(v.rank[n].joined, v.epoch);
    }
    assert_true(v.spare_free[RANKS * SETS]);
    join(1);
    assert_true(view_set_is_whole(&v, 1));
    assert_false(view_set_is_coming(&v, 1));
    assert_int_equal(sets_retired(&v), 0);
    lose(0); /* and it carries the job */
    assert_false(v.stopped);
    assert_int_equal(sets_retired(&v), 1);
    begin(0);
    join(0);
    assert_int_equal(sets_retired(&v), 0);
}

static void test_set_begins_on_a_spare_where_a_node_died(void **state)
{
    (void)state;
    one(VIEW_NODE_DEAD, 4, 0);
    die(3);
    die(5);
    begin(1);
    assert_true(view_set_is_coming(&v, 1));
    assert_int_equal(v.rank[3].node, 3);
    assert_int_equal(v.rank[4].node, RANKS * SETS);
    assert_int_equal(view_slot_node(&v, 4), RANKS * SETS);
    assert_int_equal(v.rank[5].node, 5);
    assert_false(v.spare_free[RANKS * SETS]);
    assert_true(v.spare_free[RANKS * SETS + 1]);
}

/* The memory of who died is somewhere else until it has been filled where the ranks are. */
static void test_set_joins_when_its_memory_is_at_home(void **state)
{
    (void)state;
    one(VIEW_NODE_DEAD, 4, 0);
    die(3);
    die(5);
    begin(1);
    assert_int_equal(v.began[4], RANKS * SETS);
    assert_false(view_set_is_at_home(&v, 1));
    join(1);
    assert_true(view_set_is_coming(&v, 1));
    for (uint32_t i = 0; i < (uint32_t)(v.nodes * CLASSES); i++)
        apply(&(struct view_event){VIEW_RESTORED, i, 0, 0, v.copyset[i].generation}, 1);
    assert_true(view_set_is_at_home(&v, 1));
    assert_int_equal(v.joined, 0);
    join(1);
    assert_true(view_set_is_whole(&v, 1));
    assert_int_equal(v.joined, v.epoch);
}

static void test_set_without_spares_does_not_begin(void **state)
{
    (void)state;
    for (int n = RANKS; n < 2 * RANKS; n++)
        one(VIEW_NODE_DEAD, (uint32_t)n, 0);
    begin(1);
    assert_false(view_set_is_coming(&v, 1));
    assert_int_equal(view_set_attempt(&v, 1), 0);
    assert_true(v.spare_free[RANKS * SETS] && v.spare_free[RANKS * SETS + 1]); /* none is taken for nothing */
}

static void test_set_does_not_begin_before_its_last_process_has_ended(void **state)
{
    (void)state;
    begin(1);
    assert_false(view_set_is_coming(&v, 1));
    die(3);
    die(4);
    begin(1);
    assert_false(view_set_is_coming(&v, 1));
    end(5);
    begin(1);
    assert_true(view_set_is_coming(&v, 1));
}

static void test_set_does_not_begin_when_the_others_end(void **state)
{
    (void)state;
    lose(1);
    one(VIEW_RANK_LEFT, 1, 0);
    begin(1);
    assert_false(view_set_is_coming(&v, 1));
}

static void test_set_of_mpi_processes_does_not_begin(void **state)
{
    (void)state;
    one(VIEW_NEEDS, NEEDS_ALL, 0);
    assert_true(v.needs_all);
    lose(1);
    begin(1);
    assert_false(view_set_is_coming(&v, 1));
}

static void test_set_of_a_program_that_cannot_be_taken_over_stays_lost(void **state)
{
    (void)state;
    one(VIEW_NEEDS, NEEDS_KEPT, 0);
    assert_true(v.keeps && !v.stays);
    lose(1);
    assert_true(view_set_may_begin(&v, 1));
    assert_false(view_set_may_begin(&v, 0));
    begin(1);
    assert_false(view_set_may_begin(&v, 1));
    const struct view_event both[] = {{.type = VIEW_SET_JOINS, .a = 1, .b = 1}, {.type = VIEW_NEEDS, .a = NEEDS_ITS}};
    const struct view_event other[] = {both[1], both[0]};
    apply(other, 2); /* what was said first counts */
    assert_false(view_set_is_whole(&v, 1));
    assert_false(view_set_is_coming(&v, 1)); /* its processes end */
    lose(1);
    begin(1);
    assert_false(view_set_is_coming(&v, 1));
    assert_int_equal(v.rank[RANKS].state, RANK_DEAD); /* nor does a process begin */
}

static void test_set_that_has_joined_stays_whole(void **state)
{
    (void)state;
    lose(1);
    begin(1);
    join(1);
    one(VIEW_NEEDS, NEEDS_ITS, 0);
    assert_true(view_set_is_whole(&v, 1));
}

static void test_events_of_another_attempt_change_nothing(void **state)
{
    (void)state;
    lose(1);
    one(VIEW_SET_BEGINS, 1, 1);
    one(VIEW_SET_BEGINS, SETS, 0);
    one(VIEW_SET_JOINS, 1, 0);
    assert_false(view_set_is_coming(&v, 1) || view_set_is_whole(&v, 1));
    begin(1);
    lose(1);
    begin(1);
    one(VIEW_SET_JOINS, 1, 1);
    assert_false(view_set_is_whole(&v, 1));
    one(VIEW_SET_BEGINS, 1, 2); /* it has begun */
    assert_int_equal(view_set_attempt(&v, 1), 2);
    join(1);
    assert_true(view_set_is_whole(&v, 1));
}

static void test_set_that_loses_a_rank_before_it_joins_is_retired(void **state)
{
    (void)state;
    lose(1);
    begin(1);
    die(4);
    assert_false(view_set_is_coming(&v, 1));
    assert_int_equal(v.loss[1].native, 3); /* the reason is what it was */
    assert_true(replica_is_over(&v.loss[1], v.rank[3].incarnation));
    join(1);
    assert_false(view_set_is_whole(&v, 1));
    die(3);
    die(5);
    begin(1);
    end(3); /* by itself: it does not wait to join */
    assert_false(view_set_is_coming(&v, 1));
    die(4);
    die(5);
    begin(1);
    const struct view_event e[] = {view_event_of_life(VIEW_RANK_DONE, view_life(&v, 3)),
                                   {.type = VIEW_SET_JOINS, .a = 1, .b = view_set_attempt(&v, 1)}};
    apply(e, 2);
    assert_false(view_set_is_whole(&v, 1));
}

static void test_set_that_joins_and_loses_a_rank_in_one_view_is_retired(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        struct view_event e[2];
        lose(1);
        begin(1);
        e[first] = (struct view_event){.type = VIEW_SET_JOINS, .a = 1, .b = view_set_attempt(&v, 1)};
        e[1 - first] = (struct view_event){.type = VIEW_RANK_DEAD, .a = 4, .b = v.rank[4].incarnation, .c = SIGKILL};
        apply(e, 2);
        assert_false(view_set_is_coming(&v, 1) || view_set_is_whole(&v, 1));
    }
}

static void test_set_begins_three_times_in_vain(void **state)
{
    (void)state;
    lose(1);
    for (uint32_t i = 1; i <= VIEW_MAX_RESTARTS; i++) {
        begin(1);
        assert_int_equal(view_set_attempt(&v, 1), i);
        assert_null(view_set_in_vain(&v, 1));
        die(replica_native(&map, 1, 1));
        lose(1);
    }
    const struct replica_loss *last = view_set_in_vain(&v, 1); /* whom it lost first */
    assert_non_null(last);
    assert_int_equal(last->native, replica_native(&map, 1, 1));
    assert_int_equal(last->signal, SIGKILL);
    assert_null(view_set_in_vain(&v, 0));
    begin(1);
    assert_int_equal(view_set_attempt(&v, 1), VIEW_MAX_RESTARTS);
}

/* A guest that comes to its end has not come to keel_keep_restore. */
static void test_set_that_ends_in_vain_says_so(void **state)
{
    (void)state;
    lose(1);
    for (uint32_t i = 1; i <= VIEW_MAX_RESTARTS; i++) {
        begin(1);
        end(replica_native(&map, 0, 1));
        lose(1);
    }
    assert_non_null(view_set_in_vain(&v, 1));
    assert_int_equal(view_set_in_vain(&v, 1)->native, replica_native(&map, 0, 1));
    assert_int_equal(view_set_in_vain(&v, 1)->node, -1);
}

static void test_set_whose_guest_fails_in_vain_says_its_code(void **state)
{
    (void)state;
    lose(1);
    for (uint32_t i = 1; i <= VIEW_MAX_RESTARTS; i++) {
        begin(1);
        const uint32_t native = (uint32_t)replica_native(&map, 1, 1);
        const struct view_event e = {.type = VIEW_RANK_DONE, .a = native, .b = v.rank[native].incarnation, .c = i};
        apply(&e, 1);
        lose(1);
    }
    assert_non_null(view_set_in_vain(&v, 1));
    assert_int_equal(view_set_in_vain(&v, 1)->native, replica_native(&map, 1, 1));
    assert_int_equal(view_set_in_vain(&v, 1)->code, VIEW_MAX_RESTARTS);
}

static void test_job_ends_without_a_set_that_is_coming(void **state)
{
    (void)state;
    lose(1);
    begin(1);
    for (int r = 0; r < RANKS; r++)
        end(r);
    assert_true(v.stopped);
    assert_int_equal(v.code, 0);
}

static void test_job_ends_with_the_last_set_that_is_whole(void **state)
{
    (void)state;
    lose(1);
    begin(1);
    die(0);
    assert_true(v.stopped);
    assert_int_equal(v.code, 128 + SIGKILL);
    begin(0);
    assert_false(view_set_is_coming(&v, 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sets, close_sets)
    const struct CMUnitTest tests[] = {
        TEST(test_set_begins_where_it_was_and_joins),
        TEST(test_set_begins_on_a_spare_where_a_node_died),
        TEST(test_set_joins_when_its_memory_is_at_home),
        TEST(test_set_without_spares_does_not_begin),
        TEST(test_set_does_not_begin_before_its_last_process_has_ended),
        TEST(test_set_does_not_begin_when_the_others_end),
        TEST(test_set_of_mpi_processes_does_not_begin),
        TEST(test_set_of_a_program_that_cannot_be_taken_over_stays_lost),
        TEST(test_set_that_has_joined_stays_whole),
        TEST(test_events_of_another_attempt_change_nothing),
        TEST(test_set_that_loses_a_rank_before_it_joins_is_retired),
        TEST(test_set_that_joins_and_loses_a_rank_in_one_view_is_retired),
        TEST(test_set_begins_three_times_in_vain),
        TEST(test_set_that_ends_in_vain_says_so),
        TEST(test_set_whose_guest_fails_in_vain_says_its_code),
        TEST(test_job_ends_without_a_set_that_is_coming),
        TEST(test_job_ends_with_the_last_set_that_is_whole),
    };
    return cmocka_run_group_tests_name("set_begins", tests, NULL, NULL);
}
