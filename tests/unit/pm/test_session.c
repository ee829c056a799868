#include "pm/wire/session.h"

#include "runtime/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

struct pair {
    struct session client, server;
    struct bytes to_server, to_client;
};

enum { GREETING = 8 + 8 + SESSION_POINT }; /* of a client: magic, name of the secret, point */

static const uint8_t secret_a[32] = "the job's secret, 32 bytes long";
static const uint8_t secret_b[32] = "another job's secret, 32 bytes.";

static void scalar_from(uint8_t scalar[SESSION_POINT], uint8_t fill)
{
    memset(scalar, fill, SESSION_POINT);
}

static void pair_init(struct pair *p, const uint8_t *client_secret, uint64_t client_job)
{
    uint8_t scalar[SESSION_POINT];
    *p = (struct pair){0};
    scalar_from(scalar, 1);
    session_init(&p->client, SESSION_CLIENT, client_job, &(struct session_key){.secret = client_secret}, scalar,
                 &p->to_server);
    scalar_from(scalar, 2);
    session_init(&p->server, SESSION_SERVER, 7, &(struct session_key){.secret = secret_a}, scalar, &p->to_client);
}

static void pair_fini(struct pair *p)
{
    session_fini(&p->client);
    session_fini(&p->server);
    bytes_free(&p->to_server);
    bytes_free(&p->to_client);
}

/* Deliver everything both ways, `step` bytes at a time, until nothing moves. Frames that arrive are not expected. */
static void shake_hands(struct pair *p, size_t step)
{
    uint8_t type;
    const uint8_t *body;
    size_t len;
    while (p->to_server.len || p->to_client.len) {
        size_t n = p->to_server.len < step ? p->to_server.len : step;
        session_feed(&p->server, p->to_server.data, n);
        bytes_drop(&p->to_server, n);
        assert_false(session_next(&p->server, &p->to_client, &type, &body, &len));
        n = p->to_client.len < step ? p->to_client.len : step;
        session_feed(&p->client, p->to_client.data, n);
        bytes_drop(&p->to_client, n);
        assert_false(session_next(&p->client, &p->to_server, &type, &body, &len));
    }
}

static void test_session_same_secret_opens_both_ends(void **state)
{
    (void)state;
    for (size_t step = 1; step < 200; step += 13) {
        struct pair p;
        pair_init(&p, secret_a, 7);
        shake_hands(&p, step);
        assert_int_equal(p.client.state, SESSION_OPEN);
        assert_int_equal(p.server.state, SESSION_OPEN);
        pair_fini(&p);
    }
}

static void test_session_other_secret_or_job_is_refused_by_both(void **state)
{
    (void)state;
    for (int variant = 0; variant < 2; variant++) {
        struct pair p;
        pair_init(&p, variant ? secret_b : secret_a, variant ? 7 : 8);
        shake_hands(&p, 64);
        assert_int_equal(p.server.state, SESSION_BROKEN);
        assert_int_equal(p.client.state, SESSION_BROKEN);
        assert_string_equal(p.server.why_broken, "authentication failed");
        pair_fini(&p);
    }
}

static void test_session_frames_arrive_whole_and_in_order(void **state)
{
    (void)state;
    struct pair p;
    struct bytes none = {0};
    uint8_t type, *big = malloc(300000);
    const uint8_t *body;
    size_t len;
    pair_init(&p, secret_a, 7);
    shake_hands(&p, 4096);
    for (int i = 0; i < 300000; i++)
        big[i] = (uint8_t)(i * 7);
    session_seal(&p.client, 5, "abc", 3, &p.to_server);
    session_seal(&p.client, 6, NULL, 0, &p.to_server);
    session_seal(&p.client, 7, big, 300000, &p.to_server);
    int got = 0;
    for (size_t at = 0; at < p.to_server.len; at += 1000) {
        size_t n = p.to_server.len - at < 1000 ? p.to_server.len - at : 1000;
        session_feed(&p.server, p.to_server.data + at, n);
        while (session_next(&p.server, &none, &type, &body, &len)) {
            assert_int_equal(type, 5 + got);
            assert_int_equal(len, got == 0 ? 3 : got == 1 ? 0 : 300000);
            if (got == 2)
                assert_memory_equal(body, big, 300000);
            got++;
        }
    }
    assert_int_equal(got, 3);
    free(big);
    bytes_free(&none);
    pair_fini(&p);
}

