/* Connections over sockets without keys on top: what a poll delivers. The rest of their contract: test_transport,
 * with keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/net/stream/stream.h"
#include "tp_peer.h"

enum { MESSAGES = 64, SIZE = 40 };

static void expect(struct world *w, struct peer *at, struct tp_ep *ep, uint64_t seed)
{
    struct peer_record *r = world_await(w, at, TP_RECV, ep);
    assert_int_equal(r->event.len, SIZE);
    assert_true(is_pattern(r->event.data, SIZE, seed));
    record_free(r);
}

/* Only before the first message may there be something to wait for: the keys of the others come with it. */
static void test_stream_connector_gets_many_messages_of_one_poll(void **state)
{
    (void)state;
    struct world w = {0};
    struct peer a = {0}, b = {0};
    struct tp_ep *a_ep, *b_ep;
    uint8_t bytes[SIZE];
    int polls = 0;
    peer_open(&w, &a, &tp_stream, "127.0.0.1", true);
    peer_open(&w, &b, &tp_stream, "127.0.0.2", true);
    world_connect(&w, &a, &b, &a_ep, &b_ep);
    a.batch = MESSAGES;
    for (uint64_t i = 0; i <= MESSAGES; i++) {
        fill_pattern(bytes, SIZE, i);
        assert_int_equal(tp_send(b_ep, bytes, SIZE, NULL, 0, NULL), KEEL_OK);
        if (i == 0)
            expect(&w, &a, a_ep, i);
    }
    for (int got = 0; got < MESSAGES;) {
        int n = peer_step(&a);
        got += n;
        polls += n > 0;
    }
    assert_in_range(polls, 1, MESSAGES / 2);
    for (uint64_t i = 1; i <= MESSAGES; i++)
        expect(&w, &a, a_ep, i);
    peer_close(&w, &a);
    peer_close(&w, &b);
}

/* A child of a fork has copies of all descriptors: the peer sees the end none the less, and what is given back is
 * not looked at again. */
static void test_stream_end_of_a_connection_that_a_forks_child_holds(void **state)
{
    (void)state;
    struct world w = {0};
    struct peer a = {0}, b = {0};
    struct tp_ep *a_ep, *b_ep;
    peer_open(&w, &a, &tp_stream, "127.0.0.1", true);
    peer_open(&w, &b, &tp_stream, "127.0.0.2", true);
    world_connect(&w, &a, &b, &a_ep, &b_ep);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pause();
        _exit(0);
    }
    tp_ep_destroy(a_ep);
    record_free(world_await(&w, &b, TP_CLOSED, b_ep));
    tp_ep_destroy(b_ep);
    struct pollfd sets[] = {{.fd = a.tp->table->wait_fd(a.tp), .events = POLLIN},
                            {.fd = b.tp->table->wait_fd(b.tp), .events = POLLIN}};
    assert_int_equal(poll(sets, 2, 20), 0);
    peer_close(&w, &a);
    peer_close(&w, &b);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_connector_gets_many_messages_of_one_poll),
        cmocka_unit_test(test_stream_end_of_a_connection_that_a_forks_child_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
