/* The contract of transport.h, run against every implementation that connects by address. */
#include "runtime/transport/inject.h"
#include "runtime/transport/sealed.h"
#include "tests/unit/transport/tp_peer.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/rng.h"

static struct tp_table tp_inject_over_mem, tp_sealed_over_mem, tp_sealed_over_stream; /* filled in main */

static keel_status open_inject_over_mem(const struct tp_config *config, struct tp **out)
{
    struct tp *inner;
    keel_status status = tp_mem.open(config, &inner);
    return status == KEEL_OK ? tp_inject_open(inner, NULL, NULL, out) : status;
}

static const uint8_t secret[32] = "a secret that all of a job know";

static keel_status open_sealed_over_mem(const struct tp_config *config, struct tp **out)
{
    struct tp *inner;
    keel_status status = tp_mem.open(config, &inner);
    return status == KEEL_OK ? tp_sealed_open(inner, secret, out) : status;
}

static keel_status open_sealed_over_stream(const struct tp_config *config, struct tp **out)
{
    return tp_net_open(config, secret, out);
}

/* The table of an implementation that lies over another one. */
static void make_over(keel_status (*open)(const struct tp_config *config, struct tp **out), const char *host,
                      struct tp_table *out)
{
    struct tp *tp;
    if (open(&(struct tp_config){.host = host, .provider = "tcp"}, &tp) != KEEL_OK)
        abort();
    *out = *tp->table;
    out->open = open;
    tp->table->close(tp);
}

static const struct implementation {
    const struct tp_table *table;
    const char *host_a, *host_b;
    size_t most;       /* bytes of one write or read in these tests; 0: any number */
    bool drops_unsent; /* tp_disconnect takes back messages that the peer's device has not acknowledged */
} implementations[] = {
    {&tp_ofi, "127.0.0.1", "127.0.0.2", 0, false},
    {&tp_mem, "a", "b", 0, false},
    {&tp_inject_over_mem, "a", "b", 0, false},
    {&tp_sealed_over_mem, "a", "b", 0, false},
    {&tp_sealed_over_stream, "127.0.0.1", "127.0.0.2", 0, false},
};
/* The same over RDMA devices; by "KEEL_TEST_VERBS=ADDRESS ADDRESS", these two alone. */
static struct implementation over_verbs = {.table = &tp_ofi, .most = 6u << 20, .drops_unsent = true};
static const struct implementation *impl;

struct pair {
    struct world world;
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
};

static void pair_open(struct pair *p)
{
    *p = (struct pair){0};
    peer_open(&p->world, &p->a, impl->table, impl->host_a, true);
    peer_open(&p->world, &p->b, impl->table, impl->host_b, true);
    world_connect(&p->world, &p->a, &p->b, &p->a_ep, &p->b_ep);
}

static void pair_close(struct pair *p)
{
    peer_close(&p->world, &p->a);
    peer_close(&p->world, &p->b);
}

static keel_status done(struct pair *p, struct tp_op *op)
{
    struct peer_record *record = world_await(&p->world, &p->a, TP_DONE, p->a_ep);
    assert_ptr_equal(record->event.op, op);
    keel_status status = record->event.status;
    record_free(record);
    return status;
}

static void expect_message(struct pair *p, struct peer *at, struct tp_ep *ep, size_t len, uint64_t seed)
{
    struct peer_record *record = world_await(&p->world, at, TP_RECV, ep);
    assert_int_equal(record->event.len, len);
    assert_true(is_pattern(record->event.data, len, seed));
    record_free(record);
}

/* ---- messages ---- */

static void test_transport_messages_of_all_sizes_arrive_whole_and_in_order(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,
                                   1,
                                   7,
                                   8,
                                   100,
                                   127,
                                   128,
                                   129,
                                   255,
                                   256,
                                   257,
                                   511,
                                   512,
                                   513,
                                   4096,
                                   TP_MSG_MAX - 1,
                                   TP_MSG_MAX,
                                   TP_MSG_MAX + 1,
                                   TP_BULK_MAX - 1,
                                   TP_BULK_MAX};
    enum { COUNT = sizeof(sizes) / sizeof(*sizes) };
    struct pair p;
    static uint8_t bytes[TP_BULK_MAX];
    pair_open(&p);
    for (size_t i = 0; i < COUNT; i++) {
        fill_pattern(bytes, sizes[i], i);
        size_t head = sizes[i] / 3;
        assert_int_equal(tp_send(p.a_ep, bytes, head, bytes + head, sizes[i] - head, NULL), KEEL_OK);
        memset(bytes, 0xee, sizeof(bytes)); /* copied before the call returned */
    }
    for (size_t i = 0; i < COUNT; i++)
        expect_message(&p, &p.b, p.b_ep, sizes[i], i);
    assert_int_equal(tp_send(p.a_ep, bytes, sizeof(bytes), bytes, TP_FRAME_MAX - TP_BULK_MAX + 1, NULL), KEEL_ERR_ARG);
    pair_close(&p);
}

