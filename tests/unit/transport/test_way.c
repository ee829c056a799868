/* A way to a node: when it is made, tried again, and what its connections begin with. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/log.h"
#include "runtime/net/way.h"

/* A transport of which only connect is there. */
static struct {
    int connects, destroyed;
    keel_status status;
    uint8_t hello[TP_HELLO_MAX];
    size_t len;
    void *user;
} seen;
static struct tp_ep ep;

static keel_status connect_to(struct tp *tp, const struct tp_addr *to, const void *hello, size_t len, void *user,
                              struct tp_ep **out)
{
    (void)to;
    seen.connects++;
    memcpy(seen.hello, hello, len);
    seen.len = len;
    seen.user = user;
    ep = (struct tp_ep){.tp = tp, .user = user};
    *out = &ep;
    return seen.status;
}

static void destroy(struct tp_ep *e)
{
    assert_ptr_equal(e, &ep);
    seen.destroyed++;
}

static const struct tp_table table = {.name = "seen", .connect = connect_to, .ep_destroy = destroy};
static struct tp tp = {.table = &table};

static size_t hello(void *user, const struct way *w, uint8_t *out)
{
    assert_ptr_equal(user, &seen);
    out[0] = (uint8_t)w->key.node;
    out[1] = (uint8_t)w->attempts;
    return 2;
}

static const struct ways kind = {
    .tp = &tp, .first_ns = 10, .max_ns = 40, .hello = hello, .user = &seen, .tell = way_log, .whose = "node"};
static const struct tp_addrs to = {.n = 1, .of = {{.len = 4}}};

static int setup(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    return 0;
}

static void test_way_is_made_once(void **state)
{
    (void)state;
    struct way w;
    int user;
    way_init(&w, &kind, way_direct(5));
    assert_int_equal(w.state, WAY_DOWN);
    assert_int_equal(w.key.via, WAY_DIRECT);
    assert_int_equal(w.key.rail, 0);
    assert_true(way_try(&w, &kind, &to, &user, 100));
    assert_int_equal(w.state, WAY_CONNECTING);
    assert_true(way_try(&w, &kind, &to, &user, 1000));
    assert_int_equal(seen.connects, 1);
    assert_ptr_equal(seen.user, &user);
    assert_int_equal(seen.len, 2);
    assert_int_equal(seen.hello[0], 5);
    assert_int_equal(seen.hello[1], 1);
    way_connected(&w, &kind, 0);
    assert_true(way_try(&w, &kind, &to, &user, 2000));
    assert_int_equal(seen.connects, 1);
    way_drop(&w);
    assert_int_equal(seen.destroyed, 1);
    assert_null(w.ep);
    way_drop(&w); /* of a way that is down: nothing */
    assert_int_equal(seen.destroyed, 1);
}

static void test_way_is_tried_again_later_each_time(void **state)
{
    (void)state;
    static const uint64_t due[] = {100, 110, 130, 170, 210, 250}; /* after 10, 20, then 40 each time */
    struct way w;
    way_init(&w, &kind, way_direct(0));
    for (int i = 0; i < 6; i++) {
        if (i > 0)
            assert_false(way_try(&w, &kind, &to, NULL, due[i] - 1));
        assert_int_equal(seen.connects, i);
        assert_true(way_try(&w, &kind, &to, NULL, due[i]));
        assert_int_equal(seen.hello[1], i + 1); /* no two attempts have the same number */
        way_drop(&w);
    }
}

static void test_way_that_was_up_has_short_pauses_again(void **state)
{
    (void)state;
    struct way w;
    way_init(&w, &kind, way_direct(0));
    for (uint64_t now = 0; now < 100; now += 20) {
        (void)way_try(&w, &kind, &to, NULL, now);
        way_drop(&w);
    }
    assert_true(way_try(&w, &kind, &to, NULL, 1000));
    way_connected(&w, &kind, 0);
    way_drop(&w);
    int before = seen.connects;
    assert_true(way_try(&w, &kind, &to, NULL, 1040)); /* the pause that was set when it was begun */
    assert_int_equal(seen.connects, before + 1);
    way_drop(&w);
    assert_false(way_try(&w, &kind, &to, NULL, 1049)); /* and the pauses are short again */
    assert_true(way_try(&w, &kind, &to, NULL, 1050));
}

static void test_way_that_cannot_be_begun(void **state)
{
    (void)state;
    struct way w;
    way_init(&w, &kind, way_direct(0));
    seen.status = KEEL_ERR_NOMEM;
    assert_false(way_try(&w, &kind, &to, NULL, 0));
    assert_int_equal(w.state, WAY_DOWN);
    assert_null(w.ep);
    assert_false(way_try(&w, &kind, &to, NULL, 9));
    assert_int_equal(seen.connects, 1);
    assert_int_equal(w.retry_at, 10);
    seen.status = KEEL_OK;
    assert_true(way_try(&w, &kind, &to, NULL, 10));
}

