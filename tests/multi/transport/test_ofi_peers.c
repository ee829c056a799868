/* Connections between processes: a peer that is killed, frozen, or not one of ours at all. */
#include "tests/unit/transport/tp_peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/rng.h"

enum { KEY = 5, MEMORY = 16 << 20 };

struct child {
    pid_t pid;
    struct tp_addr addr;
};

static void serve(int out)
{
    struct tp *tp;
    struct tp_addr addr;
    struct tp_event events[8];
    struct tp_ep *ep;
    uint8_t *memory = calloc(1, MEMORY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!memory || tp_ofi.open(&(struct tp_config){.host = "127.0.0.3", .provider = "tcp"}, &tp) != KEEL_OK ||
        tp_ofi.listen(tp, &addr) != KEEL_OK || tp_ofi.reg(tp, memory, MEMORY, KEY) != KEEL_OK ||
        write(out, &addr, sizeof(addr)) != sizeof(addr))
        _exit(1);
    for (;;) {
        int n = tp_poll(tp, events, 8);
        for (int i = 0; i < n; i++) {
            if (events[i].type == TP_CONNREQ)
                (void)tp_ofi.accept(tp, events[i].req, NULL, &ep);
            else if (events[i].type == TP_RECV)
                (void)tp_send(events[i].ep, events[i].data, events[i].len, NULL, 0, NULL);
            else if (events[i].type == TP_CLOSED)
                tp_ep_destroy(events[i].ep);
        }
        if (n == 0 && tp_ofi.arm(tp))
            (void)poll(&(struct pollfd){.fd = tp_ofi.wait_fd(tp), .events = POLLIN}, 1, 1000);
    }
}

static struct child start_child(void)
{
    struct child child;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0)
        serve(pipe_fds[1]);
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &child.addr, sizeof(child.addr)), sizeof(child.addr));
    close(pipe_fds[0]);
    return child;
}

static void end_child(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
}

static struct tp_ep *connect_to(struct world *world, struct peer *a, const struct tp_addr *addr)
{
    struct tp_ep *ep;
    assert_int_equal(tp_ofi.connect(a->tp, addr, "hi", 2, NULL, &ep), KEEL_OK);
    assert_int_equal(world_await_status(world, a, TP_CONNECTED, ep), KEEL_OK);
    return ep;
}

static int open_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* ---- death ---- */

static void test_ofi_peer_killed_with_ops_in_flight_ends_each_once_and_then_refuses(void **state)
{
    (void)state;
    enum { OPS = 60 };
    uint8_t *local = calloc(1, MEMORY);
    assert_non_null(local);
    for (int round = 0; round < 5; round++) {
        struct world world = {0};
        struct peer a;
        struct tp_op ops[OPS] = {{{0}, 0, 0, 0}};
        int told[OPS] = {0};
        struct child child = start_child();
        peer_open(&world, &a, &tp_ofi, "127.0.0.1", false);
        struct tp_ep *ep = connect_to(&world, &a, &child.addr);
        for (int i = 0; i < OPS; i++)
            assert_int_equal(i % 2 ? tp_write(ep, local, MEMORY / 8, KEY, 0, &ops[i])
                                   : tp_read(ep, local, MEMORY / 8, KEY, 0, &ops[i]),
                             KEEL_OK);
        for (int i = 0; i < 100 * round; i++)
            peer_step(&a);
        kill(child.pid, SIGKILL);
        for (;;) {
            while (!a.first)
                peer_step(&a);
            struct peer_record *record = world_await(&world, &a, a.first->event.type, NULL);
            bool closed = record->event.type == TP_CLOSED;
            if (!closed)
                told[record->event.op - ops]++;
            record_free(record);
            if (closed)
                break;
        }
        for (int i = 0; i < OPS; i++)
            assert_int_equal(told[i], 1);
        waitpid(child.pid, NULL, 0);
        tp_ep_destroy(ep);
        assert_int_equal(tp_ofi.connect(a.tp, &child.addr, "hi", 2, NULL, &ep), KEEL_OK);
        assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_ERR_NODE_DEAD);
        peer_close(&world, &a);
    }
    free(local);
}

