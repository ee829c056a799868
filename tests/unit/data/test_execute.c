/* What agents do with requests of ranks, alone and with the other copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agents.h"
#include "memory.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/segments.h"
#include "runtime/protocol/arith.h"
#include "runtime/protocol/pack.h"

static int setup(void **state)
{
    (void)state;
    world_open(3, 0, VIEW_DEGRADE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return memory_living() == 0 ? 0 : -1;
}

static struct rank *const writer = &w.rank[2];

static struct wire add_of(uint32_t seg, int slot, int64_t value, uint64_t number)
{
    struct wire add = rank_wire(writer, WIRE_RMW, seg, slot, 8);
    add.a = value;
    add.identity = number;
    return add;
}

static const struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 0, .b = 0};

/* ---- puts ---- */

static void test_execute_direct_put_is_stored_by_each_copy_and_noted(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 77, 3), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 77);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0); /* nobody passes it on */
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 77, 3), KEEL_OK);
    assert_true(copies_are_equal());
    const struct conn *c = w.node[0].agent.conns;
    while (c->rank != 2)
        c = c->next;
    assert_int_equal(c->note[2].len, 8);
    assert_int_equal(c->note[2].offset, 16);
    assert_false(c->note[2].torn);
}

static void test_execute_put_to_a_node_without_a_copy_is_sent_back(void **state)
{
    (void)state;
    assert_int_equal(rank_put(writer, 2, SEG_SHADOW, 0, 16, 77, 1), WIRE_RETRY);
}

static void test_execute_put_of_an_older_generation_changes_nothing(void **state)
{
    (void)state;
    struct wire old = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    int64_t value = 5;
    old.len = sizeof value;
    world_change(&doubt, 1);
    assert_int_equal(rank_ask(writer, 0, old, &value), WIRE_RETRY);
    old.flags = WIRE_F_THROUGH;
    assert_int_equal(rank_ask(writer, 0, old, &value), WIRE_RETRY);
    old.flags = 0;
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_int_equal(rank_ask(writer, 0, old, &value), WIRE_RETRY); /* a route that comes back is another one */
    assert_int_equal(rank_ask(writer, 1, old, &value), WIRE_RETRY);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
}

static void test_execute_doubted_writer_must_connect_again(void **state)
{
    (void)state;
    const struct view_event e = {.type = VIEW_RANK_DOUBT, .a = 2, .b = 0};
    world_change(&e, 1);
    assert_null(writer->ep[0]); /* nothing that it gave up comes late */
    assert_null(writer->ep[1]);
    assert_non_null(w.rank[1].ep[0]);
    rank_connect(writer, 0);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), KEEL_OK);
}

static void test_execute_remote_write_of_an_older_generation_finds_no_memory(void **state)
{
    (void)state;
    static int64_t value = 9;
    struct tp_op op = {0};
    struct view_event e = {.type = VIEW_RANK_DEAD, .a = 0, .c = 9};
    assert_int_equal(tp_write(writer->ep[0], &value, 8, wire_key(SEG_SHADOW, 0, 0), 16, &op), KEEL_OK);
    world_pump();
    assert_int_equal(writer->status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 9);
    world_change(&e, 1);
    value = 10;
    assert_int_equal(tp_write(writer->ep[0], &value, 8, wire_key(SEG_SHADOW, 0, 0), 16, &op), KEEL_OK);
    world_pump();
    assert_int_equal(writer->done, 2);
    assert_int_not_equal(writer->status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 9);
}

static void test_execute_direct_put_while_copies_are_made_equal_is_sent_back(void **state)
{
    (void)state;
    world_change(&doubt, 1);
    assert_int_equal(rank_put(writer, 0, SEG_SHADOW, 0, 16, 5, 1), WIRE_RETRY);
    assert_int_equal(rank_put(writer, 1, SEG_SHADOW, 0, 16, 5, 1), WIRE_RETRY);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    struct wire through = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    int64_t value = 6;
    through.flags = WIRE_F_THROUGH;
    through.len = sizeof value;
    assert_int_equal(rank_ask(writer, 1, through, &value), WIRE_RETRY); /* no primary */
    assert_int_equal(rank_ask(writer, 0, through, &value), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 6);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 6);
}

static void test_execute_put_of_a_later_generation_waits_for_its_view(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_DEAD, .a = 0, .c = 9};
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    int64_t value = 8;
    world_prepare(&e, 1);
    world_pump();
    world_commit(1, &e, 1);
    world_commit(2, &e, 1);
    put.epoch = group_at(2, SEG_SHADOW, 0)->generation;
    put.flags = WIRE_F_THROUGH;
    put.len = sizeof value;
    assert_int_equal(rank_ask(writer, 0, put, &value), -1000);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    world_commit(0, &e, 1);
    world_pump();
    assert_int_equal(writer->replies, 1);
    assert_int_equal(writer->reply.status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 8);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 8);
}