static void test_session_changed_bit_anywhere_breaks_it(void **state)
{
    (void)state;
    size_t length = 1;
    for (size_t bit = 0; bit < length * 8; bit++) {
        struct pair p;
        struct bytes none = {0};
        uint8_t type;
        const uint8_t *body;
        size_t len;
        pair_init(&p, secret_a, 7);
        shake_hands(&p, 4096);
        session_seal(&p.client, 5, "hello", 5, &p.to_server);
        length = p.to_server.len;
        p.to_server.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        session_feed(&p.server, p.to_server.data, length);
        /* a longer length may leave it waiting for more bytes; nothing ever comes out */
        assert_false(session_next(&p.server, &none, &type, &body, &len));
        bytes_free(&none);
        pair_fini(&p);
    }
}

static void test_session_replayed_or_reflected_frame_breaks_it(void **state)
{
    (void)state;
    for (int reflect = 0; reflect < 2; reflect++) {
        struct pair p;
        struct bytes none = {0};
        uint8_t type;
        const uint8_t *body;
        size_t len;
        pair_init(&p, secret_a, 7);
        shake_hands(&p, 4096);
        session_seal(&p.client, 5, "hello", 5, &p.to_server);
        struct session *to = reflect ? &p.client : &p.server;
        session_feed(to, p.to_server.data, p.to_server.len);
        if (!reflect) {
            assert_true(session_next(to, &none, &type, &body, &len));
            session_feed(to, p.to_server.data, p.to_server.len);
        }
        assert_false(session_next(to, &none, &type, &body, &len));
        assert_int_equal(to->state, SESSION_BROKEN);
        bytes_free(&none);
        pair_fini(&p);
    }
}

static void test_session_recorded_client_cannot_be_played_back(void **state)
{
    (void)state;
    struct pair p;
    struct bytes recorded = {0};
    uint8_t scalar[SESSION_POINT], type;
    const uint8_t *body;
    size_t len;
    pair_init(&p, secret_a, 7);
    bytes_append(&recorded, p.to_server.data, p.to_server.len);
    session_feed(&p.server, p.to_server.data, p.to_server.len);
    p.to_server.len = 0;
    session_next(&p.server, &p.to_client, &type, &body, &len);
    session_feed(&p.client, p.to_client.data, p.to_client.len);
    session_next(&p.client, &p.to_server, &type, &body, &len);
    bytes_append(&recorded, p.to_server.data, p.to_server.len);

    struct session fresh;
    struct bytes out = {0};
    scalar_from(scalar, 3);
    session_init(&fresh, SESSION_SERVER, 7, &(struct session_key){.secret = secret_a}, scalar, &out);
    session_feed(&fresh, recorded.data, recorded.len);
    assert_false(session_next(&fresh, &out, &type, &body, &len));
    assert_int_equal(fresh.state, SESSION_BROKEN);
    session_fini(&fresh);
    bytes_free(&out);
    bytes_free(&recorded);
    pair_fini(&p);
}

