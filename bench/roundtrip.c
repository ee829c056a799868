/* A message of plain TCP there and back, between two processes on loopback that look for it all the time: what a
 * barrier of two nodes is measured by. The lines it reads and writes are those of bench/collectives.c;
 * bench/collectives.py starts it beside the others. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rawlib.h"

enum { BYTES_MAX = 65536, TIMES_MAX = 20000 };

static char data[BYTES_MAX];
static double taken[TIMES_MAX];

static bool send_all(int fd, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, data, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        sent += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* False: the other side has gone. */
static bool receive_all(int fd, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = recv(fd, data, len - got, MSG_DONTWAIT);
        if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Two ends of one connection; false: there is none. */
static bool connected(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = listener >= 0 && !bind(listener, (struct sockaddr *)&at, sizeof at) && !listen(listener, 1) &&
                !getsockname(listener, (struct sockaddr *)&at, &len);
    ends[0] = good ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    good = ends[0] >= 0 && !connect(ends[0], (struct sockaddr *)&at, sizeof at);
    ends[1] = good ? accept(listener, NULL, NULL) : -1;
    for (int i = 0; i < 2 && ends[1] >= 0; i++)
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (listener >= 0)
        close(listener);
    return ends[1] >= 0;
}

/* The other process: sends back what comes, a length before each series. */
static void answer(int fd)
{
    for (;;) {
        uint32_t series[2];
        if (recv(fd, series, sizeof series, MSG_WAITALL) != sizeof series)
            return;
        for (uint32_t i = 0; i < series[1]; i++)
            if (!receive_all(fd, series[0]) || !send_all(fd, series[0]))
                return;
    }
}

static bool measure(int fd, const char *name, size_t bytes, int times)
{
    uint32_t series[2] = {(uint32_t)bytes, (uint32_t)(times + times / 10)};
    if (send(fd, series, sizeof series, MSG_NOSIGNAL) != sizeof series)
        return false;
    for (int i = -times / 10; i < times; i++) {
        double start = raw_now_us();
        if (!send_all(fd, bytes) || !receive_all(fd, bytes))
            return false;
        if (i >= 0)
            taken[i] = raw_now_us() - start;
    }
    double least = taken[0];
    for (int i = 1; i < times; i++)
        least = taken[i] < least ? taken[i] : least;
    printf("result %s %zu %.2f %.2f\n", name, bytes, raw_median(taken, times), least);
    fflush(stdout);
    return true;
}

int main(void)
{
    int ends[2];
    if (!connected(ends)) {
        perror("a connection over loopback");
        return 1;
    }
    raw_unpaced();
    pid_t other = fork();
    if (!other) {
        close(ends[0]);
        answer(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (other < 0) {
        perror("a second process");
        return 1;
    }
    printf("process %d\nprocess %d\n", (int)getpid(), (int)other);
    fflush(stdout);
    char line[100], name[20];
    size_t bytes;
    int times;
    bool good = true;
    while (good && fgets(line, sizeof line, stdin) && sscanf(line, "%19s %zu %d", name, &bytes, &times) == 3)
        good = bytes && bytes <= BYTES_MAX && times > 0 && times <= TIMES_MAX && measure(ends[0], name, bytes, times);
    close(ends[0]);
    waitpid(other, NULL, 0);
    return good ? 0 : 1;
}
