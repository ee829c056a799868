/* Several rails: which one is taken, how addresses are told, when a connection is given up for another rail, and that
 * each transport listens and connects on all it has. */
#include "tests/unit/transport/over_all.h"

#include "runtime/base/clock.h"
#include "runtime/net/way.h"

#define S KEEL_NS_PER_S
#define MS KEEL_NS_PER_MS

static struct tp_addrs of_rails(int n)
{
    struct tp_addrs a = {.n = (uint32_t)n};
    for (int i = 0; i < n; i++)
        a.of[i] = (struct tp_addr){.len = 8, .rail = (uint16_t)i, .bytes = {(uint8_t)(i + 1)}};
    return a;
}

/* ---- way_pick ---- */

static int pick(const struct tp_addrs *to, const struct way_past *past, uint64_t now)
{
    struct way_key key = way_pick(3, to, past, now);
    assert_int_equal(key.node, 3);
    assert_int_equal(key.via, WAY_DIRECT);
    assert_non_null(addrs_on(to, key.rail));
    return key.rail;
}

static void test_rails_the_first_that_has_not_failed(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(3);
    struct way_past past = {0};
    assert_int_equal(pick(&to, &past, 5 * S), 0);
    past.rail[0].failed_at = 5 * S;
    past.rail[0].times = 1;
    assert_int_equal(pick(&to, &past, 5 * S), 1);
    past.rail[1].failed_at = 5 * S + 1;
    past.rail[1].times = 1;
    assert_int_equal(pick(&to, &past, 5 * S + 2), 2);
    assert_int_equal(pick(&to, &past, 6 * S - 1), 2);
    assert_int_equal(pick(&to, &past, 6 * S), 0); /* it has rested */
}

static void test_rails_all_have_failed_the_oldest_failure(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(3);
    struct way_past past = {.rail = {{10 * S + 2, 1, true}, {10 * S + 1, 1, true}, {10 * S + 3, 1, true}}};
    assert_int_equal(pick(&to, &past, 10 * S + 4), 1);
    past.rail[1].failed_at = 10 * S + 4;
    assert_int_equal(pick(&to, &past, 10 * S + 5), 0);
}

static void test_rails_one_that_fails_again_and_again_rests_longer(void **state)
{
    (void)state;
    static const uint64_t rest[] = {1, 2, 4, 8, 16, 16, 16};
    struct way_past past = {0};
    past.rail[0].failed_at = 100 * S;
    for (uint32_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        past.rail[0].times = i + 1;
        assert_true(way_rests(&past, 0, 100 * S + rest[i] * S - 1));
        assert_false(way_rests(&past, 0, 100 * S + rest[i] * S));
    }
    past.rail[0].times = UINT32_MAX;
    assert_true(way_rests(&past, 0, 115 * S));
}

static void test_rails_of_one_that_one(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(1);
    struct way_past past = {.rail = {{10 * S, 9, true}}};
    assert_int_equal(pick(&to, &past, 10 * S), 0);
    to.of[0].rail = 2; /* a node that is on the third network alone */
    assert_int_equal(pick(&to, &past, 10 * S), 2);
}

/* ---- addresses as bytes ---- */

static void test_rails_addresses_come_back_as_they_were(void **state)
{
    (void)state;
    uint8_t bytes[TP_RAILS_MAX * sizeof(struct tp_addr)];
    for (int n = 1; n <= TP_RAILS_MAX; n++) {
        struct tp_addrs a = of_rails(n), b;
        size_t len = addrs_write(&a, bytes);
        assert_int_equal(len, (size_t)n * sizeof(struct tp_addr));
        assert_true(addrs_read(bytes, len, &b));
        assert_memory_equal(&a, &b, sizeof a);
    }
    assert_int_equal(sizeof(struct tp_addr), 64); /* of one address: the bytes of that struct, as ever */
}