static void test_session_garbage_is_refused_without_an_answer(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    struct rng r;
    rng_seed(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 2000; round++) {
        struct session s;
        struct bytes out = {0};
        uint8_t scalar[SESSION_POINT], garbage[256] = {0}, type;
        const uint8_t *body;
        size_t len, n = 1 + (size_t)rng_below(&r, sizeof garbage);
        scalar_from(scalar, 9);
        session_init(&s, SESSION_SERVER, 7, &(struct session_key){.secret = secret_a}, scalar, &out);
        for (size_t i = 0; i < n; i++)
            garbage[i] = (uint8_t)rng_u64(&r);
        if (garbage[0] == 'K')
            garbage[0] = 'G';
        session_feed(&s, garbage, n);
        assert_false(session_next(&s, &out, &type, &body, &len));
        assert_int_equal(s.state, SESSION_BROKEN);
        assert_int_equal(out.len, 0);
        bytes_free(&out);
        session_fini(&s);
    }
}

/* Who knows the secret and has heard everything. */
static void test_session_listener_with_the_secret_reads_nothing(void **state)
{
    (void)state;
    struct pair p;
    struct session listener;
    struct bytes heard = {0}, out = {0};
    uint8_t said[GREETING], type;
    const uint8_t *body;
    size_t len;
    pair_init(&p, secret_a, 7);
    memcpy(said, p.to_server.data, sizeof said);
    session_feed(&p.server, p.to_server.data, p.to_server.len);
    assert_false(session_next(&p.server, &p.to_client, &type, &body, &len));
    bytes_append(&heard, p.to_client.data, p.to_client.len); /* with the server's proof, the first frame */
    session_init(&listener, SESSION_CLIENT, 7, &(struct session_key){.secret = secret_a},
                 said + GREETING - SESSION_POINT, &out);
    memcpy(listener.point, said + GREETING - SESSION_POINT,
           SESSION_POINT); /* as the client, but for what it did not say */
    session_feed(&listener, heard.data, heard.len);
    assert_false(session_next(&listener, &out, &type, &body, &len));
    assert_int_equal(listener.state, SESSION_BROKEN);
    assert_string_equal(listener.why_broken, "authentication failed");
    session_fini(&listener);
    bytes_free(&heard);
    bytes_free(&out);
    pair_fini(&p);
}

static void test_session_point_of_no_order_is_refused(void **state)
{
    (void)state;
    struct session s;
    struct bytes out = {0};
    uint8_t scalar[SESSION_POINT] = {3}, greeting[GREETING] = "KEEL-PM3", type;
    const uint8_t *body;
    size_t len;
    session_init(&s, SESSION_SERVER, 7, &(struct session_key){.secret = secret_a}, scalar, &out);
    session_feed(&s, greeting, sizeof greeting);
    assert_false(session_next(&s, &out, &type, &body, &len));
    assert_int_equal(s.state, SESSION_BROKEN);
    assert_int_equal(out.len, 0);
    bytes_free(&out);
    session_fini(&s);
}

static void test_session_long_frame_before_the_proof_is_refused(void **state)
{
    (void)state;
    struct session s;
    struct bytes out = {0};
    uint8_t scalar[SESSION_POINT] = {3}, head[GREETING + 4] = "KEEL-PM3", type;
    const uint8_t *body;
    size_t len;
    session_init(&s, SESSION_SERVER, 7, &(struct session_key){.secret = secret_a}, scalar, &out);
    crypto_scalarmult_base(head + GREETING - SESSION_POINT, secret_b);
    put_u32(head + GREETING, 1000000);
    session_feed(&s, head, sizeof head);
    assert_false(session_next(&s, &out, &type, &body, &len));
    assert_int_equal(s.state, SESSION_BROKEN);
    assert_string_equal(s.why_broken, "frame length out of range");
    bytes_free(&out);
    session_fini(&s);
}

/* ---- a server that knows several ---- */

static const uint8_t *find(void *user, uint64_t id)
{
    ++*(int *)user;
    return id == 5 ? secret_a : id == 6 ? secret_b : NULL;
}

