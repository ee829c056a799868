/* Nodes die: who takes over, where copies are, what is lost. */
#include "view_bed.h"

#include "runtime/base/signals.h"
#include "runtime/view/policy.h"

/* ---- nodes die ---- */

static void test_view_node_dies_spare_gets_ranks_and_copies(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    kill_node(&v, 1);
    assert_int_equal(v.rank[1].node, 4);
    assert_int_equal(v.rank[1].incarnation, 1);
    assert_int_equal(v.rank[1].joined, 1);
    assert_int_equal(view_slot_node(&v, 1), 4);
    const struct view_copyset *g = &v.copyset[copyset_of(1, SHADOW)];
    assert_copies(g, 2, 4, -1); /* promoted; filled where its ranks are */
    assert_true(g->copy[0].whole);
    assert_false(g->copy[1].whole);
    assert_int_equal(g->copy[1].placed, 1);
    assert_int_equal(g->mode, COPYSET_REPAIR);
    assert_int_equal(g->generation, 1);
    assert_int_equal(g->lost_at, 0);
    view_fini(&v);
}

static void test_view_restored_group_is_handed_to_its_ranks_node(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    kill_node(&v, 1);
    restore(&v, copyset_of(1, SHADOW));
    assert_copies(&v.copyset[copyset_of(1, SHADOW)], 4, 2, -1);
    assert_int_equal(v.copyset[copyset_of(1, SHADOW)].mode, COPYSET_DIRECT);
    assert_int_equal(v.copyset[copyset_of(1, SHADOW)].generation, 2);
    restore(&v, copyset_of(1, TRIPLE));
    assert_copies(&v.copyset[copyset_of(1, TRIPLE)], 4, 2, 3);
    view_fini(&v);
}

static void test_view_degrade_ranks_stay_dead_copies_move(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 1, 4);
    kill_node(&v, 0);
    assert_int_equal(v.rank[0].state, RANK_DEAD);
    assert_int_equal(v.rank[0].node, -1);
    assert_int_equal(view_slot_node(&v, 0), -1);
    const struct view_copyset *g = &v.copyset[copyset_of(0, SHADOW)];
    assert_int_equal(g->copy[0].node, 1);
    assert_int_equal(g->copies, 2);
    restore_all(&v);
    assert_int_equal(g->mode, COPYSET_DIRECT);
    assert_int_equal(g->copy[0].node, 1); /* nobody to hand it to */
    view_fini(&v);
}

static void test_view_abort_ends_the_job_when_a_node_with_ranks_dies(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_ABORT, 2, 1, 2);
    kill_node(&v, 2);
    assert_false(v.stopped);
    kill_node(&v, 1);
    assert_true(v.stopped);
    assert_int_equal(v.code, 137);
    assert_string_equal(v.why, "node 1 died");
    view_fini(&v);
    open_view(&v, VIEW_ABORT, 2, 0, 2);
    apply(&v, VIEW_RANK_DEAD, 1, 0, 11, 0);
    assert_int_equal(v.code, 128 + 11);
    assert_string_equal(v.why, "rank 1 was killed by SIGSEGV");
    view_fini(&v);
    open_view(&v, VIEW_ABORT, 2, 0, 2);
    apply(&v, VIEW_RANK_DEAD, 1, 0, 40, 0); /* a real-time one */
    assert_string_equal(v.why, "rank 1 was killed by signal 40");
    view_fini(&v);
    open_view(&v, VIEW_ABORT, 2, 0, 2);
    apply(&v, VIEW_RANK_DEAD, 1, 0, 0, 0); /* nobody knows of what */
    assert_int_equal(v.code, 1);
    assert_string_equal(v.why, "rank 1 ended without keel_finalize inside its script");
    assert_int_equal(v.rank[1].death.signal, SIGNAL_HIDDEN);
    view_fini(&v);
}

static void test_view_spares_are_taken_in_order_and_once(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 2, 4);
    assert_int_equal(policy_spare(&v, 0), 4);
    kill_nodes(&v, 0, 1);
    assert_int_equal(v.rank[0].node, 4);
    assert_int_equal(v.rank[1].node, 5);
    assert_int_equal(policy_spare(&v, 0), -1);
    kill_node(&v, 2); /* no spare is left */
    assert_int_equal(v.rank[2].state, RANK_DEAD);
    view_fini(&v);
    open_view(&v, VIEW_SUBSTITUTE, 4, 2, 4);
    kill_nodes(&v, 1, 4); /* the spare died in the same view */
    assert_int_equal(v.rank[1].node, 5);
    view_fini(&v);
}

