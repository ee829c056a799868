/* Agents among which a node is born later: what it is told, and what it then holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agents.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/segments.h"

static void open_three(void)
{
    w.room = 1;
    world_open(3, 0, VIEW_SUBSTITUTE);
}

static void tell_all(const struct wire *told)
{
    for (int i = 0; i < 3; i++)
        segments_told(&w.node[i].agent, 0, told);
}

/* Segment 4 is there, 5 was freed, 6 came to nothing, and so did 7, later. */
static void some_segments(void)
{
    for (uint32_t seg = 4; seg <= 5; seg++)
        tell_all(&(struct wire){.type = WIRE_SEGMENT, .raw.seg = seg, .raw.a = 64, .raw.b = 1, .raw.identity = seg});
    tell_all(&(struct wire){.type = WIRE_SEGMENT, .raw.seg = 5, .flags = SEGMENT_F_FREED, .raw.identity = 8});
    for (uint32_t seg = 6; seg <= 7; seg++)
        tell_all(&(struct wire){.type = WIRE_SEGMENT,
                                .raw.seg = seg,
                                .flags = SEGMENT_F_FREED,
                                .raw.a = KEEL_ERR_NOMEM,
                                .raw.identity = 3 + seg});
}

static void assert_same_segments(const struct agent *a, const struct agent *b)
{
    for (uint32_t seg = 0; seg < 12; seg++) {
        assert_int_equal(store_find(&a->store, seg) != NULL, store_find(&b->store, seg) != NULL);
        assert_int_equal(store_was_freed(&a->store, seg), store_was_freed(&b->store, seg));
    }
    assert_int_equal(a->store.limit, b->store.limit);
    assert_true(a->segments.freed.instance == b->segments.freed.instance);
    for (uint64_t instances = 0; instances < 14; instances++)
        assert_int_equal(segments_complete(a, instances), segments_complete(b, instances));
}

/* Whichever of the others it hears alone. */
static void test_born_each_tells_it_all(void **state)
{
    (void)state;
    for (int teller = 0; teller < 3; teller++) {
        open_three();
        some_segments();
        int node = world_join();
        for (int i = 0; i < 3; i++)
            w.node[i].still = i != teller;
        world_pump();
        assert_same_segments(&w.node[teller].agent, &w.node[node].agent);
        world_close();
    }
}

/* The last that was freed is none of those that were refused. */
static void test_born_is_told_how_many_there_were(void **state)
{
    (void)state;
    open_three();
    tell_all(&(struct wire){.type = WIRE_SEGMENT, .raw.seg = 4, .raw.a = 64, .raw.b = 1, .raw.identity = 1});
    tell_all(&(struct wire){.type = WIRE_SEGMENT, .raw.seg = 5, .raw.a = 64, .raw.b = 1, .raw.identity = 2});
    tell_all(&(struct wire){.type = WIRE_SEGMENT, .raw.seg = 5, .flags = SEGMENT_F_FREED, .raw.identity = 3});
    tell_all(&(struct wire){.type = WIRE_SEGMENT, .raw.seg = 4, .flags = SEGMENT_F_FREED, .raw.identity = 4});
    int node = world_join();
    world_pump();
    assert_same_segments(&w.node[1].agent, &w.node[node].agent);
    world_close();
}

/* Its sender had not heard of the birth, and says it to nobody again. */
static void test_born_hears_what_was_said_in_older_views(void **state)
{
    (void)state;
    open_three();
    int node = world_join();
    world_pump();
    struct wire old = {.type = WIRE_SEGMENT,
                       .raw.seg = 4,
                       .raw.a = 64,
                       .raw.b = 1,
                       .raw.identity = 1,
                       .epoch = w.epoch - 1},
                new = old;
    new.raw.seg = 5;
    new.epoch = w.epoch;
    segments_told(&w.node[2].agent, 0, &new);
    segments_told(&w.node[2].agent, 0, &old);
    world_pump();
    assert_non_null(store_find(&w.node[node].agent.store, 4));
    assert_null(store_find(&w.node[node].agent.store, 5));
    world_close();
}

