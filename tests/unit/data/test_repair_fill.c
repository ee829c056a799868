/* Nodes die: what is missing is filled, whatever goes on meanwhile and whoever dies then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "repair_steps.h"
#include "runtime/agent/dedup.h"
#include "runtime/agent/segments.h"
#include "runtime/wire/task_id.h"
#include "seed.h"

static void test_repair_third_copy_is_filled_with_bytes_and_records(void **state)
{
    (void)state;
    struct wire step = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 16);
    step.flags = IDENTITY_F_TASK;
    step.raw.identity = task_id(SEG_TRIPLE, 40);
    step.raw.round = 2;
    step.raw.a = 1;
    for (uint64_t number = 1; number <= 3; number++)
        assert_int_equal(add(writer, 0, SEG_TRIPLE, 8, 100, number), KEEL_OK);
    assert_int_equal(rank_ask(writer, 0, step, NULL), KEEL_OK);
    for (int node = 0; node < 3; node++)
        assert_int_equal(rank_put(other, node, SEG_TRIPLE, 0, SEG_BYTES - 8, 55, 2), KEEL_OK);
    world_kill_node(2);
    assert_int_equal(copyset_at(0, SEG_TRIPLE, 0)->copy[2].node, 3);
    world_restore();
    assert_true(is_direct(SEG_TRIPLE, 0));
    assert_int_equal(view_whole_copies(copyset_at(0, SEG_TRIPLE, 0)), 3);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 300);
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, SEG_BYTES - 8), 55);
    const struct dedup *d = &w.node[3].agent.dedup[copyset_of(0, 2)];
    int64_t result;
    assert_int_equal(dedup_look(d, life_of(3, 0), 5, 3, 0, &result), DEDUP_SEEN);
    assert_int_equal(result, 200);
    assert_int_equal(dedup_task_look(d, task_id(SEG_TRIPLE, 40), 2, 0), DEDUP_SEEN);
    world_kill_node(0); /* and it can be counted on */
    world_restore();
    world_kill_node(1);
    assert_int_equal(copyset_at(3, SEG_TRIPLE, 0)->copy[0].node, 3);
    assert_int_equal(add(writer, 3, SEG_TRIPLE, 8, 100, 3), KEEL_OK); /* its answer was lost */
    assert_int_equal(writer->reply.raw.a, 200);
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 300);
}

static void test_repair_copy_counts_when_all_of_it_is_acknowledged(void **state)
{
    (void)state;
    assert_int_equal(add(writer, 0, SEG_TRIPLE, 8, 100, 1), KEEL_OK);
    declare_dead(2);
    w.node[3].still = true;
    world_pump();
    assert_false(was_submitted(SEG_TRIPLE, 0));
    assert_true(was_submitted(SEG_SHADOW, 0)); /* its copies run */
    w.node[3].still = false;
    world_pump();
    assert_true(was_submitted(SEG_TRIPLE, 0));
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 100);
}

/* A process may not load and store where blocks are still to come. */
static void test_repair_copy_that_is_filled_is_mapped_when_it_is_whole(void **state)
{
    (void)state;
    struct proc proc = {.life.rank = 3};
    const struct control map = {.type = CONTROL_SEG_MAP, .seg = SEG_TRIPLE, .slot = 0};
    segments_map(&w.node[3].agent, &proc, &map);
    assert_int_equal(w.answer.status, KEEL_ERR_STATE); /* none is here */
    declare_dead(2);
    segments_map(&w.node[3].agent, &proc, &map);
    assert_int_equal(w.answer.status, KEEL_IN_PROGRESS);
    world_pump();
    assert_true(was_submitted(SEG_TRIPLE, 0));
    segments_map(&w.node[3].agent, &proc, &map);
    assert_int_equal(w.answer.status, KEEL_IN_PROGRESS);
    world_restore();
    segments_map(&w.node[3].agent, &proc, &map);
    assert_int_equal(w.answer.status, KEEL_OK);
}

