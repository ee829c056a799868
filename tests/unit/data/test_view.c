#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "memory.h"
#include "runtime/base/signals.h"
#include "runtime/view/policy.h"
#include "runtime/wire/control.h"
#include "runtime/view/view.h"
#include "seed.h"

enum { NONE, SHADOW, TRIPLE };

/* Copies on the next nodes: test_policy.c has the other rule. */
static void open_view(struct view *v, enum view_policy policy, int nodes, int spares, int ranks)
{
    const struct copy_rule next = {.at = COPIES_AT_NEXT};
    int rank_node[64];
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * nodes / ranks;
    assert_true(view_init(v, policy, nodes, spares, 0, ranks, rank_node, &next));
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

static void kill_nodes(struct view *v, int a, int b)
{
    struct view_event e[2] = {{VIEW_NODE_DEAD, (uint32_t)a, 0, 0, 0}, {VIEW_NODE_DEAD, (uint32_t)b, 0, 0, 0}};
    view_apply(v, v->epoch + 1, e, 2);
}

static void restore(struct view *v, int copyset)
{
    apply(v, VIEW_RESTORED, (uint32_t)copyset, 0, 0, v->copyset[copyset].generation);
}

static void restore_all(struct view *v)
{
    for (int g = 0; g < v->nodes * CLASSES; g++)
        restore(v, g);
}

/* Its copies are on these nodes, in this order (-1: no more). */
static void assert_copies(const struct view_copyset *g, int a, int b, int c)
{
    const int node[COPIES_MAX] = {a, b, c, -1};
    for (int i = 0; i < COPIES_MAX; i++)
        assert_int_equal(i < g->copies ? g->copy[i].node : -1, node[i]);
}

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

/* ---- restored, doubts ---- */

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

/* ---- ranks that move ---- */

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

/* ---- whatever happens ---- */

static struct view_event random_event(const struct view *v, struct rng *rng)
{
    uint32_t copyset = (uint32_t)rng_below(rng, (uint64_t)v->nodes * CLASSES),
             r = (uint32_t)rng_below(rng, (uint64_t)v->ranks);
    uint64_t generation = v->copyset[copyset].generation;
    switch (rng_below(rng, 14)) {
    case 12:
    case 13:
        return (struct view_event){VIEW_RANK_MOVED, r, v->rank[r].incarnation - (rng_below(rng, 4) == 0),
                                   (uint32_t)rng_below(rng, (uint64_t)(v->nodes + v->spares + 1)),
                                   view_moved_word(rng_below(rng, 2), 0)};
    case 0:
    case 1:
        return (struct view_event){VIEW_NODE_DEAD, (uint32_t)rng_below(rng, (uint64_t)(v->nodes + v->spares + 1)), 0, 0,
                                   0};
    case 2:
        return (struct view_event){VIEW_RANK_DEAD, r, v->rank[r].incarnation - (uint32_t)rng_below(rng, 2), 9, 0};
    case 3:
        return (struct view_event){VIEW_RANK_DONE, r, v->rank[r].incarnation, 0, rng_below(rng, 2)};
    case 4:
        return (struct view_event){VIEW_RANK_DOUBT, r, v->rank[r].incarnation, 0, 0};
    case 5:
        return (struct view_event){VIEW_RANK_LEFT, r, v->rank[r].incarnation, 0, 0};
    case 6:
        return (struct view_event){99, r, 0, 0, 0};
    default:
        return (struct view_event){VIEW_RESTORED, copyset, 0, 0, generation - (rng_below(rng, 4) == 0)};
    }
}

static int living(const struct view *v)
{
    int n = 0;
    for (int m = 0; m < v->nodes + v->spares; m++)
        n += v->alive[m];
    return n;
}

static void check_copyset(const struct view *v, int copyset)
{
    const struct view_copyset *g = &v->copyset[copyset];
    int nodes = living(v), wanted = (int)copyset_class(copyset) + 1;
    assert_true(g->copies >= (nodes < wanted ? nodes : wanted));
    if (g->mode == COPYSET_DIRECT) /* until then there are more while it follows its slot */
        assert_int_equal(g->copies, nodes < wanted ? nodes : wanted);
    for (int i = 0; i < g->copies; i++) {
        assert_true(v->alive[g->copy[i].node]);
        assert_int_equal(view_copy_at(g, g->copy[i].node), i); /* no two on one node */
    }
    assert_true(g->copies == 0 || g->copy[0].whole);
    assert_true(g->mode == COPYSET_REPAIR || view_whole_copies(g) == g->copies);
}

static bool looks_the_same(const struct view_copyset *x, const struct view_copyset *y)
{
    bool same = x->copies == y->copies && x->mode == y->mode && x->lost_at == y->lost_at;
    for (int i = 0; same && i < x->copies; i++)
        same = x->copy[i].node == y->copy[i].node && x->copy[i].whole == y->copy[i].whole &&
               x->copy[i].placed == y->copy[i].placed;
    return same;
}

/* From one view to the next. */
static void check_change(const struct view *v, int copyset, const struct view_copyset *old, const struct view_event *e,
                         int n)
{
    const struct view_copyset *g = &v->copyset[copyset];
    bool survives = false, hurt = false, said = false;
    if (g->copies == 0)
        return; /* nobody is left */
    for (int i = 0; i < old->copies; i++) {
        survives = survives || (old->copy[i].whole && v->alive[old->copy[i].node]);
        hurt = hurt || !v->alive[old->copy[i].node];
    }
    for (int i = 0; i < n; i++)
        said = said || (e[i].type == VIEW_RESTORED && e[i].a == (uint32_t)copyset && e[i].d == old->generation);
    assert_int_equal(g->lost_at, survives ? old->lost_at : v->epoch);
    int lived = 0, wanted = (int)copyset_class(copyset) + 1;
    for (int i = 0; i < old->copies; i++)
        lived += old->copy[i].whole && v->alive[old->copy[i].node];
    assert_true(view_whole_copies(g) >= (lived < wanted ? lived : wanted)); /* what is too much went, no more */
    if (looks_the_same(g, old))                                             /* told again, or doubted again */
        assert_true(g->generation == old->generation || g->generation == v->epoch);
    else
        assert_int_equal(g->generation, v->epoch);
    for (int i = 0; i < g->copies; i++) {
        int at = view_copy_at(old, g->copy[i].node);
        if (g->copy[i].whole && survives && (at < 0 || !old->copy[at].whole))
            assert_true(said && !hurt); /* only the primary's word makes a copy whole */
        if (survives && at >= 0 && old->copy[at].whole)
            assert_true(g->copy[i].whole);
        if (at < 0)
            assert_int_equal(g->copy[i].placed, v->epoch);
    }
}

static void check_ranks(const struct view *v)
{
    for (int r = 0; r < v->ranks; r++) {
        const struct view_rank *k = &v->rank[r];
        assert_true(k->state == RANK_RUNNING ? v->alive[k->node] : k->node == -1);
        assert_true(k->restarts <= VIEW_MAX_RESTARTS);
    }
    for (int s = 0; s < v->nodes; s++)
        assert_true(view_slot_node(v, s) < 0 || v->alive[view_slot_node(v, s)]);
    for (int r = 0; r < v->ranks; r++) { /* a node that runs a rank is no spare; a slot is where ranks of it run */
        bool at_home = v->rank[r].state != RANK_RUNNING;
        assert_true(v->rank[r].state != RANK_RUNNING || !v->spare_free[v->rank[r].node]);
        for (int k = 0; k < v->ranks; k++)
            at_home = at_home || (v->rank[k].slot == v->rank[r].slot && v->rank[k].state == RANK_RUNNING &&
                                  v->rank[k].node == view_slot_node(v, v->rank[r].slot));
        assert_true(at_home);
    }
}

static void open_random(struct view *v, struct view *twin, struct rng *rng)
{
    int rank_node[7 * 3], domain[2 * 9], nodes = 1 + (int)rng_below(rng, 7), spares = (int)rng_below(rng, 3);
    int ranks = nodes * (1 + (int)rng_below(rng, 3));
    enum view_policy policy = (enum view_policy)rng_below(rng, 3);
    struct copy_rule rule = {.at = (enum copies_at)rng_below(rng, 2), .levels = (int)rng_below(rng, 3)};
    rule.domain = domain;
    for (int i = 0; i < rule.levels * (nodes + spares); i++)
        domain[i] = (int)rng_below(rng, 3);
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * nodes / ranks;
    assert_true(view_init(v, policy, nodes, spares, 0, ranks, rank_node, &rule));
    assert_true(view_init(twin, policy, nodes, spares, 0, ranks, rank_node, &rule));
}

static void test_view_random_events_keep_invariants(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int run = 0; run < 2000; run++) {
        struct view v, twin;
        open_random(&v, &twin, &rng);
        int nodes = v.nodes;
        for (int step = 0; step < 16; step++) {
            struct view_copyset old[7 * CLASSES];
            struct view_event e[3];
            int n = 1 + (int)rng_below(&rng, 3);
            memcpy(old, v.copyset, sizeof old[0] * (size_t)(nodes * CLASSES));
            for (int i = 0; i < n; i++)
                e[i] = random_event(&v, &rng);
            uint64_t epoch = v.epoch + 1 + rng_below(&rng, 2); /* epochs of views that were given up are missing */
            view_apply(&v, epoch, e, n);
            view_apply(&twin, epoch, e, n);
            for (int copyset = 0; copyset < nodes * CLASSES; copyset++) {
                check_copyset(&v, copyset);
                check_change(&v, copyset, &old[copyset], e, n);
                assert_true(looks_the_same(&v.copyset[copyset], &twin.copyset[copyset])); /* every agent has the same */
            }
            check_ranks(&v);
        }
        view_fini(&v);
        view_fini(&twin);
    }
}

