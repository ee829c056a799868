#include "runtime/transport/stream.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/transport/sock.h"

enum {
    WORD = 8,                     /* a length, and what messages are padded to */
    INPUT_BYTES = 192 * 1024,     /* of one ep: more than the largest message; untouched pages cost nothing */
    QUEUE_MAX = 64 * 1024 * 1024, /* copied bytes that wait in one ep */
    HELLO_MS = 1000,              /* for an incoming connection to say hello */
    STRANGERS_MAX = 128,          /* that have not */
    ACCEPTS_AT_ONCE = 16,
    EVENTS_AT_ONCE = 32,
    BACKLOG = 1024,
};
static_assert((size_t)INPUT_BYTES >= 2 * WORD + TP_FRAME_MAX, "the largest message fits");
enum { VERDICT_ACCEPTED = 0, VERDICT_REJECTED = 1 };

enum what { IS_LISTENER, IS_REQUEST, IS_EP };

/* An event that waits for the next poll, in memory of what it is about. */
struct told {
    STAILQ_ENTRY(told) link;
    struct tp_event event;
    void *holder; /* freed with it, or NULL */
};

/* On its way to the kernel, or the event that it has left. */
struct output {
    STAILQ_ENTRY(output) link;
    struct tp_op *op; /* NULL: nobody wants to hear */
    const uint8_t *data;
    size_t len, at; /* of data with the words around it */
    uint64_t word;  /* before it */
    struct told told;
    uint8_t bytes[];
};
STAILQ_HEAD(output_list, output);

/*  CONNECTING --> ASKING --accepted--> UP --lost--> DOWN --> ENDED
 *  DOWN: what was received before is still delivered. ENDED: told, or about to be. */
enum ep_state { EP_CONNECTING, EP_ASKING, EP_UP, EP_DOWN, EP_ENDED };

struct stream_ep {
    struct tp_ep base;
    enum what what;
    enum ep_state state;
    int fd;
    uint32_t watched;
    struct output_list out;
    size_t copied;
    uint8_t *in;     /* INPUT_BYTES */
    size_t from, to; /* not looked at yet */
    bool alone;      /* the first message is delivered alone: the keys of the others come with it */
    bool marked;
    uint8_t send_key[crypto_shorthash_KEYBYTES], recv_key[crypto_shorthash_KEYBYTES];
    uint64_t sent, received; /* messages since then */
    bool ready, looked;      /* on these lists of the tp */
    struct told connected, closed;
    TAILQ_ENTRY(stream_ep) link, ready_link, looked_link;
};
TAILQ_HEAD(ep_list, stream_ep);

/* An incoming connection, before it was accepted. */
struct tp_connreq {
    enum what what;
    int fd;
    struct sockaddr_in6 peer;
    uint64_t since_ns;
    bool asked; /* the caller was told */
    struct told told;
    size_t len; /* of in */
    union {
        uint64_t word;
        uint8_t bytes[WORD + TP_CONNECT_MAX];
    } in;
    TAILQ_ENTRY(tp_connreq) link;
};

struct stream_tp {
    struct tp base;
    enum what what;
    struct sockaddr_in6 host; /* or sockaddr_in */
    socklen_t host_len;
    int epoll_fd, listen_fd;
    int spare_fd; /* given up for a moment when no descriptor is left */
    uint64_t guard_ns;
    int strangers; /* requests of whom the caller does not know */
    struct ep_list eps, ready, looked, graveyard;
    TAILQ_HEAD(, tp_connreq) reqs; /* the oldest first */
    STAILQ_HEAD(, told) told;
};

static struct stream_tp *tp_of(const struct tp_ep *ep)
{
    return (struct stream_tp *)ep->tp;
}

/* ---- events that wait ---- */

static void tell(struct stream_tp *tp, struct told *told, struct tp_event event)
{
    told->event = event;
    STAILQ_INSERT_TAIL(&tp->told, told, link);
}