static void test_transport_message_with_op_reports_it_once(void **state)
{
    (void)state;
    struct pair p;
    static uint8_t bytes[TP_BULK_MAX];
    struct tp_op op = {.user = &p};
    pair_open(&p);
    fill_pattern(bytes, sizeof(bytes), 5);
    assert_int_equal(tp_send(p.a_ep, bytes, 20, bytes + 20, sizeof(bytes) - 20, &op), KEEL_OK);
    assert_int_equal(done(&p, &op), KEEL_OK);
    assert_ptr_equal(op.user, &p);
    expect_message(&p, &p.b, p.b_ep, sizeof(bytes), 5);
    world_expect_none(&p.world, &p.a, TP_DONE, 20);
    pair_close(&p);
}

/* Far more than the provider and the kernel hold, while the receiver does not look. */
static void test_transport_burst_to_a_sleeping_receiver_is_kept_and_delivered_in_order(void **state)
{
    (void)state;
    enum { COUNT = 2000, SIZE = 8000 };
    struct pair p;
    static uint8_t bytes[SIZE];
    pair_open(&p);
    for (uint64_t i = 0; i < COUNT; i++) {
        fill_pattern(bytes, i % 5 ? SIZE : 40, i);
        assert_int_equal(tp_send(p.a_ep, bytes, 16, bytes + 16, (i % 5 ? SIZE : 40) - 16, NULL), KEEL_OK);
        peer_step(&p.a);
    }
    for (uint64_t i = 0; i < COUNT; i++)
        expect_message(&p, &p.b, p.b_ep, i % 5 ? SIZE : 40, i);
    pair_close(&p);
}

/* Who sends only while there is room leaves little in copies, whoever does not look, and has room again when he has looked. */
static void test_transport_room_ends_where_bytes_wait(void **state)
{
    (void)state;
    enum { COUNT = 384 };
    struct pair p;
    static uint8_t bytes[TP_BULK_MAX];
    pair_open(&p);
    uint64_t sent = 0, vain = 0;
    while (sent < COUNT && vain < 1000) {
        vain = tp_room(p.a_ep) ? 0 : vain + 1;
        if (!vain) {
            fill_pattern(bytes, sizeof bytes, sent++);
            assert_int_equal(tp_send(p.a_ep, bytes, 16, bytes + 16, sizeof bytes - 16, NULL), KEEL_OK);
        }
        peer_step(&p.a);
    }
    if (impl->host_a[0] != 'a') /* in memory all goes out at once */
        assert_in_range(sent, 1, (16u << 20) / sizeof bytes);
    for (uint64_t i = 0; i < sent; i++)
        expect_message(&p, &p.b, p.b_ep, sizeof bytes, i);
    while (!tp_room(p.a_ep))
        world_step(&p.world);
    pair_close(&p);
}

static void test_transport_queue_past_its_bound_ends_the_connection(void **state)
{
    (void)state;
    struct pair p;
    static uint8_t bytes[TP_MSG_MAX];
    pair_open(&p);
    keel_status status = KEEL_OK;
    int sent = 0;
    for (; status == KEEL_OK && sent < 100000; sent++) {
        status = tp_send(p.a_ep, bytes, sizeof(bytes), NULL, 0, NULL);
        peer_step(&p.a); /* the receiver is frozen */
    }
    assert_int_equal(status, KEEL_ERR_LINK);
    assert_in_range((uint64_t)sent * sizeof(bytes), 63u << 20, 100u << 20);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_CLOSED, p.a_ep), KEEL_ERR_LINK);
    pair_close(&p);
}

static void test_transport_both_directions_at_once_do_not_block_each_other(void **state)
{
    (void)state;
    enum { COUNT = 1000, SIZE = TP_MSG_MAX };
    struct pair p;
    static uint8_t bytes[SIZE];
    pair_open(&p);
    for (uint64_t i = 0; i < COUNT; i++) {
        fill_pattern(bytes, SIZE, i);
        assert_int_equal(tp_send(p.a_ep, bytes, SIZE, NULL, 0, NULL), KEEL_OK);
        fill_pattern(bytes, SIZE, ~i);
        assert_int_equal(tp_send(p.b_ep, NULL, 0, bytes, SIZE, NULL), KEEL_OK);
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        expect_message(&p, &p.b, p.b_ep, SIZE, i);
        expect_message(&p, &p.a, p.a_ep, SIZE, ~i);
    }
    pair_close(&p);
}

