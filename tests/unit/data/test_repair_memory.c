/* Repairs where there is no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "repair_steps.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/segments.h"

static void test_repair_without_memory_for_a_doubt_the_agent_ends(void **state)
{
    (void)state;
    memory_fail_at(1);
    repair_add_doubt(&w.node[0].agent, life_of(3, 0), &(struct patch){.seg = SEG_SHADOW, .len = 8});
    assert_true(memory_failed());
    assert_true(w.node[0].fatal);
    assert_int_equal(atomic_load(&w.node[0].agent.page->fenced), 1); /* its ranks know */
}

static void test_repair_agent_init_without_memory_leaves_nothing(void **state)
{
    (void)state;
    static struct agent a;
    struct agent *like = &w.node[0].agent;
    const int rank_node[] = {0, 1, 2, 3};
    struct agent_config config = {.ops = like->ops,
                                  .secret = like->secret,
                                  .self = 0,
                                  .nodes = 4,
                                  .ranks = 4,
                                  .rank_node = rank_node,
                                  .shm = like->shm,
                                  .net = like->shm, /* nothing is registered there */
                                  .page = calloc(1, page_bytes(4, 4, 4)),
                                  .now = w.now};
    size_t before = memory_living();
    bool reached = true;
    long n = 1;
    for (; reached; n++) {
        memory_fail_at(n);
        keel_status status = agent_init(&a, &config);
        reached = memory_failed();
        assert_int_equal(status, reached ? KEEL_ERR_NOMEM : KEEL_OK);
        agent_fini(&a);
        assert_int_equal(memory_living(), before);
    }
    assert_true(n > 30);
    free(config.page);
}

/* Whatever allocation fails while copies are made equal and filled: it comes to a good end, or the agent ends. */
static void test_repair_without_memory_ends_well_or_the_agent_ends(void **state)
{
    (void)state;
    const struct view_event dead = death_of(3);
    bool reached = true;
    int fatal = 0;
    long n = 1;
    for (; reached && n < 400; n++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        struct agent *a = &w.node[0].agent;
        assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 24, 7, 1), KEEL_OK);
        world_prepare(&dead, 1);
        world_pump();
        for (int i = 0; i < 4; i++)
            world_commit(i, &dead, 1);
        for (int i = 1; i < 4; i++)
            world_settle(i);
        for (int i = 0; i < 5; i++)
            world_turn();
        memory_fail_at(n);
        world_settle(0);
        (void)agent_step(a);
        reached = memory_failed();
        fatal += w.node[0].fatal;
        if (w.node[0].fatal)
            continue;
        world_pump();
        world_restore();
        assert_true(is_direct(SEG_SHADOW, 0));
        assert_true(copies_are_equal());
    }
    assert_true(fatal > 0 && n > 3);
}

/* A copy that is being filled, as node 1 sees it: its place in the slot's copyset. */
static int being_filled(int *slot)
{
    for (*slot = 0; *slot < w.nodes; ++*slot)
        for (int at = 1; at < copyset_at(1, SEG_SHADOW, *slot)->copies; at++)
            if (!copyset_at(1, SEG_SHADOW, *slot)->copy[at].whole)
                return at;
    return -1;
}

/* What comes to an agent that ends, behind what it had no memory for, is not looked at. */
static void test_repair_agent_that_ends_looks_at_nothing_more(void **state)
{
    (void)state;
    int slot;
    world_kill_node(0); /* filled, and nobody has committed that */
    int at = being_filled(&slot);
    assert_true(at > 0);
    const struct view_copyset *g = copyset_at(1, SEG_SHADOW, slot);
    int from = g->copy[0].node, node = g->copy[at].node;
    struct agent *a = &w.node[node].agent;
    struct wire begin = {
        .type = WIRE_SNAP_BEGIN, .raw.slot = (uint32_t)slot, .raw.step = 1, .raw.identity = g->copy[at].placed};
    struct dedup_origin head = {.lanes = 4};
    size_t len = dedup_origin_bytes(&head);
    struct wire origin = begin;
    origin.type = WIRE_SNAP_ORIGIN;
    origin.len = (uint32_t)len;
    void *body = calloc(1, len);
    assert_non_null(body);
    memcpy(body, &head, sizeof head);
    memory_fail_at(1);
    a->peers.ops.receive(a, from, &begin, NULL);
    assert_true(memory_failed());
    assert_true(w.node[node].fatal);
    a->peers.ops.receive(a, from, &origin, body);
    free(body);
}

/* Who has no memory for the copies that a dead node leaves keeps those that it has. */
static void test_repair_node_without_memory_declines_a_copy(void **state)
{
    (void)state;
    for (int full = 1; full < 4; full++) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        for (int node = 0; node < 3; node++) /* of each slot's part */
            for (int slot = 0; slot < 3; slot++)
                if (view_copy_at(copyset_at(node, SEG_SHADOW, slot), node) >= 0)
                    memset(bytes_at(node, SEG_SHADOW, slot), 'a' + slot, 64);
        w.node[1].full = full & 1;
        w.node[2].full = full & 2;
        world_kill_node(0);
        world_restore();
        for (int node = 1; node < 3; node++)
            assert_false(w.node[node].fatal);
        for (int slot = 0; slot < 3; slot++) {
            const struct view_copyset *g = copyset_at(1, SEG_SHADOW, slot);
            assert_true(is_direct(SEG_SHADOW, slot));
            assert_int_equal(g->lost_at, 0);
            assert_int_equal(bytes_at(g->copy[0].node, SEG_SHADOW, slot)[63], 'a' + slot);
            for (int i = 0; i < g->copies; i++)
                assert_true(g->copy[i].whole);
        }
        assert_true(copies_are_equal());
        assert_non_null(strstr(w.node[1].said, "redundancy_reduced"));
        assert_null(strstr(w.node[1].said, "redundancy_restored"));
    }
}

