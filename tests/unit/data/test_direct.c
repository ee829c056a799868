/* Two ranks and their messages: over a connection of their own, and through agents when there is none. */
#include "tests/unit/data/direct_steps.h"
#include "runtime/client/progress.h"
#include "runtime/client/stream/mail.h"
#include "runtime/wire/parcel.h"
#include "tests/lib/net/mem.h"

static void test_direct_messages_pass_no_agent_once_ranks_have_met(void **state)
{
    (void)state;
    meet();
    assert_true(passed > 0); /* the first, and where the ranks listen */
    passed = 0;
    for (int i = 0; i < 20; i++) {
        send_some(i % 2, 5, 100);
        get_all(1 - i % 2, 100);
    }
    assert_int_equal(passed, 0);
}

static void test_direct_who_only_receives_is_connected_to(void **state)
{
    (void)state;
    for (int from = 0; from < RANKS; from++) {
        memset(sent, 0, sizeof sent);
        memset(got, 0, sizeof got);
        send_some(from, 3, 100);
        get_all(1 - from, 100);
        assert_non_null(direct_up(&rank[from].c, 1 - from));
        passed = 0;
        send_some(from, 3, 100);
        get_all(1 - from, 100);
        assert_int_equal(passed, 0);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_direct_lost_connection_loses_and_repeats_no_message(void **state)
{
    (void)state;
    meet();
    for (int i = 0; i < 40; i++) {
        int from = i % 2, breaks = i / 2 % 2;
        rank[1 - from].asleep = true;
        send_some(from, 1 + i % 7, 100);
        lose(1 - from, breaks);
        if (i % 3 == 0)
            agents_turn();
        send_some(from, 2, 100);
        get_all(1 - from, 100);
        assert_non_null(direct_up(&rank[0].c, 1)); /* there is another one */
        assert_non_null(direct_up(&rank[1].c, 0));
    }
}

static void test_direct_pieces_of_a_long_message_go_together(void **state)
{
    (void)state;
    meet();
    together = passed = 0;
    send_some(0, 1, 50000);
    get_all(1, 50000);
    assert_int_equal(together, 1);
    assert_int_equal(passed, 0);
}

/* The agents pass so many pieces on, of which the sender does not hear; then all come together. */
static void test_direct_pieces_that_came_one_by_one_are_not_taken_again(void **state)
{
    (void)state;
    for (int known = 1; known < 4; known++) {
        meet();
        rank[1].asleep = true;
        lose(1, 0);
        assert_null(direct_up(&rank[0].c, 1));
        pieces = together = 0;
        loses = known;
        send_some(0, 1, 50000);
        for (int i = 0; i < 4; i++)
            agents_turn();
        assert_int_equal(pieces, 4);
        get_all(1, 50000);
        assert_int_equal(together, 1);
        loses = 0;
        send_some(0, 3, 100);
        get_all(1, 100);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_direct_what_sockets_do_not_take_waits_where_it_is(void **state)
{
    (void)state;
    meet();
    arrived = 0;
    crowded = true;
    send_some(0, 3, 3000);
    pump();
    assert_int_equal(arrived, 0);
    crowded = false;
    get_all(1, 3000);
    assert_int_equal(arrived, 3);
}

/* What is acknowledged together ends one by one, and with one of them the engine sends more; the way changes then, as
 * little is left. */
static void test_direct_way_changes_in_the_middle_of_an_acknowledgement(void **state)
{
    (void)state;
    enum { N = 6000, LEN = 20000 };
    static double in[RANKS][N], out[RANKS][N];
    struct keel_request *r[RANKS] = {NULL};
    struct engine_call call = {.kind = ENGINE_MOVE,
                               .move = SCHEDULE_ALLREDUCE,
                               .len = sizeof in[0],
                               .element = {.type = ELEMENT_DOUBLE, .op = ELEMENT_SUM},
                               .algorithm = SCHEDULE_DOUBLING + 1};
    for (int i = 0; i < N; i++) {
        in[0][i] = i;
        in[1][i] = 2 * i;
    }
    meet();
    call.in = in[1];
    call.out = out[1];
    assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &r[1]), KEEL_OK);
    pump();
    rank[1].asleep = true;
    call.in = in[0];
    call.out = out[0];
    send_some(0, 4, LEN); /* more than goes over a connection while nobody waits for it: through the agents */
    assert_int_equal(coll_call(rank[0].c.coll.world, &call, NULL, &r[0]), KEEL_OK);
    send_some(0, 2, LEN);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].deaf = true;
    rank[1].asleep = false;
    for (int i = 0; i < 10; i++)
        ranks_turn();
    tp_disconnect(direct_up(&rank[0].c, 1)); /* and with it all answers */
    ranks_turn();
    rank[0].deaf = false;
    for (int i = 0; i < 100 && !(direct_up(&rank[0].c, 1) && direct_up(&rank[1].c, 0)); i++) {
        now_ns += KEEL_NS_PER_MS;
        ranks_turn();
    }
    assert_non_null(direct_up(&rank[0].c, 1)); /* before the agents bring one answer to all */
    pump();
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(coll_wait(r[k], NULL, NULL), KEEL_OK);
        for (int i = 0; i < N; i++)
            assert_true(out[k][i] == 3.0 * i);
    }
    get_all(1, LEN);
    assert_null(rank[0].c.coll.stream[1].head);
}