static void output_end(struct stream_ep *ep, struct output *o, keel_status status)
{
    o->told.holder = o;
    if (o->op)
        tell(tp_of(&ep->base), &o->told,
             (struct tp_event){.type = TP_DONE, .status = status, .ep = &ep->base, .op = o->op});
    else
        free(o);
}

static int take_told(struct stream_tp *tp, struct tp_event *events, int max)
{
    struct told *told;
    int n = 0;
    while (n < max && (told = STAILQ_FIRST(&tp->told)) != NULL) {
        STAILQ_REMOVE_HEAD(&tp->told, link);
        events[n++] = told->event;
        free(told->holder);
    }
    return n;
}

static void forget_told(struct stream_tp *tp, const struct tp_ep *ep)
{
    struct told *told = STAILQ_FIRST(&tp->told), *next;
    for (; told; told = next) {
        next = STAILQ_NEXT(told, link);
        if (ep && told->event.ep != ep)
            continue;
        STAILQ_REMOVE(&tp->told, told, told, link);
        free(told->holder);
    }
}

/* ---- descriptors ---- */

static bool watch(struct stream_tp *tp, int fd, uint32_t events, void *who, int how)
{
    struct epoll_event event = {.events = events, .data.ptr = who};
    return epoll_ctl(tp->epoll_fd, how, fd, &event) == 0;
}

static void watch_ep(struct stream_ep *ep, uint32_t events)
{
    if (ep->watched == events)
        return;
    watch(tp_of(&ep->base), ep->fd, events, &ep->what, EPOLL_CTL_MOD);
    ep->watched = events;
}

