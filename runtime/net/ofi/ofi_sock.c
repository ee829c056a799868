/* The provider keeps its sockets to itself, and five things need them: keepalive and TCP_USER_TIMEOUT (no FI_ knob),
 * a shutdown(2) it has to notice by itself (see ofi_ep_shut), incoming connections that never say hello, which it
 * would keep for ever, its wake-ups, and room for what it has to send. The kernel tells which sockets the provider's
 * own epoll sets hold (/proc/self/fdinfo), so nothing else of the process is ever looked at. None of this is on a hot
 * path, and everything works, if less well, without. */
#include "runtime/net/ofi/ofi_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/reserve.h"
#include "runtime/net/sock.h"

enum {
    HELLO_WAIT_MS = 1, /* a hello is one segment: the rest of a started one is there */
    GUARD_EVERY_MS = 500,
    GUARD_AFTER_MS = 1000,
    GUARD_WAITING = 128, /* beyond: the oldest of the address that has most goes */
};

struct only {
    int fd, count;
};

/* Call visit for every socket of an epoll set, until it returns true. */
static bool sockets_of_epoll(int epoll_fd, bool (*visit)(int fd, void *arg), void *arg)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epoll_fd);
    FILE *f = fopen(path, "re");
    if (!f && reserve_give(errno))
        f = fopen(path, "re");
    if (!f)
        return false;
    bool found = false;
    int fd;
    while (!found && fgets(line, sizeof(line), f))
        found = sscanf(line, "tfd: %d", &fd) == 1 && visit(fd, arg);
    fclose(f);
    return found;
}

static bool same_addr(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
    if (a->sin6_family != b->sin6_family || a->sin6_port != b->sin6_port)
        return false;
    if (a->sin6_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr)) == 0;
}

static bool local_is(int fd, const struct sockaddr_in6 *want)
{
    struct sockaddr_in6 local = {0};
    socklen_t len = sizeof(local);
    return getsockname(fd, (struct sockaddr *)&local, &len) == 0 && same_addr(&local, want);
}

static bool peer_of(int fd, struct sockaddr_in6 *peer)
{
    socklen_t len = sizeof(*peer);
    memset(peer, 0, sizeof(*peer));
    return getpeername(fd, (struct sockaddr *)peer, &len) == 0;
}

/* ---- the completion queue's wake-up ---- */

static bool visit_only(int fd, void *arg)
{
    struct only *only = arg;
    only->fd = fd;
    return ++only->count > 1;
}

/* The provider writes a byte into a pair of sockets for each completion and reads it again at the next look, for a
 * sleeper: two system calls, between what came and its answer. Nobody sleeps while this thread works, and who arms
 * looks again afterwards. A byte that the provider is never told of is not read, and where one stands it writes no
 * other. With it goes the provider's word that a last look has begun an answer which the socket does not take whole:
 * that is heard from the sockets themselves (below). */
void ofi_sock_mute(struct ofi_tp *tp)
{
    struct only only = {.fd = -1};
    sockets_of_epoll(tp->cq_fd, visit_only, &only);
    tp->muted = only.count == 1 && epoll_ctl(tp->cq_fd, EPOLL_CTL_DEL, only.fd, NULL) == 0;
}

/* ---- room ---- */

/* The provider asks for room in a socket at its next look, and the look that has left something unsent may be the last
 * one before a sleep. So each socket is in a set of ours, too, edge-triggered: the kernel tells it once whenever there
 * is room again where some was refused. Nobody has to know who has left what, and when: neither the looks of
 * fi_trywait nor what another thread posts while one sleeps. */
static bool watch(struct ofi_ep *ep, int fd)
{
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    ep->socket = fd;
    ep->watched = epoll_ctl(ofi_tp_of_ep(ep)->room_fd, EPOLL_CTL_ADD, fd, &event) == 0;
    return ep->watched;
}

void ofi_sock_forget_room(const struct ofi_tp *tp)
{
    struct epoll_event events[64];
    int most = sizeof events / sizeof *events;
    while (tp->room_fd >= 0 && epoll_wait(tp->room_fd, events, most, 0) == most)
        ;
}