/* ---- remote memory ---- */

static void test_transport_writes_and_reads_of_all_sizes_move_exact_bytes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 8, 129, 4095, 65536, 1u << 20, (5u << 20) + 3, 64u << 20};
    enum { REGION = (64u << 20) + 128, GUARD = 64 };
    struct pair p;
    uint8_t *remote = malloc(REGION), *local = malloc(REGION);
    assert_non_null(remote);
    assert_non_null(local);
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, REGION, 0x1234), KEEL_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct tp_op op = {0};
        if (impl->most && sizes[i] > impl->most)
            continue;
        memset(remote, 0xaa, sizes[i] + 2 * GUARD);
        fill_pattern(local, sizes[i], i);
        assert_int_equal(tp_write(p.a_ep, local, sizes[i], 0x1234, GUARD, &op), KEEL_OK);
        assert_int_equal(done(&p, &op), KEEL_OK);
        assert_true(is_pattern(remote + GUARD, sizes[i], i)); /* at the moment of TP_DONE */
        assert_int_equal(remote[GUARD - 1], 0xaa);
        assert_int_equal(remote[GUARD + sizes[i]], 0xaa);
        memset(local, 0, sizes[i] + 1);
        assert_int_equal(tp_read(p.a_ep, local, sizes[i], 0x1234, GUARD, &op), KEEL_OK);
        assert_int_equal(done(&p, &op), KEEL_OK);
        assert_true(is_pattern(local, sizes[i], i));
        assert_int_equal(local[sizes[i]], 0);
    }
    pair_close(&p);
    free(remote);
    free(local);
}

static void test_transport_message_after_write_finds_the_bytes_there(void **state)
{
    (void)state;
    enum { SIZE = 300000, ROUNDS = 50 };
    struct pair p;
    uint8_t *remote = calloc(1, SIZE), *local = malloc(SIZE);
    assert_non_null(remote);
    assert_non_null(local);
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, SIZE, 9), KEEL_OK);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct tp_op op = {0};
        fill_pattern(local, SIZE, i);
        assert_int_equal(tp_write(p.a_ep, local, SIZE, 9, 0, &op), KEEL_OK);
        assert_int_equal(tp_send(p.a_ep, &i, sizeof(i), NULL, 0, NULL), KEEL_OK);
        record_free(world_await(&p.world, &p.b, TP_RECV, p.b_ep));
        assert_true(is_pattern(remote, SIZE, i));
        assert_int_equal(done(&p, &op), KEEL_OK);
    }
    pair_close(&p);
    free(remote);
    free(local);
}

static void test_transport_many_outstanding_writes_all_land(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct pair p;
    uint64_t *remote = calloc(COUNT, sizeof(*remote)), *local = calloc(COUNT, sizeof(*local));
    struct tp_op *ops = calloc(COUNT, sizeof(*ops));
    assert_true(remote && local && ops);
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, COUNT * sizeof(*remote), 1), KEEL_OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        local[i] = i * 77 + 1;
        assert_int_equal(tp_write(p.a_ep, &local[i], 8, 1, i * 8, &ops[i]), KEEL_OK);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(done(&p, &ops[i]), KEEL_OK); /* one connection: in the order posted */
    assert_memory_equal(remote, local, COUNT * sizeof(*remote));
    pair_close(&p);
    free(remote);
    free(local);
    free(ops);
}

static void test_transport_write_to_an_unknown_key_fails_and_touches_nothing(void **state)
{
    (void)state;
    struct pair p;
    uint64_t remote = 1, local = 2;
    struct tp_op op = {0};
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, &remote, sizeof(remote), 5), KEEL_OK);
    impl->table->unreg(p.b.tp, 5);
    assert_int_equal(tp_write(p.a_ep, &local, 8, 5, 0, &op), KEEL_OK);
    assert_int_equal(done(&p, &op), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&p.world, &p.a, TP_CLOSED, p.a_ep), KEEL_ERR_LINK);
    assert_int_equal(remote, 1);
    pair_close(&p);
}

static void test_transport_write_past_the_end_of_a_region_fails_and_touches_nothing(void **state)
{
    (void)state;
    struct pair p;
    uint64_t remote[3] = {1, 1, 1}, local[2] = {2, 2};
    struct tp_op op = {0};
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, 16, 5), KEEL_OK);
    assert_int_equal(tp_write(p.a_ep, local, 16, 5, 8, &op), KEEL_OK);
    assert_int_equal(done(&p, &op), KEEL_ERR_LINK);
    assert_int_equal(remote[1], 1);
    assert_int_equal(remote[2], 1);
    pair_close(&p);
}

