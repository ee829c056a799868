/* Agents of sets of replicas: what does not commute is executed in the order of the leading set, and answered when all
 * sets know it. The k-th rank of set s is native rank s * RANKS + k, on the node of that number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/agent/execute.h"
#include "runtime/agent/recover.h"
#include "runtime/wire/acc.h"
#include "runtime/wire/digested.h"
#include "runtime/wire/order.h"
#include "seed.h"
#include "sets_steps.h"

static void test_ordering_leader_answers_when_the_other_set_knows(void **state)
{
    (void)state;
    w.node[2].still = true;
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    assert_int_equal(word(0), 5);
    assert_int_equal(w.rank[0].replies, 0);
    for (int i = 0; i < 1000; i++)
        world_turn();
    assert_true(w.node[0].checked[2] > 0); /* somebody waits for it */
    w.node[2].still = false;
    world_pump();
    assert_int_equal(w.rank[0].replies, 1);
    assert_int_equal(w.rank[0].reply.raw.status, KEEL_OK);
    assert_int_equal(w.rank[0].reply.epoch, 0); /* it is not to do the next one itself */
    assert_int_equal(word(2), 0);               /* its own rank has not sent it */
}

static void test_ordering_other_set_follows_whatever_comes_first(void **state)
{
    (void)state;
    ask(3, swap_of(3, 2, 0, 1, 30), NULL);
    ask(2, swap_of(2, 2, 0, 1, 20), NULL);
    assert_int_equal(word(2), 0);
    ask(0, swap_of(0, 0, 0, 1, 20), NULL);
    assert_true(w.rank[0].replies == 1 && w.rank[2].replies == 1 && w.rank[3].replies == 0);
    ask(1, swap_of(1, 0, 0, 1, 30), NULL);
    assert_true(w.rank[1].replies == 1 && w.rank[3].replies == 1);
    assert_true(w.rank[1].reply.raw.a == 20 && w.rank[3].reply.raw.a == 20);
    assert_true(word(0) == 30 && word(2) == 30);
}

static void test_ordering_next_set_goes_on_with_what_was_decided(void **state)
{
    (void)state;
    ask(0, swap_of(0, 0, 3, 1, 5), NULL); /* told, and known to both */
    ask(0, swap_of(0, 0, 4, 1, 6), NULL);
    ask(1, swap_of(1, 1, 4, 1, 6), NULL); /* waits for the other one */
    assert_true(w.rank[0].replies == 2 && w.rank[1].replies == 0);
    world_kill_node(0);
    ask(2, swap_of(2, 2, 5, 1, 7), NULL); /* has no entry yet, and there are two before it */
    ask(2, swap_of(2, 2, 4, 1, 6), NULL);
    assert_int_equal(w.rank[2].replies, 0);
    ask(1, swap_of(1, 1, 3, 1, 5), NULL);
    assert_true(w.rank[1].replies == 2 && w.rank[1].reply.raw.a == 5 && word(1) == 6);
    ask(1, swap_of(1, 1, 5, 1, 7), NULL);
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    assert_true(word(1) == 7 && word(2) == 7 && w.rank[1].replies == 3 && w.rank[2].replies == 3);
}

static void test_ordering_retired_set_is_told_nothing(void **state)
{
    (void)state;
    world_kill_rank(1);
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    assert_true(w.rank[0].replies == 0 && word(0) == 0);
    ask(2, swap_of(2, 2, 0, 1, 5), NULL); /* it leads now, and alone */
    assert_int_equal(w.rank[2].replies, 1);
}