static void test_ofi_frozen_peer_says_nothing_until_disconnect_ends_it_at_once(void **state)
{
    (void)state;
    enum { OPS = 8 };
    struct world world = {0};
    struct peer a;
    struct tp_op ops[OPS] = {{{0}, 0, 0, 0}};
    uint8_t *local = calloc(1, MEMORY);
    assert_non_null(local);
    struct child child = start_child(), other = start_child();
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", false);
    struct tp_ep *ep = connect_to(&world, &a, &child.addr), *other_ep = connect_to(&world, &a, &other.addr);
    kill(child.pid, SIGSTOP);
    waitpid(child.pid, NULL, WUNTRACED);
    for (int i = 0; i < OPS; i++)
        assert_int_equal(i % 2 ? tp_write(ep, local, MEMORY, KEY, 0, &ops[i])
                               : tp_read(ep, local, MEMORY, KEY, 0, &ops[i]),
                         KEEL_OK);
    world_expect_none(&world, &a, TP_DONE, 300);
    world_expect_none(&world, &a, TP_CLOSED, 1);
    uint64_t start = clock_now_ns();
    tp_disconnect(ep);
    assert_true(clock_now_ns() - start < 500 * KEEL_NS_PER_MS);
    memset(local, 1, MEMORY); /* ours again */
    for (int i = 0; i < OPS; i++)
        assert_int_equal(world_await_status(&world, &a, TP_DONE, ep), KEEL_ERR_LINK);
    assert_int_equal(world_await_status(&world, &a, TP_CLOSED, ep), KEEL_ERR_LINK);
    assert_int_equal(tp_send(other_ep, "still there", 11, NULL, 0, NULL), KEEL_OK);
    record_free(world_await(&world, &a, TP_RECV, other_ep));
    kill(child.pid, SIGCONT);
    peer_close(&world, &a);
    end_child(&child);
    end_child(&other);
    free(local);
}

/* ---- strangers ---- */

static int stranger(const struct tp_addr *addr)
{
    struct sockaddr_in to;
    memcpy(&to, addr->bytes, sizeof(to));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void expect_served(struct world *world, struct peer *a, const struct tp_addr *addr)
{
    struct tp_ep *ep = connect_to(world, a, addr);
    assert_int_equal(tp_send(ep, "hello", 5, NULL, 0, NULL), KEEL_OK);
    record_free(world_await(world, a, TP_RECV, ep));
    tp_disconnect(ep);
    record_free(world_await(world, a, TP_CLOSED, ep));
    tp_ep_destroy(ep);
}

/* The listener is in this process, so that its descriptors can be counted and its sleep watched. */
static void listener_open(struct world *world, struct peer *b)
{
    peer_open(world, b, &tp_ofi, "127.0.0.2", true);
}

static void settle(struct world *world)
{
    for (int i = 0; i < 3000; i++)
        world_step(world);
}

/* Polls that read connection events, as those of a sleeper that was woken do. */
static void look(struct peer *b)
{
    for (int i = 0; i < 6; i++) {
        (void)tp_ofi.arm(b->tp);
        peer_step(b);
    }
}

static void expect_sleep(struct peer *b)
{
    int tries = 0;
    while (!tp_ofi.arm(b->tp) && tries++ < 5000)
        peer_step(b);
    assert_true(tries < 5000);
    struct pollfd fd = {.fd = tp_ofi.wait_fd(b->tp), .events = POLLIN};
    int n = poll(&fd, 1, 50);
    if (n == 1) { /* one wake-up may be left over, not more */
        tries = 0;
        while (!tp_ofi.arm(b->tp) && tries++ < 5000)
            peer_step(b);
        n = poll(&fd, 1, 50);
    }
    assert_int_equal(n, 0);
}

/* A header of the provider's handshake that promises a body of 200 bytes and does not bring it. */
static size_t header_without_body(uint8_t *bytes)
{
    memset(bytes, 0, 24 + 8);
    bytes[0] = 3; /* version */
    bytes[1] = 0; /* connection request */
    bytes[2] = 0;
    bytes[3] = 200; /* body, network order */
    return 32;
}

static void test_ofi_garbage_at_the_listener_costs_no_descriptor_no_spin_no_stall(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer b;
    struct rng rng;
    rng_seed(&rng, 5);
    listener_open(&world, &b);
    settle(&world);
    int before = open_fds();
    for (int i = 0; i < 300; i++) {
        uint8_t bytes[400];
        int fd = stranger(&b.addr);
        size_t len = i % 4 == 0 ? 0 : i % 4 == 1 ? header_without_body(bytes) : 1 + rng_below(&rng, sizeof(bytes));
        if (i % 4 >= 2)
            for (size_t k = 0; k < len; k++)
                bytes[k] = (uint8_t)rng_u64(&rng);
        if (len)
            assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
        if (i % 3 == 0) { /* leaves with a reset */
            struct linger linger = {.l_onoff = 1};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        }
        uint64_t start = clock_now_ns();
        look(&b);
        assert_true(clock_now_ns() - start < 2000 * KEEL_NS_PER_MS);
        close(fd);
        look(&b);
    }
    settle(&world);
    assert_int_equal(open_fds(), before);
    expect_sleep(&b);
    assert_null(b.first);
    peer_close(&world, &b);
}

static void test_ofi_silent_stranger_is_dropped_after_a_while(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    listener_open(&world, &b);
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", false);
    settle(&world);
    int before = open_fds();
    int fd = stranger(&b.addr);
    uint64_t deadline = clock_now_ns() + 30 * KEEL_NS_PER_S;
    struct pollfd closed = {.fd = fd, .events = POLLIN};
    while (poll(&closed, 1, 5) == 0 && clock_now_ns() < deadline)
        peer_step(&b);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    close(fd);
    settle(&world);
    assert_int_equal(open_fds(), before);
    peer_close(&world, &a);
    peer_close(&world, &b);
}

static void test_ofi_strangers_do_not_disturb_a_served_process(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a;
    struct child child = start_child();
    int fds[20];
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", false);
    for (int i = 0; i < 20; i++) {
        uint8_t bytes[64];
        fds[i] = stranger(&child.addr);
        size_t len = i % 2 ? header_without_body(bytes) : 3;
        assert_int_equal(send(fds[i], bytes, len, MSG_NOSIGNAL), len);
        expect_served(&world, &a, &child.addr);
    }
    for (int i = 0; i < 20; i++)
        close(fds[i]);
    expect_served(&world, &a, &child.addr);
    assert_int_equal(kill(child.pid, 0), 0);
    peer_close(&world, &a);
    end_child(&child);
}

/* ---- addresses and leaks ---- */

static void test_ofi_listens_on_its_host_only_and_connects_from_it(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer b;
    listener_open(&world, &b);
    struct sockaddr_in at;
    memcpy(&at, b.addr.bytes, sizeof(at));
    assert_int_equal(at.sin_addr.s_addr, inet_addr("127.0.0.2"));
    at.sin_addr.s_addr = inet_addr("127.0.0.1");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), -1);
    close(fd);

    struct sockaddr_in plain = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.0.1")}, from = {0};
    socklen_t len = sizeof(plain);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&plain, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&plain, &len), 0);
    struct tp_addr to = {.len = sizeof(plain)};
    memcpy(to.bytes, &plain, sizeof(plain));
    struct tp_ep *ep = NULL;
    assert_int_equal(tp_ofi.connect(b.tp, &to, NULL, 0, NULL, &ep), KEEL_OK);
    int accepted = accept(listener, (struct sockaddr *)&from, &len);
    assert_true(accepted >= 0);
    assert_int_equal(from.sin_addr.s_addr, inet_addr("127.0.0.2"));
    close(accepted);
    close(listener);
    assert_int_equal(world_await_status(&world, &b, TP_CLOSED, ep), KEEL_ERR_LINK);
    peer_close(&world, &b);
}