/* ---- accumulates and atomics ---- */

static void test_execute_accumulate_is_answered_when_all_copies_have_it(void **state)
{
    (void)state;
    const double two[2] = {1.5, -2};
    struct wire acc = rank_wire(writer, WIRE_ACC, SEG_TRIPLE, 0, 8);
    acc.count = KEEL_DOUBLE;
    acc.f = 2;
    acc.identity = 1;
    acc.len = sizeof two;
    w.node[2].still = true;
    assert_int_equal(rank_ask(writer, 0, acc, two), -1000); /* the third copy's node does not run */
    double got[2];
    memcpy(got, bytes_at(0, SEG_TRIPLE, 0) + 8, sizeof got);
    assert_true(got[0] == 3 && got[1] == -4);
    assert_int_equal(word_at(1, SEG_TRIPLE, 0, 8), word_at(0, SEG_TRIPLE, 0, 8));
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 0);
    w.node[2].still = false;
    world_pump();
    assert_int_equal(writer->replies, 1);
    assert_int_equal(writer->reply.status, KEEL_OK);
    assert_true(copies_are_equal());
}

static void test_execute_repeated_operation_counts_once_with_its_first_result(void **state)
{
    (void)state;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), KEEL_OK);
    assert_int_equal(writer->reply.a, 0);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 2), NULL), KEEL_OK);
    assert_int_equal(writer->reply.a, 5);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 2), NULL), KEEL_OK);
    assert_int_equal(writer->reply.a, 5);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000); /* an echo: nobody waits for it */
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 10);
    assert_true(copies_are_equal());
}

/* Each type: the second copy has what the first computed, and knows that it came. */
static void test_execute_accumulate_of_every_type_counts_once_at_the_promoted_copy(void **state)
{
    (void)state;
    struct wire acc[KEEL_COMPLEX_DOUBLE + 1];
    uint8_t body[KEEL_COMPLEX_DOUBLE + 1][3 * 16];
    for (unsigned type = KEEL_INT32; type <= KEEL_COMPLEX_DOUBLE; type++) {
        size_t size = arith_size(type);
        acc[type] = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 256 * type + arith_align(type));
        acc[type].count = type;
        acc[type].len = (uint32_t)size * 3;
        acc[type].identity = 1;
        acc[type].lane = (uint16_t)type;
        memcpy(&acc[type].a, arith_one(type), size < 8 ? size : 8);
        for (size_t i = 0; i < 3; i++)
            memcpy(body[type] + i * size, arith_one(type), size);
        assert_int_equal(rank_ask(writer, 0, acc[type], body[type]), KEEL_OK);
        assert_memory_equal(bytes_at(0, SEG_SHADOW, 0) + acc[type].offset, body[type], acc[type].len);
    }
    assert_true(copies_are_equal());
    world_kill_node(0);
    for (unsigned type = KEEL_INT32; type <= KEEL_COMPLEX_DOUBLE; type++) {
        acc[type].epoch = group_at(1, SEG_SHADOW, 0)->generation;
        assert_int_equal(rank_ask(writer, 1, acc[type], body[type]), KEEL_OK);
        assert_memory_equal(bytes_at(1, SEG_SHADOW, 0) + acc[type].offset, body[type], acc[type].len);
    }
}

static void test_execute_atomics_of_32_bits_leave_the_word_beside_them(void **state)
{
    (void)state;
    struct wire q = add_of(SEG_SHADOW, 0, -3, 1);
    q.offset = 12;
    q.count = ARITH_ADD | WIRE_RMW_32;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_OK);
    assert_int_equal(writer->reply.a, 0);
    q.identity = 2;
    q.count = ARITH_XOR | WIRE_RMW_32;
    q.a = 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_OK);
    assert_int_equal(writer->reply.a, -3);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), (int64_t)((uint64_t)(uint32_t)(-3 ^ 1) << 32));
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    assert_true(copies_are_equal());
}