/* What is executed while a copy is filled is in it, before its block was sent or after. */
static void test_repair_operations_during_the_fill_are_in_the_new_copy(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    declare_dead(2);
    for (uint64_t number = 1; number <= 300; number++) {
        struct wire q =
            rank_wire(writer, number % 2 ? WIRE_RMW : WIRE_PUT, SEG_TRIPLE, 0, 8 * rng_below(&rng, SEG_BYTES / 8));
        const int64_t value = (int64_t)number;
        q.raw.a = value;
        q.raw.identity = number;
        q.raw.round = 5;
        q.flags = q.type == WIRE_PUT ? PUT_F_THROUGH : 0;
        q.len = q.type == WIRE_PUT ? sizeof value : 0;
        rank_send(writer, 0, q, &value);
        if (rng_below(&rng, 10) == 0)
            world_turn();
    }
    world_pump();
    assert_int_equal(writer->replies, 300);
    world_restore();
    assert_true(is_direct(SEG_TRIPLE, 0));
    assert_true(copies_are_equal());
}

/* The doubts of a writer that dies while a copy is filled. */
static void test_repair_writer_dies_during_the_fill_all_copies_are_made_equal(void **state)
{
    (void)state;
    for (int reached = 0; reached < 2; reached++)
        for (int turns = 0; turns < 12; turns++) {
            world_close();
            world_open(4, 0, VIEW_DEGRADE);
            assert_int_equal(rank_put(writer, reached, SEG_TRIPLE, 0, 24, 7, 1), KEEL_OK);
            declare_dead(2);
            for (int i = 0; i < turns; i++)
                world_turn();
            world_kill_rank(3);
            world_restore();
            assert_true(is_direct(SEG_TRIPLE, 0));
            assert_int_equal(copyset_at(0, SEG_TRIPLE, 0)->copies, 3);
            assert_true(copies_are_equal());
        }
}

static void test_repair_node_that_is_filled_dies_another_is_filled(void **state)
{
    (void)state;
    for (int turns = 0; turns < 10; turns++) {
        world_close();
        world_open(4, 0, VIEW_DEGRADE);
        assert_int_equal(add(writer, 0, SEG_SHADOW, 8, 100, 1), KEEL_OK);
        declare_dead(1);
        for (int i = 0; i < turns; i++)
            world_turn();
        int filled = copyset_at(0, SEG_SHADOW, 0)->copy[1].node;
        w.submissions = 0;
        world_kill_node(filled);
        world_restore();
        assert_true(is_direct(SEG_SHADOW, 0));
        assert_true(copies_are_equal());
        assert_int_equal(word_at(5 - filled, SEG_SHADOW, 0, 8), 100);
        assert_int_equal(copyset_at(0, SEG_SHADOW, 0)->lost_at, 0);
    }
}

/* Whichever of the three dies, at whatever step of a series of additions: each counts once in every copy that is left,
 * and its origin gets the value before it. */
static void test_repair_copy_dies_amid_additions_each_counts_once_everywhere(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim++)
        for (int turns = 0; turns < 10; turns++) {
            enum { ADDS = 6 };
            world_close();
            world_open(4, 0, VIEW_DEGRADE);
            for (int lane = 0; lane < ADDS; lane++) {
                struct wire q = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 8);
                q.raw.a = 1;
                q.raw.identity = 1;
                q.raw.round = (uint16_t)lane;
                rank_send(writer, 0, q, NULL);
            }
            for (int i = 0; i < turns; i++)
                world_turn();
            world_kill_node(victim);
            int primary = copyset_at(3, SEG_TRIPLE, 0)->copy[0].node, sum = 0;
            for (int lane = 0; lane < ADDS; lane++) { /* who got no answer asks again */
                struct wire q = rank_wire(writer, WIRE_RMW, SEG_TRIPLE, 0, 8);
                q.epoch = copyset_at(primary, SEG_TRIPLE, 0)->generation;
                q.raw.a = 1;
                q.raw.identity = 1;
                q.raw.round = (uint16_t)lane;
                assert_int_equal(rank_ask(writer, primary, q, NULL), KEEL_OK);
                sum += (int)writer->reply.raw.a;
            }
            assert_int_equal(sum, ADDS * (ADDS - 1) / 2); /* 0, 1, 2, ...: each once */
            world_restore();
            assert_true(is_direct(SEG_TRIPLE, 0));
            assert_true(copies_are_equal());
            assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), ADDS);
        }
}

