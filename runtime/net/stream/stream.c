#include "runtime/net/stream/stream_int.h"

#include <netdb.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

static void stream_close(struct tp *base)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    stream_forget_told(tp, NULL);
    while (!TAILQ_EMPTY(&tp->reqs))
        stream_request_free(tp, TAILQ_FIRST(&tp->reqs)); // NOLINT(clang-analyzer-unix.Malloc): it is off the list
    while (!TAILQ_EMPTY(&tp->eps))
        stream_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    stream_recycle(tp);
    while (tp->listening > 0)
        stream_fd_close(tp, &tp->listen_fd[--tp->listening]);
    int fds[] = {tp->spare_fd, tp->epoll_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(tp->room.ep);
    free(tp->room.in);
    free(tp->room.hello);
    free(tp->room.req);
    free(tp);
}

static bool read_host(struct stream_tp *tp, int rail, const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    bool good = host && getaddrinfo(host, NULL, &hints, &found) == 0 &&
                found->ai_addrlen <= sizeof(struct sockaddr_in6) && (rail == 0 || found->ai_addrlen == tp->host_len);
    if (good) {
        memcpy(&tp->host[rail], found->ai_addr, found->ai_addrlen);
        tp->host_len = found->ai_addrlen;
    } else {
        log_error("transport: %s is not an address, or not of the family of the others", host ? host : "nothing");
    }
    if (found)
        freeaddrinfo(found);
    return good;
}

static keel_status stream_open(const struct tp_config *config, struct tp **out)
{
    struct stream_tp *tp = calloc(1, sizeof *tp);
    if (!tp)
        return KEEL_ERR_NOMEM;
    *tp = (struct stream_tp){
        .base.table = &tp_stream, .what = IS_LISTENER, .rails = tp_config_rails(config), .spare_fd = -1};
    for (int i = 0; i < tp->rails; i++)
        if (!read_host(tp, i, i ? config->more[i - 1] : config->host)) {
            free(tp);
            return KEEL_ERR_ARG;
        }
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->ready);
    TAILQ_INIT(&tp->looked);
    TAILQ_INIT(&tp->graveyard);
    TAILQ_INIT(&tp->reqs);
    STAILQ_INIT(&tp->told);
    tp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    stream_spare_open(tp);
    if (tp->epoll_fd < 0) {
        keel_status status = refusal_note(errno);
        stream_close(&tp->base);
        return status;
    }
    *out = &tp->base;
    return KEEL_OK;
}

static keel_status stream_reg(struct tp *base, void *memory, size_t len, uint64_t key)
{
    (void)base, (void)memory, (void)len, (void)key;
    return KEEL_ERR_ARG;
}

static void stream_unreg(struct tp *base, uint64_t key)
{
    (void)base, (void)key;
}

static keel_status stream_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                                struct tp_op *op)
{
    (void)ep, (void)src, (void)len, (void)key, (void)offset, (void)op;
    return KEEL_ERR_ARG;
}

static keel_status stream_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op)
{
    (void)ep, (void)dst, (void)len, (void)key, (void)offset, (void)op;
    return KEEL_ERR_ARG;
}

static int on_ep(struct stream_ep *ep, uint32_t what, struct tp_event *events, int max)
{
    if (ep->state == EP_CONNECTING) {
        stream_on_connected(ep);
        return 0;
    }
    if (ep->state == EP_ASKING && (what & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        stream_on_verdict(ep);
        return 0;
    }
    if ((what & EPOLLOUT) && ep->state <= EP_UP && !stream_flush(ep))
        return 0;
    if (ep->state != EP_UP || ep->ready || ep->looked || !(what & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return 0;
    bool open = stream_fill(ep);
    int n = stream_deliver(ep, events, max);
    if (!open)
        stream_ep_lost(ep);
    return n;
}

static int on_epoll(struct stream_tp *tp, const struct epoll_event *event, struct tp_event *events, int max)
{
    enum what *what = event->data.ptr; /* a member of its owner */
    switch (*what) {
    case IS_LISTENER:
        for (int l = 0; l < tp->listening; l++)
            for (int i = 0; i < ACCEPTS_AT_ONCE && stream_accept_one(tp, tp->listen_fd[l]); i++)
                ;
        return 0;
    case IS_REQUEST:
        stream_on_request(tp, (struct tp_connreq *)what);
        return 0;
    default:
        return on_ep((struct stream_ep *)((uint8_t *)what - offsetof(struct stream_ep, what)), event->events, events,
                     max);
    }
}

static int stream_poll(struct tp *base, struct tp_event *events, int max)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    struct epoll_event ready[EVENTS_AT_ONCE];
    stream_recycle(tp);
    int n = stream_take_told(tp, events, max);
    n += stream_work_ready(tp, events + n, max - n);
    int got = n < max ? epoll_wait(tp->epoll_fd, ready, max - n < EVENTS_AT_ONCE ? max - n : EVENTS_AT_ONCE, 0) : 0;
    /* the listener last: whom it drops may be among the others */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < got; i++)
            if ((ready[i].data.ptr == &tp->what) == pass)
                n += on_epoll(tp, &ready[i], events + n, max - n);
    stream_drop_late(tp);
    return n + stream_take_told(tp, events + n, max - n);
}

static int stream_wait_fd(struct tp *base)
{
    return ((struct stream_tp *)base)->epoll_fd;
}

static bool stream_arm(struct tp *base)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    return STAILQ_EMPTY(&tp->told) && TAILQ_EMPTY(&tp->ready) && TAILQ_EMPTY(&tp->looked);
}

const struct tp_table tp_stream = {
    .name = "stream",
    .open = stream_open,
    .close = stream_close,
    .listen = stream_listen,
    .connect = stream_connect,
    .accept = stream_accept,
    .reject = stream_reject,
    .disconnect = stream_disconnect,
    .ep_destroy = stream_ep_destroy,
    .reg = stream_reg,
    .unreg = stream_unreg,
    .send = stream_send,
    .write = stream_write,
    .read = stream_read,
    .mark = stream_mark,
    .reset = stream_reset,
    .room = stream_room,
    .moved = stream_moved,
    .poll = stream_poll,
    .wait_fd = stream_wait_fd,
    .arm = stream_arm,
};