static void spare_open(struct stream_tp *tp)
{
    if (tp->spare_fd < 0)
        tp->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* ---- the end of a connection ---- */

static void outputs_end(struct stream_ep *ep, bool say)
{
    struct output *o;
    while ((o = STAILQ_FIRST(&ep->out)) != NULL) {
        STAILQ_REMOVE_HEAD(&ep->out, link);
        if (say)
            output_end(ep, o, KEEL_ERR_LINK);
        else
            free(o);
    }
}

static void unlist(struct stream_ep *ep)
{
    struct stream_tp *tp = tp_of(&ep->base);
    if (ep->ready)
        TAILQ_REMOVE(&tp->ready, ep, ready_link);
    if (ep->looked)
        TAILQ_REMOVE(&tp->looked, ep, looked_link);
    ep->ready = ep->looked = false;
}

static void ep_end(struct stream_ep *ep, keel_status status)
{
    if (ep->state == EP_ENDED)
        return;
    ep->state = EP_ENDED;
    if (ep->fd >= 0)
        close(ep->fd);
    ep->fd = -1;
    unlist(ep);
    outputs_end(ep, true);
    tell(tp_of(&ep->base), &ep->closed, (struct tp_event){.type = TP_CLOSED, .status = status, .ep = &ep->base});
}

/* Hard and at once. A reset, for the peer may not understand an orderly end: somebody who has put bytes into the stream has
 * made its numbers disagree with ours. */
static void ep_drop(struct stream_ep *ep)
{
    const struct linger at_once = {.l_onoff = 1};
    if (ep->fd >= 0)
        setsockopt(ep->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ep_end(ep, KEEL_ERR_LINK);
}

static void make_ready(struct stream_ep *ep)
{
    if (ep->ready)
        return;
    ep->ready = true;
    TAILQ_INSERT_TAIL(&tp_of(&ep->base)->ready, ep, ready_link);
}

/* The kernel says that it is over: what was received before comes first. */
static void ep_lost(struct stream_ep *ep)
{
    if (ep->state < EP_UP)
        ep_end(ep, KEEL_ERR_LINK);
    if (ep->state != EP_UP)
        return;
    ep->state = EP_DOWN;
    watch_ep(ep, 0); /* the poll reads the rest */
    make_ready(ep);
}

/* ---- lengths and their marks ---- */

static uint64_t word_of(const uint8_t *key, uint64_t number, uint64_t len)
{
    uint64_t said[2] = {number, len}, mark;
    static_assert(sizeof mark == crypto_shorthash_BYTES, "a word");
    crypto_shorthash((uint8_t *)&mark, (const uint8_t *)said, sizeof said, key);
    return len | mark << 32;
}

static void stream_mark(struct tp_ep *tp_ep, const uint8_t *send_key, const uint8_t *recv_key)
{
    struct stream_ep *ep = (struct stream_ep *)tp_ep;
    memcpy(ep->send_key, send_key, sizeof ep->send_key);
    memcpy(ep->recv_key, recv_key, sizeof ep->recv_key);
    ep->marked = true;
    ep->alone = false;
}

/* ---- sending ---- */

static const uint8_t zeros[WORD];

/* The words around an output and itself; where the kernel stopped the last time. Returns the pieces. */
static int pieces_of(const struct output *o, struct iovec iov[3])
{
    const struct iovec all[3] = {{(void *)(uintptr_t)&o->word, WORD},
                                 {(void *)(uintptr_t)o->data, o->len},
                                 {(void *)(uintptr_t)zeros, -o->len % WORD}};
    size_t skip = o->at;
    int n = 0;
    for (int i = 0; i < 3; i++) {
        size_t past = skip < all[i].iov_len ? skip : all[i].iov_len;
        skip -= past;
        if (all[i].iov_len > past)
            iov[n++] = (struct iovec){(uint8_t *)all[i].iov_base + past, all[i].iov_len - past};
    }
    return n;
}

static size_t size_of(const struct output *o)
{
    return WORD + o->len + -o->len % WORD;
}

/* False if the connection is lost. */
static bool flush(struct stream_ep *ep)
{
    struct output *o;
    while ((o = STAILQ_FIRST(&ep->out)) != NULL) {
        struct iovec iov[3];
        struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)pieces_of(o, iov)};
        ssize_t n = sendmsg(ep->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
            break;
        if (n < 0) {
            ep_lost(ep);
            return false;
        }
        o->at += (size_t)n;
        if (o->at < size_of(o))
            break;
        STAILQ_REMOVE_HEAD(&ep->out, link);
        if (!o->op)
            ep->copied -= o->len;
        output_end(ep, o, KEEL_OK);
    }
    watch_ep(ep, EPOLLIN | (STAILQ_EMPTY(&ep->out) ? 0 : EPOLLOUT));
    return true;
}

static keel_status stream_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                               struct tp_op *op)
{
    struct stream_ep *ep = (struct stream_ep *)tp_ep;
    if (hlen > TP_FRAME_MAX || len > TP_FRAME_MAX - hlen)
        return KEEL_ERR_ARG;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    if (!op && ep->copied >= QUEUE_MAX) {
        ep_drop(ep);
        return KEEL_ERR_LINK;
    }
    bool copy = !op || len > 0; /* the caller keeps one piece only in one place */
    struct output *o = malloc(sizeof *o + (copy ? hlen + len : 0));
    if (!o)
        return KEEL_ERR_NOMEM;
    *o = (struct output){.op = op, .data = copy ? o->bytes : header, .len = hlen + len, .word = hlen + len};
    if (ep->marked)
        o->word = word_of(ep->send_key, ep->sent++, o->len);
    if (copy && hlen)
        memcpy(o->bytes, header, hlen);
    if (copy && len)
        memcpy(o->bytes + hlen, body, len);
    if (op)
        op->ep = tp_ep;
    else
        ep->copied += o->len;
    bool first = STAILQ_EMPTY(&ep->out);
    STAILQ_INSERT_TAIL(&ep->out, o, link);
    if (first)
        flush(ep); /* a loss is told by TP_CLOSED */
    return KEEL_OK;
}

/* ---- receiving ---- */

