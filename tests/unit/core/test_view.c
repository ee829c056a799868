#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "runtime/base/rng.h"
#include "runtime/core/view.h"

static void open_view(struct view *v, enum view_policy policy, int nodes, int spares, int ranks)
{
    int rank_node[64];
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * nodes / ranks;
    assert_true(view_init(v, policy, nodes, spares, ranks, rank_node));
}

static void apply(struct view *v, uint32_t type, uint32_t a, uint32_t b, uint32_t c, uint64_t d)
{
    struct view_event e = {type, a, b, c, d};
    view_apply(v, v->epoch + 1, &e, 1);
}

static void kill_node(struct view *v, int node)
{
    apply(v, VIEW_NODE_DEAD, (uint32_t)node, 0, 0, 0);
}

static void restore_all(struct view *v)
{
    for (int s = 0; s < v->nodes; s++)
        if (v->slot[s].mode == SLOT_SYNC || v->slot[s].mode == SLOT_REBUILD)
            apply(v, VIEW_RESTORED, (uint32_t)s, (uint32_t)v->slot[s].shadow, 0, v->slot[s].changed);
}

static void test_view_start_shadows_on_next_node(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 8);
    for (int s = 0; s < 4; s++) {
        assert_int_equal(v.slot[s].primary, s);
        assert_int_equal(v.slot[s].shadow, (s + 1) % 4);
        assert_int_equal(v.slot[s].mode, SLOT_PAIR);
    }
    assert_int_equal(v.rank[3].node, 1);
    assert_int_equal(v.rank[3].index, 1);
    view_fini(&v);
}

static void test_view_node_dies_spare_gets_ranks_and_data(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 1, 4);
    kill_node(&v, 1);
    assert_int_equal(v.rank[1].node, 4);
    assert_int_equal(v.rank[1].incarnation, 1);
    assert_int_equal(v.rank[1].joined, 1);
    assert_int_equal(v.slot[1].primary, 2); /* promoted */
    assert_int_equal(v.slot[1].shadow, 4);
    assert_int_equal(v.slot[1].mode, SLOT_REBUILD);
    assert_int_equal(v.slot[0].primary, 0); /* lost its shadow */
    assert_int_equal(v.slot[0].mode, SLOT_REBUILD);
    assert_int_equal(v.slot[2].mode, SLOT_SYNC);
    restore_all(&v);
    assert_int_equal(v.slot[1].primary, 4); /* local to its ranks again */
    assert_int_equal(v.slot[1].shadow, 2);
    assert_true(view_redundancy_whole(&v));
    view_fini(&v);
}

static void test_view_degrade_ranks_stay_dead_data_stay(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 1, 4);
    kill_node(&v, 0);
    assert_int_equal(v.rank[0].state, RANK_DEAD);
    assert_int_equal(v.slot[0].primary, 1);
    assert_true(v.slot[0].shadow > 1);
    restore_all(&v);
    assert_int_equal(v.slot[0].mode, SLOT_PAIR);
    assert_int_equal(v.slot[0].primary, 1);
    view_fini(&v);
}

static void test_view_primary_and_shadow_in_one_batch_lost(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    struct view_event e[2] = {{VIEW_NODE_DEAD, 2, 0, 0, 0}, {VIEW_NODE_DEAD, 1, 0, 0, 0}};
    view_apply(&v, 1, e, 2);
    assert_int_equal(v.slot[1].mode, SLOT_LOST);
    assert_int_equal(v.slot[2].primary, 3);
    assert_int_equal(v.slot[0].primary, 0);
    view_fini(&v);
}

static void test_view_primary_dies_during_rebuild_lost(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    kill_node(&v, 1);
    assert_int_equal(v.slot[1].primary, 2);
    kill_node(&v, 2);
    assert_int_equal(v.slot[1].mode, SLOT_LOST);
    view_fini(&v);
}

static void test_view_rebuilding_node_dies_another_is_found(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_SUBSTITUTE, 4, 2, 4);
    kill_node(&v, 1);
    assert_int_equal(v.slot[1].shadow, 4);
    kill_node(&v, 4);
    assert_int_equal(v.rank[1].node, 5);
    assert_int_equal(v.slot[1].primary, 2);
    assert_int_equal(v.slot[1].shadow, 5);
    assert_int_equal(v.slot[1].mode, SLOT_REBUILD);
    view_fini(&v);
}

