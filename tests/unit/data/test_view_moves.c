/* Ranks that move to other nodes while all live. */
#include "view_bed.h"

#include "runtime/wire/control.h"

static struct view_event moved(const struct view *v, int rank, int to, bool complete)
{
    return (struct view_event){VIEW_RANK_MOVED, (uint32_t)rank, v->rank[rank].incarnation, (uint32_t)to,
                               view_moved_word(complete, 7)};
}

static void move_rank(struct view *v, int rank, int to, bool complete)
{
    struct view_event e = moved(v, rank, to, complete);
    view_apply(v, v->epoch + 1, &e, 1);
}

static void assert_runs(const struct view *v, int rank, int node, uint32_t incarnation)
{
    assert_int_equal(v->rank[rank].state, RANK_RUNNING);
    assert_int_equal(v->rank[rank].node, node);
    assert_int_equal(v->rank[rank].incarnation, incarnation);
}

static void test_view_moved_rank_goes_on_elsewhere_and_nothing_has_failed(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    move_rank(&v, 1, 3, false);
    assert_runs(&v, 1, 3, 1);
    assert_int_equal(v.rank[1].joined, v.epoch);
    assert_int_equal(v.rank[1].restarts, 0);
    assert_int_equal(v.rank[1].death.times, 0);
    assert_int_equal(v.rank[1].moved.times, 1);
    assert_int_equal(v.rank[1].moved.from, 1);
    assert_int_equal(v.rank[1].moved.epoch, v.epoch);
    assert_int_equal(v.rank[1].moved.order, 7);
    for (int i = 0; i < 2 * VIEW_MAX_RESTARTS; i++)
        move_rank(&v, 1, i % 3, false);
    assert_runs(&v, 1, (2 * VIEW_MAX_RESTARTS - 1) % 3, 1 + 2 * VIEW_MAX_RESTARTS);
    assert_false(v.stopped);
    view_fini(&v);
}

/* What was under way is in doubt as a dead writer's, unless there was nothing. */
static void test_view_moved_rank_leaves_doubts_unless_all_was_complete(void **state)
{
    (void)state;
    for (int complete = 0; complete < 2; complete++) {
        struct view v;
        open_view(&v, VIEW_SUBSTITUTE, 4, 1, 8); /* two ranks each: the slot stays */
        struct view_event e = moved(&v, 5, 0, complete);
        assert_int_equal(view_event_doubts(&e, life_of(5, 0)), !complete);
        assert_true(view_event_fences(&e, life_of(5, 0)));
        assert_false(view_event_fences(&e, life_of(5, 1)) || view_event_fences(&e, life_of(4, 0)));
        view_apply(&v, 1, &e, 1);
        const struct view_copyset *g = &v.copyset[copyset_of(1, SHADOW)];
        assert_int_equal(g->mode, complete ? COPYSET_DIRECT : COPYSET_REPAIR);
        assert_int_equal(g->doubted_at, complete ? 0 : 1);
        assert_int_equal(g->generation, complete ? 0 : 1);
        view_fini(&v);
    }
}

static void test_view_slot_goes_with_the_last_of_its_ranks(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 8);
    move_rank(&v, 2, 4, true);
    assert_int_equal(view_slot_node(&v, 1), 1);
    assert_false(v.spare_free[4] || v.spare_free[1]);
    move_rank(&v, 3, 4, true);
    assert_int_equal(view_slot_node(&v, 1), 4);
    assert_true(v.spare_free[1]); /* nobody is left there */
    for (unsigned c = 0; c < CLASSES; c++) {
        const struct view_copyset *g = &v.copyset[copyset_of(1, c)];
        assert_int_equal(g->mode, COPYSET_REPAIR); /* its data follow */
        assert_int_equal(g->copies, c + 2);
        assert_int_equal(g->copy[0].node, 1);
        assert_int_equal(g->copy[c + 1].node, 4);
        assert_false(g->copy[c + 1].whole);
        restore(&v, copyset_of(1, c));
        assert_int_equal(g->mode, COPYSET_DIRECT);
        assert_int_equal(g->copies, c + 1);
        assert_int_equal(g->copy[0].node, 4);
        assert_int_equal(view_copy_at(g, 1), -1); /* nobody runs there: the others are better */
    }
    kill_node(&v, 0); /* the node that was left is a spare like any other */
    assert_runs(&v, 0, 1, 1);
    assert_int_equal(view_slot_node(&v, 0), 1);
    assert_false(v.spare_free[1]);
    view_fini(&v);
}

/* Where the node that the slot goes to has a copy of it, that becomes the primary, by way of a repair. */
static void test_view_slot_that_goes_to_a_copy_of_its_own_is_handed_over(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    int copyset = copyset_of(1, SHADOW);
    move_rank(&v, 1, 2, true);
    assert_copies(&v.copyset[copyset], 1, 2, -1);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_REPAIR);
    restore(&v, copyset);
    assert_copies(&v.copyset[copyset], 2, 1, -1);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_DIRECT);
    view_fini(&v);
}