/* The server's state when a client that names id and knows secret has said all. */
static enum session_state meet(uint64_t id, const uint8_t *secret, uint64_t *named, size_t *answered)
{
    struct session client, server;
    struct bytes to_server = {0}, to_client = {0};
    uint8_t scalar[SESSION_POINT], type;
    const uint8_t *body;
    size_t len;
    int asked = 0;
    scalar_from(scalar, 1);
    session_init(&client, SESSION_CLIENT, 7, &(struct session_key){.id = id, .secret = secret}, scalar, &to_server);
    scalar_from(scalar, 2);
    session_init(&server, SESSION_SERVER, 7, &(struct session_key){.find = find, .user = &asked}, scalar, &to_client);
    session_feed(&server, to_server.data, to_server.len);
    to_server.len = 0;
    (void)session_next(&server, &to_client, &type, &body, &len);
    *answered = to_client.len;
    session_feed(&client, to_client.data, to_client.len);
    (void)session_next(&client, &to_server, &type, &body, &len);
    session_feed(&server, to_server.data, to_server.len);
    (void)session_next(&server, &to_client, &type, &body, &len);
    assert_int_equal(asked, 1);
    enum session_state state = server.state;
    *named = server.key.id;
    session_fini(&client);
    session_fini(&server);
    bytes_free(&to_server);
    bytes_free(&to_client);
    return state;
}

static void test_session_client_names_one_of_several_secrets(void **state)
{
    (void)state;
    uint64_t named;
    size_t answered;
    assert_int_equal(meet(5, secret_a, &named, &answered), SESSION_OPEN);
    assert_int_equal(named, 5);
    assert_int_equal(meet(6, secret_b, &named, &answered), SESSION_OPEN);
    assert_int_equal(named, 6);
    assert_int_equal(meet(6, secret_a, &named, &answered), SESSION_BROKEN);
}

static void test_session_name_of_no_secret_is_refused_without_an_answer(void **state)
{
    (void)state;
    uint64_t named;
    size_t answered;
    assert_int_equal(meet(SESSION_OF_JOB, secret_a, &named, &answered), SESSION_BROKEN);
    assert_int_equal(answered, 0);
    assert_int_equal(meet(7, secret_a, &named, &answered), SESSION_BROKEN);
    assert_int_equal(answered, 0);
}

/* ... though it is changed on the way to that of the very same secret. */
static void test_session_name_is_part_of_the_keys(void **state)
{
    (void)state;
    struct pair p;
    uint8_t type;
    const uint8_t *body;
    size_t len;
    pair_init(&p, secret_a, 7);
    p.server.key.id = 9;
    p.to_server.data[8] = 9;
    session_feed(&p.server, p.to_server.data, p.to_server.len);
    assert_false(session_next(&p.server, &p.to_client, &type, &body, &len));
    session_feed(&p.client, p.to_client.data, p.to_client.len);
    assert_false(session_next(&p.client, &p.to_server, &type, &body, &len));
    assert_int_equal(p.client.state, SESSION_BROKEN);
    assert_string_equal(p.client.why_broken, "authentication failed");
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_same_secret_opens_both_ends),
        cmocka_unit_test(test_session_other_secret_or_job_is_refused_by_both),
        cmocka_unit_test(test_session_frames_arrive_whole_and_in_order),
        cmocka_unit_test(test_session_changed_bit_anywhere_breaks_it),
        cmocka_unit_test(test_session_replayed_or_reflected_frame_breaks_it),
        cmocka_unit_test(test_session_recorded_client_cannot_be_played_back),
        cmocka_unit_test(test_session_garbage_is_refused_without_an_answer),
        cmocka_unit_test(test_session_listener_with_the_secret_reads_nothing),
        cmocka_unit_test(test_session_point_of_no_order_is_refused),
        cmocka_unit_test(test_session_long_frame_before_the_proof_is_refused),
        cmocka_unit_test(test_session_client_names_one_of_several_secrets),
        cmocka_unit_test(test_session_name_of_no_secret_is_refused_without_an_answer),
        cmocka_unit_test(test_session_name_is_part_of_the_keys),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
