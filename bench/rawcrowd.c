/* Many processes that each ask one server over a connection of their own, by plain sockets of TCP: as many answers a second as one message for each
 * question and one for each answer allow on this machine. */
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

static void serve(int listener, int clients, size_t bytes)
{
    int epoll = epoll_create1(0);
    uint8_t message[BYTES_MAX];
    for (int i = 0; i < clients; i++) {
        int one = 1, fd = accept(listener, NULL, NULL);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
            epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
            _exit(1);
    }
    for (unsigned idle = 0;;) {
        struct epoll_event event[CLIENTS_MAX];
        int n = epoll_wait(epoll, event, CLIENTS_MAX, 0);
        if (n <= 0 && idle++ % YIELD_EVERY == 0)
            sched_yield();
        for (int i = 0; i < n; i++)
            if (recv(event[i].data.fd, message, bytes, MSG_DONTWAIT) == (ssize_t)bytes &&
                send(event[i].data.fd, message, bytes, 0) != (ssize_t)bytes)
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

double raw_crowd_kops(int clients, size_t bytes, double us)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    pid_t pid[CLIENTS_MAX], server;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status, bad = 0;
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (clients > CLIENTS_MAX || bytes > BYTES_MAX || listener < 0 || s == MAP_FAILED ||
        bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, CLIENTS_MAX) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0)
        return 0;
    if ((server = child()) == 0)
        serve(listener, clients, bytes);
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
    double kops = bad ? 0 : kops_of(s, clients);
    munmap(s, sizeof *s);
    close(listener);
    return kops;
}