static void test_execute_operation_repeated_at_the_promoted_copy_counts_once(void **state)
{
    (void)state;
    struct wire cas = add_of(SEG_TRIPLE, 0, 0, 1);
    cas.count = ARITH_CAS;
    cas.b = 9;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_TRIPLE, 0, 5, 1), NULL), KEEL_OK);
    cas.identity = 2;
    cas.a = 5;
    assert_int_equal(rank_ask(writer, 0, cas, NULL), KEEL_OK);
    world_kill_node(0);
    cas.epoch = group_at(1, SEG_TRIPLE, 0)->generation;
    assert_int_equal(rank_ask(writer, 1, cas, NULL), KEEL_OK); /* its answer was lost with the primary */
    assert_int_equal(writer->reply.a, 5);
    assert_int_equal(word_at(1, SEG_TRIPLE, 0, 8), 9);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 9);
}

static void test_execute_steps_of_a_task_count_once_whoever_runs_it(void **state)
{
    (void)state;
    struct wire step = add_of(SEG_SHADOW, 0, 1, 77);
    step.flags = WIRE_F_TASK;
    step.round = 3;
    step.step = 1;
    assert_int_equal(rank_ask(writer, 0, step, NULL), WIRE_RETRY); /* its predecessor did not come */
    step.step = 0;
    assert_int_equal(rank_ask(writer, 0, step, NULL), KEEL_OK);
    step.rank = 1; /* another runner */
    assert_int_equal(rank_ask(&w.rank[1], 0, step, NULL), KEEL_OK);
    step.step = 1;
    assert_int_equal(rank_ask(&w.rank[1], 0, step, NULL), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 2);
    assert_true(copies_are_equal());
}

static void test_execute_forward_of_a_node_that_is_no_primary_is_ignored(void **state)
{
    (void)state;
    const int64_t value = 66;
    struct wire f = rank_wire(writer, WIRE_FORWARD, SEG_SHADOW, 0, 16);
    f.count = WIRE_PUT;
    f.len = sizeof value;
    assert_true(agent_tell(&w.node[2].agent, 1, &f, &value) > 0);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
    assert_true(agent_tell(&w.node[0].agent, 1, &f, &value) > 0);
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 66);
}

/* The middle of a chain: what the primary sends reaches the last copy through it only. */
static void test_execute_forward_that_leaves_out_a_copy_is_ignored(void **state)
{
    (void)state;
    const int64_t value = 66;
    struct wire f = rank_wire(writer, WIRE_FORWARD, SEG_TRIPLE, 0, 16);
    f.count = WIRE_PUT;
    f.len = sizeof value;
    assert_true(agent_tell(&w.node[0].agent, 2, &f, &value) > 0);
    world_pump();
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 16), 0);
    w.node[1].still = true;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_TRIPLE, 0, 5, 1), NULL), -1000);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 0); /* no copy has what one before it lacks */
    w.node[1].still = false;
    world_pump();
    assert_int_equal(writer->reply.status, KEEL_OK);
    assert_int_equal(word_at(2, SEG_TRIPLE, 0, 8), 5);
}

static void test_execute_malformed_forward_changes_nothing(void **state)
{
    (void)state;
    const int64_t value = 66;
    struct wire good = rank_wire(writer, WIRE_FORWARD, SEG_SHADOW, 0, 16), f;
    good.count = WIRE_PUT;
    good.len = sizeof value;
    for (int wrong = 0; wrong < 6; wrong++) {
        f = good;
        if (wrong == 0)
            f.offset = 1 << 30;
        else if (wrong == 1)
            f.offset = UINT64_MAX;
        else if (wrong == 2)
            f.slot = 99;
        else if (wrong == 3)
            f.seg = 99;
        else if (wrong == 4)
            f.rank = 99;
        else
            f.lane = LANES_MAX;
        assert_true(agent_tell(&w.node[0].agent, 1, &f, &value) > 0);
    }
    world_pump();
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
    assert_false(w.node[1].fatal);
}

/* ---- who answers ---- */

static void test_execute_last_copy_answers_the_ranks_of_its_node(void **state)
{
    (void)state;
    struct rank *near = &w.rank[1];
    struct wire add = rank_wire(near, WIRE_RMW, SEG_SHADOW, 0, 8);
    add.a = 5;
    add.identity = 1;
    rank_send(near, 0, add, NULL);
    (void)agent_poll(&w.node[0].agent, w.node[0].agent.net);
    (void)agent_step(&w.node[0].agent);
    w.node[0].still = true; /* it has passed it on, and does not hear of the acknowledgement */
    world_pump();
    assert_int_equal(near->replies, 1);
    assert_int_equal(near->reply.status, KEEL_OK);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 5);
    w.node[0].still = false;
    world_pump();
    assert_int_equal(near->replies, 1); /* once */
    assert_null(w.node[0].agent.waiters);
    add.identity = 2;
    assert_int_equal(rank_ask(near, 0, add, NULL), KEEL_OK);
    assert_int_equal(near->reply.a, 5);
    assert_int_equal(rank_ask(near, 0, add, NULL), KEEL_OK); /* again: the primary knows it */
    assert_int_equal(near->reply.a, 5);
    assert_true(copies_are_equal());
}

