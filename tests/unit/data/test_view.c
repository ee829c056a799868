/* How views begin, what becomes of ranks, and which losses end a job. */
#include "view_bed.h"

#include <string.h>

#include "memory.h"
#include "runtime/base/signals.h"
#include "runtime/view/policy.h"
#include "runtime/wire/control.h"

/* ---- the start ---- */

static void test_view_start_copies_on_the_next_nodes(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 8);
    for (int s = 0; s < 4; s++) {
        assert_copies(&v.copyset[copyset_of(s, NONE)], s, -1, -1);
        assert_copies(&v.copyset[copyset_of(s, SHADOW)], s, (s + 1) % 4, -1);
        assert_copies(&v.copyset[copyset_of(s, TRIPLE)], s, (s + 1) % 4, (s + 2) % 4);
        for (unsigned c = 0; c < CLASSES; c++) {
            assert_int_equal(v.copyset[copyset_of(s, c)].mode, COPYSET_DIRECT);
            assert_int_equal(view_whole_copies(&v.copyset[copyset_of(s, c)]), c + 1);
        }
    }
    assert_int_equal(v.rank[3].node, 1);
    assert_int_equal(v.rank[3].index, 1);
    view_fini(&v);
}

static void test_view_start_with_too_few_nodes_uses_spares(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 1, 1, 2);
    assert_copies(&v.copyset[copyset_of(0, SHADOW)], 0, 1, -1);
    assert_copies(&v.copyset[copyset_of(0, TRIPLE)], 0, 1, -1); /* no third node */
    assert_int_equal(v.copyset[copyset_of(0, TRIPLE)].mode, COPYSET_DIRECT);
    view_fini(&v);
}

static void test_view_init_without_memory_leaves_nothing(void **state)
{
    (void)state;
    const int rank_node[] = {0, 1};
    int domain[] = {0, 1, 0};
    const struct copy_rule rule = {.levels = 1, .domain = domain};
    size_t before = memory_living();
    struct view v;
    for (long n = 1;; n++) {
        memory_fail_at(n);
        bool ok = view_init(&v, VIEW_DEGRADE, 2, 1, 0, 2, rank_node, &rule);
        if (!memory_failed()) {
            assert_true(ok && n > 3);
            break;
        }
        assert_false(ok);
        assert_int_equal(memory_living(), before);
    }
    view_fini(&v);
    assert_int_equal(memory_living(), before);
}

/* ---- programs that need all their processes ---- */

/* One dies: by a signal, or with its node; before the program has said what it needs, or after. */
static void lose_one(struct view *v, enum view_policy policy, bool node, bool before)
{
    open_view(v, policy, 4, 1, 8);
    if (!before)
        apply(v, VIEW_NEEDS, NEEDS_ALL, 0, 0, 0);
    if (node)
        kill_node(v, 1);
    else
        apply(v, VIEW_RANK_DEAD, 2, 0, 9, 0);
    if (before)
        apply(v, VIEW_NEEDS, NEEDS_ALL, 0, 0, 0);
}

static void test_view_program_that_needs_all_ends_by_the_first_death(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) {
        struct view v;
        const bool node = way & 1, before = way & 2;
        lose_one(&v, way & 4 ? VIEW_SUBSTITUTE : VIEW_DEGRADE, node, before);
        assert_true(v.stopped && v.by_loss);
        assert_int_equal(v.code, 1);
        assert_string_equal(
            v.why, node
                       ? "process 2 died with its node 1; the program has not called keel_survive and ends"
                       : "process 2 was killed by SIGKILL on node 1; the program has not called keel_survive and ends");
        if (!before)
            assert_int_equal(v.rank[2].state, RANK_DEAD); /* nobody is started in its place */
        view_fini(&v);
    }
}

