/* What a rank does not take, and what is lost with its ring, comes again. */
#include "tests/unit/data/direct_steps.h"
#include "tests/unit/data/memory.h"
#include "runtime/client/stream/connection.h"
#include "runtime/client/stream/mail.h"
#include "runtime/wire/parcel.h"

enum { LEN = 20000 };

/* All goes through agents. */
static int desert(void **state)
{
    deserted = true;
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    return set_up(state);
}

static int connected(void **state)
{
    deserted = false;
    int status = set_up(state);
    if (status == 0)
        meet();
    return status;
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
    assert_non_null(connection_up(&rank[0].c, 1, now_ns));
    rank[1].asleep = false;
    assert_true(looks_while_an_allocation_fails(1));
    assert_true(rank[0].c.coll.stream[1].refused);
    assert_false(rank[0].c.coll.stream[1].refusal_due);
    tp_disconnect(rank[0].agent[1]);
    get_all(0, LEN);
}

/* The ring between a rank and its agent ends, and what was in it with it: the rank makes another way to its agent,
 * though it waits for nothing but messages. */
static void lose_ring(int r)
{
    struct tp_ep *ring = rank[r].own;
    rank[r].own = NULL;
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[r].own = ring;
    tp_disconnect(client_own_connection(&rank[r].c)->way.ep);
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

/* The refusal went through the agents. The stream goes over the ranks' connection when the one to the agent is lost. */
static void test_direct_refusal_is_made_again_whichever_way_the_stream_goes(void **state)
{
    (void)state;
    struct stream *s = &rank[0].c.coll.stream[1];
    s->handed_on = rank[1].c.coll.stream[0].handed_on = true; /* through the agents */
    send_some(0, 1, 100);
    get_all(1, 100);
    assert_false(s->direct);
    assert_true(looks_while_an_allocation_fails(1));
    assert_true(s->refused && !s->refusal_due);
    s->handed_on = false;
    courier_room(&rank[0].c, 1, now_ns);
    assert_true(s->direct);
    tp_disconnect(rank[0].agent[1]);
    get_all(0, LEN);
}

/* Another process is that rank from here on. It knows no connection of the one before, which stays up in silence. */
static struct connection *begins_anew(int r)
{
    struct client *c = &rank[r].c;
    struct connection *before = (struct connection *)c->direct.of[1 - r];
    c->incarnation = 1;
    c->coll.life[r].life = c->coll.life[r].newest = 2;
    courier_reset(c, 1 - r);
    mail_reset(c, 1 - r);
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    if (!before)
        return NULL;
    before->way.ep = NULL;
    c->direct.of[1 - r] = NULL;
    c->direct.ups--;
    c->direct.n--;
    return before;
}

/* A view names it. */
static void is_named(int r)
{
    uint64_t n = page->changes;
    page->change[n] = (struct page_change){.epoch = 5, .life = 2, .rank = (uint32_t)r};
    page_rank(page, r)->life = 2;
    atomic_store(&page->changes, n + 1);
    atomic_store(&page->epoch, 5);
    rank[r].c.coll.changes = n + 1;
}

/* The new process sends three messages before the other rank has the view that names it. */
static void refuse_those_of_the_next_life(int r)
{
    rank[1 - r].asleep = true;
    send_some(r, 3, 100);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[1 - r].asleep = false;
    rank[r].asleep = true;
    ranks_turn();
    assert_int_equal(rank[1 - r].c.coll.stream[r].refused, 2);
}

/* There is no connection to its node. */
static void test_direct_refusal_to_a_life_that_is_not_known_yet(void **state)
{
    (void)state;
    assert_null(begins_anew(1));
    refuse_those_of_the_next_life(1);
    is_named(1);
    rank[1].asleep = false;
    get_all(0, 100);
}

/* The connection to the life before is still up: a refusal would be lost there. */
static void test_direct_refusal_to_the_next_life_does_not_go_to_the_last_one(void **state)
{
    (void)state;
    assert_true(rank[1].c.coll.stream[0].direct);
    struct connection *before = begins_anew(0);
    refuse_those_of_the_next_life(0);
    is_named(0);
    rank[0].asleep = false;
    get_all(1, 100);
    free(before);
}

/* A message of the last life is refused after those of the next one: only the next one needs to hear of it. */
static void test_direct_refusal_to_the_last_life_replaces_none_to_the_next(void **state)
{
    (void)state;
    struct client *c = &rank[1].c;
    struct wire late = {.type = WIRE_PARCEL,
                        .len = 100,
                        .raw.a = parcel_to(life_of(1, 0)),
                        .seq = c->coll.stream[0].received + 1,
                        .raw.identity = 100,
                        .raw.step = PARCEL_MAIL};
    uint8_t bytes[100] = {0};
    struct connection *before = begins_anew(0);
    refuse_those_of_the_next_life(0);
    memory_fail_at(1);
    courier_receive(c, &late, bytes, sizeof bytes, now_ns);
    assert_true(memory_failed());
    is_named(0);
    rank[0].asleep = false;
    get_all(1, 100);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_direct_refusal_waits_for_a_connection, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_that_is_lost_is_made_again, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_is_lost_with_the_ring_comes_again, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_acknowledgement_lost_with_the_ring_comes_again, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_is_made_again_whichever_way_the_stream_goes, connected,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_to_a_life_that_is_not_known_yet, desert, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_to_the_next_life_does_not_go_to_the_last_one, connected,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_refusal_to_the_last_life_replaces_none_to_the_next, connected,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
