/* Connections over sockets: how they are made, from both ends. */
#include "runtime/net/stream/stream_int.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/reserve.h"
#include "runtime/net/sock.h"

/* ---- connecting ---- */

static keel_status ep_new(struct stream_tp *tp, void *user, int fd, enum ep_state state, struct stream_ep **out)
{
    struct room *room = &tp->room;
    room->ep = room->ep ? room->ep : malloc(sizeof *room->ep);
    room->in = room->in ? room->in : malloc(INPUT_BYTES);
    if (!room->ep || !room->in)
        return KEEL_ERR_NOMEM;
    struct stream_ep *ep = room->ep;
    *ep = (struct stream_ep){
        .base = {.tp = &tp->base, .user = user}, .what = IS_EP, .state = state, .fd = fd, .in = room->in};
    room->ep = NULL;
    room->in = NULL;
    STAILQ_INIT(&ep->out);
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = ep;
    return KEEL_OK;
}

static int socket_open(const struct stream_tp *tp, int rail, bool connecting)
{
    const int on = 1;
    const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = socket(tp->host[rail].sin6_family, type, 0);
    if (fd < 0 && reserve_give(errno))
        fd = socket(tp->host[rail].sin6_family, type, 0);
    if (fd < 0)
        return -1;
    struct sockaddr_in6 any_port = tp->host[rail];
    any_port.sin6_port = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connecting)
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    sock_set_options(fd);
    if (bind(fd, (const struct sockaddr *)&any_port, tp->host_len) == 0)
        return fd;
    close(fd);
    return -1;
}

static keel_status status_of(int error)
{
    return error == ECONNREFUSED ? KEEL_ERR_NODE_DEAD : KEEL_ERR_LINK;
}

static void stream_ep_fail(struct stream_ep *ep, int error)
{
    ep->base.error = error;
    stream_ep_end(ep, status_of(error));
}

keel_status stream_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                           struct tp_ep **out)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    struct stream_ep *ep;
    if (len > TP_CONNECT_MAX || to->len != tp->host_len || to->rail >= tp->rails)
        return KEEL_ERR_ARG;
    struct output *o = tp->room.hello ? tp->room.hello : malloc(sizeof *o + TP_CONNECT_MAX);
    int fd = socket_open(tp, to->rail, true);
    keel_status status = !o ? KEEL_ERR_NOMEM : fd < 0 ? refusal_note(errno) : ep_new(tp, user, fd, EP_CONNECTING, &ep);
    tp->room.hello = status == KEEL_OK ? NULL : o;
    if (status != KEEL_OK) {
        if (fd >= 0)
            close(fd);
        return status;
    }
    *o = (struct output){.data = o->bytes, .len = len, .word = len};
    if (len)
        memcpy(o->bytes, hello, len);
    ep->copied = len;
    STAILQ_INSERT_TAIL(&ep->out, o, link);
    ep->watched = EPOLLOUT;
    int rc = connect(fd, (const struct sockaddr *)to->bytes, to->len);
    if ((rc < 0 && errno != EINPROGRESS) || !stream_watch(tp, fd, EPOLLOUT, &ep->what, EPOLL_CTL_ADD))
        stream_ep_fail(ep, errno);
    *out = &ep->base;
    return KEEL_OK;
}

/* The socket is connected, or not. */
void stream_on_connected(struct stream_ep *ep)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(ep->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        stream_ep_fail(ep, error);
        return;
    }
    ep->state = EP_ASKING;
    stream_flush(ep);
}

void stream_on_verdict(struct stream_ep *ep)
{
    uint64_t verdict;
    bool open = stream_fill(ep);
    if (ep->to - ep->from < sizeof verdict) {
        if (!open)
            stream_ep_end(ep, KEEL_ERR_LINK);
        return;
    }
    memcpy(&verdict, ep->in + ep->from, sizeof verdict);
    ep->from += sizeof verdict;
    if (verdict != VERDICT_ACCEPTED) {
        stream_ep_end(ep, verdict == VERDICT_REJECTED ? KEEL_ERR_AUTH : KEEL_ERR_LINK);
        return;
    }
    ep->state = EP_UP;
    ep->alone = true;
    stream_tell(tp_of(&ep->base), &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
    memmove(ep->in, ep->in + ep->from, ep->to - ep->from);
    ep->to -= ep->from;
    ep->from = 0;
    stream_make_ready(ep); /* something may have come with it */
}

/* ---- being connected to ---- */

keel_status stream_listen(struct tp *base, struct tp_addr *out)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    socklen_t len = sizeof out->bytes;
    if (tp->listening == tp->rails)
        return KEEL_ERR_STATE;
    int fd = socket_open(tp, tp->listening, false);
    if (fd < 0 || listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)out->bytes, &len) ||
        !stream_watch(tp, fd, EPOLLIN, &tp->what, EPOLL_CTL_ADD)) {
        keel_status status = refusal_note(errno);
        log_warn("transport: cannot listen: %m");
        if (fd >= 0)
            close(fd);
        return status;
    }
    out->len = (uint16_t)len;
    out->rail = (uint16_t)tp->listening;
    tp->listen_fd[tp->listening++] = fd;
    return KEEL_OK;
}