static void test_repair_two_of_three_die_together_the_last_one_fills_others(void **state)
{
    (void)state;
    const struct view_event dead[2] = {{.type = VIEW_NODE_DEAD, .a = 0}, {.type = VIEW_NODE_DEAD, .a = 1}};
    assert_int_equal(add(writer, 0, SEG_TRIPLE, 8, 100, 1), KEEL_OK);
    w.node[0].still = w.node[1].still = true;
    world_change(dead, 2);
    world_restore();
    assert_int_equal(copyset_at(2, SEG_TRIPLE, 0)->copy[0].node, 2);
    assert_int_equal(copyset_at(2, SEG_TRIPLE, 0)->lost_at, 0);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(3, SEG_TRIPLE, 0, 8), 100);
    assert_true(copyset_at(2, SEG_SHADOW, 0)->lost_at != 0);
    assert_non_null(strstr(w.node[2].said, "redundancy_reduced")); /* two nodes are no three copies */
    assert_non_null(strstr(w.node[2].last, "\"copysets\":"));
    assert_null(strstr(w.node[2].said, "redundancy_restored"));
}

/* What the runtime has for itself in three copies is no reason to say that the program's two are not there. */
static void test_repair_shadows_on_two_nodes_are_restored(void **state)
{
    (void)state;
    const struct view_event dead[2] = {{.type = VIEW_NODE_DEAD, .a = 0}, {.type = VIEW_NODE_DEAD, .a = 1}};
    for (int node = 0; node < 4; node++) {
        store_free(&w.node[node].agent.store, SEG_TRIPLE);
        assert_int_equal(store_define(&w.node[node].agent.store, 9, 0, 2, 0), KEEL_OK); /* empty */
    }
    w.node[0].still = w.node[1].still = true;
    world_change(dead, 2);
    world_restore();
    assert_non_null(strstr(w.node[2].said, "redundancy_restored"));
    assert_null(strstr(w.node[2].said, "redundancy_reduced"));
}

static void test_repair_shadows_in_one_rack_are_reduced(void **state)
{
    (void)state;
    const struct view_event dead[2] = {{.type = VIEW_NODE_DEAD, .a = 2}, {.type = VIEW_NODE_DEAD, .a = 3}};
    for (int node = 0; node < 4; node++) {
        struct copy_rule *copies = &w.node[node].agent.view.copies;
        copies->levels = 1;
        copies->domain = calloc(4, sizeof *copies->domain);
        assert_non_null(copies->domain);
        copies->domain[2] = copies->domain[3] = 1;
        store_free(&w.node[node].agent.store, SEG_TRIPLE);
        assert_int_equal(store_define(&w.node[node].agent.store, 9, 0, 2, 0), KEEL_OK); /* empty */
    }
    w.node[2].still = w.node[3].still = true;
    world_change(dead, 2);
    world_restore();
    assert_non_null(strstr(w.node[0].said, "redundancy_reduced"));
    assert_non_null(strstr(w.node[0].last, "\"why\":\"all copies are in one rack\""));
    assert_null(strstr(w.node[0].said, "redundancy_restored"));
}

/* A segment is being allocated when all copies die. One of those that are left knows of it and calls it lost, the one
 * that begins anew learns of it later: it is not lost, and everywhere the same. */
