/* Many processes that each ask one server over a connection of their own, by plain sockets of TCP: as many answers a
 * second as one message for each question and one for each answer allow on this machine. Or, shadowed: with a message
 * more to a second server, and one back, for all questions that the first one finds together, which is the least
 * with which a second copy can have what is answered. */
#include "bench/rawlib.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS_MAX = 64, BYTES_MAX = 256, YIELD_EVERY = 8 };

struct shared {
    _Atomic int ready;
    _Atomic int go;
    double us[CLIENTS_MAX], count[CLIENTS_MAX];
};

static int tcp_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        _exit(1);
    return fd;
}

/* All of it, whoever else wants the processor meanwhile. */
static void take(int fd, uint8_t *to, size_t bytes)
{
    for (unsigned polls = 0; bytes;) {
        ssize_t n = recv(fd, to, bytes, MSG_DONTWAIT);
        if (n == 0)
            _exit(1);
        if (n > 0)
            bytes -= (size_t)n;
        else if (polls++ % YIELD_EVERY == 0)
            sched_yield();
    }
}

/* The second server: a message says how many have come together, and they come with it. */
static void keep(int fd, size_t bytes)
{
    static uint8_t message[CLIENTS_MAX * BYTES_MAX];
    for (;;) {
        take(fd, message, bytes);
        if (message[0] > 1)
            take(fd, message + bytes, (size_t)(message[0] - 1) * bytes);
        if (send(fd, message, bytes, 0) != (ssize_t)bytes)
            _exit(1);
    }
}

static void accept_all(int listener, int epoll, int clients)
{
    for (int i = 0; i < clients; i++) {
        int one = 1, fd = accept(listener, NULL, NULL);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
            epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
            _exit(1);
    }
}

/* second: a connection to the second server, -1: there is none */
static void serve(int listener, int clients, size_t bytes, int second)
{
    static uint8_t message[CLIENTS_MAX * BYTES_MAX];
    int epoll = epoll_create1(0), asked[CLIENTS_MAX];
    accept_all(listener, epoll, clients);
    for (unsigned idle = 0;;) {
        struct epoll_event event[CLIENTS_MAX];
        int n = epoll_wait(epoll, event, CLIENTS_MAX, 0), together = 0;
        if (n <= 0 && idle++ % YIELD_EVERY == 0)
            sched_yield();
        for (int i = 0; i < n; i++)
            if (recv(event[i].data.fd, message + (size_t)together * bytes, bytes, MSG_DONTWAIT) == (ssize_t)bytes)
                asked[together++] = event[i].data.fd;
        if (together && second >= 0) {
            message[0] = (uint8_t)together;
            if (send(second, message, (size_t)together * bytes, 0) != (ssize_t)((size_t)together * bytes))
                _exit(1);
            take(second, message, bytes);
        }
        for (int i = 0; i < together; i++)
            if (send(asked[i], message, bytes, 0) != (ssize_t)bytes)
                _exit(1);
    }
}

static void ask(const struct sockaddr_in *to, struct shared *s, int me, size_t bytes, double us)
{
    uint8_t message[BYTES_MAX] = {0};
    int fd = tcp_socket();
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) != 0)
        _exit(1);
    atomic_fetch_add(&s->ready, 1);
    while (!atomic_load(&s->go))
        sched_yield();
    double start = raw_now_us(), count = 0;
    for (; raw_now_us() - start < us; count++) {
        if (send(fd, message, bytes, 0) != (ssize_t)bytes)
            _exit(1);
        for (unsigned polls = 0; recv(fd, message, bytes, MSG_DONTWAIT) != (ssize_t)bytes;)
            if (polls++ % YIELD_EVERY == 0)
                sched_yield();
    }
    s->us[me] = raw_now_us() - start;
    s->count[me] = count;
    _exit(0);
}

static pid_t child(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

static double kops_of(const struct shared *s, int clients)
{
    double count = 0, us = 0;
    for (int i = 0; i < clients; i++) {
        count += s->count[i];
        us += s->us[i] / clients;
    }
    return us > 0 ? 1e3 * count / us : 0;
}

/* A process that serves as the second one, at the other end of *fd; 0 if it could not be made. */
static pid_t second_server(size_t bytes, int *fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), to = tcp_socket(), from, one = 1;
    pid_t pid = 0;
    if (listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&at, &len) == 0 &&
        connect(to, (const struct sockaddr *)&at, sizeof at) == 0 && (from = accept(listener, NULL, NULL)) >= 0) {
        (void)setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if ((pid = child()) == 0) {
            close(to);
            keep(from, bytes);
        }
        close(from);
    }
    close(listener);
    *fd = to;
    return pid > 0 ? pid : 0;
}

double raw_crowd_kops(int clients, size_t bytes, double us, bool shadowed)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    pid_t pid[CLIENTS_MAX], server, second = 0;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status, bad = 0, to_second = -1;
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (clients > CLIENTS_MAX || bytes > BYTES_MAX || listener < 0 || s == MAP_FAILED ||
        bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, CLIENTS_MAX) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0)
        return 0;
    if (shadowed && !(second = second_server(bytes, &to_second)))
        bad++;
    if ((server = child()) == 0)
        serve(listener, clients, bytes, to_second);
    if (to_second >= 0)
        close(to_second);
    for (int i = 0; i < clients; i++)
        if ((pid[i] = child()) == 0)
            ask(&at, s, i, bytes, us);
    while (atomic_load(&s->ready) < clients && waitpid(-1, NULL, WNOHANG) == 0)
        sched_yield();
    atomic_store(&s->go, 1);
    for (int i = 0; i < clients; i++)
        bad += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    if (second) {
        kill(second, SIGKILL);
        waitpid(second, NULL, 0);
    }
    double kops = bad ? 0 : kops_of(s, clients);
    munmap(s, sizeof *s);
    close(listener);
    return kops;
}
