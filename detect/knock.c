/* Knocking: a TCP connection to a node's listener that is given up as soon as it stands. It is taken, or refused, by
 * the kernel of that host alone, so it tells a host that is not there from an agent that does not run. Nothing is sent
 * over it; who listens finds it closed. It comes from this node's own address: where hosts have several networks the
 * answer takes the job's, and another one does not speak for a node that is cut off. Where the job has several rails
 * each knock goes over the next one. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "detect/helper_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/reserve.h"

#define KNOCK_NS (40 * KEEL_NS_PER_MS) /* without any answer the next one may come: packets get lost */

static void end(struct helper *h, struct reach *p)
{
    struct linger at_once = {.l_onoff = 1}; /* a reset: nothing waits for its end on this side */
    setsockopt(p->knock_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, p->knock_fd, NULL); /* a fork's child may have a copy */
    close(p->knock_fd);
    p->knock_fd = -1;
    h->n_knocks--;
}

/* False: the address is not there any more. */
static bool from_here(const struct helper *h, int fd, int family, int rail)
{
    const struct tp_addr *own = addrs_on(&h->addrs, rail);
    struct sockaddr_storage at;
    if (!own)
        return false;
    int later = 1; /* the port is chosen by connect: as many as there are targets may have the same one */
    memset(&at, 0, sizeof at);
    memcpy(&at, own->bytes, own->len <= sizeof at ? own->len : sizeof at);
    if (at.ss_family != family)
        return true;                           /* an address of another network */
    ((struct sockaddr_in *)&at)->sin_port = 0; /* at the same place in both families */
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
    return bind(fd, (struct sockaddr *)&at, own->len) == 0;
}

/* Nothing was asked: the descriptors, ports or memory of this host are used up. */
static void cannot_ask(struct helper *h, int node, int error)
{
    if (!h->told_full)
        log_warn("detect: cannot ask whether the host of node %d answers: %s. Nodes that are silent are given the "
                 "longer limit while that lasts (said once)",
                 node, strerror(error));
    h->told_full = true;
    member_unasked(h->m, node, h->now);
}

static bool is_lack(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

void knock_start(struct helper *h, int node)
{
    struct reach *p = &h->peers[node];
    struct sockaddr_storage to;
    if (p->knock_fd >= 0 && h->now < p->knock_until)
        return;
    if (p->knock_fd >= 0)
        end(h, p);
    const struct tp_addr *addr = reach_next_rail(p, &p->knock_rail);
    memset(&to, 0, sizeof to);
    memcpy(&to, addr->bytes, addr->len <= sizeof to ? addr->len : sizeof to);
    if (to.ss_family != AF_INET && to.ss_family != AF_INET6)
        return; /* an address of another network */
    p->knock_fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->knock_fd < 0 && reserve_give(errno))
        p->knock_fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->knock_fd < 0) {
        if (is_lack(errno))
            cannot_ask(h, node, errno);
        return;
    }
    h->n_knocks++;
    p->knock_until = h->now + KNOCK_NS;
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = p->knock_fd};
    bool here = from_here(h, p->knock_fd, to.ss_family, addr->rail);
    bool taken = here && connect(p->knock_fd, (struct sockaddr *)&to, addr->len) == 0;
    p->knock_error = taken ? 0 : errno; /* on the same host the answer may be there already */
    if (is_lack(p->knock_error) || (here && p->knock_error == EADDRNOTAVAIL)) /* no port is free */
        cannot_ask(h, node, p->knock_error);
    if ((p->knock_error && p->knock_error != EINPROGRESS && p->knock_error != ECONNREFUSED) ||
        epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, p->knock_fd, &event) != 0)
        end(h, p); /* no way there: that says nothing of the node */
}

static bool look(struct helper *h, struct reach *p)
{
    struct pollfd ready = {.fd = p->knock_fd, .events = POLLOUT};
    int error = p->knock_error;
    socklen_t len = sizeof error;
    if (error == EINPROGRESS && poll(&ready, 1, 0) <= 0) {
        if (h->now >= p->knock_until)
            end(h, p);
        return false;
    }
    if (error == EINPROGRESS && getsockopt(p->knock_fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    end(h, p);
    if (error == 0 && p->knock_rail == 0 && ask_silent(h, p->node))
        member_stopped(h->m, p->node, h->now);
    else if (error == 0)
        member_kernel(h->m, p->node, h->now);
    else if (error == ECONNREFUSED && reach_trusts(p, p->knock_rail))
        member_refused(h->m, p->node, h->now);
    return true;
}

bool knock_poll(struct helper *h)
{
    bool any = false;
    for (int i = 0; h->n_knocks > 0 && i < h->config.params.n; i++)
        if (h->peers[i].knock_fd >= 0)
            any |= look(h, &h->peers[i]);
    return any;
}

void knock_end(struct helper *h, int node)
{
    if (h->peers[node].knock_fd >= 0)
        end(h, &h->peers[node]);
}