/* Nor is anything executed, whoever has the part now. */
static void test_ordering_retired_set_is_told_nothing_by_the_next_copy(void **state)
{
    int64_t is;
    (void)state;
    world_kill_node(1);
    const struct view_copyset *g = &w.node[0].agent.view.copyset[copyset_of(1, 1)];
    int node = g->copy[0].node;
    struct wire wire = swap_of(0, 1, 0, 1, 5);
    assert_int_not_equal(node, 1);
    wire.raw.seg = SEG_WITH_SHADOWS;
    wire.epoch = g->generation;
    rank_send(&w.rank[0], node, wire, NULL);
    world_pump();
    memcpy(&is, store_copy(&w.node[node].agent.store, SEG_WITH_SHADOWS, 1)->base + AT, sizeof is);
    assert_true(w.rank[0].replies == 0 && is == 0);
}

/* A set stays whole without a node whose ranks have come to their end. */
static void test_ordering_part_that_is_gone_with_its_node_has_left_the_chain(void **state)
{
    (void)state;
    const struct view_event done = {.type = VIEW_RANK_DONE, .a = 3};
    world_change(&done, 1);
    world_kill_node(3);
    assert_true(view_set_is_whole(&w.node[0].agent.view, 1));
    ask(0, swap_of(0, 1, 0, 1, 5), NULL);
    assert_int_equal(w.rank[0].replies, 1);
    ask(0, swap_of(0, 0, 0, 2, 5), NULL);
    assert_true(w.rank[0].replies == 2 && w.node[2].agent.ordering.part[0].order.known == 1);
}

/* ---- sets that begin anew ---- */

static int two_sets_and_a_spare(void **state)
{
    (void)state;
    return open_sets_and_spares(2, 2, 1);
}

static void change_set(uint32_t type, uint32_t set)
{
    const struct view_event e = {.type = type, .a = set, .b = view_set_attempt(&w.node[0].agent.view, (int)set)};
    world_change(&e, 1);
}

static void begins_at(int native, int node)
{
    struct rank *r = &w.rank[native];
    r->incarnation++;
    r->node = node;
    r->replies = 0;
    for (int to = 0; to < w.nodes + w.spares; to++)
        if (!w.node[to].still)
            rank_connect(r, to);
}

/* Of the part that is at the node now. */
static struct wire swap_at(int native, int slot, int64_t number, int64_t to)
{
    struct wire wire = swap_of(native, slot, 0, (uint64_t)number, to);
    wire.epoch = w.node[0].agent.view.copyset[copyset_of(slot, 0)].generation;
    return wire;
}

/* The same with shadows: of a node that has died something is left. */
static struct wire shadowed_at(int native, int slot, int64_t number, int64_t to)
{
    struct wire wire = swap_at(native, slot, number, to);
    wire.raw.seg = SEG_WITH_SHADOWS;
    wire.epoch = w.node[0].agent.view.copyset[copyset_of(slot, 1)].generation;
    return wire;
}

static int64_t shadowed_word(int node, int slot)
{
    int64_t value;
    memcpy(&value, store_copy(&w.node[node].agent.store, SEG_WITH_SHADOWS, slot)->base + AT, sizeof value);
    return value;
}

/* Set 1 has lost its ranks, and begins; that of slot 3 on that node. */
static void set_1_begins(int node)
{
    world_kill_rank(2);
    if (node == 3)
        world_kill_rank(3);
    change_set(VIEW_SET_BEGINS, 1);
    begins_at(2, 2);
    begins_at(3, node);
    world_restore();
    assert_true(view_set_is_coming(&w.node[0].agent.view, 1));
}

/* What processes of each life are told of their set. */
static bool is_over(int set, uint32_t incarnation)
{
    return page_set_is_over(w.node[1].agent.page, set, incarnation);
}

static void test_ordering_processes_of_a_set_that_begins_anew_go_on(void **state)
{
    (void)state;
    assert_false(is_over(1, 0));
    world_kill_rank(2);
    assert_true(is_over(1, 0) && is_over(1, 1) && !is_over(0, 0));
    world_kill_rank(3);
    change_set(VIEW_SET_BEGINS, 1);
    assert_true(is_over(1, 0) && !is_over(1, 1));
    change_set(VIEW_SET_JOINS, 1);
    assert_true(!is_over(1, 1) && view_set_is_whole(&w.node[1].agent.view, 1));
    w.rank[2].incarnation = 1;
    world_kill_rank(2);
    assert_true(is_over(1, 1));
}

