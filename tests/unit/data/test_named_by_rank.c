/* Replicas of a rank do each other's part: agents know what counts once by the name that all of them give it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/agent/execute.h"
#include "sets_steps.h"

/* Two sets of two ranks: natives 0 and 2 are rank 0, natives 1 and 3 rank 1. */
static int partners(void **state)
{
    w.on_death = DEATH_PARTNER;
    return two_sets(state);
}

static struct wire add_of(int native, int slot, uint64_t number, uint32_t piece)
{
    struct wire wire = of_sets(native, WIRE_ACC, slot, 0, number);
    wire.raw.count = KEEL_INT64;
    wire.raw.a = 1;
    wire.raw.step = piece;
    wire.len = sizeof(int64_t);
    return wire;
}

static const int64_t one = 1;

static bool was_told(int native, int replies, int status)
{
    return w.rank[native].replies == replies && w.rank[native].reply.raw.status == status;
}

static struct conn *conn_of(int native, int node)
{
    struct conn *c = w.node[node].agent.conns;
    while (c->life.rank != native)
        c = c->next;
    return c;
}

/* ---- one name, whoever brings it ---- */

static void test_named_partner_does_not_do_again_what_the_dead_has_done(void **state)
{
    (void)state;
    ask(0, swap_of(0, 0, 3, 1, 5), NULL);
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    ask(0, swap_of(0, 2, 3, 1, 5), NULL); /* what the other one has had executed in its set */
    assert_true(was_told(0, 2, KEEL_OK) && w.rank[0].reply.raw.a == 0);
    assert_true(word(0) == 5 && word(2) == 5 && w.node[2].agent.ordering.part[0].order.known == 1);
}

static void test_named_partner_does_what_the_dead_has_not_done(void **state)
{
    (void)state;
    ask(0, swap_of(0, 0, 3, 1, 5), NULL);
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    assert_true(was_told(0, 2, KEEL_OK) && word(2) == 5);
    ask(2, swap_of(2, 2, 3, 1, 5), NULL); /* who is behind, and lives */
    assert_true(was_told(2, 1, KEEL_OK) && w.rank[2].reply.raw.a == 0 && word(2) == 5);
}

static void test_named_another_rank_has_names_of_its_own(void **state)
{
    (void)state;
    ask(0, swap_of(0, 0, 3, 1, 5), NULL);
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    ask(1, swap_of(1, 0, 3, 1, 6), NULL);
    ask(1, swap_of(1, 2, 3, 1, 6), NULL); /* of another set, and it is none of what rank 0 did there */
    assert_true(was_told(1, 2, KEEL_OK) && w.rank[1].reply.raw.a == 5 && word(2) == 6);
}

static void test_named_nobody_says_that_it_is_another_one(void **state)
{
    (void)state;
    for (int native = 1; native < 4; native++) { /* native 2 is a replica of its own rank */
        struct wire wire = swap_of(0, 2, 3, 1, 5);
        wire.raw.rank = (uint32_t)native;
        ask(0, wire, NULL);
        assert_true(was_told(0, native, KEEL_ERR_AUTH));
    }
    assert_true(word(2) == 0 && !w.node[2].agent.ordering.part[0].waiting);
}

static void test_named_in_what_belongs_to_all_sets_each_counts_for_itself(void **state)
{
    (void)state;
    for (int native = 0; native <= 2; native += 2) {
        struct wire wire = rank_wire(&w.rank[native], WIRE_RMW, SEG_NONE, 3, AT);
        wire.raw.identity = 1;
        wire.raw.count = ARITH_ADD;
        wire.raw.a = 7;
        ask(native, wire, NULL);
        assert_true(was_told(native, 1, KEEL_OK) && w.rank[native].reply.raw.a == 7 * native / 2);
    }
}

static void test_named_other_copies_know_the_name_as_the_first_one_does(void **state)
{
    (void)state;
    struct wire first = swap_of(1, 1, 3, 1, 5), second = swap_of(3, 3, 3, 1, 5), again = swap_of(1, 3, 3, 1, 5);
    first.raw.seg = second.raw.seg = again.raw.seg = SEG_WITH_SHADOWS;
    ask(1, first, NULL);
    ask(3, second, NULL);
    assert_true(was_told(1, 1, KEEL_OK) && was_told(3, 1, KEEL_OK));
    world_kill_node(3);
    again.epoch = w.node[0].agent.view.copyset[copyset_of(3, 1)].generation;
    rank_send(&w.rank[1], 0, again, NULL);
    world_pump();
    assert_true(was_told(1, 2, KEEL_OK) && w.rank[1].reply.raw.a == 0);
}