static void test_execute_last_of_three_answers_when_all_have_it(void **state)
{
    (void)state;
    struct rank *near = &w.rank[2];
    struct wire add = rank_wire(near, WIRE_RMW, SEG_TRIPLE, 0, 8);
    add.a = 5;
    add.identity = 1;
    w.node[1].still = true; /* in the middle of the chain */
    rank_send(near, 0, add, NULL);
    world_pump();
    assert_int_equal(near->replies, 0);
    w.node[1].still = false;
    world_pump();
    assert_int_equal(near->replies, 1);
    assert_true(copies_are_equal());
}

/* What was not answered when the view changed is answered by the primary, whoever answered it before. */
static void test_execute_primary_answers_after_a_view_change(void **state)
{
    (void)state;
    struct rank *near = &w.rank[1];
    struct wire add = rank_wire(near, WIRE_RMW, SEG_SHADOW, 0, 8);
    const struct view_event elsewhere = {.type = VIEW_RANK_LEFT, .a = 2, .b = 0};
    add.a = 5;
    add.identity = 1;
    rank_send(near, 0, add, NULL);
    (void)agent_poll(&w.node[0].agent, w.node[0].agent.net);
    assert_non_null(w.node[0].agent.waiters);
    world_change(&elsewhere, 1);
    assert_int_equal(near->replies, 2);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 5);
    assert_true(copies_are_equal());
}

/* ---- accumulates beside ranks that do them themselves ---- */

static void test_execute_says_when_ranks_of_its_node_may_add_themselves(void **state)
{
    (void)state;
    struct rank *own = &w.rank[0];
    double one = 1, scale = 1;
    struct wire acc = rank_wire(writer, WIRE_ACC, SEG_NONE, 0, 8);
    acc.count = KEEL_DOUBLE;
    acc.len = sizeof one;
    memcpy(&acc.a, &scale, sizeof scale);
    acc.identity = 1;
    assert_int_equal(rank_ask(writer, 0, acc, &one), KEEL_OK);
    assert_int_equal(writer->reply.epoch, 0); /* it is on another node */
    assert_false(store_copy(&w.node[0].agent.store, SEG_NONE, 0)->shared);
    struct wire add = rank_wire(own, WIRE_RMW, SEG_NONE, 0, 16);
    add.identity = 1;
    assert_int_equal(rank_ask(own, 0, add, NULL), KEEL_OK);
    assert_int_equal(own->reply.epoch, group_at(0, SEG_NONE, 0)->generation + 1);
    assert_true(store_copy(&w.node[0].agent.store, SEG_NONE, 0)->shared);
    add = rank_wire(own, WIRE_RMW, SEG_SHADOW, 0, 16);
    add.identity = 2;
    assert_int_equal(rank_ask(own, 0, add, NULL), KEEL_OK);
    assert_int_equal(own->reply.epoch, 0); /* several copies */
    assert_false(store_copy(&w.node[0].agent.store, SEG_SHADOW, 0)->shared);
}

/* ---- many pieces in one message ---- */

/* Two words, at 0 and 24 from the message's offset. */
struct two {
    struct pack_run head, run[2];
    int64_t value[2];
};

static struct two two_of(int64_t first, int64_t second)
{
    return (struct two){.head = {.at = 2, .len = 16}, .run = {{0, 8}, {24, 8}}, .value = {first, second}};
}

static struct wire packed_wire(uint8_t type, uint32_t seg)
{
    struct wire q = rank_wire(writer, type, seg, 0, 16);
    q.flags = WIRE_F_PACKED;
    q.len = sizeof(struct two);
    q.count = KEEL_INT64;
    q.a = 1;
    return q;
}

static void test_execute_packed_put_is_stored_by_each_copy_and_noted_from_end_to_end(void **state)
{
    (void)state;
    struct two body = two_of(77, 78);
    struct wire put = packed_wire(WIRE_PUT, SEG_SHADOW);
    put.note = 4;
    assert_int_equal(rank_ask(writer, 0, put, &body), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 77);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 40), 78);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 24), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0); /* nobody passes it on */
    const struct conn *c = w.node[0].agent.conns;
    while (c->rank != 2)
        c = c->next;
    assert_int_equal(c->note[3].offset, 16);
    assert_int_equal(c->note[3].len, 32);
    assert_int_equal(rank_ask(writer, 1, put, &body), KEEL_OK);
    assert_true(copies_are_equal());
}

