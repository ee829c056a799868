/* Nodes that are born later. */
#include "view_bed.h"

#include "seed.h"

static void open_with_room(struct view *v, enum view_policy policy, int nodes, int spares, int room)
{
    const struct copy_rule half = {.at = COPIES_AT_HALF};
    int rank_node[64];
    for (int r = 0; r < nodes; r++)
        rank_node[r] = r;
    assert_true(view_init(v, policy, nodes, spares, room, nodes, rank_node, &half));
}

static void bear(struct view *v, int node)
{
    apply(v, VIEW_NODE_BORN, (uint32_t)node, 7, 0, 0);
}

static void test_view_of_unborn_nodes_is_as_if_there_were_none(void **state)
{
    (void)state;
    struct view v, w;
    open_with_room(&v, VIEW_SUBSTITUTE, 3, 1, 4);
    open_with_room(&w, VIEW_SUBSTITUTE, 3, 1, 0);
    for (int step = 0; step < 3; step++) {
        for (int g = 0; g < 3 * CLASSES; g++)
            assert_memory_equal(&v.copyset[g], &w.copyset[g], sizeof v.copyset[g]);
        for (int m = 0; m < view_ids(&v); m++)
            assert_int_equal(v.alive[m], m < view_ids(&w) && w.alive[m]);
        kill_node(&v, step);
        kill_node(&w, step);
    }
    view_fini(&v);
    view_fini(&w);
}

static void test_view_a_node_is_born_in_order_and_once(void **state)
{
    (void)state;
    struct view v;
    open_with_room(&v, VIEW_SUBSTITUTE, 2, 0, 2);
    bear(&v, 3);
    assert_false(v.alive[3]);
    bear(&v, 2);
    assert_true(v.alive[2] && v.spare_free[2]);
    kill_node(&v, 2);
    bear(&v, 2);
    assert_false(v.alive[2]);
    bear(&v, 3);
    assert_true(v.alive[3]);
    bear(&v, 4);
    assert_int_equal(v.next_id, 4);
    view_fini(&v);
}

/* Two nodes, one dies, so nothing has two copies; who is born then holds the other ones, in that view. */
static void test_view_what_lacks_a_copy_has_it_where_a_node_is_born(void **state)
{
    (void)state;
    struct view v;
    open_with_room(&v, VIEW_DEGRADE, 2, 0, 1);
    kill_node(&v, 1);
    assert_copies(&v.copyset[copyset_of(0, SHADOW)], 0, -1, -1);
    assert_copies(&v.copyset[copyset_of(1, SHADOW)], 0, -1, -1);
    assert_int_equal(view_stake(&v, 0, 1u << SHADOW), STAKE_JOB);
    bear(&v, 2);
    for (int s = 0; s < 2; s++) {
        assert_copies(&v.copyset[copyset_of(s, SHADOW)], 0, 2, -1);
        assert_false(v.copyset[copyset_of(s, SHADOW)].copy[1].whole);
        assert_int_equal(v.copyset[copyset_of(s, SHADOW)].mode, COPYSET_REPAIR);
    }
    restore_all(&v);
    kill_node(&v, 0);
    assert_int_equal(v.copyset[copyset_of(0, SHADOW)].lost_at, 0);
    view_fini(&v);
}

static void test_view_who_is_born_takes_over_who_dies_later_or_in_the_same_view(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        struct view v;
        open_with_room(&v, VIEW_SUBSTITUTE, 3, 0, 1);
        if (together) {
            struct view_event e[2] = {{VIEW_NODE_DEAD, 1, 0, 0, 0}, {VIEW_NODE_BORN, 3, 7, 0, 0}};
            view_apply(&v, 1, e, 2);
        } else {
            bear(&v, 3);
            kill_node(&v, 1);
        }
        assert_int_equal(v.rank[1].node, 3);
        assert_int_equal(v.rank[1].state, RANK_RUNNING);
        assert_int_equal(view_slot_node(&v, 1), 3);
        assert_false(v.spare_free[3]);
        view_fini(&v);
    }
}

/* They were given up, and the others have gone on without them. */
static void test_view_ranks_that_were_given_up_stay_dead(void **state)
{
    (void)state;
    struct view v;
    open_with_room(&v, VIEW_SUBSTITUTE, 3, 0, 1);
    kill_node(&v, 1);
    bear(&v, 3);
    assert_int_equal(v.rank[1].state, RANK_DEAD);
    assert_int_equal(view_slot_node(&v, 1), -1);
    assert_true(v.spare_free[3]);
    view_fini(&v);
}

/* A spare that is born first of all is one that was there from the start. */
static void test_view_who_was_born_is_a_spare_like_any_other(void **state)
{
    (void)state;
    struct rng r;
    seed_rng(&r);
    for (int run = 0; run < 200; run++) {
        struct view v, w;
        int nodes = 2 + (int)rng_below(&r, 5), policy = rng_below(&r, 2) ? VIEW_SUBSTITUTE : VIEW_DEGRADE;
        open_with_room(&v, (enum view_policy)policy, nodes, 0, 2);
        open_with_room(&w, (enum view_policy)policy, nodes, 2, 0);
        bear(&v, nodes);
        bear(&v, nodes + 1);
        w.epoch = v.epoch;
        bool fits = nodes > 2; /* else copies were on the spares at the start */
        for (int step = 0; step < nodes && fits; step++) {
            int victim = (int)rng_below(&r, (uint64_t)nodes + 2);
            kill_node(&v, victim);
            kill_node(&w, victim);
            for (int s = 0; s < nodes; s++) {
                assert_int_equal(view_slot_node(&v, s), view_slot_node(&w, s));
                for (unsigned c = 0; c < CLASSES; c++) {
                    const struct view_copyset *g = &v.copyset[copyset_of(s, c)], *h = &w.copyset[copyset_of(s, c)];
                    assert_int_equal(g->copies, h->copies);
                    for (int i = 0; i < g->copies; i++)
                        assert_int_equal(g->copy[i].node, h->copy[i].node);
                }
            }
            if (rng_below(&r, 2)) {
                restore_all(&v);
                restore_all(&w);
            }
        }
        view_fini(&v);
        view_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_of_unborn_nodes_is_as_if_there_were_none),
        cmocka_unit_test(test_view_a_node_is_born_in_order_and_once),
        cmocka_unit_test(test_view_what_lacks_a_copy_has_it_where_a_node_is_born),
        cmocka_unit_test(test_view_who_is_born_takes_over_who_dies_later_or_in_the_same_view),
        cmocka_unit_test(test_view_ranks_that_were_given_up_stay_dead),
        cmocka_unit_test(test_view_who_was_born_is_a_spare_like_any_other),
    };
    return cmocka_run_group_tests_name("view_born", tests, NULL, NULL);
}