/* The primary has said that the copies are equal, to be handed over to the node where the ranks were then. */
static void test_view_restored_for_the_slots_former_node_is_refused(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    int copyset = copyset_of(1, TRIPLE);
    kill_node(&v, 0);
    uint64_t said = v.copyset[copyset].generation;
    move_rank(&v, 1, 3, true);
    apply(&v, VIEW_RESTORED, (uint32_t)copyset, 0, 0, said);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_REPAIR);
    view_fini(&v);
}

static void test_view_move_that_is_stale_or_repeated_changes_nothing(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    struct view_event twice[2] = {moved(&v, 1, 3, false), moved(&v, 1, 2, false)};
    view_apply(&v, 1, twice, 2);
    assert_runs(&v, 1, 3, 1);
    view_apply(&v, 2, twice, 2);
    assert_runs(&v, 1, 3, 1);
    apply(&v, VIEW_RANK_MOVED, 9, 0, 0, 0); /* there is no such rank */
    apply(&v, VIEW_RANK_DEAD, 1, 1, 9, 0);
    struct view_event late = {VIEW_RANK_MOVED, 1, 1, 0, 0};
    view_apply(&v, 5, &late, 1); /* of the life that died */
    assert_runs(&v, 1, 3, 2);
    assert_int_equal(v.rank[1].moved.times, 1);
    apply(&v, VIEW_RANK_DONE, 1, 2, 0, 0);
    move_rank(&v, 1, 0, false);
    assert_int_equal(v.rank[1].state, RANK_DONE);
    view_fini(&v);
}

/* Its process has ended: it must begin again somewhere. */
static void test_view_rank_whose_target_is_dead_begins_again_where_it_was(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 0, 4);
    struct view_event e[2] = {moved(&v, 1, 3, false), {VIEW_NODE_DEAD, 3, 0, 0, 0}};
    view_apply(&v, 1, e, 2);
    assert_runs(&v, 1, 1, 1);
    assert_int_equal(view_slot_node(&v, 1), 1);
    move_rank(&v, 1, 17, false); /* no node at all */
    assert_runs(&v, 1, 1, 2);
    move_rank(&v, 1, 1, false); /* where it is */
    assert_runs(&v, 1, 1, 3);
    assert_int_equal(v.rank[1].moved.times, 0);
    assert_int_equal(v.rank[1].restarts, 0);
    assert_false(v.spare_free[1]);
    view_fini(&v);
}

static void test_view_rank_whose_node_dies_with_its_move_goes_to_the_spare(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    struct view_event e[2] = {moved(&v, 1, 3, false), {VIEW_NODE_DEAD, 1, 0, 0, 0}};
    view_apply(&v, 1, e, 2);
    assert_runs(&v, 1, 4, 1);
    assert_int_equal(v.rank[1].death.times, 1);
    assert_int_equal(v.rank[1].moved.times, 0);
    view_fini(&v);
}

/* ---- nodes that start no process ---- */

static void refuse(struct view *v, int rank, int node)
{
    apply(v, VIEW_REFUSED, (uint32_t)rank, v->rank[rank].incarnation, (uint32_t)node, 0);
}

static void test_view_rank_that_a_spare_cannot_start_goes_to_the_next_one(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 3, 8); /* two ranks each */
    kill_node(&v, 1);
    assert_runs(&v, 2, 4, 1);
    refuse(&v, 2, 4);
    assert_runs(&v, 2, 5, 2);
    assert_runs(&v, 3, 4, 1); /* it may have begun there */
    refuse(&v, 3, 4);
    assert_runs(&v, 3, 5, 2);
    assert_int_equal(view_slot_node(&v, 1), 5);
    assert_int_equal(v.rank[2].restarts, 0);
    assert_int_equal(v.rank[2].death.times, 1); /* by its node */
    assert_true(v.alive[4] && v.refuses[4]);
    kill_node(&v, 0);
    assert_runs(&v, 0, 6, 1); /* not 4 */
    kill_node(&v, 2);
    assert_int_equal(v.rank[4].state, RANK_DEAD); /* none is left but 4 */
    view_fini(&v);
}

/* The ranks that live there go on, and what died goes elsewhere; at once the next time. */
static void test_view_node_that_starts_nothing_keeps_its_ranks(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 3, 1, 9);
    apply(&v, VIEW_RANK_DEAD, 4, 0, 9, 0);
    assert_runs(&v, 4, 1, 1);
    refuse(&v, 4, 1);
    assert_runs(&v, 4, 3, 2);
    assert_runs(&v, 3, 1, 0);
    assert_int_equal(view_slot_node(&v, 1), 1);
    assert_int_equal(v.rank[4].restarts, 1);
    apply(&v, VIEW_RANK_DEAD, 5, 0, 9, 0);
    assert_runs(&v, 5, 3, 1);
    move_rank(&v, 4, 1, true);
    assert_runs(&v, 4, 3, 3); /* it comes back to none that starts nothing */
    apply(&v, VIEW_RANK_DEAD, 3, 0, 9, 0);
    assert_runs(&v, 3, 3, 1);
    assert_int_equal(view_slot_node(&v, 1), 3);
    view_fini(&v);
}