/* Reads what fits. False at the end of the stream. */
static bool fill(struct stream_ep *ep)
{
    if (ep->from == ep->to)
        ep->from = ep->to = 0;
    if (ep->to == INPUT_BYTES)
        return true;
    ssize_t n;
    do
        n = recv(ep->fd, ep->in + ep->to, INPUT_BYTES - ep->to, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        ep->to += (size_t)n;
    return n > 0 || (n < 0 && errno == EAGAIN);
}

/* Is there a whole message? *len: its length. *good: false if that is not what the peer has sent. */
static bool whole(const struct stream_ep *ep, uint64_t *len, bool *good)
{
    uint64_t word;
    *len = 0;
    *good = true;
    if (ep->to - ep->from < WORD)
        return false;
    memcpy(&word, ep->in + ep->from, WORD);
    *len = ep->marked ? (uint32_t)word : word;
    *good = *len <= TP_FRAME_MAX && (!ep->marked || word == word_of(ep->recv_key, ep->received, *len));
    return *good && ep->to - ep->from >= WORD + *len + -*len % WORD;
}

static int deliver(struct stream_ep *ep, struct tp_event *events, int max)
{
    uint64_t len = 0;
    bool good = true, more;
    int n = 0;
    while ((more = whole(ep, &len, &good)) && n < max && !(ep->alone && n > 0)) {
        events[n++] = (struct tp_event){.type = TP_RECV, .ep = &ep->base, .data = ep->in + ep->from + WORD, .len = len};
        ep->from += WORD + len + -len % WORD;
        ep->received += ep->marked;
    }
    if (n > 0 && !ep->looked) {
        ep->looked = true;
        TAILQ_INSERT_TAIL(&tp_of(&ep->base)->looked, ep, looked_link);
    }
    if (!good && !(ep->alone && n > 0)) {
        log_warn_some("what came on a connection is not what was sent; it ends");
        ep_drop(ep);
    } else if (more || !good) {
        make_ready(ep);
    }
    return n;
}

/* The caller has looked at what was delivered: the rest moves to the front, where its words are aligned. */
static void recycle(struct stream_tp *tp)
{
    struct stream_ep *ep;
    while ((ep = TAILQ_FIRST(&tp->looked)) != NULL) {
        TAILQ_REMOVE(&tp->looked, ep, looked_link);
        ep->looked = false;
        memmove(ep->in, ep->in + ep->from, ep->to - ep->from);
        ep->to -= ep->from;
        ep->from = 0;
    }
    while ((ep = TAILQ_FIRST(&tp->graveyard)) != NULL) {
        TAILQ_REMOVE(&tp->graveyard, ep, link);
        free(ep->in);
        free(ep);
    }
}

static int work_ready(struct stream_tp *tp, struct tp_event *events, int max)
{
    int n = 0, left = 0;
    struct stream_ep *ep;
    TAILQ_FOREACH(ep, &tp->ready, ready_link)
        left++;
    while (n < max && left-- > 0 && (ep = TAILQ_FIRST(&tp->ready)) != NULL) {
        TAILQ_REMOVE(&tp->ready, ep, ready_link);
        ep->ready = false;
        bool end = ep->state == EP_DOWN && !fill(ep);
        int got = deliver(ep, events + n, max - n);
        n += got;
        if (ep->state != EP_DOWN || ep->ready)
            continue;
        if (end && got == 0)
            ep_end(ep, KEEL_ERR_LINK);
        else
            make_ready(ep);
    }
    return n;
}

/* ---- connecting ---- */

static keel_status ep_new(struct stream_tp *tp, void *user, int fd, enum ep_state state, struct stream_ep **out)
{
    struct stream_ep *ep = calloc(1, sizeof *ep);
    uint8_t *in = malloc(INPUT_BYTES);
    if (!ep || !in) {
        free(ep);
        free(in);
        return KEEL_ERR_NOMEM;
    }
    *ep =
        (struct stream_ep){.base = {.tp = &tp->base, .user = user}, .what = IS_EP, .state = state, .fd = fd, .in = in};
    STAILQ_INIT(&ep->out);
    TAILQ_INSERT_TAIL(&tp->eps, ep, link);
    *out = ep;
    return KEEL_OK;
}

static int socket_open(const struct stream_tp *tp, bool connecting)
{
    const int on = 1;
    int fd = socket(tp->host.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    struct sockaddr_in6 any_port = tp->host;
    any_port.sin6_port = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connecting)
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    sock_set_liveness(fd);
    if (bind(fd, (const struct sockaddr *)&any_port, tp->host_len) == 0)
        return fd;
    close(fd);
    return -1;
}

static keel_status status_of(int error)
{
    return error == ECONNREFUSED ? KEEL_ERR_NODE_DEAD : KEEL_ERR_LINK;
}

static keel_status stream_connect(struct tp *base, const struct tp_addr *to, const void *hello, size_t len, void *user,
                                  struct tp_ep **out)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    struct stream_ep *ep;
    if (len > TP_CONNECT_MAX || to->len != tp->host_len)
        return KEEL_ERR_ARG;
    struct output *o = malloc(sizeof *o + len);
    int fd = socket_open(tp, true);
    keel_status status = !o ? KEEL_ERR_NOMEM : fd < 0 ? KEEL_ERR_SYSTEM : ep_new(tp, user, fd, EP_CONNECTING, &ep);
    if (status != KEEL_OK) {
        if (fd >= 0)
            close(fd);
        free(o);
        return status;
    }
    *o = (struct output){.data = o->bytes, .len = len, .word = len};
    if (len)
        memcpy(o->bytes, hello, len);
    ep->copied = len;
    STAILQ_INSERT_TAIL(&ep->out, o, link);
    ep->watched = EPOLLOUT;
    int rc = connect(fd, (const struct sockaddr *)to->bytes, to->len);
    if ((rc < 0 && errno != EINPROGRESS) || !watch(tp, fd, EPOLLOUT, &ep->what, EPOLL_CTL_ADD))
        ep_end(ep, status_of(errno));
    *out = &ep->base;
    return KEEL_OK;
}