static void test_ordering_set_that_begins_anew_is_alone_until_it_joins(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        ask(0, swap_at(0, 0, i, 5), NULL);
        ask(2, swap_at(2, 2, i, 5), NULL);
    }
    assert_true(w.rank[0].replies == 2 && w.rank[2].replies == 2);
    set_1_begins(3);
    ask(2, swap_at(2, 2, 1, 7), NULL);
    ask(0, swap_at(0, 0, 3, 6), NULL);
    assert_true(w.rank[2].replies == 1 && word(2) == 7 && w.rank[0].replies == 3 && word(0) == 6);
    assert_true(w.node[0].agent.ordering.part[0].behind == -1 && w.node[2].agent.ordering.part[0].before == -1);
    change_set(VIEW_SET_JOINS, 1);
    assert_true(view_set_is_whole(&w.node[0].agent.view, 1));
    ask(2, swap_at(2, 2, 4, 8), NULL); /* set 0 decides */
    assert_true(w.rank[2].replies == 1 && word(2) == 7);
    w.node[2].still = true;
    ask(0, swap_at(0, 0, 4, 8), NULL);
    assert_true(word(0) == 8 && w.rank[0].replies == 3); /* set 1 is to know it */
    w.node[2].still = false;
    world_pump();
    assert_true(w.rank[0].replies == 4 && w.rank[2].replies == 2 && word(2) == 8);
}

static void test_ordering_set_that_has_joined_on_a_spare_goes_on_alone(void **state)
{
    (void)state;
    world_kill_node(3);
    set_1_begins(4);
    change_set(VIEW_SET_JOINS, 1);
    assert_true(view_set_is_whole(&w.node[0].agent.view, 1));
    assert_true(w.node[4].agent.ordering.map && w.node[4].agent.ordering.slot == 3);
    rank_send(&w.rank[3], 4, shadowed_at(3, 3, 1, 9), NULL);
    world_pump();
    assert_int_equal(w.rank[3].replies, 0); /* set 0 has not decided */
    ask(1, shadowed_at(1, 1, 1, 9), NULL);
    assert_true(w.rank[1].replies == 1 && w.rank[3].replies == 1);
    assert_true(w.rank[3].reply.raw.status == KEEL_OK && shadowed_word(1, 1) == 9 && shadowed_word(4, 3) == 9);
    world_kill_node(0);
    world_restore();
    struct wire next = shadowed_at(3, 3, 2, 10);
    next.epoch = w.node[4].agent.view.copyset[copyset_of(3, 1)].generation;
    rank_send(&w.rank[3], 4, next, NULL);
    world_pump();
    assert_true(w.rank[3].replies == 2 && shadowed_word(4, 3) == 10);
}

static void test_ordering_what_was_said_before_a_set_joined_is_dropped(void **state)
{
    (void)state;
    set_1_begins(3);
    change_set(VIEW_SET_JOINS, 1);
    struct ordered_part *p = &w.node[0].agent.ordering.part[0];
    struct wire ack, late;
    msg_ordered_encode(&(struct msg_ordered){.class = 0, .upto = 1}, &late);
    w.node[2].still = true;
    ask(0, swap_at(0, 0, 1, 5), NULL);
    ack = late;
    late.epoch = w.epoch - 1;
    ordering_told(&w.node[0].agent, 2, &late, NULL);
    assert_true(p->order.passed == 0);
    ack.epoch = w.epoch;
    ordering_told(&w.node[0].agent, 2, &ack, NULL);
    assert_true(p->order.passed == 1);
    const struct order_record record = {.number = 1};
    struct wire entries;
    msg_order_encode(&(struct msg_order){.class = 0, .first = 1, .len = sizeof record}, &entries);
    entries.epoch = w.epoch - 1;
    ordering_told(&w.node[2].agent, 0, &entries, &record);
    assert_true(w.node[2].agent.ordering.part[0].order.known == 0);
}

