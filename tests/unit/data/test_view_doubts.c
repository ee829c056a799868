/* Copies that were made equal, and doubts about them. */
#include "view_bed.h"

static void test_view_restored_of_an_older_generation_is_refused(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    kill_node(&v, 1);
    int copyset = copyset_of(3, SHADOW); /* copies on 3 and 0, in doubt only */
    uint64_t first = v.copyset[copyset].generation;
    apply(&v, VIEW_RANK_DEAD, 2, 0, 9, 0); /* in doubt again */
    assert_true(v.copyset[copyset].generation > first);
    apply(&v, VIEW_RESTORED, (uint32_t)copyset, 0, 0, first);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_REPAIR);
    restore(&v, copyset);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_DIRECT);
    uint64_t generation = v.copyset[copyset].generation;
    restore(&v, copyset); /* told twice */
    assert_int_equal(v.copyset[copyset].generation, generation);
    apply(&v, VIEW_RESTORED, 4 * CLASSES, 0, 0, 0); /* no such copyset */
    view_fini(&v);
}

static void test_view_restored_in_the_view_of_a_death_is_refused(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    kill_node(&v, 1);
    int copyset = copyset_of(1, SHADOW), filled = v.copyset[copyset].copy[1].node;
    struct view_event e[2] = {{VIEW_RESTORED, (uint32_t)copyset, 0, 0, v.copyset[copyset].generation},
                              {VIEW_NODE_DEAD, (uint32_t)filled, 0, 0, 0}};
    view_apply(&v, 2, e, 2);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_REPAIR);
    assert_int_equal(view_whole_copies(&v.copyset[copyset]), 1);
    view_fini(&v);
}

static void test_view_doubt_puts_every_replicated_group_in_repair(void **state)
{
    (void)state;
    static const struct view_event doubts[] = {
        {VIEW_RANK_DEAD, 1, 0, 9, 0}, {VIEW_RANK_DOUBT, 1, 0, 0, 0}, {VIEW_RANK_DONE, 1, 0, 0, 1}};
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++) {
        struct view v;
        open_view(&v, VIEW_DEGRADE, 3, 0, 3);
        view_apply(&v, 1, &doubts[i], 1);
        for (int copyset = 0; copyset < 3 * CLASSES; copyset++) {
            bool several = copyset_class(copyset) > 0;
            assert_int_equal(v.copyset[copyset].mode, several ? COPYSET_REPAIR : COPYSET_DIRECT);
            assert_int_equal(v.copyset[copyset].generation, several ? 1 : 0);
            assert_int_equal(v.copyset[copyset].doubted_at, 1);
            assert_int_equal(view_whole_copies(&v.copyset[copyset]), copyset_class(copyset) + 1);
        }
        view_fini(&v);
    }
}

static void test_view_suspicion_puts_its_group_in_repair(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 3, 0, 3);
    const int copyset = copyset_of(1, SHADOW);
    apply(&v, VIEW_SUSPECT, (uint32_t)copyset, 0, 0, 7);          /* another generation */
    apply(&v, VIEW_SUSPECT, (uint32_t)copyset_of(1, 0), 0, 0, 0); /* of one copy */
    apply(&v, VIEW_SUSPECT, 3 * CLASSES, 0, 0, 0);                /* no such copyset */
    for (int i = 0; i < 3 * CLASSES; i++)
        assert_int_equal(v.copyset[i].mode, COPYSET_DIRECT);
    apply(&v, VIEW_SUSPECT, (uint32_t)copyset, 0, 0, 0);
    for (int i = 0; i < 3 * CLASSES; i++)
        assert_int_equal(v.copyset[i].mode, i == copyset ? COPYSET_REPAIR : COPYSET_DIRECT);
    assert_int_equal(v.copyset[copyset].generation, v.epoch);
    assert_int_equal(view_whole_copies(&v.copyset[copyset]), 2);
    restore(&v, copyset);
    assert_int_equal(v.copyset[copyset].mode, COPYSET_DIRECT);
    view_fini(&v);
}

static void test_view_clean_end_or_other_incarnation_is_no_doubt(void **state)
{
    (void)state;
    const struct view_event done = {VIEW_RANK_DONE, 2, 1, 0, 0}, open = {VIEW_RANK_DONE, 2, 1, 0, 1},
                            dead = {VIEW_RANK_DEAD, 2, 1, 9, 0}, doubt = {VIEW_RANK_DOUBT, 2, 1, 0, 0},
                            node = {VIEW_NODE_DEAD, 2, 1, 0, 0}, left = {VIEW_RANK_LEFT, 2, 1, 0, 0};
    assert_false(view_event_doubts(&done, life_of(2, 1)));
    assert_true(view_event_doubts(&open, life_of(2, 1)));
    assert_true(view_event_doubts(&dead, life_of(2, 1)));
    assert_true(view_event_doubts(&doubt, life_of(2, 1)));
    assert_false(view_event_doubts(&dead, life_of(2, 0)));
    assert_false(view_event_doubts(&dead, life_of(1, 1)));
    assert_false(view_event_doubts(&node, life_of(2, 1)));
    assert_false(view_event_doubts(&left, life_of(2, 1)));
    struct view v;
    open_view(&v, VIEW_DEGRADE, 3, 0, 3);
    apply(&v, VIEW_RANK_DONE, 1, 0, 0, 0);
    assert_int_equal(v.copyset[copyset_of(0, SHADOW)].mode, COPYSET_DIRECT);
    view_fini(&v);
}

static void test_view_doubts_of_a_living_rank_are_counted(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 2, 0, 2);
    apply(&v, VIEW_RANK_DOUBT, 1, 0, 0, 0);
    apply(&v, VIEW_RANK_DOUBT, 1, 0, 0, 0);
    assert_int_equal(v.rank[1].doubted, 2);
    apply(&v, VIEW_RANK_DOUBT, 1, 0, 4, 0); /* five at once */
    assert_int_equal(v.rank[1].doubted, 7);
    assert_int_equal(v.rank[1].state, RANK_RUNNING);
    for (int g = 0; g < 2 * CLASSES; g++)
        assert_int_equal(v.copyset[g].doubted_at, v.epoch);
    apply(&v, VIEW_RANK_DOUBT, 1, 0, 0, 1); /* of which nothing can differ */
    assert_int_equal(v.rank[1].doubted, 8);
    for (int g = 0; g < 2 * CLASSES; g++)
        assert_true(v.copyset[g].doubted_at < v.epoch && v.copyset[g].generation < v.epoch);
    v.rank[1].doubted = 7;
    apply(&v, VIEW_RANK_DOUBT, 1, 7, 0, 0); /* no such incarnation */
    assert_int_equal(v.rank[1].doubted, 7);
    apply(&v, VIEW_RANK_DEAD, 1, 0, 9, 0);
    assert_int_equal(v.rank[1].doubted, 0); /* of the next incarnation */
    view_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_restored_of_an_older_generation_is_refused),
        cmocka_unit_test(test_view_restored_in_the_view_of_a_death_is_refused),
        cmocka_unit_test(test_view_doubt_puts_every_replicated_group_in_repair),
        cmocka_unit_test(test_view_suspicion_puts_its_group_in_repair),
        cmocka_unit_test(test_view_clean_end_or_other_incarnation_is_no_doubt),
        cmocka_unit_test(test_view_doubts_of_a_living_rank_are_counted),
    };
    return cmocka_run_group_tests_name("view_doubts", tests, NULL, NULL);
}