/* Rank 1 has taken everything, and its answers are lost. What is known to have arrived of a call, and all before it, is
 * not sent again, be it sent or about to be sent again then; what comes after it is. */
static void test_direct_what_is_known_to_have_arrived_is_not_sent_again(void **state)
{
    static uint8_t out[RANKS][100000];
    struct engine_call call = {.kind = ENGINE_MOVE, .move = SCHEDULE_BCAST, .root = 0, .len = sizeof out[0]};
    for (int rewound = 0; rewound < 2; rewound++) {
        struct client *c = &rank[0].c;
        const struct stream *s = &c->coll.stream[1];
        struct keel_request *r[RANKS] = {NULL};
        meet();
        memset(out[0], 0x5a, sizeof out[0]);
        memset(out[1], 0, sizeof out[1]);
        call.out = out[1];
        assert_int_equal(coll_call(rank[1].c.coll.world, &call, NULL, &r[1]), KEEL_OK);
        pump();
        rank[1].asleep = true;
        send_some(0, 2, 100);
        call.out = out[0];
        assert_int_equal(coll_call(c->coll.world, &call, NULL, &r[0]), KEEL_OK);
        send_some(0, 2, 100);
        rank[0].deaf = true;
        rank[1].asleep = false;
        for (int i = 0; i < 10; i++)
            ranks_turn();
        assert_int_equal(rank[1].c.coll.stream[0].received, s->next);
        uint64_t acked = s->acked, seq = r[0]->seq;
        pthread_mutex_lock(&c->lock);
        if (rewound)
            courier_direct_lost(c, 1);
        courier_arrived(c, c->coll.world, seq + 2, now_ns);
        assert_int_equal(s->acked, acked); /* of another call nothing was said */
        courier_arrived(c, c->coll.world, seq, now_ns);
        pthread_mutex_unlock(&c->lock);
        assert_true(s->acked > acked + 2 && s->acked < s->next && s->sent >= s->acked && s->head);
        together = pieces = 0;
        tp_disconnect(direct_up(c, 1));
        ranks_turn();
        rank[0].deaf = false;
        get_all(1, 100);
        for (int k = 0; k < RANKS; k++) {
            assert_int_equal(coll_wait(r[k], NULL, NULL), KEEL_OK);
            assert_int_equal(out[k][sizeof out[k] - 1], 0x5a);
        }
        assert_int_equal(together + pieces, 0);
        assert_null(s->head);
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

static void test_direct_what_nobody_waits_for_does_not_stay_in_sockets(void **state)
{
    (void)state;
    meet();
    passed = 0;
    rank[1].asleep = true;
    send_some(0, 4, 1000);
    assert_int_equal(passed, 0);
    send_some(0, 40, 4000); /* more than a socket takes for sure: the agents have it when the sender looks away */
    rank[0].asleep = true;
    for (int i = 0; i < 10; i++)
        agents_turn();
    assert_true(passed >= 40);
    rank[1].asleep = false;
    rank[0].asleep = false;
    for (int i = 0; i < 4; i++, got[1]++) {
        uint8_t data[1000];
        assert_int_equal(mail_receive(&rank[1].c, 0, 7, data, sizeof data, NULL, NULL), KEEL_OK);
    }
    get_all(1, 4000);
    passed = 0;
    send_some(0, 3, 100); /* and back */
    get_all(1, 100);
    assert_int_equal(passed, 0);
}

/* A piece is refused, what follows it is passed over; then it comes, by the other way, and its acknowledgement is
 * faster than the refusal. */
static void test_direct_a_refusal_that_is_late_still_brings_what_followed(void **state)
{
    (void)state;
    meet();
    struct stream *s = &rank[1].c.coll.stream[0];
    rank[0].deaf = true;
    send_some(1, 3, 100);
    turn();
    rank[0].deaf = false;
    assert_true(s->sent >= s->acked + 3);
    struct wire back = {.type = WIRE_PARCEL_BACK,
                        .raw.rank = 0,
                        .raw.incarnation = rank[0].c.incarnation,
                        .raw.a = parcel_to(life_of(1, 0)),
                        .seq = s->acked};
    courier_receive(&rank[1].c, &back, NULL, 0, now_ns);
    get_all(0, 100);
}

static void test_direct_who_leaves_hands_over_to_agents(void **state)
{
    (void)state;
    meet();
    rank[1].asleep = true;
    send_some(0, 5, 100);
    pthread_mutex_lock(&rank[0].c.lock);
    courier_farewell(&rank[0].c);
    assert_true(client_wait(&rank[0].c, courier_has_handed_over, &rank[0].c, &(struct wait){.call = WAIT_FINALIZE}));
    pthread_mutex_unlock(&rank[0].c.lock);
    for (int i = 0; i < 10; i++)
        agents_turn();
    rank[0].asleep = true;
    lose(1, 1); /* the sockets end */
    rank[0].net->table->close(rank[0].net);
    rank[0].net = NULL;
    get_all(1, 100);
}

static keel_status ask(const struct hello *h)
{
    struct tp_config config = {.host = "stranger"};
    struct tp *tp;
    struct tp_ep *ep;
    struct tp_event e = {.type = TP_DONE};
    assert_int_equal(tp_mem.open(&config, &tp), KEEL_OK);
    assert_int_equal(tp->table->connect(tp, &rank[0].c.direct.here.of[0], h, sizeof *h, NULL, &ep), KEEL_OK);
    for (int i = 0; i < 100 && e.type == TP_DONE; i++) {
        turn();
        (void)tp_poll(tp, &e, 1);
    }
    keel_status status = e.type == TP_CLOSED ? e.status : e.type == TP_CONNECTED ? KEEL_OK : KEEL_IN_PROGRESS;
    tp->table->close(tp);
    return status;
}

static void test_direct_hello_of_a_stranger_or_of_another_time_is_refused(void **state)
{
    (void)state;
    meet();
    uint8_t wrong[32] = {1};
    const struct client *c = &rank[1].c;
    struct hello good = {.job = c->job, .node = 1, .rank = 1, .to_node = -1, .attempt = 1000}, h = good;
    hello_sign(&h, wrong);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.to_node = 0; /* meant for the agent */
    hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.incarnation = 1; /* of no life that is known here */
    hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.attempt = 1; /* recorded */
    hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    h = good;
    h.rank = 0; /* nobody connects to himself, nor to a higher one */
    hello_sign(&h, c->secret);
    assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    hello_sign(&good, c->secret);
    for (size_t bit = 0; bit < 8 * sizeof h; bit += 3) { /* good, and garbled on the way */
        h = good;
        ((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(ask(&h), KEEL_ERR_AUTH);
    }
    assert_non_null(direct_up(&rank[0].c, 1)); /* and the connection that is there stays */
    hello_sign(&good, c->secret);
    assert_int_equal(ask(&good), KEEL_OK);
    send_some(0, 3, 100); /* whoever that was: it has gone, and the messages have not */
    get_all(1, 100);
}

static void end_life(int r)
{
    uint64_t n = page->changes;
    page->change[n] = (struct page_change){.epoch = 5, .life = 0, .rank = (uint32_t)r};
    page_rank(page, r)->life = 0;
    atomic_store(&page->changes, n + 1);
    atomic_store(&page->epoch, 5);
}

static void test_direct_nothing_comes_of_a_life_that_is_over(void **state)
{
    (void)state;
    meet();
    rank[0].asleep = true;
    send_some(1, 3, 100);
    rank[1].asleep = true; /* declared dead, and goes on */
    end_life(1);
    rank[0].asleep = false;
    pump();
    size_t have;
    assert_int_equal(mail_test(&rank[0].c, 1, 7, &have, NULL), KEEL_ERR_RANK_DEAD);
    assert_null(direct_up(&rank[0].c, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_direct_messages_pass_no_agent_once_ranks_have_met, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_only_receives_is_connected_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_lost_connection_loses_and_repeats_no_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_pieces_of_a_long_message_go_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_pieces_that_came_one_by_one_are_not_taken_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_sockets_do_not_take_waits_where_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_way_changes_in_the_middle_of_an_acknowledgement, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_is_known_to_have_arrived_is_not_sent_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_what_nobody_waits_for_does_not_stay_in_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_a_refusal_that_is_late_still_brings_what_followed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_who_leaves_hands_over_to_agents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_direct_hello_of_a_stranger_or_of_another_time_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_direct_nothing_comes_of_a_life_that_is_over, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
