/* The contract of transport.h, where connections begin and end, run against every implementation that connects by
 * address. */
#include "tests/unit/transport/over_all.h"

/* ---- connecting ---- */

static void test_transport_connect_to_a_closed_port_says_node_dead(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, gone;
    struct tp_ep *ep;
    peer_open(&world, &a, impl->table, impl->host_a, false);
    peer_open(&world, &gone, impl->table, impl->host_b, true);
    struct tp_addr addr = gone.addr;
    peer_close(&world, &gone);
    assert_int_equal(impl->table->connect(a.tp, &addr, "hi", 2, NULL, &ep), KEEL_OK);
    assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_ERR_NODE_DEAD);
    tp_ep_destroy(ep);
    peer_close(&world, &a);
}

static void test_transport_rejected_connect_says_auth(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *ep;
    uint8_t hello[TP_HELLO_MAX];
    fill_pattern(hello, sizeof(hello), 3);
    peer_open(&world, &a, impl->table, impl->host_a, false);
    peer_open(&world, &b, impl->table, impl->host_b, true);
    assert_int_equal(impl->table->connect(a.tp, &b.addr, hello, sizeof(hello), NULL, &ep), KEEL_OK);
    struct peer_record *request = world_await(&world, &b, TP_CONNREQ, NULL);
    assert_int_equal(request->event.len, sizeof(hello));
    assert_memory_equal(request->event.data, hello, sizeof(hello));
    impl->table->reject(b.tp, request->event.req);
    record_free(request);
    assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_ERR_AUTH);
    world_expect_none(&world, &a, TP_CONNECTED, 20);
    peer_close(&world, &a);
    peer_close(&world, &b);
}

static void test_transport_connect_request_answered_much_later_still_works(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
    peer_open(&world, &a, impl->table, impl->host_a, false);
    peer_open(&world, &b, impl->table, impl->host_b, true);
    assert_int_equal(impl->table->connect(a.tp, &b.addr, NULL, 0, NULL, &a_ep), KEEL_OK);
    struct peer_record *request = world_await(&world, &b, TP_CONNREQ, NULL);
    world_expect_none(&world, &a, TP_CONNECTED, 100);
    assert_int_equal(impl->table->accept(b.tp, request->event.req, NULL, &b_ep), KEEL_OK);
    record_free(request);
    assert_int_equal(world_await_status(&world, &a, TP_CONNECTED, a_ep), KEEL_OK);
    assert_int_equal(world_await_status(&world, &b, TP_CONNECTED, b_ep), KEEL_OK);
    peer_close(&world, &a);
    peer_close(&world, &b);
}

static void test_transport_unanswered_request_at_close_ends_the_connector(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *ep;
    peer_open(&world, &a, impl->table, impl->host_a, false);
    peer_open(&world, &b, impl->table, impl->host_b, true);
    assert_int_equal(impl->table->connect(a.tp, &b.addr, "x", 1, NULL, &ep), KEEL_OK);
    record_free(world_await(&world, &b, TP_CONNREQ, NULL));
    peer_close(&world, &b);
    assert_int_not_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_OK);
    peer_close(&world, &a);
}

/* ---- loss ---- */

static void test_transport_messages_sent_before_the_close_arrive_before_it(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct pair p;
    struct tp_op last = {0};
    pair_open(&p);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(tp_send(p.a_ep, &i, sizeof(i), NULL, 0, impl->drops_unsent && i == COUNT - 1 ? &last : NULL),
                         KEEL_OK);
    for (int i = 0; i < 20; i++)
        peer_step(&p.a);
    if (impl->drops_unsent)
        assert_int_equal(done(&p, &last), KEEL_OK);
    tp_disconnect(p.a_ep);
    struct peer_record *closed = world_await(&p.world, &p.b, TP_CLOSED, p.b_ep);
    record_free(closed);
    for (uint64_t i = 0; i < COUNT; i++) { /* all of them were recorded before the close */
        struct peer_record *record = world_await(&p.world, &p.b, TP_RECV, p.b_ep);
        assert_memory_equal(record->event.data, &i, sizeof(i));
        record_free(record);
    }
    assert_int_equal(world_await_status(&p.world, &p.a, TP_CLOSED, p.a_ep), KEEL_ERR_LINK);
    assert_int_equal(tp_send(p.a_ep, "x", 1, NULL, 0, NULL), KEEL_ERR_LINK);
    pair_close(&p);
}