/* ---- listener: accepted sockets inherit what is set here ---- */

static bool visit_listener(int fd, void *arg)
{
    struct ofi_rail *rail = arg;
    int listening = 0;
    socklen_t len = sizeof(listening);
    if (!local_is(fd, &rail->listen_addr) || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) || !listening)
        return false;
    sock_set_options(fd);
    /* The provider reads a hello with blocking calls: a header without its body would stop the whole process, for a
     * tick of the kernel's clock with the first option, not at all with the second. */
    const struct timeval wait = {.tv_usec = HELLO_WAIT_MS * 1000};
    const int whole = OFI_CONNECT_HEADER + OFI_CONNECT_DATA;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &whole, sizeof(whole));
    rail->listen_fd = fd;
    return true;
}

void ofi_sock_setup_listener(struct ofi_tp *tp, struct ofi_rail *rail)
{
    rail->whole_hellos = sockets_of_epoll(tp->eq_fd, visit_listener, rail);
    if (tp->spare_fd < 0)
        tp->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!rail->whole_hellos)
        log_info("transport: the listening socket was not found; silent connections are noticed late");
}

/* A connection for which the provider has no descriptor would wake us for ever: it is taken and closed. Who made it
 * tries again. */
static void drop_unacceptable(struct ofi_tp *tp, int listen_fd)
{
    struct pollfd waits = {.fd = listen_fd, .events = POLLIN};
    if (listen_fd < 0 || tp->spare_fd < 0 || poll(&waits, 1, 0) <= 0)
        return;
    int more = dup(tp->spare_fd);
    if (more >= 0) { /* there is one */
        close(more);
        return;
    }
    if (reserve_give(errno)) /* the provider takes it at its next look */
        return;
    close(tp->spare_fd);
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    tp->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void ofi_sock_drop_unacceptable(struct ofi_tp *tp)
{
    for (int i = 0; i < tp->listening; i++)
        drop_unacceptable(tp, tp->rail[i].listen_fd);
}

/* ---- one connection ---- */

struct wanted {
    struct sockaddr_in6 local, peer;
    int fd;
};

static bool visit_local(int fd, void *arg)
{
    struct wanted *want = arg;
    if (!local_is(fd, &want->local))
        return false;
    want->fd = fd;
    return true;
}

static bool visit_both(int fd, void *arg)
{
    struct wanted *want = arg;
    struct sockaddr_in6 peer;
    return peer_of(fd, &peer) && same_addr(&peer, &want->peer) && visit_local(fd, arg);
}

void ofi_sock_setup_connecting(struct ofi_ep *ep)
{
    struct wanted want = {.fd = -1};
    size_t len = sizeof(want.local);
    if (fi_getname(&ep->fid->fid, &want.local, &len) == 0 &&
        sockets_of_epoll(ofi_tp_of_ep(ep)->eq_fd, visit_local, &want)) {
        sock_set_options(want.fd);
        watch(ep, want.fd);
    }
}

bool ofi_sock_setup_accepted(struct ofi_ep *ep, const struct sockaddr_in6 *peer)
{
    struct ofi_tp *tp = ofi_tp_of_ep(ep);
    const int first = 1;
    bool unknown = false;
    for (int i = 0; i < tp->listening; i++) {
        struct wanted want = {.local = tp->rail[i].listen_addr, .peer = *peer, .fd = -1};
        unknown |= !tp->rail[i].whole_hellos;
        if (!tp->rail[i].whole_hellos || !sockets_of_epoll(tp->eq_fd, visit_both, &want))
            continue;
        watch(ep, want.fd);
        return setsockopt(want.fd, SOL_SOCKET, SO_RCVLOWAT, &first, sizeof(first)) == 0;
    }
    return unknown;
}

/* -1: not found */
static int socket_of(struct ofi_ep *ep)
{
    struct wanted want = {.fd = -1};
    size_t local_len = sizeof(want.local), peer_len = sizeof(want.peer);
    if (fi_getname(&ep->fid->fid, &want.local, &local_len) || fi_getpeer(ep->fid, &want.peer, &peer_len) ||
        !sockets_of_epoll(ofi_tp_of_ep(ep)->cq_fd, visit_both, &want))
        return -1;
    return want.fd;
}

bool ofi_sock_watch(struct ofi_ep *ep)
{
    if (ep->watched || !ofi_tp_of_ep(ep)->muted)
        return true;
    int fd = socket_of(ep);
    return fd >= 0 && watch(ep, fd);
}

bool ofi_sock_moved(const struct tp_ep *tp_ep, struct tp_moved *moved)
{
    const struct ofi_ep *ep = (const struct ofi_ep *)tp_ep;
    return ep->watched && ep->fid && ep->state == EP_UP && sock_moved(ep->socket, moved);
}

bool ofi_sock_shutdown(struct ofi_ep *ep)
{
    int fd = socket_of(ep);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    return fd >= 0;
}

/* ---- incoming connections without a hello ---- */

struct sweep {
    struct ofi_tp *tp;
    uint64_t now;
    bool all;
};

static bool visit_incoming(int fd, void *arg)
{
    struct sweep *sweep = arg;
    struct sockaddr_in6 peer;
    bool ours = false;
    for (int i = 0; i < sweep->tp->listening; i++)
        ours |= local_is(fd, &sweep->tp->rail[i].listen_addr);
    if (!ours || !peer_of(fd, &peer))
        return false;
    uint64_t since = sweep->now;
    const struct guard *old = &sweep->tp->guard;
    for (int i = 0; i < old->count; i++)
        if (old->seen[i].fd == fd && same_addr(&old->seen[i].peer, &peer))
            since = old->seen[i].since_ns;
    struct guard *next = &sweep->tp->guard_next;
    /* the provider reads the end of the stream and forgets it */
    if (sweep->all || next->count == GUARD_MAX || sweep->now - since >= GUARD_AFTER_MS * KEEL_NS_PER_MS)
        shutdown(fd, SHUT_RDWR);
    else
        next->seen[next->count++] = (struct guarded){fd, peer, since};
    return false;
}

static bool same_host(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
    struct sockaddr_in6 x = *a, y = *b;
    x.sin6_port = y.sin6_port = 0;
    return same_addr(&x, &y);
}

/* Members say hello at once; who fills the queue is one of the address that has most connections in it. */
static void drop_surplus(struct guard *g)
{
    int *here = g->here;
    memset(here, 0, (size_t)g->count * sizeof *here);
    for (int i = 0; g->count > GUARD_WAITING && i < g->count; i++)
        for (int k = 0; k < g->count; k++)
            here[i] += same_host(&g->seen[i].peer, &g->seen[k].peer);
    for (int left = g->count; left > GUARD_WAITING; left--) {
        int victim = 0;
        for (int i = 1; i < g->count; i++)
            if (here[i] > here[victim] || (here[i] == here[victim] && g->seen[i].since_ns < g->seen[victim].since_ns))
                victim = i;
        for (int i = 0; i < g->count; i++)
            here[i] -= here[i] > 0 && same_host(&g->seen[i].peer, &g->seen[victim].peer);
        here[victim] = -1;
        shutdown(g->seen[victim].fd, SHUT_RDWR);
    }
    int kept = 0;
    for (int i = 0; i < g->count; i++)
        if (here[i] >= 0)
            g->seen[kept++] = g->seen[i];
    g->count = kept;
}

void ofi_sock_guard(struct ofi_tp *tp, enum guard_when when)
{
    struct sweep sweep = {.tp = tp, .now = clock_now_ns(), .all = when == GUARD_ALL};
    if (when == GUARD_IF_DUE && sweep.now < tp->guard.next_ns)
        return;
    tp->guard_next.count = 0;
    sockets_of_epoll(tp->eq_fd, visit_incoming, &sweep);
    drop_surplus(&tp->guard_next);
    tp->guard = tp->guard_next;
    tp->guard.next_ns = sweep.now + GUARD_EVERY_MS * KEEL_NS_PER_MS;
}