static void test_execute_packed_put_through_the_primary_reaches_every_copy(void **state)
{
    (void)state;
    struct two body = two_of(5, 6);
    struct wire put = packed_wire(WIRE_PUT, SEG_TRIPLE);
    put.flags |= WIRE_F_THROUGH;
    assert_int_equal(rank_ask(writer, 0, put, &body), KEEL_OK);
    for (int node = 0; node < 3; node++) {
        assert_int_equal(word_at(node, SEG_TRIPLE, 0, 16), 5);
        assert_int_equal(word_at(node, SEG_TRIPLE, 0, 40), 6);
    }
    assert_true(copies_are_equal());
}

static void test_execute_packed_accumulate_counts_once_also_at_the_promoted_copy(void **state)
{
    (void)state;
    for (uint32_t seg = SEG_SHADOW; seg <= SEG_TRIPLE; seg++) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        struct two body = two_of(10, 20);
        struct wire acc = packed_wire(WIRE_ACC, seg);
        acc.identity = 1;
        assert_int_equal(rank_ask(writer, 0, acc, &body), KEEL_OK);
        assert_int_equal(rank_ask(writer, 0, acc, &body), KEEL_OK);
        assert_int_equal(word_at(0, seg, 0, 16), 10);
        assert_int_equal(word_at(0, seg, 0, 40), 20);
        assert_true(copies_are_equal());
        world_kill_node(0);
        acc.epoch = group_at(1, seg, 0)->generation;
        assert_int_equal(rank_ask(writer, 1, acc, &body), KEEL_OK);
        assert_int_equal(word_at(1, seg, 0, 16), 10);
        acc.identity = 2;
        assert_int_equal(rank_ask(writer, 1, acc, &body), KEEL_OK);
        assert_int_equal(word_at(1, seg, 0, 16), 20);
        assert_int_equal(word_at(1, seg, 0, 40), 40);
    }
}

static void test_execute_packed_get_brings_the_pieces(void **state)
{
    (void)state;
    struct two body = two_of(0, 0);
    struct wire get = packed_wire(WIRE_GET, SEG_NONE);
    int64_t got[2];
    memcpy(bytes_at(0, SEG_NONE, 0) + 16, &(int64_t){31}, 8);
    memcpy(bytes_at(0, SEG_NONE, 0) + 40, &(int64_t){32}, 8);
    get.len = (uint32_t)pack_head(2);
    assert_int_equal(rank_ask(writer, 0, get, &body), KEEL_OK);
    assert_int_equal(writer->reply.len, sizeof got);
    memcpy(got, writer->body, sizeof got);
    assert_int_equal(got[0], 31);
    assert_int_equal(got[1], 32);
}

static void test_execute_malformed_pieces_are_refused_and_not_passed_on(void **state)
{
    (void)state;
    struct two good = two_of(1, 2), body;
    for (int wrong = 0; wrong < 9; wrong++) {
        struct wire q = packed_wire(WIRE_ACC, SEG_SHADOW);
        body = good;
        q.identity = 1;
        if (wrong == 0)
            q.len -= 8;
        else if (wrong == 1)
            body.run[1].at = SEG_BYTES - 16; /* beyond the end, from the offset on */
        else if (wrong == 2)
            body.run[1].at = 25; /* an element is cut */
        else if (wrong == 3)
            body.run[0].len = 4, body.run[1].len = 12;
        else if (wrong == 4)
            q.offset = SEG_BYTES + 8;
        else if (wrong == 5)
            q.count = KEEL_BYTE;
        else if (wrong == 6)
            q.type = WIRE_RMW, q.count = ARITH_ADD;
        else if (wrong == 7)
            q.type = WIRE_GET, q.len = (uint32_t)pack_head(2), q.flags |= WIRE_F_STRONG;
        else
            q.type = WIRE_PUT, body.head.at = 3;
        assert_int_equal(rank_ask(writer, 0, q, &body), KEEL_ERR_ARG);
        struct wire f = packed_wire(WIRE_FORWARD, SEG_SHADOW);
        f.count = WIRE_PUT;
        body.run[1].at = wrong ? SEG_BYTES - 16 : 24;
        f.len -= wrong ? 0 : 8;
        assert_true(agent_tell(&w.node[0].agent, 1, &f, &body) > 0);
    }
    world_pump();
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 16), 0);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 16), 0);
    assert_false(w.node[1].fatal);
}

/* ---- what is refused ---- */

