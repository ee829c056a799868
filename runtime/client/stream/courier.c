#include "runtime/client/stream/courier.h"

#include <assert.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/client/stream/courier_int.h"
#include "runtime/client/stream/connection.h"
#include "runtime/wire/parcel.h"

/* A place in the hall, or the connection to the rank, or to the agent of its node. */
struct path {
    int place; /* -1: none */
    struct tp_ep *ep;
};

/* False: there is none now. */
static bool path_to(struct client *c, int rank, uint64_t now, struct path *path)
{
    *path = (struct path){courier_stream(c, rank)->aside ? -1 : hall_place(c, rank), NULL};
    if (path->place >= 0)
        return true;
    int node = courier_node_of(c, rank);
    if (courier_stream(c, rank)->direct)
        path->ep = direct_up(c, rank);
    else
        path->ep = node >= 0 ? connection_up(c, node, now) : NULL;
    if (!path->ep)
        coll_wake_at(c, now + COURIER_RETRY_FIRST_NS);
    return path->ep != NULL;
}

/* False: there is no memory for it now. */
static bool post_over(struct tp_ep *ep, const struct wire *w, const void *head, size_t head_len, const void *data,
                      size_t len)
{
    uint8_t header[sizeof *w + COURIER_HEAD_MAX];
    memcpy(header, w, sizeof *w);
    if (head_len)
        memcpy(header + sizeof *w, head, head_len);
    keel_status status = tp_send(ep, header, sizeof *w + head_len, data, len, NULL);
    if (status != KEEL_OK && status != KEEL_ERR_LINK &&
        status != KEEL_ERR_NOMEM) /* with LINK, TP_CLOSED comes by itself */
        tp_disconnect(ep);
    return status != KEEL_ERR_NOMEM;
}

/* False: there is no room now. The rest of m is said here: from whom, to whom, what is here of theirs. */
static bool post(struct client *c, int rank, const struct path *path, struct msg_parcel *m, const void *head,
                 size_t head_len, const void *data, size_t len)
{
    struct stream *s = courier_stream(c, rank);
    struct wire w;
    m->sender = client_life(c);
    m->receiver = life_of(rank, (uint32_t)(c->coll.life[rank].life - 1));
    m->received = s->received;
    m->len = (uint32_t)(head_len + len);
    msg_parcel_encode(m, &w);
    assert(path->place >= 0 || path->ep); /* path_to said so */
    if (path->place < 0 && !post_over(path->ep, &w, head, head_len, data, len)) {
        coll_wake_at(c, c->progress.looked_at + COURIER_RETRY_FIRST_NS);
        return false;
    }
    if (path->place >= 0 && !hall_send(c, path->place, &w, head, head_len, data, len))
        return false;
    s->told = s->received;
    s->ack_due = false;
    return true;
}

static uint64_t window_of(const struct stream *s)
{
    return s->direct ? COURIER_WINDOW_DIRECT : COURIER_WINDOW;
}

/* Pieces that are under way; of what is hollow there is nothing. */
static uint64_t under_way(const struct stream *s)
{
    uint64_t n = s->sent - s->acked;
    for (const struct parcel *p = s->hollow ? s->head : NULL; p && p->first <= s->sent; p = p->next) {
        uint64_t last = p->first + p->pieces - 1, from = p->first > s->acked ? p->first : s->acked + 1;
        if (p->hollow && last >= from)
            n -= (last < s->sent ? last : s->sent) + 1 - from;
    }
    return n;
}

bool courier_may_send(const struct stream *s)
{
    return s->at && (s->at->hollow || under_way(s) < window_of(s));
}

