#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "detect/seal.h"
#include "detect/datagram.h"
#include "runtime/base/rng.h"

static struct datagram full_round(struct rng *r, int n, const int *left, int n_left)
{
    struct datagram m = {.type = DATAGRAM_WAVE,
                         .flags = DATAGRAM_DIRECT,
                         .src = 1,
                         .dst = n - 1,
                         .epoch = 7,
                         .settled = 6,
                         .phase = PHASE_PREPARE,
                         .root = 1,
                         .ballot = 5 << BALLOT_BITS | 1,
                         .index = 8,
                         .value = 99,
                         .left = left,
                         .n_left = n_left,
                         .batch = {.n = MEMBER_BATCH_MAX}};
    for (int i = 0; i < MEMBER_BATCH_MAX; i++)
        m.batch.e[i] =
            (struct batch_entry){.node = (int)rng_below(r, (uint64_t)n),
                                 .seq = (uint32_t)rng_u64(r),
                                 .event = {.type = VIEW_EVENT_FIRST, .a = (uint32_t)rng_u64(r), .d = rng_u64(r)}};
    return m;
}

static void test_wire_largest_wave_fits_and_returns(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 3);
    for (int n = 2; n <= MEMBER_NODES_MAX; n = n * 2 + 1) {
        int left[DATAGRAM_LEFT_MAX], back[DATAGRAM_LEFT_MAX], n_left = 0;
        uint8_t bytes[MEMBER_DATAGRAM_MAX];
        for (int i = 2; i < n - 1 && n_left < DATAGRAM_LEFT_MAX; i++) /* near each other, or far apart */
            if (rng_below(&r, n > 5000 ? (uint64_t)n / 300 : 2) == 0)
                left[n_left++] = i;
        while (datagram_left_bytes(left, n_left) > DATAGRAM_LEFT_BYTES)
            n_left--;
        assert_true(n_left >= (n > 5000 ? 200 : 0));
        struct datagram m = full_round(&r, n, left, n_left), got;
        size_t len = datagram_encode(&m, bytes);
        assert_true(len <= MEMBER_DATAGRAM_MAX);
        assert_true(datagram_decode(bytes, len, n, &got, back));
        assert_int_equal(got.n_left, n_left);
        if (n_left)
            assert_memory_equal(left, back, (size_t)n_left * sizeof *left);
        assert_int_equal(got.index, m.index);
        assert_int_equal(got.ballot, m.ballot);
        for (int i = 0; i < MEMBER_BATCH_MAX; i++) {
            assert_int_equal(got.batch.e[i].seq, m.batch.e[i].seq);
            assert_true(got.batch.e[i].event.d == m.batch.e[i].event.d);
        }
    }
}

/* Of each list of deaths in which the ids ascend, whatever the distances: what comes out is what was said. */
static void test_wire_deaths_of_neighbours_share_an_entry(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    for (int run = 0; run < 2000; run++) {
        const int n = 300;
        struct datagram m = {.type = DATAGRAM_LOG, .src = 1, .dst = 2, .index = 3}, got;
        bool dead[300] = {false};
        int left[DATAGRAM_LEFT_MAX], said = 0, at = (int)rng_below(&r, 40);
        while (m.batch.n < 3 && at < n) {
            struct view_event *e = &m.batch.e[m.batch.n++].event;
            *e = (struct view_event){.type = VIEW_NODE_DEAD, .a = (uint32_t)at, .b = MEMBER_SILENT, .c = 7};
            for (int i = at + 1; i < n && i < at + BATCH_SPAN && said < 100; i++)
                if (rng_below(&r, 3) == 0 || i == at + BATCH_SPAN - 1) {
                    e->d |= 1ull << (i - at - 1);
                    dead[i] = true;
                    said++;
                }
            dead[at] = true;
            said++;
            at += BATCH_SPAN + (int)rng_below(&r, 20);
        }
        m.batch.e[m.batch.n++].event = (struct view_event){.type = VIEW_EVENT_FIRST, .a = 5, .d = 77};
        uint8_t bytes[MEMBER_DATAGRAM_MAX];
        size_t len = datagram_encode(&m, bytes);
        assert_true(datagram_decode(bytes, len, n, &got, left));
        struct view_event out[MEMBER_EVENTS_MAX];
        assert_int_equal(batch_events(&got.batch, out), said + 1);
        assert_true(out[said].type == VIEW_EVENT_FIRST && out[said].d == 77);
        int k = 0;
        for (int i = 0; i < n; i++) {
            assert_int_equal(batch_declares(&got.batch, i), dead[i]);
            if (!dead[i])
                continue;
            assert_true((int)out[k].a == i && out[k].b == MEMBER_SILENT && out[k].c == 7 && out[k].d == 0);
            k++;
        }
        int last = (int)m.batch.e[m.batch.n - 2].event.a;
        m.batch.e[m.batch.n - 2].event.d |= 1ull << 63; /* of a node that there is not */
        len = datagram_encode(&m, bytes);
        assert_int_equal(datagram_decode(bytes, len, n, &got, left), last + BATCH_SPAN <= n);
    }
    struct datagram many = {.type = DATAGRAM_LOG, .src = 1, .dst = 2, .index = 3, .batch = {.n = 2}}, got;
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    int left[DATAGRAM_LEFT_MAX];
    for (int i = 0; i < 2; i++)
        many.batch.e[i].event =
            (struct view_event){.type = VIEW_NODE_DEAD, .a = 100 * (uint32_t)i, .b = MEMBER_SILENT, .d = ~0ull};
    assert_false(datagram_decode(bytes, datagram_encode(&many, bytes), 300, &got, left)); /* 130 events */
    many.batch.e[1].event.d = ~0ull >> 2;
    assert_true(datagram_decode(bytes, datagram_encode(&many, bytes), 300, &got, left));
}