static void test_view_program_that_survives_goes_on_and_no_rank_moves(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct view v;
        open_view(&v, VIEW_SUBSTITUTE, 4, 1, 8);
        apply(&v, VIEW_NEEDS, first ? NEEDS_NONE : NEEDS_ALL, 0, 0, 0);
        apply(&v, VIEW_NEEDS, first ? NEEDS_ALL : NEEDS_NONE, 0, 0, 0);
        apply(&v, VIEW_RANK_DEAD, 2, 0, 9, 0);
        kill_node(&v, 0);
        assert_false(v.stopped);
        assert_int_equal(v.rank[2].state, RANK_DEAD);
        assert_int_equal(v.rank[0].state, RANK_DEAD);
        assert_true(v.spare_free[4]);
        assert_true(view_copy_at(&v.copyset[copyset_of(0, SHADOW)], 1) >= 0 &&
                    v.copyset[copyset_of(0, SHADOW)].copies == 2);
        view_fini(&v);
    }
}

static void test_view_end_by_itself_is_no_loss(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 2, 0, 2);
    apply(&v, VIEW_NEEDS, NEEDS_ALL, 0, 0, 0);
    apply(&v, VIEW_RANK_LEFT, 0, 0, 0, 0);
    apply(&v, VIEW_RANK_DEAD, 0, 0, 9, 0); /* it had left */
    apply(&v, VIEW_RANK_DONE, 1, 0, 0, 0);
    assert_true(v.stopped && !v.by_loss && v.code == 0);
    view_fini(&v);
}

/* What a node's death would cost: nothing that is not elsewhere, data of which there is no other whole copy, the
 * job. */
static void test_view_stake_of_nodes(void **state)
{
    (void)state;
    struct view v;
    const unsigned none = 1u << NONE, shadow = 1u << SHADOW;
    open_view(&v, VIEW_DEGRADE, 3, 1, 3);
    for (int node = 0; node < 4; node++) {
        assert_int_equal(view_stake(&v, node, 0), STAKE_NONE);
        assert_int_equal(view_stake(&v, node, shadow), STAKE_NONE);
        assert_int_equal(view_stake(&v, node, none), node < 3 ? STAKE_DATA : STAKE_NONE); /* a spare holds none */
    }
    kill_node(&v, 1);
    assert_int_equal(view_stake(&v, 1, shadow), STAKE_NONE); /* it is dead */
    assert_int_equal(view_stake(&v, 2, shadow), STAKE_DATA); /* has slot 1's only whole copy */
    restore_all(&v);
    assert_int_equal(view_stake(&v, 2, shadow), STAKE_NONE);
    kill_node(&v, 2);
    restore_all(&v);
    assert_int_equal(view_stake(&v, 0, shadow), STAKE_JOB); /* the last one with a rank */
    assert_int_equal(view_stake(&v, 3, shadow), STAKE_NONE);
    view_fini(&v);
    open_view(&v, VIEW_SUBSTITUTE, 1, 1, 1);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_NONE); /* the spare takes over */
    apply(&v, VIEW_NEEDS, NEEDS_ALL, 0, 0, 0);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_JOB);
    view_fini(&v);
    open_view(&v, VIEW_ABORT, 2, 1, 2);
    assert_int_equal(view_stake(&v, 0, 0), STAKE_JOB);
    assert_int_equal(view_stake(&v, 2, 0), STAKE_NONE);
    view_fini(&v);
}

/* ---- ranks ---- */

static void test_view_rank_dies_restarts_in_place_then_stays_dead(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 2, 0, 4);
    for (uint32_t i = 0; i < VIEW_MAX_RESTARTS; i++) {
        apply(&v, VIEW_RANK_DEAD, 3, i, 11, 0);
        assert_int_equal(v.rank[3].incarnation, i + 1);
        assert_int_equal(v.rank[3].node, 1);
        apply(&v, VIEW_RANK_DEAD, 3, i, 11, 0); /* told twice */
        assert_int_equal(v.rank[3].incarnation, i + 1);
    }
    apply(&v, VIEW_RANK_DEAD, 3, VIEW_MAX_RESTARTS, 11, 0);
    assert_int_equal(v.rank[3].state, RANK_DEAD);
    assert_false(v.stopped);
    view_fini(&v);
}