/* Piece `number` and up to n - 1 that follow it. */
static bool send_pieces(struct client *c, int rank, const struct path *path, const struct parcel *p, uint64_t number,
                        uint64_t n)
{
    size_t total = p->head_len + p->len, from = (size_t)(number - p->first) * COURIER_PIECE;
    size_t to = total - from > n * COURIER_PIECE ? from + n * COURIER_PIECE : total;
    size_t head_len = from == 0 ? p->head_len : 0, at = from == 0 ? 0 : from - p->head_len;
    bool last = number + n == p->first + p->pieces;
    bool detour = path->ep && !courier_stream(c, rank)->direct && direct_up(c, rank); /* until all is acknowledged */
    struct msg_parcel m = {.piece = number,
                           .kind = p->tag.kind,
                           .creating = p->tag.creating,
                           .tell = p->tag.tell || (last && (p->borrowed || p->put_by || detour)),
                           .total = total,
                           .at = from};
    return post(c, rank, path, &m, p->head, head_len, p->data + at, to - from - head_len);
}

static bool send_hollow(struct client *c, int rank, const struct path *path, const struct parcel *p, uint64_t number,
                        uint64_t n)
{
    struct msg_parcel m = {.piece = number,
                           .kind = p->tag.kind,
                           .creating = p->tag.creating,
                           .tell = true,
                           .hollow = true,
                           .hollows = (uint32_t)n};
    return post(c, rank, path, &m, NULL, 0, NULL, 0);
}

/* Of the parcel that is next, as many as go in one message. */
static uint64_t pieces_next(const struct stream *s)
{
    uint64_t left = s->at->first + s->at->pieces - (s->sent + 1);
    if (s->at->hollow)
        return left < UINT32_MAX ? left : UINT32_MAX;
    uint64_t open = window_of(s) - under_way(s);
    uint64_t most = s->direct ? COURIER_TOGETHER : 1;
    left = left < open ? left : open;
    return left < most ? left : most;
}

static bool has_room(struct client *c, const struct stream *s, const struct path *path)
{
    bool room = !s->direct || tp_room(path->ep);
    c->direct.crowded = c->direct.crowded || !room;
    return room;
}

/* In the middle of an acknowledgement those that it has reached stand before it. */
static struct parcel *first_not_acked(const struct stream *s)
{
    struct parcel *p = s->head;
    while (p && p->first + p->pieces <= s->acked + 1)
        p = p->next;
    return p;
}

void courier_rewind(struct stream *s)
{
    s->sent = s->acked;
    s->at = first_not_acked(s);
}

/* The way that the next piece goes. A receiver that is not looking leaves what we send it in sockets and in queues of
 * this process, and who returns from a call may make no further one for long: so what nobody waits for is little, or
 * goes through the agent, who always takes. */
static void choose_way(struct client *c, int rank)
{
    struct stream *s = courier_stream(c, rank);
    if (s->hollow && !s->aside) { /* what was sent of it may fill the ring or the socket until the receiver looks */
        courier_rewind(s);
        s->aside = true;
        s->direct = false;
    }
    s->aside = s->aside && (s->hollow || s->sent != s->acked);
    bool direct = !s->handed_on && !s->aside && s->loose <= COURIER_LOOSE_MAX && direct_up(c, rank);
    if (direct == s->direct || (direct && s->sent != s->acked))
        return;
    courier_rewind(s);
    s->direct = direct;
}

void courier_pump(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    choose_way(c, rank);
    if (!courier_may_send(s) || now < s->retry_at || c->coll.broken != KEEL_OK)
        return;
    struct path path;
    if (!path_to(c, rank, now, &path))
        return;
    while (courier_may_send(s) && (path.place >= 0 || has_room(c, s, &path))) {
        uint64_t n = pieces_next(s);
        bool (*send)(struct client *, int, const struct path *, const struct parcel *, uint64_t, uint64_t) =
            s->at->hollow ? send_hollow : send_pieces;
        if (!send(c, rank, &path, s->at, s->sent + 1, n))
            return;
        s->sent += n;
        if (s->sent + 1 == s->at->first + s->at->pieces)
            s->at = s->at->next;
    }
}

void courier_flow(struct client *c, uint64_t now)
{
    c->direct.crowded = false;
    for (int r = 0; r < c->size; r++)
        if (courier_stream(c, r)->direct)
            courier_pump(c, r, now);
}

/* There is no memory to send it: as if it had been lost with a connection; but who has no memory for data says so. */
static void missed(struct client *c, int rank, bool data, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    s->missed = true;
    s->missed_data = s->missed_data || data;
    s->missed_at = now + COLL_MISSED_NS;
    coll_wake_at(c, s->missed_at);
}