/* Of two copies one dies: nothing of the older route takes effect any more, and all goes on under the new one. */
static void test_ordering_what_waits_under_an_older_route_comes_again(void **state)
{
    (void)state;
    struct wire wire = swap_of(1, 1, 0, 1, 5), first = swap_of(0, 0, 0, 1, 5);
    wire.raw.seg = first.raw.seg = SEG_WITH_SHADOWS;
    ask(1, wire, NULL);
    assert_true(w.rank[1].replies == 0 && w.node[1].agent.ordering.part[1].waiting);
    world_kill_node(2);
    assert_true(w.rank[1].replies == 1 && w.rank[1].reply.raw.status == WIRE_RETRY);
    assert_null(w.node[1].agent.ordering.part[1].waiting);
    first.epoch = w.node[0].agent.view.copyset[copyset_of(0, 1)].generation;
    wire.epoch = w.node[0].agent.view.copyset[copyset_of(1, 1)].generation;
    ask(0, first, NULL);
    assert_int_equal(w.rank[0].reply.raw.status, KEEL_OK);
    ask(1, wire, NULL);
    assert_true(w.rank[1].replies == 2 && w.rank[1].reply.raw.status == KEEL_OK);
    world_restore();
    assert_true(copies_are_equal());
}

static void test_ordering_pieces_follow_each_other(void **state)
{
    (void)state;
    const int64_t one = 1;
    struct wire piece[3];
    for (uint32_t i = 0; i < 3; i++) {
        piece[i] = of_sets(2, WIRE_ACC, 2, 0, 1);
        piece[i].raw.count = KEEL_INT64;
        piece[i].raw.a = 1;
        piece[i].len = sizeof one;
        piece[i].raw.step = i + 1;
    }
    ask(2, piece[1], &one); /* the first was lost */
    assert_int_equal(w.rank[2].reply.raw.status, WIRE_RETRY);
    for (int i = 0; i < 3; i++)
        ask(2, piece[i], &one);
    assert_int_equal(w.rank[2].replies, 1);
    for (int i = 0; i < 3; i++) {
        piece[i].raw.rank = 0;
        piece[i].raw.slot = 0;
        ask(0, piece[i], &one);
    }
    assert_true(word(0) == 3 && word(2) == 3 && w.rank[0].replies == 3 && w.rank[2].replies == 4);
}

static void test_ordering_what_comes_again_is_answered_once_and_executed_once(void **state)
{
    (void)state;
    w.node[2].still = true;
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    ask(0, swap_of(0, 0, 0, 1, 5), NULL); /* executed, and not known to all */
    assert_int_equal(w.rank[0].replies, 0);
    w.node[2].still = false;
    world_pump();
    assert_true(w.rank[0].replies == 1 && w.rank[0].reply.seq == w.rank[0].seq && w.rank[0].reply.raw.a == 0);
    ask(0, swap_of(0, 0, 0, 1, 5), NULL); /* known */
    assert_true(w.rank[0].replies == 2 && w.rank[0].reply.raw.a == 0);
    ask(3, swap_of(3, 2, 0, 1, 8), NULL);
    ask(3, swap_of(3, 2, 0, 1, 8), NULL); /* has no turn yet */
    ask(2, swap_of(2, 2, 0, 1, 5), NULL);
    ask(1, swap_of(1, 0, 0, 1, 8), NULL);
    assert_true(w.rank[3].replies == 1 && w.rank[3].reply.raw.a == 5 && word(2) == 8);
    assert_null(w.node[0].agent.ordering.part[0].waiting);
    assert_null(w.node[2].agent.ordering.part[0].waiting);
}

static void test_ordering_nobody_waits_for_what_the_dead_have_sent(void **state)
{
    (void)state;
    ask(3, swap_of(3, 2, 0, 1, 5), NULL);
    assert_non_null(w.node[2].agent.ordering.part[0].waiting);
    world_kill_rank(3);
    assert_null(w.node[2].agent.ordering.part[0].waiting);
}