static void test_ofi_thousand_connections_leak_no_descriptor(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    listener_open(&world, &b);
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", false);
    settle(&world);
    int before = open_fds();
    for (int i = 0; i < 1000; i++) {
        struct tp_ep *a_ep, *b_ep;
        world_connect(&world, &a, &b, &a_ep, &b_ep);
        struct tp_ep *first = i % 2 ? a_ep : b_ep, *second = i % 2 ? b_ep : a_ep;
        struct peer *other = i % 2 ? &b : &a;
        if (i % 3)
            tp_ep_destroy(first);
        else
            tp_disconnect(first);
        record_free(world_await(&world, other, TP_CLOSED, second));
        tp_ep_destroy(second);
        if (i % 3 == 0) {
            record_free(world_await(&world, i % 2 ? &a : &b, TP_CLOSED, first));
            tp_ep_destroy(first);
        }
    }
    settle(&world);
    assert_int_equal(open_fds(), before);
    peer_close(&world, &a);
    peer_close(&world, &b);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ofi_peer_killed_with_ops_in_flight_ends_each_once_and_then_refuses),
        cmocka_unit_test(test_ofi_frozen_peer_says_nothing_until_disconnect_ends_it_at_once),
        cmocka_unit_test(test_ofi_garbage_at_the_listener_costs_no_descriptor_no_spin_no_stall),
        cmocka_unit_test(test_ofi_silent_stranger_is_dropped_after_a_while),
        cmocka_unit_test(test_ofi_strangers_do_not_disturb_a_served_process),
        cmocka_unit_test(test_ofi_listens_on_its_host_only_and_connects_from_it),
        cmocka_unit_test(test_ofi_thousand_connections_leak_no_descriptor),
    };
    return cmocka_run_group_tests_name("ofi peers", tests, NULL, NULL);
}