static void test_view_both_copies_in_one_view_lost_and_starts_again(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    kill_nodes(&v, 2, 1);
    const struct view_copyset *g = &v.copyset[copyset_of(1, SHADOW)];
    assert_int_equal(g->lost_at, 1);
    assert_int_equal(g->copies, 2);
    assert_true(v.alive[g->copy[0].node] && g->copy[0].whole);
    assert_int_equal(g->mode, COPYSET_REPAIR);
    restore(&v, copyset_of(1, SHADOW));
    assert_int_equal(g->mode, COPYSET_DIRECT);
    assert_int_equal(g->lost_at, 1); /* not forgotten */
    assert_int_equal(v.copyset[copyset_of(2, SHADOW)].copy[0].node, 3);
    assert_int_equal(v.copyset[copyset_of(2, SHADOW)].lost_at, 0);
    assert_int_equal(v.copyset[copyset_of(1, NONE)].lost_at, 1);
    assert_int_equal(v.copyset[copyset_of(0, NONE)].lost_at, 0);
    view_fini(&v);
}

static void test_view_triple_survives_two_deaths_in_one_view(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 5, 0, 5);
    kill_nodes(&v, 1, 2);
    const struct view_copyset *g = &v.copyset[copyset_of(1, TRIPLE)];
    assert_int_equal(g->lost_at, 0);
    assert_int_equal(g->copy[0].node, 3);
    assert_true(g->copy[0].whole);
    assert_int_equal(g->copies, 3);
    assert_int_equal(view_whole_copies(g), 1);
    assert_int_equal(v.copyset[copyset_of(0, TRIPLE)].copy[0].node, 0);
    assert_int_equal(view_whole_copies(&v.copyset[copyset_of(0, TRIPLE)]), 1);
    view_fini(&v);
}

static void test_view_triple_survives_a_death_during_the_fill_of_another(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 5, 0, 5);
    kill_node(&v, 1); /* copies on 2, 3 and a new one */
    const struct view_copyset *g = &v.copyset[copyset_of(1, TRIPLE)];
    int filled = g->copy[2].node;
    kill_node(&v, 2);
    assert_int_equal(g->copy[0].node, 3);
    assert_int_equal(g->lost_at, 0);
    int at = view_copy_at(g, filled);
    assert_true(at > 0 && !g->copy[at].whole);
    assert_int_equal(g->copy[at].placed, 1); /* it goes on being filled */
    view_fini(&v);
}

static void test_view_primary_dies_during_fill_lost(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    kill_node(&v, 1);
    assert_int_equal(v.copyset[copyset_of(1, SHADOW)].copy[0].node, 2);
    kill_node(&v, 2);
    assert_int_equal(v.copyset[copyset_of(1, SHADOW)].lost_at, 2);
    view_fini(&v);
}

static void test_view_filled_node_dies_another_is_found(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 2, 4);
    kill_node(&v, 1);
    assert_copies(&v.copyset[copyset_of(1, SHADOW)], 2, 4, -1);
    kill_node(&v, 4);
    assert_int_equal(v.rank[1].node, 5);
    assert_copies(&v.copyset[copyset_of(1, SHADOW)], 2, 5, -1);
    assert_int_equal(v.copyset[copyset_of(1, SHADOW)].copy[1].placed, 2);
    view_fini(&v);
}

static void test_view_last_node_has_every_copy_and_is_direct(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 2, 0, 2);
    kill_node(&v, 1);
    for (int copyset = 0; copyset < 2 * CLASSES; copyset++) {
        assert_copies(&v.copyset[copyset], 0, -1, -1);
        assert_int_equal(v.copyset[copyset].mode, COPYSET_DIRECT);
    }
    view_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_node_dies_spare_gets_ranks_and_copies),
        cmocka_unit_test(test_view_restored_group_is_handed_to_its_ranks_node),
        cmocka_unit_test(test_view_degrade_ranks_stay_dead_copies_move),
        cmocka_unit_test(test_view_abort_ends_the_job_when_a_node_with_ranks_dies),
        cmocka_unit_test(test_view_spares_are_taken_in_order_and_once),
        cmocka_unit_test(test_view_both_copies_in_one_view_lost_and_starts_again),
        cmocka_unit_test(test_view_triple_survives_two_deaths_in_one_view),
        cmocka_unit_test(test_view_triple_survives_a_death_during_the_fill_of_another),
        cmocka_unit_test(test_view_primary_dies_during_fill_lost),
        cmocka_unit_test(test_view_filled_node_dies_another_is_found),
        cmocka_unit_test(test_view_last_node_has_every_copy_and_is_direct),
    };
    return cmocka_run_group_tests_name("view_deaths", tests, NULL, NULL);
}