static void test_view_rank_that_nobody_can_start_stays_dead(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 3, 0, 3);
    apply(&v, VIEW_RANK_DEAD, 1, 0, 9, 0);
    refuse(&v, 1, 1);
    assert_int_equal(v.rank[1].state, RANK_DEAD);
    assert_int_equal(v.rank[1].death.signal, 9);
    assert_false(v.stopped);
    view_fini(&v);
}

static void test_view_refusal_of_another_life_or_node_changes_nothing(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 3, 2, 3);
    kill_node(&v, 1);
    refuse(&v, 1, 0);
    apply(&v, VIEW_REFUSED, 1, 0, 3, 0); /* the life before */
    apply(&v, VIEW_REFUSED, 9, 0, 3, 0);
    assert_runs(&v, 1, 3, 1);
    assert_false(v.refuses[0] || v.refuses[3]);
    view_fini(&v);
}

static void test_view_move_of_who_has_left_is_its_end(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    apply(&v, VIEW_RANK_LEFT, 1, 0, 0, 0);
    move_rank(&v, 1, 3, false);
    assert_int_equal(v.rank[1].state, RANK_DONE);
    assert_int_equal(v.rank[1].death.times, 0);
    view_fini(&v);
}

/* Its process has ended, and none can take its place. */
static void test_view_move_where_nobody_begins_again_is_a_death(void **state)
{
    (void)state;
    for (int needs = 0; needs < 2; needs++) {
        struct view v;
        open_view(&v, needs ? VIEW_SUBSTITUTE : VIEW_DEGRADE, 4, 1, 4);
        if (needs)
            apply(&v, VIEW_NEEDS, NEEDS_ALL, 0, 0, 0);
        assert_false(view_ranks_begin_again(&v));
        move_rank(&v, 1, 3, true);
        assert_int_equal(v.rank[1].state, RANK_DEAD);
        assert_int_equal(v.rank[1].death.times, 1);
        assert_int_equal(v.stopped, needs);
        view_fini(&v);
    }
}

/* A node with ranks of two slots dies: both go to one spare, and a slot that has ranks elsewhere does without one. */
static void test_view_death_of_a_node_with_ranks_of_two_slots(void **state)
{
    (void)state;
    for (int spares = 0; spares < 2; spares++) {
        struct view v;
        open_view(&v, VIEW_SUBSTITUTE, 4, spares, 8);
        move_rank(&v, 2, 3, true);
        kill_node(&v, 3);
        if (spares) {
            assert_runs(&v, 2, 4, 2);
            assert_runs(&v, 7, 4, 1);
        } else {
            assert_runs(&v, 2, 1, 2); /* back to its slot */
            assert_int_equal(v.rank[7].state, RANK_DEAD);
        }
        assert_int_equal(view_slot_node(&v, 1), 1); /* rank 3 is there */
        assert_int_equal(view_slot_node(&v, 3), spares ? 4 : -1);
        kill_node(&v, 1);
        assert_int_equal(view_slot_node(&v, 1), spares ? 4 : -1);
        view_fini(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_moved_rank_goes_on_elsewhere_and_nothing_has_failed),
        cmocka_unit_test(test_view_moved_rank_leaves_doubts_unless_all_was_complete),
        cmocka_unit_test(test_view_slot_goes_with_the_last_of_its_ranks),
        cmocka_unit_test(test_view_slot_that_goes_to_a_copy_of_its_own_is_handed_over),
        cmocka_unit_test(test_view_restored_for_the_slots_former_node_is_refused),
        cmocka_unit_test(test_view_move_that_is_stale_or_repeated_changes_nothing),
        cmocka_unit_test(test_view_rank_whose_target_is_dead_begins_again_where_it_was),
        cmocka_unit_test(test_view_rank_whose_node_dies_with_its_move_goes_to_the_spare),
        cmocka_unit_test(test_view_rank_that_a_spare_cannot_start_goes_to_the_next_one),
        cmocka_unit_test(test_view_node_that_starts_nothing_keeps_its_ranks),
        cmocka_unit_test(test_view_rank_that_nobody_can_start_stays_dead),
        cmocka_unit_test(test_view_refusal_of_another_life_or_node_changes_nothing),
        cmocka_unit_test(test_view_move_of_who_has_left_is_its_end),
        cmocka_unit_test(test_view_move_where_nobody_begins_again_is_a_death),
        cmocka_unit_test(test_view_death_of_a_node_with_ranks_of_two_slots),
    };
    return cmocka_run_group_tests_name("view_moves", tests, NULL, NULL);
}
