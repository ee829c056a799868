#include "runtime/client/job/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/refusal.h"
#include "runtime/wire/control.h"

void enter_hold_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/", O_PATH); /* the lowest that is free, which is fd */
}

union descriptor {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

static bool ask(int keel_fd, int mine)
{
    struct control r = {.type = CONTROL_ENTER};
    struct iovec iov = {&r, sizeof r};
    union descriptor space = {0};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
    ssize_t n;
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &mine, sizeof mine);
    do
        n = sendmsg(keel_fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == sizeof r;
}

static bool hear(int fd, struct control *r, int *handed)
{
    struct iovec iov = {r, sizeof *r};
    union descriptor space;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    ssize_t n;
    do
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    *handed = -1;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(handed, CMSG_DATA(h), sizeof *handed);
    return n == sizeof *r;
}

static void tell_why(const struct control *r)
{
    char rank[32] = "its rank";
    if (r->rank >= 0)
        snprintf(rank, sizeof rank, "rank %d", r->rank);
    fprintf(stderr,
            "keel_init: process %lld %s %s of this job%s; a second program in its place (process %d) is not part of "
            "the job: give it a keelrun of its own, or call keel_init in one program of a script only\n",
            (long long)r->a, r->b == ENTRY_TAKEN ? "is" : "was", rank,
            r->b == ENTRY_LEFT    ? " and has left it by keel_finalize"
            : r->b == ENTRY_ENDED ? " and has ended without keel_finalize"
                                  : "",
            (int)getpid());
}

keel_status enter_job(int keel_fd, int *control_fd)
{
    struct control r = {0};
    int pair[2], handed;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return refusal_note(errno);
    bool asked = ask(keel_fd, pair[1]);
    close(pair[1]); /* so that the agent's end, or its question's, is the only one */
    bool answered = asked && hear(pair[0], &r, &handed);
    close(pair[0]);
    if (!answered)
        return KEEL_ERR_AGENT_GONE;
    if (r.b == ENTRY_OPEN) {
        *control_fd = handed;
        return handed >= 0 ? KEEL_OK : refusal_note(EMFILE); /* the kernel drops it where it has no place */
    }
    tell_why(&r);
    return KEEL_ERR_NOT_LAUNCHED;
}