static void test_ordering_what_a_lost_connection_brought_comes_again(void **state)
{
    (void)state;
    ask(2, swap_of(2, 2, 0, 1, 5), NULL);
    rank_connect(&w.rank[2], 2);
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    ask(2, swap_of(2, 2, 0, 1, 5), NULL);
    assert_true(w.rank[0].replies == 1 && w.rank[2].reply.seq == w.rank[2].seq && word(2) == 5);
}

static void test_ordering_an_operation_that_differs_has_its_place(void **state)
{
    (void)state;
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    ask(2, swap_of(2, 2, 0, 1, 6), NULL);
    assert_true(w.rank[2].replies == 1 && word(2) == 6 && w.node[2].agent.ordering.said);
    assert_false(w.node[0].agent.ordering.said);
}

/* One bit of the message is another one, from the header's first on. */
static void ask_damaged(int native, struct wire wire, const void *body, size_t len, size_t bit)
{
    struct digested m = {.wire = wire};
    uint8_t whole[sizeof m + sizeof(int64_t)];
    m.wire.seq = ++w.rank[native].seq;
    size_t head = digested_make(&m, body);
    memcpy(whole, &m, head);
    memcpy(whole + head, body, len);
    whole[bit / 8] ^= (uint8_t)(1U << bit % 8);
    assert_int_equal(tp_send(w.rank[native].ep[0], whole, head + len, NULL, 0, NULL), KEEL_OK);
    world_pump();
}

static void test_ordering_what_came_otherwise_than_it_was_sent_is_not_executed(void **state)
{
    (void)state;
    const int64_t one = 1;
    struct wire add = of_sets(0, WIRE_ACC, 0, 0, 1);
    add.raw.count = KEEL_INT64;
    add.raw.a = 1;
    add.raw.step = 1;
    add.len = sizeof one;
    ask_damaged(0, add, &one, sizeof one, 8 * (sizeof(struct wire) + EXTENSION_MAX - 8) + 5);
    assert_true(w.rank[0].replies == 1 && w.rank[0].reply.raw.status == WIRE_RETRY);
    ask_damaged(0, add, &one, sizeof one, 8 * offsetof(struct wire, raw.a) + 5);
    assert_true(w.rank[0].replies == 1 && !w.rank[0].ep[0]); /* whose it was is not known */
    rank_connect(&w.rank[0], 0);
    struct wire swap = swap_of(0, 0, 0, 1, 5);
    assert_int_equal(tp_send(w.rank[0].ep[0], &swap, sizeof swap, NULL, 0, NULL), KEEL_OK); /* says nothing of itself */
    world_pump();
    assert_true(w.rank[0].replies == 1 && !w.rank[0].ep[0]);
    assert_true(word(0) == 0 && w.node[0].agent.ordering.part[0].order.known == 0);
    rank_connect(&w.rank[0], 0);
    ask(0, add, &one);
    assert_true(word(0) == 1 && w.rank[0].replies == 2 && w.rank[0].reply.raw.status == KEEL_OK);
}

static void test_ordering_while_a_view_is_made_nothing_is_executed(void **state)
{
    (void)state;
    const struct view_event doubt = {.type = VIEW_RANK_DOUBT, .a = 3, .d = 1};
    ask(2, swap_of(2, 2, 0, 1, 5), NULL);
    w.epoch++;
    recover_prepare(&w.node[2].agent, w.epoch, w.epoch, &doubt, 1);
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    assert_true(word(0) == 5 && word(2) == 0 && w.rank[0].replies == 0);
    for (int i = 0; i < w.nodes; i++)
        world_commit(i, &doubt, 1);
    world_pump();
    assert_true(word(2) == 5 && w.rank[0].replies == 1 && w.rank[2].replies == 1);
}