static void test_transport_key_given_twice_is_refused(void **state)
{
    (void)state;
    struct pair p;
    uint64_t memory[2];
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, &memory[0], 8, 5), KEEL_OK);
    assert_int_equal(impl->table->reg(p.b.tp, &memory[1], 8, 5), KEEL_ERR_ARG);
    impl->table->unreg(p.b.tp, 5);
    assert_int_equal(impl->table->reg(p.b.tp, &memory[1], 8, 5), KEEL_OK);
    pair_close(&p);
}

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

/* ---- sleeping ---- */

static void arm(struct peer *peer)
{
    while (!impl->table->arm(peer->tp))
        peer_step(peer);
    assert_null(peer->first);
}

static bool readable(struct peer *peer, int ms)
{
    struct pollfd fd = {.fd = impl->table->wait_fd(peer->tp), .events = POLLIN};
    return poll(&fd, 1, ms) == 1;
}

static void test_transport_armed_sleeper_wakes_for_messages_and_for_the_close(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    struct pair p;
    pair_open(&p);
    arm(&p.b);
    assert_false(readable(&p.b, 50)); /* an idle peer sleeps */
    for (uint64_t i = 0; i < COUNT; i++) {
        arm(&p.b);
        assert_int_equal(tp_send(p.a_ep, &i, sizeof(i), NULL, 0, NULL), KEEL_OK);
        peer_step(&p.a);
        assert_true(readable(&p.b, 5000));
        record_free(world_await(&p.world, &p.b, TP_RECV, p.b_ep));
    }
    arm(&p.b);
    tp_disconnect(p.a_ep);
    peer_step(&p.a);
    assert_true(readable(&p.b, 5000));
    record_free(world_await(&p.world, &p.b, TP_CLOSED, p.b_ep));
    arm(&p.b);
    assert_false(readable(&p.b, 50));
    pair_close(&p);
}

/* ---- threads ---- */

enum { THREADS = 2, THREAD_MESSAGES = 3000 };

/* A pair of its own in each thread; no assertions there, cmocka's belong to the main thread. */
static void *own_pair(void *arg)
{
    struct tp *tp[2];
    struct tp_ep *ep[2] = {NULL, NULL};
    struct tp_addr addr;
    struct tp_event event;
    struct tp_config config = {.host = impl->host_a, .provider = peer_provider};
    int *answered = arg, connected = 0;
    if (impl->table->open(&config, &tp[0]) != KEEL_OK || impl->table->open(&config, &tp[1]) != KEEL_OK ||
        impl->table->listen(tp[1], &addr) != KEEL_OK ||
        impl->table->connect(tp[0], &addr, NULL, 0, NULL, &ep[0]) != KEEL_OK)
        return NULL;
    while (*answered < THREAD_MESSAGES) {
        for (int side = 0; side < 2; side++) {
            if (tp_poll(tp[side], &event, 1) != 1)
                continue;
            if (event.type == TP_CONNREQ && impl->table->accept(tp[1], event.req, NULL, &ep[1]) != KEEL_OK)
                return NULL;
            bool start = event.type == TP_CONNECTED && ++connected == 2;
            if (event.type == TP_CLOSED)
                return NULL;
            if (start && tp_send(ep[0], answered, sizeof(*answered), NULL, 0, NULL) != KEEL_OK)
                return NULL;
            if (event.type == TP_RECV && memcmp(event.data, answered, sizeof(*answered)) != 0)
                return NULL;
            *answered += event.type == TP_RECV && side == 0;
            if (event.type == TP_RECV && tp_send(ep[side], answered, sizeof(*answered), NULL, 0, NULL) != KEEL_OK)
                return NULL;
        }
    }
    impl->table->close(tp[0]);
    impl->table->close(tp[1]);
    return arg;
}

static void test_transport_tps_of_different_threads_are_independent(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int answered[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, own_pair, &answered[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &answered[i]);
        assert_int_equal(answered[i], THREAD_MESSAGES);
    }
}

/* ---- anything, for a while ---- */

enum { STRESS_OPS = 4000, STRESS_OUT = 300, STRESS_REGION = 1u << 20 };