static void expect_refused(const struct tp_addrs *a)
{
    struct tp_addrs b;
    assert_false(addrs_read(a->of, a->n * sizeof a->of[0], &b));
}

static void test_rails_addresses_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct tp_addrs a = of_rails(2), b;
    uint8_t bytes[sizeof a.of + 64] = {0};
    assert_false(addrs_read(bytes, 0, &b));
    for (size_t len = 1; len < sizeof bytes; len++)
        assert_false(addrs_read(bytes, len, &b)); /* zeros: addresses without a length; and no whole ones */
    addrs_write(&a, bytes);
    assert_false(addrs_read(bytes, 2 * sizeof a.of[0] - 1, &b));
    a.of[1].rail = 0; /* twice the same */
    expect_refused(&a);
    a.of[1].rail = TP_RAILS_MAX;
    expect_refused(&a);
    a = of_rails(2);
    a.of[1].len = 61;
    expect_refused(&a);
    a = of_rails(2);
    a.of[0].rail = 1;
    a.of[1].rail = 0;
    expect_refused(&a);
}

/* Whatever the bytes are: what is taken holds what addrs_good says. */
static void test_rails_any_bytes(void **state)
{
    (void)state;
    const char *given = getenv("KEEL_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now_ns();
    struct rng rng;
    int good = 0;
    print_message("KEEL_TEST_SEED=%llu\n", (unsigned long long)seed);
    rng_seed(&rng, seed);
    for (int i = 0; i < 200000; i++) {
        struct tp_addrs a = of_rails(1 + (int)(rng_u64(&rng) % TP_RAILS_MAX)), b;
        uint8_t bytes[sizeof a.of + 64] = {0};
        size_t len = addrs_write(&a, bytes);
        for (uint64_t k = rng_u64(&rng) % 3; k > 0; k--) {
            size_t at = rng_u64(&rng) % len;
            bytes[at - at % 64 + rng_u64(&rng) % 6] = (uint8_t)rng_u64(&rng);
        }
        if (rng_u64(&rng) % 4 == 0)
            len = rng_u64(&rng) % sizeof bytes;
        if (!addrs_read(bytes, len, &b))
            continue;
        good++;
        assert_in_range(b.n, 1, TP_RAILS_MAX);
        for (uint32_t k = 0; k < b.n; k++) {
            assert_in_range(b.of[k].len, 1, sizeof b.of[k].bytes);
            assert_true(b.of[k].rail < TP_RAILS_MAX && (k == 0 || b.of[k].rail > b.of[k - 1].rail));
        }
    }
    assert_in_range(good, 1000, 199000);
}

/* ---- one way over several rails ---- */

/* A transport of which connect is there, and what has moved. */
static struct {
    int connects, rail;
    keel_status status;
    struct tp_moved moved;
} seen;
static struct tp_ep seen_ep;

static keel_status seen_connect(struct tp *tp, const struct tp_addr *to, const void *hello, size_t len, void *user,
                                struct tp_ep **out)
{
    (void)hello, (void)len;
    seen.connects++;
    seen.rail = to->rail;
    seen_ep = (struct tp_ep){.tp = tp, .user = user};
    *out = &seen_ep;
    return seen.status;
}

static void seen_destroy(struct tp_ep *ep)
{
    (void)ep;
}

static bool seen_moved(const struct tp_ep *ep, struct tp_moved *moved)
{
    (void)ep;
    *moved = seen.moved;
    return true;
}

static const struct tp_table seen_table = {
    .name = "seen", .connect = seen_connect, .ep_destroy = seen_destroy, .moved = seen_moved};
static struct tp seen_tp = {.table = &seen_table};

static size_t no_hello(void *user, const struct way *w, uint8_t *out)
{
    (void)user, (void)w, (void)out;
    return 0;
}

static const struct ways kind = {.tp = &seen_tp, .first_ns = 10 * MS, .max_ns = 40 * MS, .hello = no_hello};

static int begin(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    return 0;
}

static void test_rails_the_next_is_tried_at_once(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(2);
    struct way w;
    way_init(&w, &kind, way_direct(3));
    assert_true(way_try(&w, &kind, &to, NULL, S));
    assert_int_equal(seen.rail, 0);
    assert_int_equal(w.key.rail, 0);
    way_failed(&w, S + MS);
    assert_true(way_try(&w, &kind, &to, NULL, S + MS)); /* no pause */
    assert_int_equal(seen.rail, 1);
    assert_int_equal(w.key.rail, 1);
    way_failed(&w, S + 2 * MS);
    assert_false(way_try(&w, &kind, &to, NULL, S + 2 * MS)); /* all have failed: as ever */
    assert_false(way_try(&w, &kind, &to, NULL, S + 10 * MS - 1));
    assert_true(way_try(&w, &kind, &to, NULL, S + 10 * MS));
    assert_int_equal(seen.rail, 0);
    assert_int_equal(w.attempts, 3);
}

static void test_rails_one_that_was_up_has_a_clean_past(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(2);
    struct way w;
    way_init(&w, &kind, way_direct(3));
    assert_true(way_try(&w, &kind, &to, NULL, S));
    way_failed(&w, S);
    assert_true(way_try(&w, &kind, &to, NULL, S));
    way_connected(&w, &kind, S);
    assert_int_equal(w.key.rail, 1);
    way_failed(&w, 5 * S); /* the first has rested by now */
    assert_true(way_try(&w, &kind, &to, NULL, 5 * S));
    assert_int_equal(seen.rail, 0);
    way_connected(&w, &kind, 5 * S);
    way_drop(&w); /* nothing has failed */
    assert_true(way_try(&w, &kind, &to, NULL, 9 * S));
    assert_int_equal(seen.rail, 0);
    way_connected(&w, &kind, 9 * S);
    way_failed(&w, 9 * S + 1);
    assert_int_equal(w.past.rail[0].times, 2); /* it comes up, and does not hold */
    assert_true(way_rests(&w.past, 0, 10 * S + 1));
    assert_true(way_try(&w, &kind, &to, NULL, 20 * S));
    way_connected(&w, &kind, 20 * S);
    way_failed(&w, 20 * S + WAY_REST_MAX_NS);
    assert_int_equal(w.past.rail[0].times, 1);
}

/* Who watches the node hears that a connection broke when no rail is left to try, once; and of who has not been up,
 * never. */
static void test_rails_a_break_is_told_when_all_have_failed(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(2), alone = of_rails(1);
    struct way w;
    way_init(&w, &kind, way_direct(3));
    assert_true(way_try(&w, &kind, &to, NULL, S));
    way_failed(&w, S);
    assert_false(way_has_broken(&w, &to, S));
    assert_true(way_refusal_counts(&w)); /* over the first */
    assert_true(way_try(&w, &kind, &to, NULL, S));
    assert_false(way_refusal_counts(&w)); /* who that is, nobody knows */
    way_connected(&w, &kind, S);
    assert_true(way_refusal_counts(&w));
    way_failed(&w, 5 * S);
    assert_false(way_has_broken(&w, &to, 5 * S));
    assert_true(way_try(&w, &kind, &to, NULL, 5 * S));
    way_failed(&w, 5 * S);
    assert_true(way_has_broken(&w, &to, 5 * S));
    assert_false(way_has_broken(&w, &to, 5 * S));
    way_init(&w, &kind, way_direct(3));
    assert_true(way_try(&w, &kind, &alone, NULL, S));
    way_connected(&w, &kind, S);
    way_failed(&w, 2 * S);
    assert_true(way_has_broken(&w, &alone, 2 * S)); /* at once, as ever */
}

/* Looks every 20 ms from the time on until it is given up, for at most 5 s; returns when. */
static uint64_t given_up_after(struct way *w, const struct tp_addrs *to, uint64_t from, bool taken, bool come)
{
    for (uint64_t t = from; t < from + 5 * S; t += 20 * MS) {
        seen.moved.taken += taken;
        seen.moved.received += come;
        if (way_is_stuck(w, to, true, t))
            return t - from;
    }
    return UINT64_MAX;
}

static void test_rails_a_connection_that_takes_nothing_is_given_up(void **state)
{
    (void)state;
    struct tp_addrs to = of_rails(2), alone = of_rails(1);
    struct way w;
    way_init(&w, &kind, way_direct(3));
    assert_false(way_is_stuck(&w, &to, true, S));
    assert_true(way_try(&w, &kind, &to, NULL, S));
    assert_false(way_is_stuck(&w, &to, true, S + WAY_STUCK_NS - 1));
    assert_true(way_is_stuck(&w, &to, true, S + WAY_STUCK_NS)); /* it does not come up */
    assert_false(way_is_stuck(&w, &alone, true, 9 * S));
    way_connected(&w, &kind, 10 * S);
    seen.moved = (struct tp_moved){.pending = true};
    assert_in_range(given_up_after(&w, &to, 10 * S, false, false), WAY_STUCK_NS, WAY_STUCK_NS + 40 * MS);
    assert_true(given_up_after(&w, &alone, 20 * S, false, false) == UINT64_MAX);
    assert_true(given_up_after(&w, &to, 30 * S, true, false) == UINT64_MAX); /* slow */
    assert_true(given_up_after(&w, &to, 40 * S, false, true) == UINT64_MAX);
    seen.moved.pending = false; /* all is there, and no answer */
    assert_in_range(given_up_after(&w, &to, 50 * S, false, false), WAY_UNANSWERED_NS, WAY_UNANSWERED_NS + 40 * MS);
    assert_false(way_is_stuck(&w, &to, false, 60 * S)); /* nobody waits */
    w.past.rail[1].failed_at = 70 * S;
    w.past.rail[1].times = 1;
    assert_true(given_up_after(&w, &to, 70 * S, false, false) >= S); /* not before the other has rested */
}

/* ---- transports ---- */

static void open_on_both(struct world *world, struct peer *p, const char *first, const char *second)
{
    struct tp_config config = {.host = first, .more = {second}, .provider = peer_provider};
    *p = (struct peer){.table = impl->table, .batch = 16};
    p->last = &p->first;
    assert_int_equal(impl->table->open(&config, &p->tp), KEEL_OK);
    world->peers[world->count++] = p;
}

/* Memory that is registered once is reached over each; what comes says nothing of the rail. */
static void test_rails_each_is_listened_at(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    struct tp_addrs to;
    struct tp_addr more;
    if (strcmp(peer_provider, "verbs") == 0)
        skip(); /* one device, one rail */
    bool named = strncmp(impl->host_a, "127.", 4) != 0;
    open_on_both(&world, &a, impl->host_a, named ? "a2" : "127.0.1.1");
    open_on_both(&world, &b, impl->host_b, named ? "b2" : "127.0.1.2");
    assert_int_equal(addrs_listen(b.tp, &to), KEEL_OK);
    assert_int_equal(to.n, 2);
    assert_true(addrs_good(&to));
    assert_int_equal(b.table->listen(b.tp, &more), KEEL_ERR_STATE);
    uint8_t memory[256] = {0}, bytes[128];
    assert_int_equal(b.table->reg(b.tp, memory, sizeof memory, 7), KEEL_OK);
    struct tp_ep *a_ep[2], *b_ep[2];
    for (int rail = 0; rail < 2; rail++) {
        b.addr = to.of[rail];
        world_connect(&world, &a, &b, &a_ep[rail], &b_ep[rail]);
    }
    for (int rail = 0; rail < 2; rail++) {
        struct tp_op op = {0};
        fill_pattern(bytes, sizeof bytes, (uint64_t)rail);
        assert_int_equal(tp_write(a_ep[rail], bytes, sizeof bytes, 7, (uint64_t)rail * 128, &op), KEEL_OK);
        assert_int_equal(world_await_status(&world, &a, TP_DONE, a_ep[rail]), KEEL_OK);
        assert_true(is_pattern(memory + rail * 128, sizeof bytes, (uint64_t)rail));
        assert_int_equal(tp_send(b_ep[rail], "x", 1, NULL, 0, NULL), KEEL_OK);
        record_free(world_await(&world, &a, TP_RECV, a_ep[rail]));
    }
    tp_disconnect(a_ep[0]); /* one ends: the other goes on */
    assert_int_equal(world_await_status(&world, &b, TP_CLOSED, b_ep[0]), KEEL_ERR_LINK);
    assert_int_equal(tp_send(a_ep[1], "y", 1, NULL, 0, NULL), KEEL_OK);
    record_free(world_await(&world, &b, TP_RECV, b_ep[1]));
    to.of[1].rail = 2; /* a has no third one */
    struct tp_ep *none;
    assert_int_equal(a.table->connect(a.tp, &to.of[1], NULL, 0, NULL, &none), KEEL_ERR_ARG);
    peer_close(&world, &a);
    peer_close(&world, &b);
}

/* Who connects leaves from its own address of the rail, and rejections come back over it. */
static void test_rails_strangers_are_rejected_on_each(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    struct tp_addrs to;
    if (strcmp(peer_provider, "verbs") == 0)
        skip();
    bool named = strncmp(impl->host_a, "127.", 4) != 0;
    open_on_both(&world, &a, impl->host_a, named ? "a2" : "127.0.1.1");
    open_on_both(&world, &b, impl->host_b, named ? "b2" : "127.0.1.2");
    assert_int_equal(addrs_listen(b.tp, &to), KEEL_OK);
    for (int rail = 0; rail < 2; rail++) {
        struct tp_ep *ep;
        assert_int_equal(a.table->connect(a.tp, &to.of[rail], "hi", 2, &a, &ep), KEEL_OK);
        struct peer_record *asked = world_await(&world, &b, TP_CONNREQ, NULL);
        b.table->reject(b.tp, asked->event.req);
        record_free(asked);
        assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_ERR_AUTH);
        a.table->ep_destroy(ep);
    }
    peer_close(&world, &b);
    for (int rail = 0; rail < 2; rail++) {
        struct tp_ep *ep;
        assert_int_equal(a.table->connect(a.tp, &to.of[rail], "hi", 2, &a, &ep), KEEL_OK);
        assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_ERR_NODE_DEAD); /* nobody listens */
        a.table->ep_destroy(ep);
    }
    peer_close(&world, &a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest pure[] = {
        cmocka_unit_test(test_rails_the_first_that_has_not_failed),
        cmocka_unit_test(test_rails_all_have_failed_the_oldest_failure),
        cmocka_unit_test(test_rails_one_that_fails_again_and_again_rests_longer),
        cmocka_unit_test(test_rails_of_one_that_one),
        cmocka_unit_test(test_rails_addresses_come_back_as_they_were),
        cmocka_unit_test(test_rails_addresses_that_cannot_be_are_refused),
        cmocka_unit_test(test_rails_any_bytes),
        cmocka_unit_test_setup(test_rails_the_next_is_tried_at_once, begin),
        cmocka_unit_test_setup(test_rails_one_that_was_up_has_a_clean_past, begin),
        cmocka_unit_test_setup(test_rails_a_break_is_told_when_all_have_failed, begin),
        cmocka_unit_test_setup(test_rails_a_connection_that_takes_nothing_is_given_up, begin),
    };
    const struct CMUnitTest each[] = {
        cmocka_unit_test(test_rails_each_is_listened_at),
        cmocka_unit_test(test_rails_strangers_are_rejected_on_each),
    };
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    return failed + run_over_all(each, sizeof each / sizeof *each, argc > 1 ? argv[1] : NULL) != 0;
}