static void test_view_late_restored_of_older_change_ignored(void **state)
{
    (void)state;
    struct view v;
    open_view(&v, VIEW_DEGRADE, 4, 0, 4);
    kill_node(&v, 1);
    uint64_t first = v.slot[3].changed;
    apply(&v, VIEW_RANK_DEAD, 2, 0, 9, 0); /* slot 3 is in doubt again */
    assert_int_equal(v.slot[3].mode, SLOT_SYNC);
    apply(&v, VIEW_RESTORED, 3, (uint32_t)v.slot[3].shadow, 0, first);
    assert_int_equal(v.slot[3].mode, SLOT_SYNC);
    view_fini(&v);
}

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
    kill_node(&v, 1); /* after keel_finalize: the rank counts as done */
    apply(&v, VIEW_RANK_DEAD, 0, 0, 9, 0);
    assert_true(v.stopped);
    assert_int_equal(v.code, 0);
    view_fini(&v);
}

/* Whatever happens: a whole slot has live copies on different nodes, a running rank has a live node, and nodes that
 * died never come back. */
static void test_view_random_events_keep_invariants(void **state)
{
    (void)state;
    const char *text = getenv("KEEL_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    print_message("KEEL_SEED=%llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_seed(&rng, seed);
    for (int run = 0; run < 2000; run++) {
        struct view v;
        int nodes = 1 + (int)rng_below(&rng, 7), spares = (int)rng_below(&rng, 3);
        int ranks = nodes * (1 + (int)rng_below(&rng, 3));
        open_view(&v, rng_below(&rng, 2) ? VIEW_DEGRADE : VIEW_SUBSTITUTE, nodes, spares, ranks);
        for (int step = 0; step < 12; step++) {
            struct view_event e[3];
            int n = 1 + (int)rng_below(&rng, 3);
            for (int i = 0; i < n; i++) {
                int s = (int)rng_below(&rng, (uint64_t)nodes), r = (int)rng_below(&rng, (uint64_t)ranks);
                switch (rng_below(&rng, 4)) {
                case 0:
                    e[i] = (struct view_event){VIEW_NODE_DEAD, (uint32_t)rng_below(&rng, (uint64_t)(nodes + spares)), 0,
                                               0, 0};
                    break;
                case 1:
                    e[i] = (struct view_event){VIEW_RANK_DEAD, (uint32_t)r, v.rank[r].incarnation, 9, 0};
                    break;
                default:
                    e[i] = (struct view_event){VIEW_RESTORED, (uint32_t)s, (uint32_t)v.slot[s].shadow, 0,
                                               v.slot[s].changed};
                }
            }
            view_apply(&v, v.epoch + 1, e, n);
            for (int s = 0; s < nodes; s++) {
                const struct view_slot *k = &v.slot[s];
                if (k->mode == SLOT_LOST)
                    continue;
                assert_true(v.alive[k->primary]);
                assert_true(k->shadow < 0 || (v.alive[k->shadow] && k->shadow != k->primary));
                assert_true((k->mode == SLOT_ALONE) == (k->shadow < 0));
            }
            for (int r = 0; r < ranks; r++)
                assert_true(v.rank[r].state != RANK_RUNNING || v.alive[v.rank[r].node]);
        }
        view_fini(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view_start_shadows_on_next_node),
        cmocka_unit_test(test_view_node_dies_spare_gets_ranks_and_data),
        cmocka_unit_test(test_view_degrade_ranks_stay_dead_data_stay),
        cmocka_unit_test(test_view_primary_and_shadow_in_one_batch_lost),
        cmocka_unit_test(test_view_primary_dies_during_rebuild_lost),
        cmocka_unit_test(test_view_rebuilding_node_dies_another_is_found),
        cmocka_unit_test(test_view_late_restored_of_older_change_ignored),
        cmocka_unit_test(test_view_rank_dies_restarts_in_place_then_stays_dead),
        cmocka_unit_test(test_view_job_ends_with_code_of_first_failing_rank),
        cmocka_unit_test(test_view_random_events_keep_invariants),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
