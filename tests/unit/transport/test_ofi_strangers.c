/* Strangers at the provider's listener: what they do not say, and a transport that closes while they knock: the end of
 * its connections needs steps of the provider, and these must not meet a handshake whose listener is gone. */
#include "tests/unit/transport/tp_peer.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { KNOCKERS = 4, CLOSES = 100, SIZE = 1u << 20, CONTROL_CONNREQ = 0, CONTROL_VERSION = 3 };

struct street {
    _Atomic uint32_t port; /* network order; 0: nobody at home. Written by the test */
    atomic_bool over;      /* written by the test */
};

/* The provider's own first message, as long as Keel's. */
struct connreq {
    uint8_t version, type;
    uint16_t size;
    uint32_t number;
    uint64_t ids[2], endian;
    uint8_t data[256];
};

/* Connect, wait a little, say hello. */
static void *knock(void *arg)
{
    struct street *street = arg;
    const struct connreq hello = {.version = CONTROL_VERSION, .type = CONTROL_CONNREQ, .size = htons(256), .endian = 1};
    unsigned int pause_us = 0;
    while (!atomic_load(&street->over)) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = (in_port_t)atomic_load(&street->port)};
        int fd = to.sin_port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0) {
            usleep(50);
            continue;
        }
        if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
            usleep(pause_us++ % 100);
            (void)!send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
        }
        close(fd);
    }
    return NULL;
}

static void close_with_a_read_in_flight(struct street *street, uint8_t *memory)
{
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
    struct tp_op op = {0};
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", true);
    peer_open(&world, &b, &tp_ofi, "127.0.0.1", true);
    world_connect(&world, &a, &b, &a_ep, &b_ep);
    assert_int_equal(tp_ofi.reg(b.tp, memory, SIZE, 1), KEEL_OK);
    assert_int_equal(tp_read(a_ep, memory + SIZE, SIZE, 1, 0, &op), KEEL_OK);
    struct sockaddr_in addr;
    memcpy(&addr, a.addr.bytes, sizeof addr);
    atomic_store(&street->port, addr.sin_port);
    for (int i = 0; i < 20; i++)
        peer_step(&a);
    peer_close(&world, &a);
    atomic_store(&street->port, 0);
    peer_close(&world, &b);
}

static void test_ofi_close_while_others_connect_ends_a_read_in_flight(void **state)
{
    (void)state;
    struct street street = {0};
    pthread_t threads[KNOCKERS];
    uint8_t *memory = calloc(2, SIZE);
    assert_non_null(memory);
    for (int i = 0; i < KNOCKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, knock, &street), 0);
    for (int i = 0; i < CLOSES; i++)
        close_with_a_read_in_flight(&street, memory);
    atomic_store(&street.over, true);
    for (int i = 0; i < KNOCKERS; i++)
        pthread_join(threads[i], NULL);
    free(memory);
}

/* The provider's first message without what it announces: the same number of bytes less than a whole one. */
static int half_a_hello(const struct peer *to, size_t len)
{
    const struct connreq hello = {.version = CONTROL_VERSION, .type = CONTROL_CONNREQ, .size = htons(256), .endian = 1};
    struct sockaddr_in addr;
    memcpy(&addr, to->addr.bytes, sizeof addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(send(fd, &hello, len, MSG_NOSIGNAL), len);
    return fd;
}

static void test_ofi_half_a_hello_makes_nobody_wait(void **state)
{
    (void)state;
    enum { COUNT = 60, STEPS = 200000, HEADER = sizeof(struct connreq) - 256 };
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
    struct rusage before, after;
    int fds[COUNT];
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", true);
    peer_open(&world, &b, &tp_ofi, "127.0.0.1", true);
    for (int i = 0; i < COUNT; i++)
        fds[i] = half_a_hello(&a, HEADER + (i % 2 ? (size_t)i * 4 : 0));
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < STEPS; i++)
        peer_step(&a);
    getrusage(RUSAGE_THREAD, &after);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, COUNT / 4); /* each wait is one */
    world_connect(&world, &b, &a, &b_ep, &a_ep);
    peer_close(&world, &b);
    peer_close(&world, &a);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ofi_half_a_hello_makes_nobody_wait),
        cmocka_unit_test(test_ofi_close_while_others_connect_ends_a_read_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
