/* A connection over sockets: what is sent and received. */
#include "runtime/net/stream/stream_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/log.h"
#include "runtime/net/sock.h"

/* ---- lengths and their marks ---- */

static uint64_t word_of(const uint8_t *key, uint64_t number, uint64_t len)
{
    uint64_t said[2] = {number, len}, mark;
    static_assert(sizeof mark == crypto_shorthash_BYTES, "a word");
    crypto_shorthash((uint8_t *)&mark, (const uint8_t *)said, sizeof said, key);
    return len | mark << 32;
}

void stream_mark(struct tp_ep *tp_ep, const uint8_t *send_key, const uint8_t *recv_key)
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
bool stream_flush(struct stream_ep *ep)
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
            stream_ep_lost(ep);
            return false;
        }
        o->at += (size_t)n;
        if (o->at < size_of(o))
            break;
        STAILQ_REMOVE_HEAD(&ep->out, link);
        if (!o->op)
            ep->copied -= o->len;
        stream_output_end(ep, o, KEEL_OK);
    }
    stream_watch_ep(ep, EPOLLIN | (STAILQ_EMPTY(&ep->out) ? 0 : EPOLLOUT));
    return true;
}

/* What nobody wants to hear of goes to the kernel from where it is, if nothing waits before it. *at: how much of it,
 * with its words, has gone. False if the connection is lost. */
static bool send_now(struct stream_ep *ep, uint64_t word, const void *header, size_t hlen, const void *body, size_t len,
                     size_t *at)
{
    struct iovec iov[4] = {{&word, WORD},
                           {(void *)(uintptr_t)header, hlen},
                           {(void *)(uintptr_t)body, len},
                           {(void *)(uintptr_t)zeros, -(hlen + len) % WORD}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 4};
    ssize_t n;
    do
        n = sendmsg(ep->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    *at = n > 0 ? (size_t)n : 0;
    return n >= 0 || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM;
}

keel_status stream_send(struct tp_ep *tp_ep, const void *header, size_t hlen, const void *body, size_t len,
                        struct tp_op *op)
{
    struct stream_ep *ep = (struct stream_ep *)tp_ep;
    if (hlen > TP_FRAME_MAX || len > TP_FRAME_MAX - hlen)
        return KEEL_ERR_ARG;
    if (ep->state != EP_UP)
        return KEEL_ERR_LINK;
    if (!op && ep->copied >= QUEUE_MAX) {
        stream_ep_drop(ep);
        return KEEL_ERR_LINK;
    }
    bool first = STAILQ_EMPTY(&ep->out);
    uint64_t word = ep->marked ? word_of(ep->send_key, ep->sent, hlen + len) : hlen + len;
    size_t at = 0;
    if (first && !op) {
        if (!send_now(ep, word, header, hlen, body, len, &at)) {
            stream_ep_lost(ep);
            return KEEL_OK; /* told by TP_CLOSED */
        }
        if (at == WORD + hlen + len + -(hlen + len) % WORD) {
            ep->sent += ep->marked;
            return KEEL_OK;
        }
    }
    bool copy = !op || len > 0; /* the caller keeps one piece only in one place */
    struct output *o = malloc(sizeof *o + (copy ? hlen + len : 0));
    if (!o) {
        if (at > 0)
            stream_ep_drop(ep); /* half a message is out */
        return at > 0 ? KEEL_ERR_LINK : KEEL_ERR_NOMEM;
    }
    *o = (struct output){.op = op, .data = copy ? o->bytes : header, .len = hlen + len, .at = at, .word = word};
    ep->sent += ep->marked;
    if (copy && hlen)
        memcpy(o->bytes, header, hlen);
    if (copy && len)
        memcpy(o->bytes + hlen, body, len);
    if (op)
        op->ep = tp_ep;
    else
        ep->copied += o->len;
    STAILQ_INSERT_TAIL(&ep->out, o, link);
    if (first)
        stream_flush(ep); /* a loss is told by TP_CLOSED */
    return KEEL_OK;
}

bool stream_room(const struct tp_ep *tp_ep)
{
    return STAILQ_EMPTY(&((const struct stream_ep *)tp_ep)->out);
}

bool stream_moved(const struct tp_ep *tp_ep, struct tp_moved *moved)
{
    const struct stream_ep *ep = (const struct stream_ep *)tp_ep;
    return ep->state == EP_UP && sock_moved(ep->fd, moved);
}

/* ---- receiving ---- */

/* Reads what fits. False at the end of the stream. */
bool stream_fill(struct stream_ep *ep)
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

int stream_deliver(struct stream_ep *ep, struct tp_event *events, int max)
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
        stream_ep_drop(ep);
    } else if (more || !good) {
        stream_make_ready(ep);
    }
    return n;
}

/* The caller has looked at what was delivered: the rest moves to the front, where its words are aligned. */
void stream_recycle(struct stream_tp *tp)
{
    struct stream_ep *ep;
    while ((ep = TAILQ_FIRST(&tp->looked)) != NULL) {
        TAILQ_REMOVE(&tp->looked, ep, looked_link);
        ep->looked = false;
        ep->alone = false; /* the keys have come, if there are any */
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

int stream_work_ready(struct stream_tp *tp, struct tp_event *events, int max)
{
    int n = 0, left = 0;
    struct stream_ep *ep;
    TAILQ_FOREACH(ep, &tp->ready, ready_link)
        left++;
    while (n < max && left-- > 0 && (ep = TAILQ_FIRST(&tp->ready)) != NULL) {
        TAILQ_REMOVE(&tp->ready, ep, ready_link);
        ep->ready = false;
        bool end = ep->state == EP_DOWN && !stream_fill(ep);
        int got = stream_deliver(ep, events + n, max - n);
        n += got;
        if (ep->state != EP_DOWN || ep->ready)
            continue;
        if (end && got == 0)
            stream_ep_end(ep, KEEL_ERR_LINK);
        else
            stream_make_ready(ep);
    }
    return n;
}