static void test_execute_malformed_requests_are_answered_with_an_error(void **state)
{
    (void)state;
    uint8_t body[64] = {0};
    struct wire q = rank_wire(writer, WIRE_GET, SEG_SHADOW, 0, 0);
    q.count = WIRE_BULK_MAX + 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q.count = WIRE_BODY_MAX + 1;
    q.flags = WIRE_F_STRONG;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_GET, SEG_SHADOW, 0, UINT64_MAX);
    q.count = 8;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 1 << 20);
    q.len = 8;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 0);
    q.len = 8;
    q.note = NOTES_MAX + 1;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.offset = 4;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.lane = LANES_MAX;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.count = ARITH_RMW_OPS;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.count = WIRE_RMW_32;
    q.offset = 6;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    const uint32_t no_type[] = {KEEL_BYTE, KEEL_COMPLEX_DOUBLE + 1, UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        q = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 0);
        q.count = no_type[i];
        q.len = 16;
        assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    }
    q = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 4);
    q.count = KEEL_COMPLEX_DOUBLE;
    q.len = 16;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = rank_wire(writer, WIRE_ACC, SEG_SHADOW, 0, 0);
    q.count = KEEL_DOUBLE;
    q.len = 12;
    assert_int_equal(rank_ask(writer, 0, q, body), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.slot = 99;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.rank = 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_AUTH);
    q = add_of(SEG_SHADOW, 0, 1, 1);
    q.incarnation = 1;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_AUTH);
    assert_true(copies_are_equal());
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 0);
}

/* An intent carries a range that nobody has checked: it may name anything, and is looked at when its writer dies. */
static void test_execute_malformed_intents_do_no_harm(void **state)
{
    (void)state;
    struct wire q = rank_wire(writer, WIRE_INTENT, SEG_SHADOW, 0, 0);
    const struct wire bad[] = {
        {.slot = 65535, .offset = 0, .count = 8},          {.slot = 3, .offset = 0, .count = 8},
        {.slot = 0, .offset = UINT64_MAX - 3, .count = 8}, {.slot = 0, .offset = 1 << 30, .count = UINT32_MAX},
        {.slot = 0, .offset = 0, .count = UINT32_MAX},     {.slot = 0, .seg = 1000, .offset = 0, .count = 8}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        q.slot = bad[i].slot;
        q.seg = bad[i].seg ? bad[i].seg : SEG_SHADOW;
        q.offset = bad[i].offset;
        q.count = bad[i].count;
        q.note = (uint16_t)(i + 1);
        rank_send(writer, 0, q, NULL);
        rank_send(writer, 1, q, NULL);
    }
    q.note = NOTES_MAX + 1;
    rank_send(writer, 0, q, NULL);
    q.note = 0;
    rank_send(writer, 0, q, NULL);
    world_pump();
    world_kill_rank(0); /* the writer lives on */
    world_restore();
    world_kill_rank(2);
    world_restore();
    assert_true(is_direct(SEG_SHADOW, 0));
    assert_true(copies_are_equal());
}

static void test_execute_unknown_segment_is_sent_back_freed_one_is_an_error(void **state)
{
    (void)state;
    struct wire q = add_of(SEG_SHADOW, 0, 1, 1);
    q.seg = 50;
    assert_int_equal(rank_ask(writer, 0, q, NULL), WIRE_RETRY); /* the rank's agent knew of it first */
    store_free(&w.node[0].agent.store, SEG_NONE);
    q.seg = SEG_NONE;
    assert_int_equal(rank_ask(writer, 0, q, NULL), KEEL_ERR_ARG);
}

static void test_execute_get_comes_from_the_primary(void **state)
{
    (void)state;
    struct wire get = rank_wire(writer, WIRE_GET, SEG_SHADOW, 0, 8);
    get.count = 8;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), KEEL_OK);
    assert_int_equal(rank_ask(writer, 1, get, NULL), WIRE_RETRY);
    assert_int_equal(rank_ask(writer, 0, get, NULL), KEEL_OK);
    assert_int_equal(writer->reply.len, 8);
    assert_int_equal(writer->body[0], 5);
}

static void test_execute_what_was_lost_is_told(void **state)
{
    (void)state;
    world_kill_node(0);
    int node = group_at(1, SEG_NONE, 0)->copy[0].node;
    struct wire q = rank_wire(writer, WIRE_GET, SEG_NONE, 0, 0);
    q.count = 8;
    assert_int_equal(rank_ask(writer, node, q, NULL), KEEL_ERR_DATA_LOST);
}

/* ---- view changes ---- */