static void test_view_job_ends_with_code_of_first_failing_rank(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 2, 0, 2);
    apply(&v, VIEW_RANK_DONE, 0, 0, 0, 0);
    assert_false(v.stopped);
    apply(&v, VIEW_RANK_DONE, 1, 0, 3, 0);
    assert_true(v.stopped);
    assert_int_equal(v.code, 3);
    view_fini(&v);
    open_view(&v, VIEW_DEGRADE, 2, 0, 2);
    apply(&v, VIEW_RANK_LEFT, 1, 0, 0, 0);
    assert_false(view_rank_takes_part(&v, 1));
    assert_false(view_node_takes_part(&v, 1));
    assert_true(view_node_takes_part(&v, 0));
    kill_node(&v, 1); /* after keel_finalize: the rank counts as done */
    assert_int_equal(v.rank[1].state, RANK_DONE);
    apply(&v, VIEW_RANK_DEAD, 0, 0, 9, 0);
    assert_true(v.stopped);
    assert_int_equal(v.code, 0);
    view_fini(&v);
}

static void test_view_stop_says_who_asked(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 2, 0, 2);
    apply(&v, VIEW_STOP, 7, 2, 0, 0);
    assert_true(v.stopped);
    assert_int_equal(v.code, 7);
    assert_string_equal(v.why, "rank 1 ended the job with code 7");
    apply(&v, VIEW_STOP, 9, 0, 0, 0);
    assert_int_equal(v.code, 7); /* the first one counts */
    view_fini(&v);
}

/* ---- policy ---- */

static void test_policy_copy_home_first_then_fewest_then_spares(void **state)
{
    (void)state;
    struct view v;
    struct view_copyset before[3 * CLASSES];
    open_view(&v, VIEW_DEGRADE, 3, 1, 3);
    struct view_copyset *g = &v.copyset[copyset_of(0, SHADOW)];
    g->copies = 1;
    g->copy[0].node = 1;
    policy_look(&v);
    assert_int_equal(policy_copy(&v, copyset_of(0, SHADOW)), 0); /* its ranks' node */
    memcpy(before, v.copyset, sizeof before);
    kill_node(&v, 0); /* nobody runs them any more; all else is as it was */
    assert_int_equal(view_slot_node(&v, 0), -1);
    memcpy(v.copyset, before, sizeof before);
    v.alive[0] = true;
    g->copy[0].node = 0;
    /* node 1 holds this copyset's copy no more: it has fewer than node 2 */
    policy_look(&v);
    assert_int_equal(policy_copy(&v, copyset_of(0, SHADOW)), 1);
    v.alive[1] = v.alive[2] = false;
    policy_look(&v);
    assert_int_equal(policy_copy(&v, copyset_of(0, SHADOW)), 3); /* better than nothing */
    v.alive[3] = false;
    policy_look(&v);
    assert_int_equal(policy_copy(&v, copyset_of(0, SHADOW)), -1);
    view_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_start_copies_on_the_next_nodes),
        cmocka_unit_test(test_view_start_with_too_few_nodes_uses_spares),
        cmocka_unit_test(test_view_init_without_memory_leaves_nothing),
        cmocka_unit_test(test_view_program_that_needs_all_ends_by_the_first_death),
        cmocka_unit_test(test_view_program_that_survives_goes_on_and_no_rank_moves),
        cmocka_unit_test(test_view_end_by_itself_is_no_loss),
        cmocka_unit_test(test_view_stake_of_nodes),
        cmocka_unit_test(test_view_rank_dies_restarts_in_place_then_stays_dead),
        cmocka_unit_test(test_view_job_ends_with_code_of_first_failing_rank),
        cmocka_unit_test(test_view_stop_says_who_asked),
        cmocka_unit_test(test_policy_copy_home_first_then_fewest_then_spares),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