/* ---- nodes that are born later ---- */

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
        cmocka_unit_test(test_view_start_copies_on_the_next_nodes),
        cmocka_unit_test(test_view_start_with_too_few_nodes_uses_spares),
        cmocka_unit_test(test_view_init_without_memory_leaves_nothing),
        cmocka_unit_test(test_view_node_dies_spare_gets_ranks_and_copies),
        cmocka_unit_test(test_view_restored_group_is_handed_to_its_ranks_node),
        cmocka_unit_test(test_view_program_that_needs_all_ends_by_the_first_death),
        cmocka_unit_test(test_view_program_that_survives_goes_on_and_no_rank_moves),
        cmocka_unit_test(test_view_end_by_itself_is_no_loss),
        cmocka_unit_test(test_view_stake_of_nodes),
        cmocka_unit_test(test_view_degrade_ranks_stay_dead_copies_move),
        cmocka_unit_test(test_view_abort_ends_the_job_when_a_node_with_ranks_dies),
        cmocka_unit_test(test_view_spares_are_taken_in_order_and_once),
        cmocka_unit_test(test_view_both_copies_in_one_view_lost_and_starts_again),
        cmocka_unit_test(test_view_triple_survives_two_deaths_in_one_view),
        cmocka_unit_test(test_view_triple_survives_a_death_during_the_fill_of_another),
        cmocka_unit_test(test_view_primary_dies_during_fill_lost),
        cmocka_unit_test(test_view_filled_node_dies_another_is_found),
        cmocka_unit_test(test_view_last_node_has_every_copy_and_is_direct),
        cmocka_unit_test(test_view_restored_of_an_older_generation_is_refused),
        cmocka_unit_test(test_view_restored_in_the_view_of_a_death_is_refused),
        cmocka_unit_test(test_view_doubt_puts_every_replicated_group_in_repair),
        cmocka_unit_test(test_view_clean_end_or_other_incarnation_is_no_doubt),
        cmocka_unit_test(test_view_doubts_of_a_living_rank_are_counted),
        cmocka_unit_test(test_view_rank_dies_restarts_in_place_then_stays_dead),
        cmocka_unit_test(test_view_job_ends_with_code_of_first_failing_rank),
        cmocka_unit_test(test_view_stop_says_who_asked),
        cmocka_unit_test(test_policy_copy_home_first_then_fewest_then_spares),
        cmocka_unit_test(test_view_moved_rank_goes_on_elsewhere_and_nothing_has_failed),
        cmocka_unit_test(test_view_moved_rank_leaves_doubts_unless_all_was_complete),
        cmocka_unit_test(test_view_slot_goes_with_the_last_of_its_ranks),
        cmocka_unit_test(test_view_slot_that_goes_to_a_copy_of_its_own_is_handed_over),
        cmocka_unit_test(test_view_restored_for_the_slots_former_node_is_refused),
        cmocka_unit_test(test_view_move_that_is_stale_or_repeated_changes_nothing),
        cmocka_unit_test(test_view_rank_whose_target_is_dead_begins_again_where_it_was),
        cmocka_unit_test(test_view_rank_whose_node_dies_with_its_move_goes_to_the_spare),
        cmocka_unit_test(test_view_move_of_who_has_left_is_its_end),
        cmocka_unit_test(test_view_move_where_nobody_begins_again_is_a_death),
        cmocka_unit_test(test_view_death_of_a_node_with_ranks_of_two_slots),
        cmocka_unit_test(test_view_random_events_keep_invariants),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
