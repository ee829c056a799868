/* Which sets of a program with replicas are whole, and when the job is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "retired.h"
#include "runtime/view/view.h"
#include "runtime/wire/control.h"
#include "seed.h"

enum { RANKS = 3 }; /* of the program: each on a node of its own */

static struct replica_map map;
static struct view v;

static void open_sets(int sets, const int *native)
{
    int rank_node[RANKS * REPLICAS_MAX];
    for (int r = 0; r < RANKS * sets; r++)
        rank_node[r] = r;
    assert_true(native ? replica_map_init_from(&map, RANKS, sets, native) : replica_map_init(&map, RANKS, sets));
    assert_true(view_init(&v, VIEW_DEGRADE, RANKS * sets, 0, 0, RANKS * sets, rank_node, NULL));
    view_replicate(&v, &map);
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
static void one(uint32_t type, uint32_t a, uint32_t c)
{
    struct view_event e = {.type = type, .a = a, .c = c};
    apply(&e, 1);
}
static void die(int native)
{
    one(VIEW_RANK_DEAD, (uint32_t)native, SIGKILL);
}
static void writes(int native)
{
    apply(&(struct view_event){.type = VIEW_NEEDS, .a = NEEDS_FILES, .b = (uint32_t)native}, 1);
}
static void end(int native, int code)
{
    one(VIEW_RANK_DONE, (uint32_t)native, (uint32_t)code);
}

static void test_sets_one_that_loses_a_rank_is_retired_and_the_job_goes_on(void **state)
{
    (void)state;
    open_sets(2, NULL);
    assert_int_equal(sets_retired(&v), 0);
    die(4);
    assert_int_equal(sets_retired(&v), 2);
    assert_true(view_set_is_whole(&v, 0));
    assert_false(v.stopped);
    assert_int_equal(v.loss[1].native, 4);
    assert_int_equal(v.loss[1].node, 4);
    assert_int_equal(v.loss[1].signal, SIGKILL);
    /* the others of it end, in whatever way, and that changes neither the reason nor anything else */
    end(3, 1);
    die(5);
    assert_int_equal(v.loss[1].native, 4);
    assert_int_equal(sets_retired(&v), 2);
    assert_false(v.stopped);
    for (int r = 0; r < RANKS; r++) {
        assert_false(v.stopped);
        end(r, 0);
    }
    assert_true(v.stopped);
    assert_int_equal(v.code, 0);
}

static void test_sets_by_a_map_are_those_of_the_map(void **state)
{
    (void)state;
    static const int native[] = {0, 4, 2, 3, 1, 5}; /* rank 1 of set 0 is native rank 4 */
    open_sets(2, native);
    die(4);
    assert_int_equal(sets_retired(&v), 1);
    assert_true(view_set_is_whole(&v, 1));
}

static void test_sets_job_waits_for_each_set_that_is_whole(void **state)
{
    (void)state;
    open_sets(2, NULL);
    for (int r = RANKS; r < 2 * RANKS; r++)
        end(r, 0);
    assert_false(v.stopped); /* set 0 is slower */
    die(1);
    assert_true(v.stopped); /* and does not come there */
    assert_int_equal(v.code, 0);
}

static void test_sets_rank_that_has_ended_is_no_loss(void **state)
{
    (void)state;
    open_sets(2, NULL);
    end(3, 0);
    one(VIEW_NODE_DEAD, 3, 0);
    assert_int_equal(sets_retired(&v), 0);
    one(VIEW_RANK_LEFT, 4, 0); /* called keel_finalize */
    die(4);
    assert_int_equal(sets_retired(&v), 0);
}

static void test_sets_node_that_hits_two_of_three_leaves_the_third(void **state)
{
    (void)state;
    open_sets(3, NULL);
    const struct view_event both[] = {{.type = VIEW_NODE_DEAD, .a = 0}, {.type = VIEW_NODE_DEAD, .a = 8}};
    apply(both, 2);
    assert_int_equal(sets_retired(&v), 5);
    assert_false(v.stopped);
    assert_int_equal(v.loss[0].signal, 0);
    assert_int_equal(v.loss[0].code, 0);
    one(VIEW_NODE_DEAD, 4, 0);
    assert_true(v.stopped);
    assert_int_equal(v.code, 137);
    assert_string_equal(v.why, "set 1 has lost rank 1 (node 4 died), and no set is left");
}

static void test_sets_last_one_that_breaks_gives_the_job_its_code(void **state)
{
    (void)state;
    open_sets(2, NULL);
    end(1, 3);
    assert_int_equal(sets_retired(&v), 1);
    assert_false(v.stopped);
    end(4, 3); /* the program's own decision comes in all sets */
    assert_true(v.stopped);
    assert_int_equal(v.code, 3);
    assert_string_equal(v.why, "set 1 has lost rank 1 (it ended with exit code 3), and no set is left");
    close_sets(NULL);
    open_sets(2, NULL);
    end(1, 3);
    one(VIEW_RANK_DEAD, 5, SIGSEGV);
    assert_int_equal(v.code, 128 + SIGSEGV);
}

static void test_sets_rank_that_asks_for_the_end_ends_its_set(void **state)
{
    (void)state;
    open_sets(2, NULL);
    const struct view_event asks = {.type = VIEW_STOP, .a = 7, .b = 1 + 4};
    apply(&asks, 1);
    assert_int_equal(sets_retired(&v), 2);
    assert_false(v.stopped);
    const struct view_event user = {.type = VIEW_STOP, .a = 130, .b = 0};
    apply(&user, 1);
    assert_true(v.stopped);
    assert_int_equal(v.code, 130);
}

static void test_sets_of_a_program_that_needs_all_go_on_alike(void **state)
{
    (void)state;
    open_sets(2, NULL);
    one(VIEW_NEEDS, 1, 0);
    die(0);
    assert_int_equal(sets_retired(&v), 1);
    assert_false(v.stopped);
}

static void test_sets_node_is_worth_the_job_if_no_set_does_without_it(void **state)
{
    (void)state;
    open_sets(2, NULL);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_NONE);
    die(4);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_JOB);
    assert_int_equal(view_stake(&v, 3, 0), STAKE_NONE);
}

