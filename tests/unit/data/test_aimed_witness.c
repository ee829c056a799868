/* What of all live ranks is complete is known where no rank runs, before a call returns (client/group/witness.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "aimed.h"
#include "runtime/client/group/collective.h"
#include "runtime/wire/complete.h"
#include "runtime/wire/system.h"

static void ranks_are_done(int n)
{
    struct view_event done[3];
    for (int r = 0; r < n; r++)
        done[r] = (struct view_event){.type = VIEW_RANK_DONE, .a = (uint32_t)r};
    change(done, n);
    restore();
}

/* Rank 3, on node 3, is the only one that takes part. */
static void open_alone(enum view_policy policy)
{
    world_open(4, 0, policy);
    ranks_are_done(3);
    client_open();
}

/* Agents of nodes without ranks that know that n collectives are complete. */
static int know(uint64_t n)
{
    int know = 0;
    for (int node = 0; node < 3; node++)
        know += complete_collectives(ranks_complete(&w.node[node].agent)) == n;
    return know;
}

static int opens_alone(void **state)
{
    (void)state;
    open_alone(VIEW_SUBSTITUTE);
    return 0;
}

static void test_aimed_what_is_complete_outlasts_the_only_node_with_ranks(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        assert_int_equal(collective_barrier(&c), KEEL_OK);
        assert_int_equal(know(n), 2); /* the third copy of its part is its own node's */
    }
    world_kill_node(3);
    assert_true(know(3) >= 2);
}

/* Nobody waits in the test, and the number is not there before the copies have it. */
static void test_aimed_barrier_in_two_phases_is_over_when_others_know(void **state)
{
    (void)state;
    uint64_t epoch;
    assert_int_equal(collective_barrier_begin(&c), KEEL_OK);
    w.node[0].still = w.node[1].still = w.node[2].still = true;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(collective_barrier_test(&c, &epoch), KEEL_IN_PROGRESS);
        world_turn();
    }
    assert_int_equal(know(1), 0);
    assert_int_equal(collective_barrier_begin(&c), KEEL_ERR_STATE);
    w.node[0].still = w.node[1].still = w.node[2].still = false;
    for (int i = 0; i < 1000 && collective_barrier_test(&c, &epoch) == KEEL_IN_PROGRESS; i++)
        turns(1);
    assert_int_equal(know(1), 2);
    assert_int_equal(collective_barrier_test(&c, &epoch), KEEL_ERR_STATE);
}

/* Another node runs a rank, too: by the page it knows. A view that is being made may be without it, and its agents may
 * have said before how far all are. */
static void test_aimed_what_is_complete_while_a_view_is_made_is_written(void **state)
{
    (void)state;
    struct page *page = w.node[3].agent.page;
    atomic_store(&page_rank(page, 2)->where, (uint64_t)2 << 32);
    atomic_store(&page_rank(page, 2)->life, 1);
    assert_int_equal(collective_barrier(&c), KEEL_OK);
    assert_int_equal(know(1), 0);
    assert_int_equal(collective_barrier_begin(&c), KEEL_OK);
    atomic_store(&page->frozen, 1);
    assert_int_equal(collective_barrier_end(&c, NULL), KEEL_OK);
    assert_int_equal(know(2), 2);
    atomic_store(&page->frozen, 0);
    assert_int_equal(collective_barrier(&c), KEEL_OK);
    assert_int_equal(know(2), 2);
}

/* No process takes another one's place: nobody asks. */
static void test_aimed_nothing_is_written_where_nobody_begins_again(void **state)
{
    (void)state;
    open_alone(VIEW_DEGRADE);
    assert_int_equal(collective_barrier(&c), KEEL_OK);
    assert_int_equal(know(1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_what_is_complete_outlasts_the_only_node_with_ranks, opens_alone,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_barrier_in_two_phases_is_over_when_others_know, opens_alone,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_what_is_complete_while_a_view_is_made_is_written, opens_alone,
                                        client_close),
        cmocka_unit_test_teardown(test_aimed_nothing_is_written_where_nobody_begins_again, client_close),
    };
    return cmocka_run_group_tests_name("aimed_witness", tests, NULL, NULL);
}
