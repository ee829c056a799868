/* Which process is the rank. The program that an agent starts may be a script, or start others: all of them have
 * KEEL_FD. The first of them that calls keel_init gets the rank's control socket, which no other process has; the
 * others are told who has it, and disturb nobody. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/agent/ranks.h"
#include "runtime/base/log.h"
#include "runtime/plane/plane_int.h"

bool entry_open(struct plane *p, struct process *k)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = k};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, pair[0], &ev) != 0) {
        close(pair[0]);
        close(pair[1]);
        return false;
    }
    k->fd = pair[0];
    k->handed_fd = pair[1];
    k->owner = 0;
    k->excused = k->mute = false;
    return true;
}

static void forget(struct plane *p, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, *fd, NULL); /* or it never was there */
    close(*fd);
    *fd = -1;
}

void entry_close(struct plane *p, struct process *k)
{
    forget(p, &k->fd);
    forget(p, &k->handed_fd);
}

void entry_shut(struct plane *p, struct process *k)
{
    entry_close(p, k);
    hidden_forget(p, k);
    forget(p, &k->door_fd);
}

static enum control_entry entry_of(const struct process *k)
{
    return k->handed_fd >= 0 ? ENTRY_OPEN : k->left ? ENTRY_LEFT : k->fd >= 0 ? ENTRY_TAKEN : ENTRY_ENDED;
}

/* The kernel says who made the pair. */
static int maker_of(int socket)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : 0;
}

static void answer(struct plane *p, struct process *k, int socket)
{
    struct control r = {
        .type = CONTROL_ENTER, .rank = k->proc ? k->proc->life.rank : -1, .a = k->owner, .b = (int64_t)entry_of(k)};
    bool open = r.b == ENTRY_OPEN;
    int error = procs_send(socket, &r, sizeof r, &k->handed_fd, open);
    if (error) {
        log_warn("pid %d: a process that wants to be its rank does not take the answer: %s", k->pid, strerror(error));
    } else if (open) {
        k->owner = maker_of(socket);
        forget(p, &k->handed_fd);
        hidden_begin(p, k);
    }
}

/* One packet with one descriptor; -1: there is none, *more: look again. What the program needs is said over KEEL_FD,
 * too. */
static int take(struct plane *p, struct process *k, bool *more)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } space;
    struct control r;
    struct iovec iov = {&r, sizeof r};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    ssize_t n = recvmsg(k->door_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    int fd = -1;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(h), sizeof fd);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) /* no process has it any more */
        forget(p, &k->door_fd);
    *more = n > 0;
    if (n <= 0 || (n == sizeof r && r.type == CONTROL_ENTER && fd >= 0))
        return fd;
    if (n == sizeof r && r.type == CONTROL_NEEDS && fd < 0) { /* said before keel_init */
        if (k->proc && k->proc->life.rank >= 0)
            ranks_control(&p->agent, k->proc, &r);
        return -1;
    }
    log_warn_some("pid %d: a message of %zd bytes over KEEL_FD that this agent does not know", k->pid, n);
    if (fd >= 0)
        close(fd);
    return -1;
}

void entry_readable(struct plane *p, struct process *k)
{
    for (bool more = true; more && k->door_fd >= 0;) {
        int socket = take(p, k, &more);
        if (socket < 0)
            continue;
        answer(p, k, socket);
        close(socket);
    }
}
