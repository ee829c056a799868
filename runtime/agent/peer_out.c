/* What goes to a peer: messages of its stream, kept until they are acknowledged. */
#include "runtime/agent/peer_int.h"

#include <stdlib.h>
#include <string.h>

enum { COPIED_MAX = 8 * 1024 };

void peer_drop_messages(struct peer *peer, uint64_t up_to)
{
    while (peer->head && peer->head->wire.seq <= up_to) {
        struct peer_message *m = peer->head;
        peer->head = m->next;
        if (peer->unsent == m)
            peer->unsent = m->next;
        if (m->in_use) {
            m->next = peer->leaving;
            peer->leaving = m;
        } else {
            free(m);
        }
    }
    if (!peer->head)
        peer->tail = &peer->head;
}

void peer_take_back(struct peer *peer)
{
    for (struct peer_message *m = peer->leaving, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    peer->leaving = NULL;
    peer->unsent = NULL;
    for (struct peer_message *m = peer->head; m; m = m->next)
        m->in_use = false;
}

void peer_message_left(struct peer *peer, struct peer_message *m)
{
    m->in_use = false;
    for (struct peer_message **link = &peer->leaving; *link; link = &(*link)->next)
        if (*link == m) {
            *link = m->next;
            free(m);
            return;
        }
}

static size_t padded(const struct peer_message *m)
{
    return (sizeof m->wire + m->wire.len + PEER_ALIGN - 1) / PEER_ALIGN * PEER_ALIGN;
}

/* One message, from where it is kept. */
static keel_status send_one(struct peer *peer, struct peer_message *m)
{
    m->op.user = m;
    keel_status status = tp_send(peer->out.ep, &m->wire, sizeof m->wire, m->bytes, m->wire.len, &m->op);
    m->in_use = status == KEEL_OK;
    return status;
}

/* As many messages as fit, together. */
static keel_status send_some(const struct peer *peer, const struct peer_message *first, const struct peer_message *end,
                             size_t len)
{
    _Alignas(PEER_ALIGN) uint8_t frame[TP_MSG_MAX];
    size_t at = 0;
    if (first->next == end)
        return tp_send(peer->out.ep, &first->wire, sizeof first->wire, first->bytes, first->wire.len, NULL);
    for (const struct peer_message *m = first; m != end; m = m->next) {
        memcpy(frame + at, &m->wire, sizeof m->wire);
        if (m->wire.len)
            memcpy(frame + at + sizeof m->wire, m->bytes, m->wire.len);
        at += padded(m);
    }
    return tp_send(peer->out.ep, frame, len, NULL, 0, NULL);
}

/* What the transport does not take leaves a gap, which only a new connection closes: on it all that is not acknowledged
 * goes out again. */
void peer_send_unsent(struct peer *peer)
{
    struct peer_message *first;
    while ((first = peer->unsent) && peer->out.state == WAY_UP) {
        struct peer_message *end = first;
        size_t len = 0;
        keel_status status;
        while (end && end->wire.len <= COPIED_MAX && len + padded(end) <= TP_MSG_MAX) {
            len += padded(end);
            end = end->next;
        }
        if (end == first) {
            end = first->next;
            status = send_one(peer, first);
        } else {
            status = send_some(peer, first, end, len);
        }
        peer->unsent = status == KEEL_OK ? end : NULL;
        if (status != KEEL_OK && status != KEEL_ERR_LINK) /* with that, TP_CLOSED comes by itself */
            tp_disconnect(peer->out.ep);
    }
}

/* The message is the stream's next one; room: for a body behind it. NULL: out of memory. */
static struct peer_message *append(struct peers *p, struct peer *peer, const struct wire *w, size_t room, uint64_t now)
{
    struct peer_message *m = malloc(sizeof *m + room);
    if (!m)
        return NULL;
    m->next = NULL;
    m->in_use = false;
    m->bytes = m->body;
    m->wire = *w;
    m->wire.seq = peer->next++;
    m->wire.epoch = p->epoch;
    *peer->tail = m;
    peer->tail = &m->next;
    if (!peer->unsent)
        peer->unsent = m;
    peer_connect_if_due(p, peer, now);
    return m;
}

enum peer_sent peer_send(struct peers *p, int node, const struct wire *w, const void *body, uint64_t now)
{
    struct peer *peer = &p->peer[node];
    if (peer->dead)
        return PEER_IS_DEAD;
    struct peer_message *m = append(p, peer, w, w->len, now);
    if (!m)
        return PEER_NO_MEMORY;
    if (w->len)
        memcpy(m->body, body, w->len);
    if (w->len > COPIED_MAX) /* it goes alone: on its way while the next one is made */
        peer_flush(peer);
    return PEER_SENT;
}

enum peer_sent peer_send_kept(struct peers *p, int node, const struct wire *w, const void *bytes, uint64_t now)
{
    struct peer *peer = &p->peer[node];
    if (peer->dead)
        return PEER_IS_DEAD;
    struct peer_message *m = append(p, peer, w, 0, now);
    if (!m)
        return PEER_NO_MEMORY;
    m->bytes = bytes;
    return PEER_SENT;
}

static bool is_of(const struct peer_message *m, const uint8_t *from, size_t len)
{
    return m->bytes != m->body && m->bytes >= from && m->bytes < from + len;
}

void peers_let_go(struct peers *p, const void *from, size_t len)
{
    for (int i = 0; p->peer && i < p->count; i++) {
        struct peer *peer = &p->peer[i];
        bool in_use = false;
        for (const struct peer_message *m = peer->leaving; m; m = m->next)
            in_use = in_use || is_of(m, from, len);
        for (struct peer_message *m = peer->head; m; m = m->next)
            if (is_of(m, from, len)) {
                in_use = in_use || m->in_use;
                m->bytes = m->body;
                m->wire.len = 0;
            }
        if (in_use)
            peer_drop_out(peer); /* made again by peers_tick */
    }
}