/* Ops of every kind in flight, towards a peer that does not look, when one side ends the connection. */
static void disconnect_in_flight(bool other_side)
{
    enum { COUNT = 600, SIZE = 1u << 20 };
    struct pair p;
    uint8_t *remote = calloc(1, SIZE), *local = calloc(1, SIZE);
    struct tp_op *ops = calloc(COUNT, sizeof(*ops));
    int *told = calloc(COUNT, sizeof(*told));
    assert_true(remote && local && ops && told);
    pair_open(&p);
    p.a.batch = 7;
    assert_int_equal(impl->table->reg(p.b.tp, remote, SIZE, 1), KEEL_OK);
    for (int i = 0; i < COUNT; i++) {
        keel_status status = i % 3 == 0   ? tp_write(p.a_ep, local, SIZE / 4, 1, 0, &ops[i])
                             : i % 3 == 1 ? tp_read(p.a_ep, local, SIZE, 1, 0, &ops[i])
                                          : tp_send(p.a_ep, local, 1000, NULL, 0, &ops[i]);
        assert_int_equal(status, KEEL_OK);
    }
    tp_disconnect(other_side ? p.b_ep : p.a_ep);
    struct peer_record *record = NULL;
    for (;;) {
        while (!p.a.first)
            world_step(&p.world);
        record = p.a.first;
        if (record->event.type == TP_CLOSED)
            break;
        p.a.first = record->next;
        if (!p.a.first)
            p.a.last = &p.a.first;
        assert_int_equal(record->event.type, TP_DONE);
        told[record->event.op - ops]++;
        record_free(record);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(told[i], 1);
    record_free(world_await(&p.world, &p.a, TP_CLOSED, p.a_ep));
    world_expect_none(&p.world, &p.a, TP_DONE, 20);
    tp_ep_destroy(p.a_ep);
    pair_close(&p);
    free(remote);
    free(local);
    free(ops);
    free(told);
}

static void test_transport_disconnect_with_ops_in_flight_reports_each_once_then_closed(void **state)
{
    (void)state;
    disconnect_in_flight(false);
}

static void test_transport_peer_disconnects_with_ops_in_flight_reports_each_once_then_closed(void **state)
{
    (void)state;
    disconnect_in_flight(true);
}

/* The receiver got half of a large read when the connection is dropped. Transfers on other connections must stay sound.
 */
static void test_transport_disconnect_in_the_middle_of_a_read_leaves_other_connections_sound(void **state)
{
    (void)state;
    enum { SIZE = 8u << 20, SMALL = 64, ROUNDS = 20, MANY = 200 };
    struct pair p;
    uint8_t *remote = calloc(1, SIZE), *local = calloc(1, SIZE);
    assert_true(remote && local);
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, SIZE, 1), KEEL_OK);
    struct tp_ep *other_a, *other_b;
    world_connect(&p.world, &p.a, &p.b, &other_a, &other_b);
    for (int round = 0; round < ROUNDS; round++) {
        struct tp_op op = {0};
        assert_int_equal(tp_read(p.a_ep, local, SIZE, 1, 0, &op), KEEL_OK);
        peer_step(&p.a);
        for (int i = 0; i < 3 + round % 4; i++) {
            peer_step(&p.b);
            peer_step(&p.a);
        }
        tp_disconnect(p.a_ep);
        record_free(world_await(&p.world, &p.a, TP_DONE, p.a_ep));
        record_free(world_await(&p.world, &p.a, TP_CLOSED, p.a_ep));
        record_free(world_await(&p.world, &p.b, TP_CLOSED, p.b_ep));
        tp_ep_destroy(p.a_ep);
        tp_ep_destroy(p.b_ep);
        struct tp_op ops[MANY] = {{{0}, 0, 0, 0}};
        for (int i = 0; i < MANY; i++) {
            fill_pattern(local + i * SMALL, SMALL, (uint64_t)(round * MANY + i));
            assert_int_equal(tp_write(other_a, local + i * SMALL, SMALL, 1, (uint64_t)(i * SMALL), &ops[i]), KEEL_OK);
        }
        for (int i = 0; i < MANY; i++) {
            struct peer_record *record = world_await(&p.world, &p.a, TP_DONE, other_a);
            assert_ptr_equal(record->event.op, &ops[i]);
            assert_int_equal(record->event.status, KEEL_OK);
            record_free(record);
        }
        for (int i = 0; i < MANY; i++)
            assert_true(is_pattern(remote + i * SMALL, SMALL, (uint64_t)(round * MANY + i)));
        world_connect(&p.world, &p.a, &p.b, &p.a_ep, &p.b_ep);
    }
    pair_close(&p);
    free(remote);
    free(local);
}