/* Of what cannot be, nothing is taken: evidence that there is not, a finder or a dead node that is no member. */
static void test_wire_event_out_of_range_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct view_event event;
        bool good;
    } cases[] = {
        {{.type = VIEW_NODE_DEAD, .a = 99, .b = MEMBER_UNREACHABLE, .c = 99}, true},
        {{.type = VIEW_NODE_DEAD, .a = 100, .b = MEMBER_SILENT, .c = 5}, false},
        {{.type = VIEW_NODE_DEAD, .a = 50, .b = MEMBER_SILENT, .c = 100}, false},
        {{.type = VIEW_NODE_DEAD, .a = 50, .b = MEMBER_ALIVE, .c = 5}, false},
        {{.type = VIEW_NODE_DEAD, .a = 50, .b = MEMBER_UNREACHABLE + 1, .c = 5}, false},
        {{.type = VIEW_NODE_DEAD, .a = 50, .b = 1u << 31, .c = 5}, false},
        {{.type = VIEW_EVENT_FIRST, .a = 1000, .b = 1u << 31, .c = 1000}, true}, /* the runtime's */
        {{.type = VIEW_NODE_BORN, .a = 99, .b = 1u << 31, .c = 99}, true},
        {{.type = VIEW_NODE_BORN, .a = 100, .b = 1}, false},
        {{.type = VIEW_NODE_BORN, .a = 50, .b = 1, .c = 100}, false},
        {{.type = BATCH_VOID}, true},
        {{.type = BATCH_VOID + 1, .a = 50, .b = MEMBER_SILENT, .c = 5}, false},
        {{.type = 0}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct datagram log = {.type = DATAGRAM_LOG, .src = 1, .dst = 2, .index = 3, .batch = {.n = 1}}, got;
        uint8_t bytes[MEMBER_DATAGRAM_MAX];
        int left[DATAGRAM_LEFT_MAX];
        log.batch.e[0].event = cases[i].event;
        assert_int_equal(datagram_decode(bytes, datagram_encode(&log, bytes), 100, &got, left), cases[i].good);
    }
}

/* Damaged or truncated bytes are refused or decoded into fields in range: run under ASan. */
static void test_wire_damaged_message_stays_in_range(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 4);
    const int n = 100;
    for (int i = 0; i < 50000; i++) {
        int left[5] = {3, 4, 50, 51, 98}, back[DATAGRAM_LEFT_MAX];
        uint8_t bytes[MEMBER_DATAGRAM_MAX];
        struct datagram m = full_round(&r, n, left, 5), got;
        m.type = (enum datagram_type)(1 + rng_below(&r, DATAGRAM_TYPES - 1));
        size_t len = datagram_encode(&m, bytes);
        for (int k = 0; k < 3; k++)
            bytes[rng_below(&r, len)] = (uint8_t)rng_u64(&r);
        len -= rng_below(&r, 3) ? 0 : rng_below(&r, len);
        uint8_t *copy = malloc(len ? len : 1); /* so that reading past its end shows */
        memcpy(copy, bytes, len);
        if (datagram_decode(copy, len, n, &got, back)) {
            assert_in_range(got.src, 0, n - 1);
            assert_in_range(got.dst, 0, n - 1);
            assert_in_range(got.batch.n, 0, MEMBER_BATCH_MAX);
            assert_in_range(got.n_deaths, 0, MEMBER_BATCH_MAX);
            for (int k = 0; k < got.batch.n; k++)
                assert_in_range(got.batch.e[k].node, 0, n - 1);
            for (int k = 0; k < got.n_left; k++)
                assert_in_range(got.left[k], k ? got.left[k - 1] + 1 : 0, n - 1);
        }
        free(copy);
    }
}