void stream_request_free(struct stream_tp *tp, struct tp_connreq *req)
{
    TAILQ_REMOVE(&tp->reqs, req, link);
    tp->strangers -= !req->asked;
    stream_fd_close(tp, &req->fd);
    if (tp->room.req)
        free(req);
    else
        tp->room.req = req;
}

static bool same_host(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
    if (a->sin6_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&a->sin6_addr, &b->sin6_addr, sizeof a->sin6_addr) == 0;
}

/* Of those without a hello the oldest one of the address that has most: members say it at once. */
static void drop_surplus(struct stream_tp *tp)
{
    struct tp_connreq *req, *other, *worst = NULL;
    int most = 0;
    TAILQ_FOREACH(req, &tp->reqs, link) {
        int here = 0;
        TAILQ_FOREACH(other, &tp->reqs, link)
            here += !other->asked && same_host(&req->peer, &other->peer);
        if (!req->asked && here > most) {
            most = here;
            worst = req;
        }
    }
    if (worst)
        stream_request_free(tp, worst);
}

void stream_drop_late(struct stream_tp *tp)
{
    struct tp_connreq *req, *next;
    if (tp->strangers == 0)
        return;
    uint64_t now = clock_now_ns();
    if (now < tp->guard_ns)
        return;
    tp->guard_ns = now + HELLO_MS * KEEL_NS_PER_MS / 10;
    for (req = TAILQ_FIRST(&tp->reqs); req; req = next) {
        next = TAILQ_NEXT(req, link);
        if (!req->asked && now - req->since_ns >= HELLO_MS * KEEL_NS_PER_MS)
            stream_request_free(tp, req);
    }
}

bool stream_accept_one(struct stream_tp *tp, int listen_fd)
{
    const int on = 1;
    struct tp_connreq *req = tp->room.req ? tp->room.req : malloc(sizeof *req);
    socklen_t len = sizeof req->peer;
    tp->room.req = req;
    if (!req)
        return false;
    *req = (struct tp_connreq){.what = IS_REQUEST, .since_ns = clock_now_ns()};
    req->fd = accept4(listen_fd, (struct sockaddr *)&req->peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (req->fd < 0) {
        bool full = errno == EMFILE || errno == ENFILE;
        if (reserve_give(errno))
            return false; /* it waits, and is taken at the next look */
        if (!full || tp->spare_fd < 0)
            return false;
        close(tp->spare_fd); /* one less may wait: else the listener would wake us for ever */
        tp->spare_fd = -1;
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
        stream_spare_open(tp);
        return false;
    }
    tp->room.req = NULL;
    setsockopt(req->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sock_set_options(req->fd);
    TAILQ_INSERT_TAIL(&tp->reqs, req, link);
    tp->strangers++;
    if (!stream_watch(tp, req->fd, EPOLLIN, &req->what, EPOLL_CTL_ADD))
        stream_request_free(tp, req);
    else if (tp->strangers > STRANGERS_MAX)
        drop_surplus(tp);
    return true;
}

/* More of a hello. */
void stream_on_request(struct stream_tp *tp, struct tp_connreq *req)
{
    ssize_t n = recv(req->fd, req->in.bytes + req->len, sizeof req->in - req->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        req->len += (size_t)n;
    bool has_word = req->len >= WORD;
    size_t want = has_word && req->in.word <= TP_CONNECT_MAX ? WORD + req->in.word + -req->in.word % WORD : 0;
    if (n <= 0 || (has_word && want == 0) || (want && req->len > want)) {
        stream_request_free(tp, req);
        return;
    }
    if (!want || req->len < want)
        return;
    req->asked = true;
    tp->strangers--;
    stream_watch(tp, req->fd, 0, NULL, EPOLL_CTL_DEL);
    stream_tell(tp, &req->told,
                (struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->in.bytes + WORD, .len = req->in.word});
}

static void say_verdict(int fd, uint64_t verdict)
{
    /* fits the empty buffer of a new connection */
    while (send(fd, &verdict, sizeof verdict, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
}

keel_status stream_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    struct stream_ep *ep;
    keel_status status = ep_new(tp, user, req->fd, EP_UP, &ep);
    if (status == KEEL_OK) {
        say_verdict(ep->fd, VERDICT_ACCEPTED);
        ep->watched = EPOLLIN;
        stream_tell(tp, &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
        if (!stream_watch(tp, ep->fd, EPOLLIN, &ep->what, EPOLL_CTL_ADD))
            stream_ep_end(ep, KEEL_ERR_LINK);
        req->fd = -1;
        *out = &ep->base;
    }
    stream_request_free(tp, req);
    return status;
}

void stream_reject(struct tp *base, struct tp_connreq *req)
{
    say_verdict(req->fd, VERDICT_REJECTED);
    stream_request_free((struct stream_tp *)base, req);
}

void stream_disconnect(struct tp_ep *ep)
{
    stream_ep_end((struct stream_ep *)ep, KEEL_ERR_LINK);
}

void stream_reset(struct tp_ep *ep)
{
    stream_ep_drop((struct stream_ep *)ep);
}

void stream_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct stream_ep *ep = (struct stream_ep *)tp_ep;
    struct stream_tp *tp = tp_of(tp_ep);
    stream_fd_close(tp, &ep->fd);
    ep->state = EP_ENDED;
    stream_unlist(ep);
    stream_outputs_end(ep, false);
    stream_forget_told(tp, tp_ep);
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}