/* Whatever dies in whatever order, and in whatever batches: a set is retired if and only if one of its ranks was lost,
 * and two views of the same events are the same. */
static void test_sets_at_random_are_whole_exactly_if_they_have_lost_nobody(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 400; run++) {
        int sets = 2 + (int)rng_below(&rng, 2), natives = RANKS * sets, native[RANKS * REPLICAS_MAX];
        for (int i = 0; i < natives; i++)
            native[i] = i;
        for (int i = natives - 1; i > 0; i--) {
            int k = (int)rng_below(&rng, (uint64_t)i + 1), was = native[i];
            native[i] = native[k];
            native[k] = was;
        }
        open_sets(sets, native);
        bool gone[RANKS * REPLICAS_MAX] = {false};
        unsigned lost = 0;
        while (!v.stopped) {
            struct view_event batch[3];
            int n = 0;
            while (n < 3) {
                int r = (int)rng_below(&rng, (uint64_t)natives), what = (int)rng_below(&rng, 4);
                if (gone[r])
                    break;
                gone[r] = true;
                lost |= what < 3 ? 1u << replica_of(&map, r).set : 0;
                batch[n++] =
                    what == 0   ? (struct view_event){.type = VIEW_NODE_DEAD, .a = (uint32_t)r}
                    : what == 1 ? (struct view_event){.type = VIEW_RANK_DEAD, .a = (uint32_t)r, .c = SIGKILL}
                                : (struct view_event){.type = VIEW_RANK_DONE, .a = (uint32_t)r, .c = what == 2 ? 5 : 0};
            }
            if (!n)
                continue;
            apply(batch, n);
            assert_int_equal(sets_retired(&v), lost);
            bool running = false; /* of a whole set */
            for (int r = 0; r < natives; r++)
                running |= !gone[r] && !(lost >> replica_of(&map, r).set & 1);
            assert_int_equal(v.stopped, lost == (1u << sets) - 1 || !running);
            if (v.stopped)
                assert_int_equal(v.code != 0, lost == (1u << sets) - 1);
        }
        close_sets(NULL);
    }
    open_sets(2, NULL);
}

