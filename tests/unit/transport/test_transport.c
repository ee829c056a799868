/* The contract of transport.h, run against every implementation that connects by address. */
#include "tests/unit/transport/over_all.h"

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
    for (size_t i = 0; i < COUNT; i++) { /* where the transport has a place for a body */
        size_t head = sizes[i] / 3, len = sizes[i] - head;
        uint8_t *unused = tp_place(p.a_ep, 1, 1000), *place = tp_place(p.a_ep, head, len);
        (void)unused;
        fill_pattern(bytes, sizes[i], i);
        if (place)
            memcpy(place, bytes + head, len);
        assert_int_equal(tp_send(p.a_ep, bytes, head, place ? place : bytes + head, len, NULL), KEEL_OK);
        assert_int_equal(tp_send(p.a_ep, bytes, head, bytes + head, len, NULL), KEEL_OK);
    }
    for (size_t i = 0; i < COUNT; i++) {
        expect_message(&p, &p.b, p.b_ep, sizes[i], i);
        expect_message(&p, &p.b, p.b_ep, sizes[i], i);
    }
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

/* Who sends only while there is room leaves little in copies, whoever does not look, and has room again when he has
 * looked. */
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

/* What was posted may be done before the call returns: who arms hears of that, or is woken for it. */
static void test_transport_who_arms_after_a_post_does_not_sleep_over_its_end(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    static uint8_t bytes[256];
    struct pair p;
    pair_open(&p);
    for (int i = 0; i < COUNT; i++) {
        struct tp_op op = {0};
        arm(&p.a);
        assert_int_equal(tp_send(p.a_ep, bytes, sizeof bytes, NULL, 0, &op), KEEL_OK);
        for (int looks = 0; !p.a.first; looks++) {
            assert_true(looks < 1000);
            peer_step(&p.b); /* mem: it is done when the peer has looked */
            bool slept = impl->table->arm(p.a.tp);
            assert_true(!slept || readable(&p.a, 5000));
            peer_step(&p.a);
        }
        record_free(world_await(&p.world, &p.a, TP_DONE, p.a_ep));
        record_free(world_await(&p.world, &p.b, TP_RECV, p.b_ep));
    }
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
        cmocka_unit_test(test_transport_armed_sleeper_wakes_for_messages_and_for_the_close),
        cmocka_unit_test(test_transport_who_arms_after_a_post_does_not_sleep_over_its_end),
        cmocka_unit_test(test_transport_tps_of_different_threads_are_independent),
        cmocka_unit_test(test_transport_random_traffic_keeps_order_and_bytes),
    };
    return run_over_all(tests, sizeof tests / sizeof tests[0], argc > 1 ? argv[1] : NULL);
}