/* The socket is connected, or not. */
static void on_connected(struct stream_ep *ep)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(ep->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        ep_end(ep, status_of(error));
        return;
    }
    ep->state = EP_ASKING;
    flush(ep);
}

static void on_verdict(struct stream_ep *ep)
{
    uint64_t verdict;
    bool open = fill(ep);
    if (ep->to - ep->from < sizeof verdict) {
        if (!open)
            ep_end(ep, KEEL_ERR_LINK);
        return;
    }
    memcpy(&verdict, ep->in + ep->from, sizeof verdict);
    ep->from += sizeof verdict;
    if (verdict != VERDICT_ACCEPTED) {
        ep_end(ep, verdict == VERDICT_REJECTED ? KEEL_ERR_AUTH : KEEL_ERR_LINK);
        return;
    }
    ep->state = EP_UP;
    ep->alone = true;
    tell(tp_of(&ep->base), &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
    memmove(ep->in, ep->in + ep->from, ep->to - ep->from);
    ep->to -= ep->from;
    ep->from = 0;
    make_ready(ep); /* something may have come with it */
}

/* ---- being connected to ---- */

static keel_status stream_listen(struct tp *base, struct tp_addr *out)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    socklen_t len = sizeof out->bytes;
    if (tp->listen_fd >= 0)
        return KEEL_ERR_STATE;
    int fd = socket_open(tp, false);
    if (fd < 0 || listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)out->bytes, &len) ||
        !watch(tp, fd, EPOLLIN, &tp->what, EPOLL_CTL_ADD)) {
        log_warn("transport: cannot listen: %m");
        if (fd >= 0)
            close(fd);
        return KEEL_ERR_SYSTEM;
    }
    out->len = len;
    tp->listen_fd = fd;
    return KEEL_OK;
}

static void request_free(struct stream_tp *tp, struct tp_connreq *req)
{
    TAILQ_REMOVE(&tp->reqs, req, link);
    tp->strangers -= !req->asked;
    if (req->fd >= 0)
        close(req->fd);
    free(req);
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
        request_free(tp, worst);
}