/* ---- who is behind ---- */

static void test_named_who_is_behind_with_what_was_added_is_told_so(void **state)
{
    (void)state;
    for (uint64_t number = 1; number <= 2; number++) {
        ask(0, add_of(0, 0, number, 1), &one);
        ask(2, add_of(2, 2, number, 1), &one);
    }
    ask(0, add_of(0, 2, 1, 1), &one);
    assert_true(was_told(0, 3, KEEL_OK) && word(2) == 2);
    ask(0, add_of(0, 2, 2, 1), &one);
    assert_true(was_told(0, 4, KEEL_OK) && word(2) == 2);
    ask(0, add_of(0, 2, 2, 3), &one); /* the piece before it was lost */
    assert_true(was_told(0, 5, WIRE_RETRY) && word(2) == 2);
}

static void test_named_what_an_atomic_found_long_since_nobody_knows(void **state)
{
    (void)state;
    for (uint64_t number = 1; number <= 2; number++) {
        ask(0, swap_of(0, 0, 3, number, 5), NULL);
        ask(2, swap_of(2, 2, 3, number, 5), NULL);
    }
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    assert_true(was_told(0, 3, KEEL_ERR_STATE));
}

static void test_named_signals_count_once_and_are_the_agents(void **state)
{
    (void)state;
    struct wire own = of_sets(2, WIRE_RMW, 2, 0, 2), partners = of_sets(0, WIRE_RMW, 2, 0, 2);
    own.raw.count = partners.raw.count = ARITH_ADD | RMW_UNORDERED;
    own.raw.a = partners.raw.a = 7;
    ask(2, own, NULL);
    assert_true(was_told(2, 1, KEEL_OK) && w.rank[2].reply.epoch == 0); /* it does not do the next one itself */
    ask(0, partners, NULL);
    assert_true(was_told(0, 1, KEEL_OK) && word(2) == 7);
    partners.raw.identity = 1;
    ask(0, partners, NULL);
    assert_true(was_told(0, 2, KEEL_OK) && word(2) == 7);
}

/* ---- several wait ---- */

static void test_named_all_that_wait_for_a_turn_are_told(void **state)
{
    (void)state;
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    ask(0, swap_of(0, 2, 3, 1, 5), NULL); /* once more: it has one answer */
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    assert_true(w.rank[0].replies == 0 && w.rank[2].replies == 0);
    ask(0, swap_of(0, 0, 3, 1, 5), NULL);
    assert_true(was_told(0, 2, KEEL_OK) && was_told(2, 1, KEEL_OK) && w.rank[2].reply.seq == w.rank[2].seq);
    assert_true(word(2) == 5 && w.node[2].agent.ordering.part[0].order.known == 1);
    assert_null(w.node[2].agent.ordering.part[0].waiting);
}

static void one_of_them_goes(int goes, int stays)
{
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    ordering_forget(&w.node[2].agent, conn_of(goes, 2));
    ask(0, swap_of(0, 0, 3, 1, 5), NULL);
    int own = stays == 0; /* of set 0, from the leader */
    assert_true(was_told(stays, 1 + own, KEEL_OK) && word(2) == 5);
    assert_int_equal(w.rank[goes].replies, goes == 0);
    ask(goes, swap_of(goes, 2, 3, 1, 5), NULL);
    assert_true(was_told(goes, 1 + (goes == 0), KEEL_OK) && w.rank[goes].reply.raw.a == 0 && word(2) == 5);
}

static void test_named_who_asked_first_goes_and_the_other_one_is_told(void **state)
{
    (void)state;
    one_of_them_goes(2, 0);
}

static void test_named_who_asked_later_goes_and_the_first_one_is_told(void **state)
{
    (void)state;
    one_of_them_goes(0, 2);
}

