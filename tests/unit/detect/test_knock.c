/* Knocks at a listener of this machine: where they come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "detect/helper_internal.h"

static void set_addr(struct tp_addr *a, const char *host, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
    memcpy(a->bytes, &in, sizeof in);
    a->len = sizeof in;
}

static int listener(uint16_t *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    *port = ntohs(in.sin_port);
    return fd;
}

static struct helper *helper_at(const char *host)
{
    struct helper *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->peers = calloc(1, sizeof *h->peers);
    assert_non_null(h->peers);
    h->peers[0].knock_fd = -1;
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    assert_true(h->epoll_fd >= 0);
    h->addrs.n = h->peers[0].addrs.n = 1;
    set_addr(&h->addrs.of[0], host, 4711); /* where it listens: no knock has this port */
    return h;
}

static void helper_free(struct helper *h)
{
    knock_end(h, 0);
    close(h->epoll_fd);
    free(h->peers);
    free(h);
}

static void test_knock_comes_from_the_address_of_the_node(void **state)
{
    (void)state;
    struct helper *h = helper_at("127.0.0.77");
    struct sockaddr_in in = {0};
    socklen_t len = sizeof in;
    uint16_t port;
    int fd = listener(&port);
    set_addr(&h->peers[0].addrs.of[0], "127.0.0.1", port);
    knock_start(h, 0);
    assert_int_equal(h->n_knocks, 1);
    int from = accept(fd, (struct sockaddr *)&in, &len);
    assert_true(from >= 0);
    assert_int_equal(ntohl(in.sin_addr.s_addr), INADDR_LOOPBACK + 76);
    assert_int_not_equal(ntohs(in.sin_port), 4711);
    close(from);
    close(fd);
    helper_free(h);
}

/* It says nothing of the other node. */
static void test_knock_without_its_own_address_is_none(void **state)
{
    (void)state;
    struct helper *h = helper_at("192.0.2.1"); /* of no machine */
    uint16_t port;
    int fd = listener(&port);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    set_addr(&h->peers[0].addrs.of[0], "127.0.0.1", port);
    knock_start(h, 0);
    assert_int_equal(h->n_knocks, 0);
    assert_int_equal(h->peers[0].knock_fd, -1);
    assert_int_equal(poll(&ready, 1, 0), 0);
    close(fd);
    helper_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_knock_comes_from_the_address_of_the_node),
        cmocka_unit_test(test_knock_without_its_own_address_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
