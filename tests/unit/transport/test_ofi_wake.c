/* The provider wakes a sleeper for each completion by a byte through a pair of sockets. Who looks, and arms before
 * it sleeps, needs none. */
#include "tests/unit/transport/tp_peer.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

enum { MESSAGES = 20 };

/* A descriptor that is one of a pair of sockets without a name. */
static bool is_of_a_pair(int fd)
{
    int domain = 0;
    socklen_t len = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

/* Ends of such pairs that some epoll set of this process holds. */
static int watched_pairs(void)
{
    DIR *dir = opendir("/proc/self/fdinfo");
    struct dirent *entry;
    int n = 0;
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char path[300], line[256];
        int fd;
        snprintf(path, sizeof path, "/proc/self/fdinfo/%s", entry->d_name);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
            n += sscanf(line, "tfd: %d", &fd) == 1 && is_of_a_pair(fd);
        if (f)
            fclose(f);
    }
    closedir(dir);
    return n;
}

static void test_ofi_completions_wake_nobody_who_looks(void **state)
{
    (void)state;
    struct world world = {0};
    struct peer a, b;
    struct tp_ep *a_ep, *b_ep;
    int before = watched_pairs();
    peer_open(&world, &a, &tp_ofi, "127.0.0.1", true);
    peer_open(&world, &b, &tp_ofi, "127.0.0.1", true);
    assert_int_equal(watched_pairs() - before, 2); /* those of the event queues only */
    world_connect(&world, &a, &b, &a_ep, &b_ep);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct tp_op op = {0};
        assert_int_equal(tp_send(a_ep, &i, sizeof i, NULL, 0, &op), KEEL_OK);
        record_free(world_await(&world, &b, TP_RECV, b_ep));
        record_free(world_await(&world, &a, TP_DONE, a_ep));
    }
    assert_int_equal(watched_pairs() - before, 2);
    peer_close(&world, &a);
    peer_close(&world, &b);
    assert_int_equal(watched_pairs(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ofi_completions_wake_nobody_who_looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