static void test_transport_destroy_with_ops_in_flight_says_nothing_more(void **state)
{
    (void)state;
    enum { COUNT = 50, SIZE = 1u << 20 };
    struct pair p;
    uint8_t *remote = calloc(1, SIZE), *local = calloc(1, SIZE);
    struct tp_op *ops = calloc(COUNT, sizeof(*ops));
    assert_true(remote && local && ops);
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, SIZE, 1), KEEL_OK);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(i % 2 ? tp_write(p.a_ep, local, SIZE, 1, 0, &ops[i])
                               : tp_read(p.a_ep, local, SIZE, 1, 0, &ops[i]),
                         KEEL_OK);
    world_step(&p.world);
    while (p.a.first) { /* what was told before */
        struct peer_record *next = p.a.first->next;
        record_free(p.a.first);
        p.a.first = next;
    }
    p.a.last = &p.a.first;
    tp_ep_destroy(p.a_ep);
    free(ops); /* the op's and the buffer's memory is the caller's again */
    free(local);
    assert_int_not_equal(world_await_status(&p.world, &p.b, TP_CLOSED, p.b_ep), KEEL_OK);
    world_expect_none(&p.world, &p.a, TP_DONE, 20);
    world_expect_none(&p.world, &p.a, TP_CLOSED, 1);
    pair_close(&p);
    free(remote);
}

static void test_transport_peer_close_ends_every_connection(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b, c;
    struct tp_ep *ab, *ba, *cb, *bc;
    peer_open(&world, &a, impl->table, impl->host_a, true);
    peer_open(&world, &b, impl->table, impl->host_b, true);
    peer_open(&world, &c, impl->table, impl->host_a, false);
    world_connect(&world, &a, &b, &ab, &ba);
    world_connect(&world, &c, &b, &cb, &bc);
    peer_close(&world, &b);
    assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ab), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&world, &c, TP_CLOSED, cb), KEEL_ERR_LINK);
    peer_close(&world, &a);
    peer_close(&world, &c);
}

/* A lost connection is told even if another one keeps every poll busy. */
static void test_transport_close_is_told_under_constant_traffic(void **state)
{
    (void)state;
    enum { AHEAD = 64, ROUNDS = 20000 };
    struct pair p;
    struct tp_ep *busy_a, *busy_b;
    uint8_t bytes[300] = {0};
    pair_open(&p);
    world_connect(&p.world, &p.a, &p.b, &busy_a, &busy_b);
    p.b.batch = 4;
    for (int i = 0; i < AHEAD; i++)
        assert_int_equal(tp_send(busy_a, bytes, sizeof(bytes), NULL, 0, NULL), KEEL_OK);
    tp_disconnect(p.a_ep);
    bool closed = false;
    for (int i = 0; i < ROUNDS && !closed; i++) {
        peer_step(&p.a);
        peer_step(&p.b);
        while (p.b.first) {
            struct peer_record *record = world_await(&p.world, &p.b, p.b.first->event.type, NULL);
            closed |= record->event.type == TP_CLOSED;
            if (record->event.type == TP_RECV)
                assert_int_equal(tp_send(busy_a, bytes, sizeof(bytes), NULL, 0, NULL), KEEL_OK);
            record_free(record);
        }
    }
    assert_true(closed);
    pair_close(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transport_connect_to_a_closed_port_says_node_dead),
        cmocka_unit_test(test_transport_rejected_connect_says_auth),
        cmocka_unit_test(test_transport_connect_request_answered_much_later_still_works),
        cmocka_unit_test(test_transport_unanswered_request_at_close_ends_the_connector),
        cmocka_unit_test(test_transport_messages_sent_before_the_close_arrive_before_it),
        cmocka_unit_test(test_transport_disconnect_with_ops_in_flight_reports_each_once_then_closed),
        cmocka_unit_test(test_transport_peer_disconnects_with_ops_in_flight_reports_each_once_then_closed),
        cmocka_unit_test(test_transport_disconnect_in_the_middle_of_a_read_leaves_other_connections_sound),
        cmocka_unit_test(test_transport_destroy_with_ops_in_flight_says_nothing_more),
        cmocka_unit_test(test_transport_peer_close_ends_every_connection),
        cmocka_unit_test(test_transport_close_is_told_under_constant_traffic),
    };
    return run_over_all(tests, sizeof tests / sizeof tests[0], argc > 1 ? argv[1] : NULL);
}
