/* Connections of a machine whose TCP paces (bbr) do not: in a network namespace of our own, where the machine's own
 * is another. */
#include "tests/unit/transport/tp_peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/net/stream/stream.h"

enum { SKIPPED = 77 };

static const char control[] = "/proc/sys/net/ipv4/tcp_congestion_control";

static bool is_bbr(int fd)
{
    char name[16] = "";
    socklen_t len = sizeof name;
    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && strncmp(name, "bbr", 3) == 0;
}

/* A socket that connects would be paced. */
static bool machine_paces(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool paces = is_bbr(fd);
    close(fd);
    return paces;
}

static bool lo_up(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    close(fd);
    return up;
}

static bool make_paced(void)
{
    if (machine_paces())
        return true;
    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return false;
    int fd = open(control, O_WRONLY | O_CLOEXEC);
    bool set = fd >= 0 && write(fd, "bbr", 3) == 3;
    if (fd >= 0)
        close(fd);
    return set && lo_up() && machine_paces();
}

struct sockets {
    int tcp, paced;
};

static struct sockets count(void)
{
    struct sockets n = {0};
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        int fd = (int)strtol(entry->d_name, NULL, 10), protocol = 0;
        socklen_t len = sizeof protocol;
        bool tcp = getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 && protocol == IPPROTO_TCP;
        n.tcp += tcp;
        n.paced += tcp && is_bbr(fd);
    }
    closedir(dir);
    return n;
}

static void connection_is_not_paced(const struct tp_table *table)
{
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
    int before = count().tcp;
    peer_open(&world, &a, table, "127.0.0.1", false);
    peer_open(&world, &b, table, "127.0.0.1", true);
    world_connect(&world, &a, &b, &a_ep, &b_ep);
    struct sockets now = count();
    assert_int_equal(now.tcp - before, 3); /* who listens, and both ends */
    assert_int_equal(now.paced, 0);
    peer_close(&world, &a);
    peer_close(&world, &b);
}

static void test_sock_connection_of_the_provider_is_not_paced(void **state)
{
    (void)state;
    connection_is_not_paced(&tp_ofi);
}

static void test_sock_connection_of_our_own_is_not_paced(void **state)
{
    (void)state;
    connection_is_not_paced(&tp_stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sock_connection_of_the_provider_is_not_paced),
                                       cmocka_unit_test(test_sock_connection_of_our_own_is_not_paced)};
    if (!make_paced()) {
        puts("bbr cannot be had here");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
