/* A rank's connection to its agent, and the lifeline between the two. */
#include "runtime/client/job/bootstrap_int.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int lifeline = -1; /* to the agent; -1: keelrun started us */

bool bootstrap_is(void)
{
    return lifeline >= 0;
}

static int connect_to(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred cred;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                (size_t)snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s", name)),
              cred_len = sizeof cred;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* whoever listens there is to be our user: names are free for all to take */
    if (fd >= 0 && (connect(fd, (struct sockaddr *)&a, len) != 0 ||
                    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 || cred.uid != geteuid())) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool come(int fd, int rank, int lifeline_end)
{
    struct bootstrap_rank hello = {.rank = rank};
    struct iovec iov = {&hello, sizeof hello};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &lifeline_end, sizeof(int));
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof hello;
}

int bootstrap_come_to(const char *listener, int rank)
{
    int pair[2], fd = connect_to(listener);
    if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    bool good = come(fd, rank, pair[1]);
    close(pair[1]);
    lifeline = pair[0];
    if (good)
        return fd;
    close(fd);
    close(lifeline);
    lifeline = -1;
    return -1;
}

static void say_end(int code)
{
    int32_t word = code;
    (void)send(lifeline, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void exiting(int code, void *pid)
{
    if (lifeline < 0 || (pid_t)(intptr_t)pid != getpid())
        return; /* a child that was forked: not the rank's end */
    say_end(code & 255);
    if ((code & 255) == 0)
        pmi_exchange_close();
}

/* Libraries that libfabric loads (libinfinipath, libpsm2) catch the signals of a crash when the program is loaded,
 * write a file and exit with 1: a death would look like an end that the program has chosen. keelrun's ranks have a
 * variable for it in their environment. */
static void forget_handlers_of_libraries(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction now;
        Dl_info where;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN &&
            dladdr((void *)(uintptr_t)now.sa_handler, &where) && where.dli_fname && // NOLINT(performance-no-int-to-ptr)
            (strstr(where.dli_fname, "/libinfinipath.") || strstr(where.dli_fname, "/libpsm")))
            signal(numbers[i], SIG_DFL);
    }
}

bool bootstrap_hold(void)
{
    struct pollfd gone = {.fd = lifeline};
    struct sigaction usr1;
    /* Nothing is ever written to us there: what the kernel has to say of it is that the agent has gone. */
    if (fcntl(lifeline, F_SETOWN, getpid()) != 0 || fcntl(lifeline, F_SETSIG, SIGKILL) != 0 ||
        fcntl(lifeline, F_SETFL, O_ASYNC) != 0 || poll(&gone, 1, 0) != 0)
        return false;
    forget_handlers_of_libraries();
    /* Hydra's way to say that another process has failed, which we know */
    if (sigaction(SIGUSR1, NULL, &usr1) == 0 && usr1.sa_handler == SIG_DFL)
        signal(SIGUSR1, SIG_IGN);
    return on_exit(exiting, (void *)(intptr_t)getpid()) == 0; // NOLINT(performance-no-int-to-ptr)
}

void bootstrap_release(void)
{
    if (lifeline < 0)
        return;
    (void)fcntl(lifeline, F_SETFL, 0);
    say_end(0);
    pmi_exchange_close();
}