static void test_ordering_without_memory_it_is_asked_again(void **state)
{
    (void)state;
    struct wire wire = swap_of(2, 2, 0, 1, 5);
    struct conn *c = w.node[2].agent.conns;
    while (c->life.rank != 2)
        c = c->next;
    for (int n = 1; n <= 2; n++) {
        memory_fail_at(n);
        execute_request(&w.node[2].agent, c, &wire, NULL);
        assert_true(memory_failed());
        world_pump();
        assert_int_equal(w.rank[2].reply.raw.status, WIRE_RETRY);
        assert_null(w.node[2].agent.ordering.part[0].waiting);
    }
    ask(2, wire, NULL);
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    assert_true(word(2) == 5 && w.rank[2].reply.raw.status == KEEL_OK);
}

static void test_ordering_only_neighbours_are_heard(void **state)
{
    (void)state;
    struct order_record record = {.number = 1};
    struct wire wire;
    msg_order_encode(&(struct msg_order){.first = 1, .len = sizeof record}, &wire);
    agent_tell(&w.node[1].agent, 2, &wire, &record); /* of another part */
    agent_tell(&w.node[2].agent, 0, &wire, &record); /* who leads hears no entries */
    msg_order_encode(&(struct msg_order){.class = CLASSES, .first = 1, .len = sizeof record}, &wire);
    agent_tell(&w.node[0].agent, 2, &wire, &record);
    msg_ordered_encode(&(struct msg_ordered){.upto = 9}, &wire);
    agent_tell(&w.node[3].agent, 0, &wire, NULL);
    world_pump();
    for (int i = 0; i < w.nodes; i++)
        assert_true(w.node[i].agent.ordering.part[0].order.known == 0 && !w.node[i].fatal);
    w.node[2].still = true;
    ask(0, swap_of(0, 0, 0, 1, 5), NULL);
    msg_ordered_encode(&(struct msg_ordered){.upto = 1}, &wire);
    agent_tell(&w.node[3].agent, 0, &wire, NULL);
    world_pump();
    assert_int_equal(w.rank[0].replies, 0);
    w.node[2].still = false;
    world_pump();
    assert_int_equal(w.rank[0].replies, 1);
    msg_order_encode(&(struct msg_order){.first = 3, .len = sizeof record}, &wire);
    agent_tell(&w.node[0].agent, 2, &wire, &record); /* two are missing: this set cannot go on */
    world_pump();
    assert_true(w.node[2].fatal);
}

/* What belongs to all sets has no order among them. */
static void test_ordering_segments_of_all_sets_are_not_ordered(void **state)
{
    (void)state;
    struct wire wire = rank_wire(&w.rank[2], WIRE_RMW, SEG_NONE, 2, AT);
    wire.raw.identity = 1;
    ask(2, wire, NULL);
    assert_int_equal(w.rank[2].replies, 1);
}

/* ---- at random: two sets of two ranks, or three of one; some node dies, or none ---- */

enum { OPS = 30 };

struct stream {
    int native, lane;
    int sent, told;     /* of its operations */
    int64_t value[OPS]; /* that they found */
};

static void send_next(struct stream *s)
{
    int rank = replica_of(&map, s->native).rank, set = replica_of(&map, s->native).set;
    int to = (s->sent + s->lane + rank) % map.ranks;
    int64_t value = 1 + (int64_t)s->sent + 100 * s->lane + 1000 * rank;
    rank_send(&w.rank[s->native], replica_native(&map, to, set),
              swap_of(s->native, replica_native(&map, to, set), (uint32_t)s->lane, (uint64_t)++s->sent, value), NULL);
}