/* ---- where partners do the part of the dead ---- */

static void open_partners(int sets)
{
    open_sets(sets, NULL);
    view_take_partners(&v);
}

static void test_sets_with_partners_go_on_while_each_rank_lives_somewhere(void **state)
{
    (void)state;
    open_partners(2);
    die(0); /* rank 0 of set 0, rank 1 of set 1 */
    die(4);
    assert_int_equal(sets_retired(&v), 0);
    assert_int_equal(view_rank_lives(&v, 0), 2);
    assert_int_equal(view_rank_lives(&v, 1), 1);
    assert_int_equal(view_rank_lives(&v, 2), 3);
    assert_false(v.stopped);
    const int left[] = {1, 2, 3, 5};
    for (int i = 0; i < 4; i++) {
        assert_false(v.stopped); /* each that is left comes to its end */
        end(left[i], 0);
    }
    assert_true(v.stopped);
    assert_int_equal(v.code, 0);
}

static void test_sets_with_partners_end_with_the_last_replica_of_a_rank(void **state)
{
    (void)state;
    open_partners(3);
    const struct view_event two[] = {{.type = VIEW_NODE_DEAD, .a = 1}, {.type = VIEW_NODE_DEAD, .a = 7}};
    apply(two, 2);
    assert_false(v.stopped);
    die(4);
    assert_true(v.stopped);
    assert_int_equal(sets_retired(&v), 7);
    assert_int_equal(v.code, 128 + SIGKILL);
    assert_non_null(strstr(v.why, "set 1 has lost rank 1 ("));
    assert_non_null(strstr(v.why, "), and no replica of it is left"));
}

static void test_sets_with_partners_both_replicas_in_one_view_end_the_job(void **state)
{
    (void)state;
    open_partners(2);
    const struct view_event both[] = {{.type = VIEW_NODE_DEAD, .a = 2}, {.type = VIEW_NODE_DEAD, .a = 5}};
    apply(both, 2);
    assert_true(v.stopped);
    assert_int_equal(v.code, 137);
    assert_string_equal(v.why, "set 1 has lost rank 2 (node 5 died), and no replica of it is left");
}

static void test_sets_with_partners_are_retired_by_codes_and_requests(void **state)
{
    (void)state;
    open_partners(2);
    end(1, 3);
    assert_int_equal(sets_retired(&v), 1);
    assert_false(v.stopped);
    assert_int_equal(view_rank_lives(&v, 0), 2); /* nobody of it counts any more */
    close_sets(NULL);
    open_partners(2);
    die(4);
    end(2, 3); /* of the set in which rank 1 lived */
    assert_true(v.stopped);
    assert_int_equal(v.code, 3);
}

static void test_sets_with_partners_that_need_all_members_are_retired(void **state)
{
    (void)state;
    open_partners(2);
    die(4);
    assert_int_equal(sets_retired(&v), 0);
    one(VIEW_NEEDS, NEEDS_ALL, 0); /* no process dies as the program sees it */
    assert_int_equal(sets_retired(&v), 0);
    one(VIEW_NEEDS, NEEDS_SETS, 0); /* said later */
    assert_int_equal(sets_retired(&v), 2);
    assert_false(v.stopped);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_JOB);
    die(2);
    assert_true(v.stopped);
    assert_string_equal(v.why + strlen(v.why) - 14, "no set is left");
}

/* Ranks 0 and 2 have written files. Those of a set count that has both; where none has they are of no set. */
static void test_sets_with_partners_files_are_of_a_set_that_has_all_who_write(void **state)
{
    (void)state;
    open_partners(2);
    assert_int_equal(view_files_set(&v), 0);
    writes(0);
    writes(5); /* of set 1: its replica writes likewise */
    die(1);    /* one that has written none */
    assert_int_equal(view_files_set(&v), 0);
    die(0);
    assert_int_equal(view_files_set(&v), 1);
    assert_int_equal(view_sets_retired(&v), 0);
    die(5);
    assert_int_equal(view_sets_retired(&v), 3);
    assert_true(v.stopped);
    close_sets(NULL);
    open_partners(2);
    writes(0);
    writes(99); /* no rank */
    die(0);
    die(3); /* the last of rank 0 */
    assert_true(v.stopped);
    assert_string_equal(v.why + strlen(v.why) - 24, "no replica of it is left");
}