static void test_repair_segment_that_only_one_knew_is_the_same_in_all_copies(void **state)
{
    (void)state;
    enum { NEW = 9 };
    const struct view_event dead[3] = {
        {.type = VIEW_NODE_DEAD, .a = 0}, {.type = VIEW_NODE_DEAD, .a = 1}, {.type = VIEW_NODE_DEAD, .a = 2}};
    int lost = 0;
    for (int knows = 3; knows < 5; knows++) {
        struct agent *a = &w.node[knows].agent;
        world_close();
        world_open(5, 0, VIEW_DEGRADE);
        assert_int_equal(store_define(&a->store, NEW, SEG_BYTES, 2, 0), KEEL_OK);
        assert_int_equal(segments_make_copies(a, store_find(&a->store, NEW)), KEEL_OK);
        for (int node = 0; node < 3; node++)
            w.node[node].still = true;
        world_change(dead, 3);
        segments_tell(a, 7 - knows, store_find(&a->store, NEW));
        world_restore();
        const struct view_copyset *g = copyset_at(3, NEW, 0);
        assert_true(g->copies == 2 && is_direct(NEW, 0));
        const struct store_copy *first = store_copy(&w.node[g->copy[0].node].agent.store, NEW, 0),
                                *second = store_copy(&w.node[g->copy[1].node].agent.store, NEW, 0);
        assert_int_equal(first->lost, second->lost);
        lost += first->lost;
        assert_true(first->lost || (first->base && second->base));
        for (int i = 0; i < 2 && !first->lost; i++)
            assert_int_equal(rank_put(&w.rank[4], g->copy[i].node, NEW, 0, 8, 55, 1), KEEL_OK);
        for (int i = 0; i < 2 && !first->lost; i++)
            assert_int_equal(word_at(g->copy[i].node, NEW, 0, 8), 55);
    }
    assert_int_equal(lost, 1); /* where the one that knew it begins anew */
}

static void test_repair_restored_group_goes_home_with_all_that_was_executed(void **state)
{
    (void)state;
    world_close();
    world_open(3, 1, VIEW_SUBSTITUTE);
    struct rank *r = &w.rank[2];
    assert_int_equal(add(r, 0, SEG_SHADOW, 8, 100, 1), KEEL_OK);
    world_kill_node(0); /* its rank moves to node 3, where the new copy is; node 1 has asked for the handover */
    assert_int_equal(add(r, 1, SEG_SHADOW, 8, 100, 2), -1000); /* and executes nothing any more */
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 100);
    world_restore();
    assert_int_equal(copyset_at(1, SEG_SHADOW, 0)->copy[0].node, 3);
    assert_int_equal(r->reply.raw.status, WIRE_RETRY); /* it was kept until the view said who is the primary */
    assert_int_equal(add(r, 3, SEG_SHADOW, 8, 100, 2), KEEL_OK);
    assert_int_equal(r->reply.raw.a, 100);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 200);
    assert_true(copies_are_equal());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_repair_third_copy_is_filled_with_bytes_and_records),
        TEST(test_repair_copy_counts_when_all_of_it_is_acknowledged),
        TEST(test_repair_copy_that_is_filled_is_mapped_when_it_is_whole),
        TEST(test_repair_operations_during_the_fill_are_in_the_new_copy),
        TEST(test_repair_writer_dies_during_the_fill_all_copies_are_made_equal),
        TEST(test_repair_node_that_is_filled_dies_another_is_filled),
        TEST(test_repair_copy_dies_amid_additions_each_counts_once_everywhere),
        TEST(test_repair_two_of_three_die_together_the_last_one_fills_others),
        TEST(test_repair_shadows_on_two_nodes_are_restored),
        TEST(test_repair_shadows_in_one_rack_are_reduced),
        TEST(test_repair_segment_that_only_one_knew_is_the_same_in_all_copies),
        TEST(test_repair_restored_group_goes_home_with_all_that_was_executed),
    };
    return cmocka_run_group_tests_name("repair_fill", tests, NULL, NULL);
}