/* ---- what it says ---- */

static char said[1024];

static void keep_line(void *user, const char *line, size_t len)
{
    (void)user;
    snprintf(said, sizeof said, "%.*s", (int)len, line);
}

static void expect_said(const char *a, const char *b)
{
    if (a)
        assert_true(strstr(said, a) && strstr(said, b));
    else
        assert_string_equal(said, "");
    said[0] = '\0';
}

/* An attempt that fails with this error. */
static void attempt_fails(struct way *w, const struct tp_addrs *at, uint64_t now, int error)
{
    w->retry_at = now;
    assert_true(way_try(w, &kind, at, NULL, now));
    ep.error = error;
    way_drop(w);
}

static void test_way_that_fails_for_long_is_told_once_and_taken_back(void **state)
{
    (void)state;
    const uint64_t s = KEEL_NS_PER_S;
    struct way w;
    struct tp_addrs at = {.n = 1, .of = {{.len = sizeof(struct sockaddr_in)}}};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0x0a000002)};
    memcpy(at.of[0].bytes, &in, sizeof in);
    log_to(keep_line, NULL);
    way_init(&w, &kind, way_direct(5));
    for (uint64_t t = 1; t < 4; t++)
        attempt_fails(&w, &at, t * s, EHOSTUNREACH);
    expect_said(NULL, NULL); /* three seconds have not passed */
    attempt_fails(&w, &at, 4 * s, EHOSTUNREACH);
    expect_said("no connection to node 5 (10.0.0.2:7) for 3 s: No route to host", "");
    for (uint64_t t = 5; t < 34; t++)
        attempt_fails(&w, &at, t * s, ENETUNREACH);
    expect_said(NULL, NULL);
    attempt_fails(&w, &at, 34 * s, ENETUNREACH);
    expect_said("for 33 s: Network is unreachable", "node 5");
    attempt_fails(&w, &at, 93 * s, ENETUNREACH);
    expect_said(NULL, NULL); /* twice as long */
    w.retry_at = 0;
    assert_true(way_try(&w, &kind, &at, NULL, 93 * s));
    way_connected(&w, &kind, 95 * s);
    expect_said("the connection to node 5 is there, after 94 s", "");
    way_drop(&w); /* and it begins anew */
    attempt_fails(&w, &at, 100 * s, ECONNREFUSED);
    attempt_fails(&w, &at, 102 * s, ECONNREFUSED);
    w.retry_at = 0;
    assert_true(way_try(&w, &kind, &at, NULL, 102 * s));
    way_connected(&w, &kind, 102 * s);
    expect_said(NULL, NULL);
    way_drop(&w);
    log_to(NULL, NULL);
}

/* The process that was there has gone elsewhere as another one, which nobody has tried to reach for long. */
static void test_way_to_another_process_has_not_failed(void **state)
{
    (void)state;
    struct way w;
    const uint64_t s = KEEL_NS_PER_S;
    struct tp_addrs at = {.n = 1};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4711)};
    memcpy(at.of[0].bytes, &in, sizeof in);
    at.of[0].len = sizeof in;
    log_to(keep_line, NULL);
    way_init(&w, &kind, way_direct(5));
    attempt_fails(&w, &at, 1 * s, ECONNREFUSED);
    attempt_fails(&w, &at, 2 * s, ECONNREFUSED);
    assert_true(way_try(&w, &kind, &at, NULL, 3 * s));
    way_anew(&w, &kind);
    assert_int_equal(seen.destroyed, 2); /* not the one that is under way */
    assert_null(w.ep);
    expect_said(NULL, NULL);
    attempt_fails(&w, &at, 3 * s + 1, ECONNREFUSED); /* at once, and as the fourth */
    assert_int_equal(seen.hello[1], 4);
    attempt_fails(&w, &at, 5 * s, ECONNREFUSED);
    expect_said(NULL, NULL);
    attempt_fails(&w, &at, 7 * s, ECONNREFUSED);
    expect_said("for 3 s", "");
    log_to(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_way_is_made_once, setup),
        cmocka_unit_test_setup(test_way_is_tried_again_later_each_time, setup),
        cmocka_unit_test_setup(test_way_that_was_up_has_short_pauses_again, setup),
        cmocka_unit_test_setup(test_way_that_cannot_be_begun, setup),
        cmocka_unit_test_setup(test_way_to_another_process_has_not_failed, setup),
        cmocka_unit_test_setup(test_way_that_fails_for_long_is_told_once_and_taken_back, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