static void test_execute_prepare_is_answered_when_forwards_have_arrived(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_LEFT, .a = 0};
    w.node[1].still = true;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000);
    assert_false(execute_drained(&w.node[0].agent));
    world_prepare(&e, 1);
    world_pump();
    assert_int_equal(w.node[0].prepared, 0);
    assert_int_equal(w.node[2].prepared, w.epoch);
    w.node[1].still = false;
    world_pump();
    assert_int_equal(w.node[0].prepared, w.epoch);
    assert_int_equal(writer->replies, 0); /* the commit lets it go */
    for (int i = 0; i < 3; i++)
        world_commit(i, &e, 1);
    world_pump();
    assert_int_equal(writer->reply.status, KEEL_OK);
}

/* Else a view proposed before the death was found could never be prepared, nor the next one, which declares it. */
static void test_execute_prepare_does_not_wait_for_a_node_believed_dead(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_LEFT, .a = 0};
    w.node[1].still = true;
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000);
    world_prepare(&e, 1);
    world_pump();
    assert_int_equal(w.node[0].prepared, 0);
    recover_doomed(&w.node[0].agent, 1);
    assert_int_equal(w.node[0].prepared, w.epoch);
    world_commit(0, &e, 1);
    world_commit(2, &e, 1);
    world_pump();
    assert_int_equal(writer->replies, 0); /* the origin is not told before the node is declared dead */
    world_kill_node(1);
    assert_int_equal(writer->replies, 1);
    assert_int_equal(writer->reply.status, KEEL_OK);
}

static void test_execute_nothing_is_executed_between_prepare_and_commit(void **state)
{
    (void)state;
    struct view_event e = {.type = VIEW_RANK_LEFT, .a = 0};
    world_prepare(&e, 1);
    assert_int_equal(rank_ask(writer, 0, add_of(SEG_SHADOW, 0, 5, 1), NULL), -1000);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 0);
    for (int i = 0; i < 3; i++)
        world_commit(i, &e, 1);
    world_pump();
    assert_int_equal(writer->reply.status, KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 5);
}

static void test_execute_rank_declared_dead_is_cut_off_and_stays_out(void **state)
{
    (void)state;
    uint64_t refused = w.node[0].agent.refused_count;
    world_kill_rank(2);
    assert_null(writer->ep[0]);
    rank_connect(writer, 0);
    assert_null(writer->ep[0]);
    assert_true(w.node[0].agent.refused_count > refused);
    assert_non_null(w.rank[1].ep[0]);
}

/* ---- out of memory ---- */

/* Whatever allocation fails: the operation counts once and its origin is told so; or it did not count, and its origin is told
 * that; or the agent says that it cannot go on. */
static void test_execute_without_memory_nothing_is_half_done(void **state)
{
    (void)state;
    int told = 0, fatal = 0, again = 0;
    bool reached = true;
    for (long n = 1; reached; n++) {
        world_close();
        world_open(3, 0, VIEW_DEGRADE);
        struct wire add = add_of(SEG_SHADOW, 0, 5, 1);
        struct agent *a = &w.node[0].agent;
        struct conn *c = a->conns;
        while (c->rank != 2)
            c = c->next;
        add.seq = 1;
        memory_fail_at(n);
        execute_request(a, c, &add, NULL);
        reached = memory_failed();
        world_pump();
        if (w.node[0].fatal) {
            fatal++;
            continue;
        }
        if (writer->replies == 0) { /* the answer was lost: the connection with it */
            assert_null(writer->ep[0]);
            rank_connect(writer, 0);
            assert_int_equal(rank_ask(writer, 0, add, NULL), KEEL_OK);
            again++;
        } else if (writer->reply.status != KEEL_OK) {
            assert_int_equal(writer->reply.status, KEEL_ERR_NOMEM);
            assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 0);
            assert_int_equal(rank_ask(writer, 0, add, NULL), KEEL_OK);
            told++;
        }
        assert_int_equal(writer->reply.a, 0);
        assert_int_equal(word_at(0, SEG_SHADOW, 0, 8), 5);
        assert_true(copies_are_equal());
    }
    assert_int_equal(told, 2);  /* for the one that waits, and for the record */
    assert_int_equal(fatal, 1); /* for the forward: what was executed cannot be passed on */
    assert_int_equal(again, 0); /* the answer is sent later */
}

static void test_execute_without_memory_for_an_answer_the_connection_breaks(void **state)
{
    (void)state;
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    const int64_t value = 4;
    put.len = sizeof value;
    struct agent *a = &w.node[0].agent;
    struct conn *c = a->conns;
    while (c->rank != 2)
        c = c->next;
    memory_fail_at(1);
    execute_request(a, c, &put, &value);
    assert_true(memory_failed());
    world_pump();
    assert_int_equal(writer->replies, 0);
    assert_null(writer->ep[0]); /* the rank learns of it, and repeats what was not answered */
    rank_connect(writer, 0);
    assert_int_equal(rank_ask(writer, 0, put, &value), KEEL_OK);
}