/* The kernel gives memory before it has it: what is not there in the middle of the filling is declined like a whole
 * copy. */
static void test_repair_memory_that_ends_in_the_middle_declines_the_copy(void **state)
{
    (void)state;
    for (int nth = 1; nth < 20; nth += 3) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        for (int node = 0; node < 3; node++)
            for (int slot = 0; slot < 3; slot++)
                if (view_copy_at(copyset_at(node, SEG_SHADOW, slot), node) >= 0)
                    memset(bytes_at(node, SEG_SHADOW, slot), 'a' + slot, SEG_BYTES);
        w.node[1].refused_block = w.node[2].refused_block = nth;
        world_kill_node(0);
        world_restore();
        for (int slot = 0; slot < 3; slot++) {
            const struct view_copyset *g = copyset_at(1, SEG_SHADOW, slot);
            assert_true(is_direct(SEG_SHADOW, slot));
            assert_int_equal(g->lost_at, 0);
            for (int i = 0; i < g->copies; i++)
                for (size_t k = 0; k < SEG_BYTES; k++)
                    assert_int_equal(bytes_at(g->copy[i].node, SEG_SHADOW, slot)[k], 'a' + slot);
        }
        assert_true(copies_are_equal());
        assert_false(w.node[1].fatal || w.node[2].fatal);
        assert_non_null(strstr(w.node[1].said, "redundancy_reduced"));
        assert_null(strstr(w.node[1].said, "redundancy_restored"));
    }
}

/* What says that a copy counts may overtake what says that its node has no memory for it. */
static void test_repair_copy_without_memory_does_not_count(void **state)
{
    (void)state;
    world_close();
    world_open(4, 0, VIEW_DEGRADE);
    for (int node = 0; node < 4; node++)
        for (int slot = 0; slot < 4; slot++)
            if (view_copy_at(copyset_at(node, SEG_SHADOW, slot), node) >= 0)
                memset(bytes_at(node, SEG_SHADOW, slot), 'a' + slot, 64);
    w.node[2].full = true;
    world_kill_node(0);
    int declined = -1;
    for (int i = 0; i < w.submissions; i++)
        declined = w.submitted[i].type == VIEW_DECLINED ? i : declined;
    assert_true(declined >= 0 && w.submitted[declined].a == 2);
    struct view_event late = w.submitted[declined];
    memmove(&w.submitted[declined], &w.submitted[declined + 1], sizeof late * (size_t)(--w.submissions - declined));
    world_restore();
    for (int slot = 0; slot < 4; slot++)
        for (int i = 0; i < copyset_at(1, SEG_SHADOW, slot)->copies; i++) {
            const struct view_copy *c = &copyset_at(1, SEG_SHADOW, slot)->copy[i];
            const struct store_copy *here = store_copy(&w.node[c->node].agent.store, SEG_SHADOW, slot);
            assert_true(!c->whole || (here && here->base && here->base[63] == 'a' + slot));
        }
    world_change(&late, 1);
    world_restore();
    for (int node = 1; node < 4; node++)
        assert_false(w.node[node].fatal);
    assert_true(copies_are_equal());
    for (int slot = 0; slot < 4; slot++)
        assert_true(is_direct(SEG_SHADOW, slot));
}

/* A segment that is allocated when a copy was filled, but is not yet called whole: without memory for it there is no
 * segment. */
static void test_repair_filled_copy_counts_for_new_segments(void **state)
{
    (void)state;
    world_kill_node(0);
    assert_true(w.submissions > 0); /* filled, and nobody has committed that */
    int node = -1;
    for (int slot = 0; slot < w.nodes; slot++)
        for (int i = 0; i < copyset_at(1, SEG_SHADOW, slot)->copies; i++)
            if (!copyset_at(1, SEG_SHADOW, slot)->copy[i].whole)
                node = copyset_at(1, SEG_SHADOW, slot)->copy[i].node;
    assert_true(node > 0);
    struct agent *a = &w.node[node].agent;
    assert_int_equal(store_define(&a->store, 9, 64, 1, 0), KEEL_OK);
    struct store_segment *s = store_find(&a->store, 9);
    for (int slot = 0; slot < w.nodes; slot++) { /* there is memory for those that are called whole */
        int at = view_copy_at(copyset_at(1, SEG_SHADOW, slot), node);
        if (at >= 0 && copyset_at(1, SEG_SHADOW, slot)->copy[at].whole)
            assert_int_equal(store_make(&a->store, s, slot, copyset_at(1, SEG_SHADOW, slot)->generation), KEEL_OK);
    }
    w.node[node].full = true;
    assert_int_equal(segments_make_copies(a, s), KEEL_ERR_NOMEM);
    assert_false(a->segments.declined);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_repair_without_memory_for_a_doubt_the_agent_ends),
        TEST(test_repair_agent_init_without_memory_leaves_nothing),
        TEST(test_repair_without_memory_ends_well_or_the_agent_ends),
        TEST(test_repair_agent_that_ends_looks_at_nothing_more),
        TEST(test_repair_node_without_memory_declines_a_copy),
        TEST(test_repair_memory_that_ends_in_the_middle_declines_the_copy),
        TEST(test_repair_copy_without_memory_does_not_count),
        TEST(test_repair_filled_copy_counts_for_new_segments),
    };
    return cmocka_run_group_tests_name("repair_memory", tests, NULL, NULL);
}