static void test_born_before_that_nothing_is_sent_to_it(void **state)
{
    (void)state;
    open_three();
    struct wire told = {.type = WIRE_SEGMENT, .raw.seg = 4, .raw.a = 64, .raw.b = 1};
    struct agent *a = &w.node[0].agent;
    assert_int_equal(agent_tell(a, 3, &told, NULL), 0);
    assert_true(agent_acked(a, 3, 1));
    assert_int_equal(atomic_load(&page_node(a->page, 3)->alive), 0);
    assert_int_equal(atomic_load(&a->page->next_id), 3);
    int node = world_join();
    assert_int_equal(node, 3);
    assert_int_equal(atomic_load(&page_node(a->page, 3)->alive), 1);
    assert_int_equal(atomic_load(&a->page->next_id), 4);
    assert_true(agent_tell(a, 3, &told, NULL) > 0);
    world_pump();
    assert_non_null(store_find(&w.node[node].agent.store, 4));
    world_close();
}

/* Of two nodes one dies, and there is no second copy anywhere; who is born gets it, and serves it when the first one
 * dies, too. */
static void test_born_holds_what_lacked_a_copy(void **state)
{
    (void)state;
    w.room = 1;
    world_open(2, 0, VIEW_DEGRADE);
    for (int node = 0; node < 2; node++)
        assert_int_equal(rank_put(&w.rank[0], node, SEG_SHADOW, 0, 64, 4711, 1), KEEL_OK);
    world_kill_node(1);
    world_restore();
    assert_int_equal(copyset_at(0, SEG_SHADOW, 0)->copies, 1);
    int node = world_join();
    assert_int_equal(copyset_at(0, SEG_SHADOW, 0)->copies, 2);
    for (int i = 0; i <= node; i++)
        world_settle(i);
    world_pump();
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_int_equal(view_whole_copies(copyset_at(0, SEG_SHADOW, 0)), 2);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(node, SEG_SHADOW, 0, 64), 4711);
    world_kill_node(0);
    assert_int_equal(copyset_at(node, SEG_SHADOW, 0)->copy[0].node, node);
    assert_int_equal(copyset_at(node, SEG_SHADOW, 0)->lost_at, 0);
    world_close();
}

static bool is_lost(int node, uint32_t seg, int slot)
{
    const struct store_copy *copy = store_copy(&w.node[node].agent.store, seg, slot);
    assert_non_null(copy);
    return copy->lost;
}

/* It stands in for who dies in the view that bears it: what that one had alone is lost, and not there as zeros. What is
 * allocated afterwards is there. */
static void test_born_does_not_hold_what_was_lost_as_it_was_born(void **state)
{
    (void)state;
    open_three();
    struct wire old = {.type = WIRE_SEGMENT, .raw.seg = 9, .raw.a = 64, .raw.identity = 11}, new = old; /* one copy */
    tell_all(&old);
    int node = world_join_for(1);
    world_pump();
    assert_int_equal(copyset_at(0, 9, 1)->copy[0].node, node);
    assert_true(copyset_at(0, 9, 1)->lost_at == w.epoch);
    assert_true(is_lost(node, 9, 1));
    assert_false(is_lost(0, 9, 0));
    new.raw.seg = 10;
    new.raw.identity = 12;
    new.epoch = w.epoch;
    segments_told(&w.node[node].agent, 0, &new);
    assert_false(is_lost(node, 10, 1));
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_born_each_tells_it_all),
        cmocka_unit_test(test_born_is_told_how_many_there_were),
        cmocka_unit_test(test_born_hears_what_was_said_in_older_views),
        cmocka_unit_test(test_born_before_that_nothing_is_sent_to_it),
        cmocka_unit_test(test_born_holds_what_lacked_a_copy),
        cmocka_unit_test(test_born_does_not_hold_what_was_lost_as_it_was_born),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