static void test_transport_random_traffic_keeps_order_and_bytes(void **state)
{
    (void)state;
    const char *text = getenv("KEEL_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20240117;
    struct rng rng;
    struct pair p;
    static uint8_t remote[STRESS_REGION], local[STRESS_REGION], shadow[STRESS_REGION];
    struct tp_op *ops = calloc(STRESS_OPS, sizeof(*ops));
    assert_non_null(ops);
    memset(remote, 0, sizeof(remote));
    memset(shadow, 0, sizeof(shadow));
    print_message("seed %llu (KEEL_TEST_SEED)\n", (unsigned long long)seed);
    rng_seed(&rng, seed);
    pair_open(&p);
    assert_int_equal(impl->table->reg(p.b.tp, remote, sizeof(remote), 1), KEEL_OK);
    int posted = 0, finished = 0, sent = 0, received = 0;
    while (finished < posted || posted < STRESS_OPS || received < sent) {
        uint64_t choice = rng_below(&rng, 3);
        if (posted < STRESS_OPS && posted - finished < STRESS_OUT && choice) {
            size_t at = rng_below(&rng, STRESS_REGION - 1), most = STRESS_REGION - at;
            size_t len = rng_below(&rng, rng_below(&rng, 20) ? (most < 300 ? most : 300) : most) + 1;
            if (choice ==
                1) { /* shadow is source and expectation: a later write that overlaps carries the same bytes */
                fill_pattern(shadow + at, len, rng_u64(&rng));
                assert_int_equal(tp_write(p.a_ep, shadow + at, len, 1, at, &ops[posted]), KEEL_OK);
            } else {
                len = len > 2000 ? 2000 : len;
                assert_int_equal(tp_send(p.a_ep, &sent, sizeof(sent), local, len, &ops[posted]), KEEL_OK);
                sent++;
            }
            posted++;
        }
        p.a.batch = 1 + (int)rng_below(&rng, 20);
        p.b.batch = 1 + (int)rng_below(&rng, 20);
        if (rng_below(&rng, 2))
            peer_step(&p.b);
        peer_step(&p.a);
        while (p.a.first) {
            record_free(world_await(&p.world, &p.a, TP_DONE, p.a_ep));
            finished++;
        }
        while (p.b.first) {
            struct peer_record *record = world_await(&p.world, &p.b, TP_RECV, p.b_ep);
            assert_memory_equal(record->event.data, &received, sizeof(received));
            record_free(record);
            received++;
        }
    }
    assert_memory_equal(remote, shadow, sizeof(remote));
    pair_close(&p);
    free(ops);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transport_messages_of_all_sizes_arrive_whole_and_in_order),
        cmocka_unit_test(test_transport_message_with_op_reports_it_once),
        cmocka_unit_test(test_transport_burst_to_a_sleeping_receiver_is_kept_and_delivered_in_order),
        cmocka_unit_test(test_transport_room_ends_where_bytes_wait),
        cmocka_unit_test(test_transport_queue_past_its_bound_ends_the_connection),
        cmocka_unit_test(test_transport_both_directions_at_once_do_not_block_each_other),
        cmocka_unit_test(test_transport_writes_and_reads_of_all_sizes_move_exact_bytes),
        cmocka_unit_test(test_transport_message_after_write_finds_the_bytes_there),
        cmocka_unit_test(test_transport_many_outstanding_writes_all_land),
        cmocka_unit_test(test_transport_write_to_an_unknown_key_fails_and_touches_nothing),
        cmocka_unit_test(test_transport_write_past_the_end_of_a_region_fails_and_touches_nothing),
        cmocka_unit_test(test_transport_key_given_twice_is_refused),
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
        cmocka_unit_test(test_transport_armed_sleeper_wakes_for_messages_and_for_the_close),
        cmocka_unit_test(test_transport_tps_of_different_threads_are_independent),
        cmocka_unit_test(test_transport_random_traffic_keeps_order_and_bytes),
    };
    int failed = 0;
    static char a[64], b[64];
    const char *hosts = getenv("KEEL_TEST_VERBS");
    if (hosts && sscanf(hosts, "%63s %63s", a, b) == 2) {
        peer_provider = "verbs";
        over_verbs.host_a = a;
        over_verbs.host_b = b;
        impl = &over_verbs;
        return cmocka_run_group_tests_name("verbs", tests, NULL, NULL) != 0;
    }
    make_over(open_inject_over_mem, "x", &tp_inject_over_mem);
    make_over(open_sealed_over_mem, "x", &tp_sealed_over_mem);
    make_over(open_sealed_over_stream, "127.0.0.1", &tp_sealed_over_stream);
    for (size_t i = 0; i < sizeof(implementations) / sizeof(*implementations); i++) {
        impl = &implementations[i];
        failed += cmocka_run_group_tests_name(impl->table->name, tests, NULL, NULL);
    }
    return failed != 0;
}