static void drop_late(struct stream_tp *tp)
{
    struct tp_connreq *req, *next;
    uint64_t now = clock_now_ns();
    if (tp->strangers == 0 || now < tp->guard_ns)
        return;
    tp->guard_ns = now + HELLO_MS * KEEL_NS_PER_MS / 10;
    for (req = TAILQ_FIRST(&tp->reqs); req; req = next) {
        next = TAILQ_NEXT(req, link);
        if (!req->asked && now - req->since_ns >= HELLO_MS * KEEL_NS_PER_MS)
            request_free(tp, req);
    }
}

static bool accept_one(struct stream_tp *tp)
{
    const int on = 1;
    struct tp_connreq *req = calloc(1, sizeof *req);
    socklen_t len = sizeof req->peer;
    if (!req)
        return false;
    req->what = IS_REQUEST;
    req->since_ns = clock_now_ns();
    req->fd = accept4(tp->listen_fd, (struct sockaddr *)&req->peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (req->fd < 0) {
        bool full = errno == EMFILE || errno == ENFILE;
        free(req);
        if (!full || tp->spare_fd < 0)
            return false;
        close(tp->spare_fd); /* one less may wait: else the listener would wake us for ever */
        tp->spare_fd = -1;
        int fd = accept4(tp->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
        spare_open(tp);
        return false;
    }
    setsockopt(req->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sock_set_liveness(req->fd);
    TAILQ_INSERT_TAIL(&tp->reqs, req, link);
    tp->strangers++;
    if (!watch(tp, req->fd, EPOLLIN, &req->what, EPOLL_CTL_ADD))
        request_free(tp, req);
    else if (tp->strangers > STRANGERS_MAX)
        drop_surplus(tp);
    return true;
}

/* More of a hello. */
static void on_request(struct stream_tp *tp, struct tp_connreq *req)
{
    ssize_t n = recv(req->fd, req->in.bytes + req->len, sizeof req->in - req->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        req->len += (size_t)n;
    bool has_word = req->len >= WORD;
    size_t want = has_word && req->in.word <= TP_CONNECT_MAX ? WORD + req->in.word + -req->in.word % WORD : 0;
    if (n <= 0 || (has_word && want == 0) || (want && req->len > want)) {
        request_free(tp, req);
        return;
    }
    if (!want || req->len < want)
        return;
    req->asked = true;
    tp->strangers--;
    watch(tp, req->fd, 0, NULL, EPOLL_CTL_DEL);
    tell(tp, &req->told,
         (struct tp_event){.type = TP_CONNREQ, .req = req, .data = req->in.bytes + WORD, .len = req->in.word});
}

static void say_verdict(int fd, uint64_t verdict)
{
    /* fits the empty buffer of a new connection */
    while (send(fd, &verdict, sizeof verdict, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
}

static keel_status stream_accept(struct tp *base, struct tp_connreq *req, void *user, struct tp_ep **out)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    struct stream_ep *ep;
    keel_status status = ep_new(tp, user, req->fd, EP_UP, &ep);
    if (status == KEEL_OK) {
        say_verdict(ep->fd, VERDICT_ACCEPTED);
        ep->watched = EPOLLIN;
        tell(tp, &ep->connected, (struct tp_event){.type = TP_CONNECTED, .ep = &ep->base});
        if (!watch(tp, ep->fd, EPOLLIN, &ep->what, EPOLL_CTL_ADD))
            ep_end(ep, KEEL_ERR_LINK);
        req->fd = -1;
        *out = &ep->base;
    }
    request_free(tp, req);
    return status;
}

static void stream_reject(struct tp *base, struct tp_connreq *req)
{
    say_verdict(req->fd, VERDICT_REJECTED);
    request_free((struct stream_tp *)base, req);
}

static void stream_disconnect(struct tp_ep *ep)
{
    ep_end((struct stream_ep *)ep, KEEL_ERR_LINK);
}

static void stream_reset(struct tp_ep *ep)
{
    ep_drop((struct stream_ep *)ep);
}

static void stream_ep_destroy(struct tp_ep *tp_ep)
{
    if (!tp_ep)
        return;
    struct stream_ep *ep = (struct stream_ep *)tp_ep;
    struct stream_tp *tp = tp_of(tp_ep);
    if (ep->fd >= 0)
        close(ep->fd);
    ep->fd = -1;
    ep->state = EP_ENDED;
    unlist(ep);
    outputs_end(ep, false);
    forget_told(tp, tp_ep);
    TAILQ_REMOVE(&tp->eps, ep, link);
    TAILQ_INSERT_TAIL(&tp->graveyard, ep, link);
}

/* ---- open, close, poll ---- */

static void stream_close(struct tp *base)
{
    struct stream_tp *tp = (struct stream_tp *)base;
    forget_told(tp, NULL);
    while (!TAILQ_EMPTY(&tp->reqs))
        request_free(tp, TAILQ_FIRST(&tp->reqs)); // NOLINT(clang-analyzer-unix.Malloc): it is off the list
    while (!TAILQ_EMPTY(&tp->eps))
        stream_ep_destroy(&TAILQ_FIRST(&tp->eps)->base);
    recycle(tp);
    int fds[] = {tp->listen_fd, tp->spare_fd, tp->epoll_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(tp);
}

static keel_status stream_open(const struct tp_config *config, struct tp **out)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (!config->host || getaddrinfo(config->host, NULL, &hints, &found) != 0 ||
        found->ai_addrlen > sizeof(struct sockaddr_in6)) {
        log_error("transport: %s is not an address", config->host ? config->host : "nothing");
        if (found)
            freeaddrinfo(found);
        return KEEL_ERR_ARG;
    }
    struct stream_tp *tp = calloc(1, sizeof *tp);
    if (tp) {
        *tp = (struct stream_tp){.base.table = &tp_stream, .what = IS_LISTENER, .listen_fd = -1, .spare_fd = -1};
        memcpy(&tp->host, found->ai_addr, found->ai_addrlen);
        tp->host_len = found->ai_addrlen;
    }
    freeaddrinfo(found);
    if (!tp)
        return KEEL_ERR_NOMEM;
    TAILQ_INIT(&tp->eps);
    TAILQ_INIT(&tp->ready);
    TAILQ_INIT(&tp->looked);
    TAILQ_INIT(&tp->graveyard);
    TAILQ_INIT(&tp->reqs);
    STAILQ_INIT(&tp->told);
    tp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    spare_open(tp);
    if (tp->epoll_fd < 0) {
        stream_close(&tp->base);
        return KEEL_ERR_SYSTEM;
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
        on_connected(ep);
        return 0;
    }
    if (ep->state == EP_ASKING && (what & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        on_verdict(ep);
        return 0;
    }
    if ((what & EPOLLOUT) && ep->state <= EP_UP && !flush(ep))
        return 0;
    if (ep->state != EP_UP || ep->ready || ep->looked || !(what & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return 0;
    bool open = fill(ep);
    int n = deliver(ep, events, max);
    if (!open)
        ep_lost(ep);
    return n;
}

static int on_epoll(struct stream_tp *tp, const struct epoll_event *event, struct tp_event *events, int max)
{
    enum what *what = event->data.ptr; /* a member of its owner */
    switch (*what) {
    case IS_LISTENER:
        for (int i = 0; i < ACCEPTS_AT_ONCE && accept_one(tp); i++)
            ;
        return 0;
    case IS_REQUEST:
        on_request(tp, (struct tp_connreq *)what);
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
    recycle(tp);
    int n = take_told(tp, events, max);
    n += work_ready(tp, events + n, max - n);
    int got = n < max ? epoll_wait(tp->epoll_fd, ready, max - n < EVENTS_AT_ONCE ? max - n : EVENTS_AT_ONCE, 0) : 0;
    /* the listener last: whom it drops may be among the others */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < got; i++)
            if ((ready[i].data.ptr == &tp->what) == pass)
                n += on_epoll(tp, &ready[i], events + n, max - n);
    drop_late(tp);
    return n + take_told(tp, events + n, max - n);
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
    .poll = stream_poll,
    .wait_fd = stream_wait_fd,
    .arm = stream_arm,
};