static void test_sets_with_partners_rank_that_has_ended_lives(void **state)
{
    (void)state;
    open_partners(2);
    end(0, 0);
    die(3);
    assert_false(v.stopped);
    assert_int_equal(view_rank_lives(&v, 0), 1);
}

static void test_sets_with_partners_node_is_worth_the_job_if_a_rank_lives_there_alone(void **state)
{
    (void)state;
    open_partners(2);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_NONE);
    die(4);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_NONE);
    assert_int_equal(view_stake(&v, 1, 0), STAKE_JOB);
}

/* Whatever dies in whatever batches: no set is retired before a rank lives nowhere, and then all are. */
static void test_sets_with_partners_at_random_live_exactly_as_long_as_each_rank(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 400; run++) {
        int sets = 2 + (int)rng_below(&rng, 2);
        unsigned lives[RANKS];
        bool over = false;
        open_partners(sets);
        for (int q = 0; q < RANKS; q++)
            lives[q] = (1u << sets) - 1;
        while (!v.stopped) {
            struct view_event batch[2];
            int n = 1 + (int)rng_below(&rng, 2);
            for (int i = 0; i < n; i++) {
                uint32_t r = (uint32_t)rng_below(&rng, (uint64_t)(RANKS * sets));
                uint32_t type = rng_below(&rng, 2) ? VIEW_NODE_DEAD : VIEW_RANK_DEAD;
                batch[i] = (struct view_event){.type = type, .a = r, .c = SIGKILL};
                lives[replica_of(&map, (int)r).rank] &= ~(1u << replica_of(&map, (int)r).set);
            }
            apply(batch, n);
            for (int q = 0; q < RANKS; q++)
                over = over || !lives[q];
            for (int q = 0; !over && q < RANKS; q++)
                assert_int_equal(view_rank_lives(&v, q), lives[q]);
            assert_int_equal(sets_retired(&v), over ? (1u << sets) - 1 : 0);
            assert_int_equal(v.stopped, over);
            assert_true(!over || v.code != 0);
        }
        close_sets(NULL);
    }
    open_sets(2, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_sets)
    const struct CMUnitTest tests[] = {
        TEST(test_sets_one_that_loses_a_rank_is_retired_and_the_job_goes_on),
        TEST(test_sets_by_a_map_are_those_of_the_map),
        TEST(test_sets_job_waits_for_each_set_that_is_whole),
        TEST(test_sets_rank_that_has_ended_is_no_loss),
        TEST(test_sets_node_that_hits_two_of_three_leaves_the_third),
        TEST(test_sets_last_one_that_breaks_gives_the_job_its_code),
        TEST(test_sets_rank_that_asks_for_the_end_ends_its_set),
        TEST(test_sets_of_a_program_that_needs_all_go_on_alike),
        TEST(test_sets_node_is_worth_the_job_if_no_set_does_without_it),
        TEST(test_sets_at_random_are_whole_exactly_if_they_have_lost_nobody),
        TEST(test_sets_with_partners_go_on_while_each_rank_lives_somewhere),
        TEST(test_sets_with_partners_end_with_the_last_replica_of_a_rank),
        TEST(test_sets_with_partners_both_replicas_in_one_view_end_the_job),
        TEST(test_sets_with_partners_are_retired_by_codes_and_requests),
        TEST(test_sets_with_partners_that_need_all_members_are_retired),
        TEST(test_sets_with_partners_files_are_of_a_set_that_has_all_who_write),
        TEST(test_sets_with_partners_rank_that_has_ended_lives),
        TEST(test_sets_with_partners_node_is_worth_the_job_if_a_rank_lives_there_alone),
        TEST(test_sets_with_partners_at_random_live_exactly_as_long_as_each_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
