/* A connection's handshake over TCP, each end with a loop of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "pm/wire/conn.h"

enum { JOB = 7, PATIENCE_MS = 300 };

static const uint8_t secret[SESSION_SECRET] = {1};
static const struct session_key key = {.secret = secret};
static uv_loop_t there, here; /* of the client, of the server */
static uv_tcp_t listener;
static struct pm_conn *server;
static int opened, lost, frames;
static char why_lost[160];

static void on_open(struct pm_conn *c)
{
    opened += c == server;
}

static void on_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    (void)type;
    (void)body;
    (void)len;
    frames += c == server && lost == 0;
}

static void on_lost(struct pm_conn *c, const char *why)
{
    if (c != server)
        return;
    lost++;
    server = NULL;
    strncpy(why_lost, why, sizeof why_lost - 1);
}

static const struct conn_events events = {on_open, on_frame, on_lost};

static void on_connection(uv_stream_t *stream, int status)
{
    assert_int_equal(status, 0);
    server = conn_accept(stream, JOB, &key, PATIENCE_MS, &events, NULL);
    assert_non_null(server);
}

/* Opens the listener; its port. */
static int set_up(void)
{
    struct sockaddr_in a;
    int len = sizeof a;
    opened = lost = frames = 0;
    server = NULL;
    assert_int_equal(uv_loop_init(&there) + uv_loop_init(&here), 0);
    uv_ip4_addr("127.0.0.1", 0, &a);
    uv_tcp_init(&here, &listener);
    assert_int_equal(uv_tcp_bind(&listener, (struct sockaddr *)&a, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&listener, 8, on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&listener, (struct sockaddr *)&a, &len), 0);
    return ntohs(a.sin_port);
}

static void turn_both(void)
{
    uv_run(&there, UV_RUN_NOWAIT);
    uv_run(&here, UV_RUN_NOWAIT);
}

static void tear_down(struct pm_conn *client)
{
    conn_close(client);
    conn_close(server);
    uv_close((uv_handle_t *)&listener, NULL);
    uv_run(&there, UV_RUN_DEFAULT);
    uv_run(&here, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&there) | uv_loop_close(&here), 0);
}

/* The client has proved itself; the server, which had no processor for longer than its patience, finds that in its
 * socket. */
static void test_conn_proof_that_lies_there_is_read_before_it_is_too_late(void **state)
{
    (void)state;
    struct pm_conn *client = conn_connect(&there, NULL, "127.0.0.1", set_up(), JOB, &key, 60000, &events, NULL);
    while (!server || server->session.state == SESSION_GREETING)
        turn_both();
    while (!client->open)
        uv_run(&there, UV_RUN_ONCE);
    assert_int_equal(opened, 0);
    usleep(2000 * PATIENCE_MS);
    while (!opened && !lost)
        uv_run(&here, UV_RUN_ONCE);
    assert_int_equal(opened, 1);
    assert_int_equal(lost, 0);
    tear_down(client);
}

static void test_conn_without_a_proof_is_dropped(void **state)
{
    (void)state;
    struct pm_conn *client = conn_connect(&there, NULL, "127.0.0.1", set_up(), JOB, &key, 60000, &events, NULL);
    while (!server)
        turn_both();
    while (!lost) /* while the client's loop stands still */
        uv_run(&here, UV_RUN_ONCE);
    assert_string_equal(why_lost, "no proof of membership in time");
    tear_down(client);
}

/* It has ended behind its last words, with what we had said unread: we try to send it more before we look. */
static void test_conn_last_words_are_heard_though_nothing_can_be_sent(void **state)
{
    (void)state;
    struct pm_conn *client = conn_connect(&there, NULL, "127.0.0.1", set_up(), JOB, &key, 60000, &events, NULL);
    while (!opened || !client->open)
        turn_both();
    conn_send(server, 1, "unread", 6);
    for (int i = 0; i < 3; i++)
        conn_send(client, 2, "last", 4);
    conn_close(client);
    uv_run(&there, UV_RUN_DEFAULT);
    while (conn_queued(server) == 0 && !lost)
        conn_send(server, 1, "more", 4); /* the first is answered by its kernel, a later one fails */
    while (!lost)
        uv_run(&here, UV_RUN_ONCE);
    assert_int_equal(frames, 3);
    tear_down(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conn_proof_that_lies_there_is_read_before_it_is_too_late),
        cmocka_unit_test(test_conn_without_a_proof_is_dropped),
        cmocka_unit_test(test_conn_last_words_are_heard_though_nothing_can_be_sent),
    };
    return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