static void run_at_random(uint64_t seed)
{
    struct rng rng;
    struct stream s[8];
    rng_seed(&rng, seed);
    int streams = map.ranks * map.replicas;
    int dies = (int)rng_below(&rng, (uint64_t)w.nodes + 2), at = (int)rng_below(&rng, 200);
    for (int i = 0; i < streams; i++)
        s[i] = (struct stream){.native = i, .lane = 0};
    for (int step = 0; step < 3000; step++) {
        int i = (int)rng_below(&rng, (uint64_t)streams), turns = (int)rng_below(&rng, 3);
        struct rank *r = &w.rank[s[i].native];
        if (step == at && dies < w.nodes)
            world_kill_node(dies);
        if (r->replies > s[i].told) {
            assert_int_equal(r->reply.raw.status, KEEL_OK);
            s[i].value[s[i].told++] = r->reply.raw.a;
        }
        if (s[i].sent == s[i].told && s[i].sent < OPS && !w.node[s[i].native].still &&
            (dies >= w.nodes || step < at || replica_of(&map, s[i].native).set != replica_of(&map, dies).set))
            send_next(&s[i]);
        for (; turns > 0; turns--)
            world_turn_of((int)rng_below(&rng, (uint64_t)w.nodes));
        if (rng_below(&rng, 4) == 0)
            world_turn();
    }
    for (int i = 0; i < streams; i++) {
        int set = replica_of(&map, s[i].native).set;
        for (int k = 0; k < streams; k++)
            for (int n = 0; replica_of(&map, k).rank == replica_of(&map, s[i].native).rank && n < s[i].told; n++)
                if (n < s[k].told)
                    assert_int_equal(s[i].value[n], s[k].value[n]); /* what any was told all were told */
        if (dies >= w.nodes || replica_of(&map, dies).set != set)
            assert_int_equal(s[i].told, OPS);
    }
}

static void test_ordering_at_random_all_are_told_the_same(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (uint64_t i = 0; i < 40; i++) {
        assert_int_equal(open_sets(i % 2 ? 2 : 3, i % 2 ? 2 : 1), 0);
        run_at_random(rng_u64(&rng));
        world_close();
        replica_map_fini(&map);
    }
    assert_int_equal(memory_living(), 0);
}

#define TWO(f) cmocka_unit_test_setup_teardown(f, two_sets, teardown)
#define AND_SPARE(f) cmocka_unit_test_setup_teardown(f, two_sets_and_a_spare, teardown)
#define THREE(f) cmocka_unit_test_setup_teardown(f, three_sets, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TWO(test_ordering_leader_answers_when_the_other_set_knows),
        TWO(test_ordering_other_set_follows_whatever_comes_first),
        THREE(test_ordering_next_set_goes_on_with_what_was_decided),
        TWO(test_ordering_retired_set_is_told_nothing),
        TWO(test_ordering_retired_set_is_told_nothing_by_the_next_copy),
        TWO(test_ordering_part_that_is_gone_with_its_node_has_left_the_chain),
        AND_SPARE(test_ordering_processes_of_a_set_that_begins_anew_go_on),
        AND_SPARE(test_ordering_set_that_begins_anew_is_alone_until_it_joins),
        AND_SPARE(test_ordering_set_that_has_joined_on_a_spare_goes_on_alone),
        AND_SPARE(test_ordering_what_was_said_before_a_set_joined_is_dropped),
        THREE(test_ordering_what_waits_under_an_older_route_comes_again),
        TWO(test_ordering_pieces_follow_each_other),
        TWO(test_ordering_what_comes_again_is_answered_once_and_executed_once),
        TWO(test_ordering_nobody_waits_for_what_the_dead_have_sent),
        TWO(test_ordering_what_a_lost_connection_brought_comes_again),
        TWO(test_ordering_an_operation_that_differs_has_its_place),
        TWO(test_ordering_what_came_otherwise_than_it_was_sent_is_not_executed),
        TWO(test_ordering_while_a_view_is_made_nothing_is_executed),
        TWO(test_ordering_without_memory_it_is_asked_again),
        TWO(test_ordering_only_neighbours_are_heard),
        TWO(test_ordering_segments_of_all_sets_are_not_ordered),
        cmocka_unit_test(test_ordering_at_random_all_are_told_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