static void test_execute_without_memory_to_keep_a_request_it_is_told(void **state)
{
    (void)state;
    struct wire put = rank_wire(writer, WIRE_PUT, SEG_SHADOW, 0, 16);
    const int64_t value = 4;
    put.len = sizeof value;
    put.epoch++;
    struct agent *a = &w.node[0].agent;
    struct conn *c = a->conns;
    while (c->rank != 2)
        c = c->next;
    memory_fail_at(1);
    execute_request(a, c, &put, &value);
    assert_true(memory_failed());
    world_pump();
    assert_int_equal(writer->reply.status, KEEL_ERR_NOMEM);
    assert_null(a->stash);
}

/* Of a copy: the primary will count on it. */
static void test_execute_without_memory_for_a_forwards_record_the_agent_ends(void **state)
{
    (void)state;
    const int64_t value = 4;
    struct wire f = add_of(SEG_SHADOW, 0, 4, 1);
    f.type = WIRE_FORWARD;
    f.count = WIRE_RMW;
    f.len = sizeof value;
    memory_fail_at(1);
    execute_forwarded(&w.node[1].agent, 0, &f, &value);
    assert_true(memory_failed());
    assert_true(w.node[1].fatal);
    assert_int_equal(word_at(1, SEG_SHADOW, 0, 8), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_execute_direct_put_is_stored_by_each_copy_and_noted),
        TEST(test_execute_put_to_a_node_without_a_copy_is_sent_back),
        TEST(test_execute_put_of_an_older_generation_changes_nothing),
        TEST(test_execute_doubted_writer_must_connect_again),
        TEST(test_execute_remote_write_of_an_older_generation_finds_no_memory),
        TEST(test_execute_direct_put_while_copies_are_made_equal_is_sent_back),
        TEST(test_execute_put_of_a_later_generation_waits_for_its_view),
        TEST(test_execute_accumulate_is_answered_when_all_copies_have_it),
        TEST(test_execute_repeated_operation_counts_once_with_its_first_result),
        TEST(test_execute_accumulate_of_every_type_counts_once_at_the_promoted_copy),
        TEST(test_execute_atomics_of_32_bits_leave_the_word_beside_them),
        TEST(test_execute_operation_repeated_at_the_promoted_copy_counts_once),
        TEST(test_execute_steps_of_a_task_count_once_whoever_runs_it),
        TEST(test_execute_forward_of_a_node_that_is_no_primary_is_ignored),
        TEST(test_execute_forward_that_leaves_out_a_copy_is_ignored),
        TEST(test_execute_malformed_forward_changes_nothing),
        TEST(test_execute_last_copy_answers_the_ranks_of_its_node),
        TEST(test_execute_last_of_three_answers_when_all_have_it),
        TEST(test_execute_primary_answers_after_a_view_change),
        TEST(test_execute_says_when_ranks_of_its_node_may_add_themselves),
        TEST(test_execute_packed_put_is_stored_by_each_copy_and_noted_from_end_to_end),
        TEST(test_execute_packed_put_through_the_primary_reaches_every_copy),
        TEST(test_execute_packed_accumulate_counts_once_also_at_the_promoted_copy),
        TEST(test_execute_packed_get_brings_the_pieces),
        TEST(test_execute_malformed_pieces_are_refused_and_not_passed_on),
        TEST(test_execute_malformed_requests_are_answered_with_an_error),
        TEST(test_execute_malformed_intents_do_no_harm),
        TEST(test_execute_unknown_segment_is_sent_back_freed_one_is_an_error),
        TEST(test_execute_get_comes_from_the_primary),
        TEST(test_execute_what_was_lost_is_told),
        TEST(test_execute_prepare_is_answered_when_forwards_have_arrived),
        TEST(test_execute_prepare_does_not_wait_for_a_node_believed_dead),
        TEST(test_execute_nothing_is_executed_between_prepare_and_commit),
        TEST(test_execute_rank_declared_dead_is_cut_off_and_stays_out),
        TEST(test_execute_without_memory_nothing_is_half_done),
        TEST(test_execute_without_memory_for_an_answer_the_connection_breaks),
        TEST(test_execute_without_memory_to_keep_a_request_it_is_told),
        TEST(test_execute_without_memory_for_a_forwards_record_the_agent_ends),
    };
    return cmocka_run_group_tests_name("execute", tests, NULL, NULL);
}