static void test_named_all_that_wait_ask_again_under_another_route(void **state)
{
    (void)state;
    struct wire first = swap_of(3, 3, 3, 1, 5), second = swap_of(1, 3, 3, 1, 5);
    first.raw.seg = second.raw.seg = SEG_WITH_SHADOWS;
    ask(3, first, NULL);
    ask(1, second, NULL);
    assert_true(w.rank[3].replies == 0 && w.rank[1].replies == 0);
    const struct view_event done = {.type = VIEW_RANK_DONE, .a = 0};
    world_change(&done, 1);
    world_kill_node(0); /* the second copy */
    assert_true(was_told(3, 1, WIRE_RETRY) && was_told(1, 1, WIRE_RETRY));
    assert_null(w.node[3].agent.ordering.part[1].waiting);
}

static void test_named_without_memory_the_second_asks_again(void **state)
{
    (void)state;
    struct wire wire = swap_of(0, 2, 3, 1, 5);
    struct conn *c = conn_of(0, 2);
    ask(2, swap_of(2, 2, 3, 1, 5), NULL);
    memory_fail_at(1);
    execute_request(&w.node[2].agent, c, &wire, NULL);
    assert_true(memory_failed());
    world_pump();
    assert_true(was_told(0, 1, WIRE_RETRY));
    ask(0, swap_of(0, 0, 3, 1, 5), NULL);
    assert_true(was_told(2, 1, KEEL_OK) && w.rank[0].replies == 2 && word(2) == 5);
}

/* ---- where sets are retired ---- */

/* Native 0 does the part of 2, which waits for its turn there, when set 1 comes to its end. */
static void test_named_who_acts_in_a_set_that_is_retired_is_told_so(void **state)
{
    (void)state;
    const struct view_event needs = {.type = VIEW_NEEDS, .a = NEEDS_SETS};
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    assert_int_equal(w.rank[0].replies, 0);
    world_kill_rank(2);
    assert_true(view_set_is_whole(&w.node[2].agent.view, 1));
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    assert_int_equal(w.rank[0].replies, 0);
    world_change(&needs, 1);
    assert_true(was_told(0, 1, WIRE_RETRY) && !view_set_is_whole(&w.node[2].agent.view, 1));
    assert_null(w.node[2].agent.ordering.part[0].waiting);
    ask(0, swap_of(0, 2, 3, 1, 5), NULL);
    assert_true(was_told(0, 2, KEEL_ERR_DATA_LOST) && word(2) == 0);
    ask(0, swap_of(0, 0, 3, 1, 5), NULL); /* it is alone */
    assert_true(was_told(0, 3, KEEL_OK) && word(0) == 5);
}

static void test_named_replicas_have_names_of_their_own_where_sets_are_retired(void **state)
{
    (void)state;
    ask(0, swap_of(0, 2, 3, 1, 5), NULL); /* and no turn in the order of another set */
    assert_true(was_told(0, 1, KEEL_OK) && word(2) == 5);
    ask(0, swap_of(0, 0, 3, 1, 6), NULL);
    ask(2, swap_of(2, 2, 3, 1, 6), NULL);
    assert_true(was_told(2, 1, KEEL_OK) && w.rank[2].reply.raw.a == 5 && word(2) == 6);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, partners, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_named_partner_does_not_do_again_what_the_dead_has_done),
        TEST(test_named_partner_does_what_the_dead_has_not_done),
        TEST(test_named_another_rank_has_names_of_its_own),
        TEST(test_named_nobody_says_that_it_is_another_one),
        TEST(test_named_in_what_belongs_to_all_sets_each_counts_for_itself),
        TEST(test_named_other_copies_know_the_name_as_the_first_one_does),
        TEST(test_named_who_is_behind_with_what_was_added_is_told_so),
        TEST(test_named_what_an_atomic_found_long_since_nobody_knows),
        TEST(test_named_signals_count_once_and_are_the_agents),
        TEST(test_named_all_that_wait_for_a_turn_are_told),
        TEST(test_named_who_asked_first_goes_and_the_other_one_is_told),
        TEST(test_named_who_asked_later_goes_and_the_first_one_is_told),
        TEST(test_named_all_that_wait_ask_again_under_another_route),
        TEST(test_named_without_memory_the_second_asks_again),
        TEST(test_named_who_acts_in_a_set_that_is_retired_is_told_so),
        cmocka_unit_test_setup_teardown(test_named_replicas_have_names_of_their_own_where_sets_are_retired, two_sets,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
