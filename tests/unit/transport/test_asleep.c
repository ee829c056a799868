/* Nobody sleeps on a transport that has bytes to send and is not told when they can go: one end, a server, arms and
 * then does nothing before its descriptor wakes it; the other takes what comes, over sockets that hold little. */
#include "tests/unit/transport/over_all.h"

#include <dirent.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"

enum {
    ANSWER = 4 * 1024 * 1024,
    MESSAGE = 4096,
    STEP = 37,
    ANSWER_STEP = 3001,
    MOST_MESSAGES = 64,
    PATIENCE_MS = 5000,
    KEY = 7,
    HELD = 16 * 1024
};

struct nap {
    struct pair pair;
    struct peer *taker, *server;
    uint8_t *memory, *copy;
    bool asleep;
};

/* Every TCP socket of this process. */
static void hold_little(void)
{
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        int fd = atoi(entry->d_name), domain = 0, bytes = HELD;
        socklen_t len = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_INET)
            setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
    closedir(dir);
}

static void nap_open(struct nap *n)
{
    *n = (struct nap){.memory = malloc(ANSWER), .copy = calloc(1, ANSWER)};
    assert_true(n->memory && n->copy);
    fill_pattern(n->memory, ANSWER, 1);
    pair_open(&n->pair);
    n->taker = &n->pair.a;
    n->server = &n->pair.b;
    hold_little();
    assert_int_equal(n->server->table->reg(n->server->tp, n->memory, ANSWER, KEY), KEEL_OK);
}

static void nap_close(struct nap *n)
{
    pair_close(&n->pair);
    free(n->memory);
    free(n->copy);
}

static bool is_woken(const struct peer *peer, int ms)
{
    struct pollfd fd = {.fd = peer->table->wait_fd(peer->tp), .events = POLLIN};
    return poll(&fd, 1, ms) == 1;
}

static void server_arms(struct nap *n)
{
    n->asleep = n->server->table->arm(n->server->tp);
}

/* It works only when it was woken. */
static void server_turn(struct nap *n)
{
    if (n->asleep && !is_woken(n->server, 0))
        return;
    peer_step(n->server);
    server_arms(n);
}

static int count_of(const struct peer *peer, enum tp_event_type type)
{
    int count = 0;
    for (const struct peer_record *r = peer->first; r; r = r->next)
        count += r->event.type == type;
    return count;
}

/* Until it sleeps: what comes afterwards wakes it, and it has not looked at it. */
static void server_sleeps(struct nap *n)
{
    uint64_t deadline = clock_now_ns() + PATIENCE_MS * KEEL_NS_PER_MS;
    for (n->asleep = false; !n->asleep || is_woken(n->server, 1); server_turn(n)) {
        peer_step(n->taker);
        assert_true(clock_now_ns() < deadline);
    }
}

static void take(struct nap *n, int messages, int ends, const char *what, int which)
{
    uint64_t deadline = clock_now_ns() + PATIENCE_MS * KEEL_NS_PER_MS;
    while (count_of(n->taker, TP_RECV) < messages || count_of(n->taker, TP_DONE) < ends) {
        if (clock_now_ns() > deadline)
            fail_msg("%s (%d): the server sleeps, and %d messages and %d ends have not come", what, which,
                     messages - count_of(n->taker, TP_RECV), ends - count_of(n->taker, TP_DONE));
        peer_step(n->taker);
        server_turn(n);
    }
}

/* A request that came after the last poll is worked at by arming. */
static void test_asleep_answer_that_arming_begins_comes_whole(void **state)
{
    (void)state;
    struct nap n;
    struct tp_op op = {0};
    nap_open(&n);
    server_sleeps(&n);
    assert_int_equal(tp_read(n.pair.a_ep, n.copy, ANSWER, KEY, 0, &op), KEEL_OK);
    assert_true(is_woken(n.server, PATIENCE_MS));
    server_arms(&n);
    take(&n, 0, 1, "a read", 0);
    assert_true(is_pattern(n.copy, ANSWER, 1));
    nap_close(&n);
}

/* However full the socket is when it is due. */
static void test_asleep_answer_behind_any_number_of_messages_comes(void **state)
{
    static uint8_t bytes[MESSAGE];
    (void)state;
    struct nap n;
    nap_open(&n);
    for (int i = 0; i < MOST_MESSAGES; i++) {
        struct tp_op op = {0};
        size_t len = (size_t)(1 + i * ANSWER_STEP);
        int before = count_of(n.taker, TP_RECV), ends = count_of(n.taker, TP_DONE);
        server_sleeps(&n);
        assert_int_equal(tp_read(n.pair.a_ep, n.copy, len, KEY, 0, &op), KEEL_OK);
        assert_true(is_woken(n.server, PATIENCE_MS));
        for (int j = 0; j < i; j++)
            assert_int_equal(tp_send(n.pair.b_ep, bytes, (size_t)(MESSAGE - i * STEP), NULL, 0, NULL), KEEL_OK);
        server_arms(&n);
        take(&n, before + i, ends + 1, "a read", i);
        assert_true(is_pattern(n.copy, len, 1));
        memset(n.copy, 0, len);
    }
    nap_close(&n);
}

/* Another thread may post while one sleeps. */
static void test_asleep_messages_posted_after_arming_come(void **state)
{
    static uint8_t bytes[TP_BULK_MAX];
    (void)state;
    struct nap n;
    nap_open(&n);
    for (int i = 1; i < 8; i++) {
        int before = count_of(n.taker, TP_RECV);
        server_sleeps(&n);
        for (int j = 0; j < i; j++)
            assert_int_equal(tp_send(n.pair.b_ep, bytes, sizeof bytes, NULL, 0, NULL), KEEL_OK);
        take(&n, before + i, 0, "messages", i);
    }
    nap_close(&n);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asleep_answer_that_arming_begins_comes_whole),
        cmocka_unit_test(test_asleep_answer_behind_any_number_of_messages_comes),
        cmocka_unit_test(test_asleep_messages_posted_after_arming_come),
    };
    return run_over_all(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
}