/* Ids above 65,535: of both ends, in a message and in what seals it. */
static void test_wire_and_seal_know_large_ids(void **state)
{
    (void)state;
    struct seal a, b;
    struct seal_opened opened;
    uint8_t secret[32] = {1}, bytes[MEMBER_DATAGRAM_MAX], out[MEMBER_DATAGRAM_MAX + SEAL_OVERHEAD];
    int left[DATAGRAM_LEFT_MAX];
    struct datagram m = {.type = DATAGRAM_PING, .src = 99999, .dst = 65537, .nonce = 5}, got;
    size_t len = datagram_encode(&m, bytes);
    assert_true(datagram_decode(bytes, len, 100000, &got, left));
    assert_int_equal(got.src, 99999);
    assert_int_equal(got.dst, 65537);
    assert_false(datagram_decode(bytes, len, 99999, &got, left));
    assert_true(seal_init(&a, 1, secret, 99999, 10) && seal_init(&b, 1, secret, 65537, 11));
    len = seal_close(&a, SEAL_DATAGRAM, 65537, 7, bytes, len, out);
    assert_true(seal_open(&b, out, len, &opened));
    assert_int_equal(opened.from, 99999);
    assert_true(seal_init(&b, 1, secret, 1, 11)); /* the same in 16 bits */
    assert_false(seal_open(&b, out, len, &opened));
}

static void test_seal_altered_or_foreign_is_refused(void **state)
{
    (void)state;
    struct seal a, b, other_job, other_secret;
    uint8_t secret[32] = {1}, wrong[32] = {2}, out[200];
    struct seal_opened got;
    assert_true(seal_init(&a, 1, secret, 0, 10) && seal_init(&b, 1, secret, 1, 11));
    assert_true(seal_init(&other_job, 2, secret, 0, 10) && seal_init(&other_secret, 1, wrong, 0, 10));
    size_t n = seal_close(&a, SEAL_DATAGRAM, 1, 7, "hello", 5, out);
    assert_int_equal(n, 5 + SEAL_OVERHEAD);
    assert_true(seal_open(&b, out, n, &got));
    assert_int_equal(got.from, 0);
    assert_int_equal(got.incarnation, 10);
    assert_int_equal(got.number, 7);
    assert_int_equal(got.len, 5);
    assert_memory_equal(got.content, "hello", 5);
    assert_false(seal_open(&a, out, n, &got)); /* not for us */
    for (size_t i = 0; i < n; i++) {
        out[i] ^= 1;
        assert_false(seal_open(&b, out, n, &got));
        out[i] ^= 1;
        assert_false(seal_open(&b, out, i, &got));
    }
    n = seal_close(&other_job, SEAL_DATAGRAM, 1, 7, "hello", 5, out);
    assert_false(seal_open(&b, out, n, &got));
    n = seal_close(&other_secret, SEAL_DATAGRAM, 1, 7, "hello", 5, out);
    assert_false(seal_open(&b, out, n, &got));
}

static void test_window_takes_each_number_once(void **state)
{
    (void)state;
    enum { LAST = 5000, WIDTH = 64 };
    static bool taken[LAST + 1];
    uint64_t newest = 0;
    struct rng r;
    struct seal_window w = {0};
    rng_seed(&r, 9);
    assert_false(seal_window_take(&w, 0));
    for (int i = 0; i < 20 * LAST; i++) {
        uint64_t near = 1 + (uint64_t)i / 20 + rng_below(&r, 100);
        uint64_t number = near > LAST ? LAST : near;
        bool is_new = number > newest || (newest - number < WIDTH && !taken[number]);
        assert_int_equal(seal_window_take(&w, number), is_new);
        taken[number] |= is_new;
        newest = number > newest ? number : newest;
    }
    assert_true(seal_window_take(&w, UINT64_MAX));
    assert_false(seal_window_take(&w, UINT64_MAX));
    assert_false(seal_window_take(&w, newest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_largest_wave_fits_and_returns),
        cmocka_unit_test(test_wire_deaths_of_neighbours_share_an_entry),
        cmocka_unit_test(test_wire_event_out_of_range_is_refused),
        cmocka_unit_test(test_wire_damaged_message_stays_in_range),
        cmocka_unit_test(test_wire_and_seal_know_large_ids),
        cmocka_unit_test(test_seal_altered_or_foreign_is_refused),
        cmocka_unit_test(test_window_takes_each_number_once),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
