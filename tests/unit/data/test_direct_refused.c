/* What a rank does not take, and what is lost with its ring, comes again. */
#include "tests/unit/data/direct_steps.h"
#include "tests/unit/data/memory.h"

enum { LEN = 20000 };

/* All goes through agents. */
static int desert(void **state)
{
    deserted = true;
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    return set_up(state);
}

/* Rank 1 has sent three messages of several pieces; rank 0 looks, and for one of them there is no memory. */
static bool looks_while_an_allocation_fails(long nth)
{
    rank[0].asleep = true;
    send_some(1, 3, LEN);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].asleep = false;
    rank[1].asleep = true;
    memory_fail_large(nth, LEN);
    for (int i = 0; i < 3; i++)
        ranks_turn();
    bool failed = memory_failed();
    rank[1].asleep = false;
    return failed;
}

/* It has no connection to the other's node then. */
static void test_direct_refusal_waits_for_a_connection(void **state)
{
    long nth = 1;
    for (; looks_while_an_allocation_fails(nth); nth++) {
        get_all(0, LEN);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(desert(state), 0);
    }
    get_all(0, LEN);
    assert_int_equal(nth, 7); /* three messages, and room to keep each */
}

/* It has one, and that breaks with the refusal. */
static void test_direct_refusal_that_is_lost_is_made_again(void **state)
{
    (void)state;
    send_some(0, 1, 100);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[1].asleep = true;
    ranks_turn();
    assert_non_null(link_up(&rank[0].c, 1, now_ns));
    rank[1].asleep = false;
    assert_true(looks_while_an_allocation_fails(1));
    assert_true(rank[0].c.coll.stream[1].refused);
    assert_false(rank[0].c.coll.stream[1].refusal_due);
    tp_disconnect(rank[0].agent[1]);
    get_all(0, LEN);
}

/* The ring between a rank and its agent ends, and what was in it with it: the rank makes another way to its agent, though it waits for
 * nothing but messages. */
static void lose_ring(int r)
{
    struct tp_ep *ring = rank[r].own;
    rank[r].own = NULL;
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[r].own = ring;
    tp_disconnect(client_own_link(&rank[r].c)->way.ep);
    for (int i = 0; i < 10; i++)
        agents_turn();
    assert_null(rank[r].own);
}

static void test_direct_what_is_lost_with_the_ring_comes_again(void **state)
{
    (void)state;
    rank[0].asleep = true;
    send_some(1, 3, 100);
    lose_ring(0);
    rank[0].asleep = false;
    get_all(0, 100);
    send_some(0, 3, 100);
    get_all(1, 100);
}

/* So does an acknowledgement: who waits for it goes on. */
static void test_direct_acknowledgement_lost_with_the_ring_comes_again(void **state)
{
    (void)state;
    struct stream *s = &rank[1].c.coll.stream[0];
    rank[0].asleep = true;
    send_some(1, 3, 100);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].asleep = false;
    rank[1].asleep = true;
    struct tp_ep *ring = rank[1].own;
    rank[1].own = NULL;
    for (int i = 0; i < 20; i++) {
        now_ns += KEEL_NS_PER_MS;
        turn();
    }
    rank[1].own = ring;
    lose_ring(1);
    rank[1].asleep = false;
    get_all(0, 100);
    assert_null(s->head);
}

/* It is of a life that begins with a view which is still to come here; there is no connection to its node. */
static void test_direct_refusal_to_a_life_that_is_not_known_yet(void **state)
{
    (void)state;
    struct client *c = &rank[1].c;
    rank[0].asleep = true;
    rank[1].c.incarnation = 1; /* of rank 1, where it says so */
    c->coll.life[1].life = c->coll.life[1].newest = 2;
    send_some(1, 3, 100);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].asleep = false;
    rank[1].asleep = true;
    ranks_turn();
    assert_int_equal(rank[0].c.coll.stream[1].refused, 2);
    uint64_t n = page->changes;
    page->change[n] = (struct page_change){.epoch = 5, .life = 2, .rank = 1};
    page_rank(page, 1)->life = 2;
    atomic_store(&page->changes, n + 1);
    atomic_store(&page->epoch, 5);
    c->coll.changes = n + 1;
    rank[1].asleep = false;
    get_all(0, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_direct_refusal_waits_for_a_connection, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_that_is_lost_is_made_again, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_is_lost_with_the_ring_comes_again, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_acknowledgement_lost_with_the_ring_comes_again, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_to_a_life_that_is_not_known_yet, desert, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
