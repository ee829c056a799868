/* What a strided put does, by plain sockets: pieces with gaps of their length at the target, taken from memory without
 * gaps, each put answered by a byte. Whole: the same bytes without gaps. Copied: each end copies them once more than
 * the kernel does, as messages do. Scattered: the target lets the kernel store them where they belong, by lists of
 * IOV_MAX places at most, which no copy of anybody's can beat. */
#include "bench/rawlib.h"

#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 128 * 1024 };

struct order {
    enum { PUT, REST, END } what;
    enum raw_way way;
    size_t len, n;
};

struct raw_pieces {
    pid_t pid;
    int fd;
    uint8_t *from, *block;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void give(int fd, const void *from, size_t bytes)
{
    for (const uint8_t *at = from; bytes;) {
        ssize_t n = send(fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

static void take(int fd, void *to, size_t bytes, int flags)
{
    for (uint8_t *at = to; bytes;) {
        ssize_t n = recv(fd, at, bytes, flags);
        if (n == 0)
            _exit(0); /* the other one is gone */
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

static void take_scattered(int fd, uint8_t *to, size_t len, size_t n)
{
    static struct iovec place[IOV_MAX];
    for (size_t done = 0; done < n;) {
        size_t most = least(n - done, IOV_MAX), first = 0;
        for (size_t i = 0; i < most; i++)
            place[i] = (struct iovec){to + 2 * len * (done + i), len};
        while (first < most) {
            struct msghdr m = {.msg_iov = place + first, .msg_iovlen = most - first};
            ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
            if (got == 0)
                _exit(0);
            for (size_t left = got > 0 ? (size_t)got : 0; left;) {
                size_t here = least(left, place[first].iov_len);
                place[first].iov_base = (uint8_t *)place[first].iov_base + here;
                place[first].iov_len -= here;
                left -= here;
                first += place[first].iov_len == 0;
            }
        }
        done += most;
    }
}

static void take_put(int fd, const struct order *o, uint8_t *memory, uint8_t *block)
{
    size_t each = BLOCK / o->len;
    if (o->way == RAW_WHOLE)
        take(fd, memory, o->len * o->n, MSG_DONTWAIT);
    else if (o->way == RAW_SCATTERED)
        take_scattered(fd, memory, o->len, o->n);
    for (size_t i = 0; o->way == RAW_COPIED && i < o->n; i += each) {
        size_t now = least(o->n - i, each);
        take(fd, block, now * o->len, MSG_DONTWAIT);
        for (size_t k = 0; k < now; k++)
            memcpy(memory + 2 * o->len * (i + k), block + k * o->len, o->len);
    }
}

static void serve(int fd, uint8_t *memory, uint8_t *block)
{
    for (struct order o = {.what = REST}; o.what != END;) {
        take(fd, &o, sizeof o, o.what == REST ? 0 : MSG_DONTWAIT);
        if (o.what == PUT)
            take_put(fd, &o, memory, block);
        give(fd, "", 1);
    }
    _exit(0);
}

static bool connected(int fd[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = listener >= 0 && fd[0] >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 &&
                listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
                connect(fd[0], (struct sockaddr *)&at, sizeof at) == 0 &&
                (fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;
    for (int i = 0; good && i < 2; i++)
        good = setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
    if (listener >= 0)
        close(listener);
    raw_unpaced();
    return good;
}

struct raw_pieces *raw_pieces_start(size_t bytes)
{
    static struct raw_pieces only;
    struct raw_pieces *p = &only;
    int fd[2];
    if (!connected(fd) || !(p->from = malloc(bytes)) || !(p->block = malloc(BLOCK)))
        return NULL;
    memset(p->from, 1, bytes);
    memset(p->block, 1, BLOCK);
    p->fd = fd[0];
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fd[0]);
        uint8_t *memory = malloc(2 * bytes);
        if (memory)
            serve(fd[1], memset(memory, 1, 2 * bytes), p->block);
        _exit(1);
    }
    close(fd[1]);
    return p->pid > 0 ? p : NULL;
}

static void give_put(struct raw_pieces *p, const struct order *o)
{
    size_t each = BLOCK / o->len;
    if (o->way != RAW_COPIED)
        give(p->fd, p->from, o->len * o->n);
    for (size_t i = 0; o->way == RAW_COPIED && i < o->n; i += each) {
        size_t now = least(o->n - i, each);
        for (size_t k = 0; k < now; k++)
            memcpy(p->block + k * o->len, p->from + (i + k) * o->len, o->len);
        give(p->fd, p->block, now * o->len);
    }
}

static void ask(struct raw_pieces *p, const struct order *o)
{
    uint8_t answer;
    give(p->fd, o, sizeof *o);
    if (o->what == PUT)
        give_put(p, o);
    take(p->fd, &answer, 1, MSG_DONTWAIT);
}

double raw_pieces_us(struct raw_pieces *p, enum raw_way way, size_t len, size_t n, int times)
{
    struct order o = {.what = PUT, .way = way, .len = len, .n = n}, rest = {.what = REST};
    ask(p, &o);
    double start = raw_now_us();
    for (int i = 0; i < times; i++)
        ask(p, &o);
    double us = (raw_now_us() - start) / times;
    ask(p, &rest);
    return us;
}

void raw_pieces_stop(struct raw_pieces *p)
{
    struct order end = {.what = END};
    ask(p, &end);
    waitpid(p->pid, NULL, 0);
    close(p->fd);
    free(p->from);
    free(p->block);
}