/* False: there is no memory. *borrowed: the data are not copied; in: they need not be. */
static bool enqueue(struct client *c, int rank, const struct parcel_tag *tag, const void *head, size_t head_len,
                    const void *data, size_t len, bool *borrowed)
{
    struct stream *s = courier_stream(c, rank);
    uint64_t now = c->env.now(c->env.user);
    if (tag->kind != PARCEL_WHERE && courier_node_of(c, rank) != c->node)
        direct_want(c, rank, now);
    struct parcel *p = parcel_new(c, s, tag, len, borrowed);
    if (!p)
        return false;
    s->put_by += p->put_by;
    size_t total = head_len + len;
    *p = (struct parcel){.tag = *tag,
                         .first = s->next + 1,
                         .pieces = total ? (total + COURIER_PIECE - 1) / COURIER_PIECE : 1,
                         .borrowed = *borrowed,
                         .put_by = p->put_by,
                         .data = *borrowed ? data : p->copy,
                         .head_len = head_len,
                         .len = len};
    memcpy(p->head, head, head_len);
    if (!*borrowed && len)
        memcpy(p->copy, data, len);
    s->next += p->pieces;
    s->loose += parcel_weight(p);
    *s->tail = p;
    s->tail = &p->next;
    if (!s->at)
        s->at = p;
    FAULT_POINT("parcel.sending");
    courier_pump(c, rank, now);
    FAULT_POINT("parcel.sent");
    return true;
}

static bool nobody_gets_it(const struct client *c, int rank)
{
    return !c->coll.life[rank].life || c->fatal != KEEL_OK || c->coll.broken != KEEL_OK;
}

bool courier_send(struct client *c, int rank, const struct parcel_tag *tag, const void *head, size_t head_len,
                  const void *data, size_t len)
{
    bool borrowed = len > COURIER_COPY_MAX && tag->group;
    if (nobody_gets_it(c, rank))
        return true;
    if (enqueue(c, rank, tag, head, head_len, data, len, &borrowed))
        return !borrowed;
    missed(c, rank, len > 0, c->env.now(c->env.user));
    return true;
}

bool courier_offer(struct client *c, int rank, const struct parcel_tag *tag, const void *head, size_t head_len,
                   const void *data, size_t len)
{
    bool borrowed = false;
    return nobody_gets_it(c, rank) || enqueue(c, rank, tag, head, head_len, data, len, &borrowed);
}

void courier_acknowledged(struct client *c, int rank, uint64_t up_to, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    if (up_to <= s->acked || up_to > s->next)
        return;
    s->acked = up_to;
    s->retry_ns = COURIER_RETRY_FIRST_NS;
    s->stopped_since = 0;
    s->given_up = false;
    if (s->sent < up_to) { /* an acknowledgement of what was to be sent again */
        s->sent = up_to;
        s->at = first_not_acked(s);
    }
    while (s->head && s->head->first + s->head->pieces <= up_to + 1) {
        struct parcel *p = s->head;
        s->head = p->next;
        if (!s->head)
            s->tail = &s->head;
        s->loose -= parcel_weight(p);
        if (p->borrowed)
            coll_delivered(c, p->tag.group, p->tag.seq, rank, now);
        parcel_free(c, s, p);
    }
    courier_pump(c, rank, now);
}

void courier_acknowledge(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    struct path path;
    struct msg_parcel nothing = {0};
    if (!path_to(c, rank, now, &path) || !post(c, rank, &path, &nothing, NULL, 0, NULL, 0))
        s->ack_due = true;
}

void courier_wake(struct client *c, int rank)
{
    struct path path = {-1, client_own_connection(c)->way.ep};
    struct msg_parcel nothing = {0};
    if (path.ep)
        (void)post(c, rank, &path, &nothing, NULL, 0, NULL, 0);
}

void courier_room(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    if (s->ack_due)
        courier_acknowledge(c, rank, now);
    courier_pump(c, rank, now);
}
