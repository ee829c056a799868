#include "runtime/client/stream/courier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/client/stream/courier_int.h"
#include "runtime/client/stream/link.h"
#include "runtime/wire/parcel.h"

enum { PARCEL_OVERHEAD = 768 };

struct parcel {
    struct parcel *next;
    struct parcel_tag tag;
    uint64_t first, pieces; /* numbers */
    bool borrowed;          /* data are the caller's */
    bool put_by;            /* of the memory that is put by */
    bool hollow;            /* nobody needs its data any more: what is left of it goes as one message without any */
    const uint8_t *data;
    uint8_t *kept; /* they were, and the caller has them back; NULL: they were not */
    size_t head_len, len;
    uint8_t head[COURIER_HEAD_MAX];
    uint8_t copy[];
};

/* ---- memory that is put by ---- */

/* For messages of calls for which there is no memory, so that a call can say at least that: so many to a rank at a time, and to so many ranks. */
enum { PUT_BY_EACH = 2, PUT_BY_RANKS = 64 };

bool courier_put_by(struct client *c)
{
    int n = PUT_BY_EACH * (c->size < PUT_BY_RANKS ? c->size : PUT_BY_RANKS);
    for (int i = 0; i < n; i++) {
        struct parcel *p = calloc(1, sizeof *p);
        if (!p)
            return false;
        p->put_by = true;
        p->next = c->coll.put_by;
        c->coll.put_by = p;
    }
    return true;
}

static struct parcel *take_put_by(struct client *c)
{
    struct parcel *p = c->coll.put_by;
    c->coll.put_by = p ? p->next : NULL;
    return p;
}

static void put_back(struct client *c, struct parcel *p)
{
    if (!p->put_by) {
        free(p);
        return;
    }
    p->next = c->coll.put_by;
    c->coll.put_by = p;
}

static void parcel_free(struct client *c, struct stream *s, struct parcel *p)
{
    free(p->kept);
    p->kept = NULL;
    s->put_by -= p->put_by;
    s->hollow -= p->hollow;
    put_back(c, p);
}

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
        path->ep = node >= 0 ? link_up(c, node, now) : NULL;
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
    m->sender = life_of(c->rank, c->incarnation);
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

static bool may_send(const struct stream *s)
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

/* The way that the next piece goes. A receiver that is not looking leaves what we send it in sockets and in queues of this process, and who
 * returns from a call may make no further one for long: so what nobody waits for is little, or goes through the agent, who always takes. */
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

static void pump(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    choose_way(c, rank);
    if (!may_send(s) || now < s->retry_at || c->coll.broken != KEEL_OK)
        return;
    struct path path;
    if (!path_to(c, rank, now, &path))
        return;
    while (may_send(s) && (path.place >= 0 || has_room(c, s, &path))) {
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
            pump(c, r, now);
}

/* Of a message that no caller waits for, with what the kernel needs for it. */
static size_t weight(const struct parcel *p)
{
    return p->borrowed ? 0 : p->head_len + (p->hollow ? 0 : p->len) + PARCEL_OVERHEAD;
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

/* Memory for a message, whose data are the caller's at last if there is none for a copy. NULL: there is none. */
static struct parcel *parcel_new(struct client *c, const struct stream *s, const struct parcel_tag *tag, size_t len,
                                 bool *borrowed)
{
    struct parcel *p = malloc(sizeof *p + (*borrowed ? 0 : len));
    if (p) {
        p->put_by = false;
        return p;
    }
    if (tag->kind == PARCEL_ENGINE && (!len || tag->group) && s->put_by < PUT_BY_EACH) {
        p = take_put_by(c);
        *borrowed = len > 0;
    } else if (tag->kind != PARCEL_ENGINE && !len) {
        p = c->coll.spare;
        c->coll.spare = NULL;
    }
    return p;
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
    s->loose += weight(p);
    *s->tail = p;
    s->tail = &p->next;
    if (!s->at)
        s->at = p;
    FAULT_POINT("parcel.sending");
    pump(c, rank, now);
    FAULT_POINT("parcel.sent");
    return true;
}

static bool nobody_gets_it(const struct client *c, int rank)
{
    return !c->coll.life[rank].life || c->fatal != KEEL_OK || c->coll.broken != KEEL_OK;
}

bool courier_has_unsent(const struct client *c, int rank, uint32_t kind)
{
    const struct parcel *p = c->coll.stream[rank].at;
    while (p && p->next)
        p = p->next;
    return p && p->first > c->coll.stream[rank].sent && p->tag.kind == kind;
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

bool courier_reserve(struct client *c)
{
    if (!c->coll.spare)
        c->coll.spare = calloc(1, sizeof *c->coll.spare);
    if (!c->coll.spare)
        c->coll.spare = take_put_by(c);
    return c->coll.spare;
}

bool courier_offer(struct client *c, int rank, const struct parcel_tag *tag, const void *head, size_t head_len,
                   const void *data, size_t len)
{
    bool borrowed = false;
    return nobody_gets_it(c, rank) || enqueue(c, rank, tag, head, head_len, data, len, &borrowed);
}

/* ---- what comes ---- */

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
        s->loose -= weight(p);
        if (p->borrowed)
            coll_delivered(c, p->tag.group, p->tag.seq, rank, now);
        parcel_free(c, s, p);
    }
    pump(c, rank, now);
}

void courier_acknowledge(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    struct path path;
    struct msg_parcel nothing = {0};
    if (!path_to(c, rank, now, &path) || !post(c, rank, &path, &nothing, NULL, 0, NULL, 0))
        s->ack_due = true;
}

void courier_keep(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now)
{
    for (int r = 0; r < c->size; r++)
        for (struct parcel *p = courier_stream(c, r)->head; p; p = p->next) {
            if (!p->borrowed || p->tag.group != group || (seq && p->tag.seq != seq) || !(p->kept = malloc(p->len)))
                continue; /* without memory they are waited for */
            memcpy(p->kept, p->data, p->len);
            p->data = p->kept;
            p->borrowed = false;
            courier_stream(c, r)->loose += weight(p);
            coll_delivered(c, p->tag.group, p->tag.seq, r, now);
        }
}

void courier_drop(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now)
{
    for (int r = 0; r < c->size; r++) {
        struct stream *s = courier_stream(c, r);
        for (struct parcel *p = s->head; p; p = p->next) {
            if (!p->borrowed || p->tag.group != group || p->tag.seq != seq)
                continue;
            p->borrowed = false;
            p->hollow = true;
            p->data = NULL;
            s->hollow++;
            s->loose += weight(p);
            coll_delivered(c, p->tag.group, p->tag.seq, r, now);
        }
        if (s->hollow)
            pump(c, r, now);
    }
}

void courier_arrived(struct client *c, const struct keel_group *group, uint64_t seq, uint64_t now)
{
    for (int r = 0; r < c->size; r++) {
        uint64_t last = 0;
        for (const struct parcel *p = courier_stream(c, r)->head; p; p = p->next)
            if (p->borrowed && p->tag.group == group && p->tag.seq == seq)
                last = p->first + p->pieces - 1;
        courier_acknowledged(c, r, last, now);
    }
}

/* It is stopped, and a call has waited for it long enough: there is no room to it before it goes on. */
static bool is_stopped(const struct client *c, int rank)
{
    if (c->coll.stream[rank].given_up)
        return true;
    for (const struct keel_group *g = c->coll.groups; g; g = g->next) {
        int blamed = g->engine && engine_revoked(g->engine) ? engine_blamed(g->engine) : -1;
        if (blamed >= 0 && group_rank(g->ranks, blamed) == rank)
            return true;
    }
    return false;
}

bool courier_has_given_up(const struct client *c, int rank)
{
    return is_stopped(c, rank);
}

bool courier_has_engine_of(const struct client *c, int rank, bool (*of)(const struct keel_group *, const void *),
                           const void *arg)
{
    const struct parcel *p = c->coll.life[rank].life ? c->coll.stream[rank].at : NULL;
    while (p && !(p->tag.kind == PARCEL_ENGINE && (!p->tag.group || of(p->tag.group, arg))))
        p = p->next;
    return p && !is_stopped(c, rank);
}

static bool is_that(const struct keel_group *g, const void *group)
{
    return g == group;
}

int courier_engine_to(const struct client *c, const struct keel_group *group)
{
    int r = 0;
    while (r < c->size && !courier_has_engine_of(c, r, is_that, group))
        r++;
    return r < c->size ? r : -1;
}

bool courier_has_engine(const struct client *c, const struct keel_group *group)
{
    return courier_engine_to(c, group) >= 0;
}

bool courier_lacks_connection(const struct client *c, int rank)
{
    const struct stream *s = &c->coll.stream[rank];
    int node = courier_node_of(c, rank);
    return c->coll.life[rank].life && may_send(s) && hall_place(c, rank) < 0 && !s->direct &&
           !(node >= 0 && c->links.of[node].way.state == WAY_UP);
}

void courier_wake(struct client *c, int rank)
{
    struct path path = {-1, client_own_link(c)->way.ep};
    struct msg_parcel nothing = {0};
    if (path.ep)
        (void)post(c, rank, &path, &nothing, NULL, 0, NULL, 0);
}

void courier_room(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    if (s->ack_due)
        courier_acknowledge(c, rank, now);
    pump(c, rank, now);
}

/* ---- connections, views, time ---- */

void courier_link_up(struct client *c, int node, uint64_t now)
{
    for (int r = 0; r < c->size; r++) {
        struct stream *s = courier_stream(c, r);
        if (courier_node_of(c, r) != node)
            continue;
        if (s->refusal_due)
            courier_retry_refusal(c, r, now);
        if (s->head || s->received) {
            if (s->received && (s->ack_due || !s->at))
                courier_acknowledge(c, r, now);
            pump(c, r, now);
        }
    }
}

/* With the connection to the own agent whatever others had sent this way may be lost: pieces, acknowledgements, refusals. They do not know. */
void courier_link_lost(struct client *c, int node)
{
    bool own = node == c->node;
    for (int r = 0; r < c->size; r++) {
        struct stream *s = courier_stream(c, r);
        if (!own && courier_node_of(c, r) != node)
            continue;
        if (own && r != c->rank && !s->refused)
            s->refused = c->coll.life[r].life;
        s->refusal_due = s->refused != 0; /* it may have gone this way before the stream changed to another one */
        if ((own || !s->direct) && (s->head || s->received)) {
            courier_rewind(s);
            s->ack_due = s->received != 0;
        }
    }
    coll_wake_at(c, 0);
}

void courier_direct_up(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    if (s->sent != s->acked)
        courier_rewind(s); /* from the beginning, so that nothing waits for what comes the other way */
    pump(c, rank, now);
}

void courier_direct_lost(struct client *c, int rank)
{
    struct stream *s = courier_stream(c, rank);
    courier_rewind(s);
    s->direct = false;
    s->ack_due = s->received != 0;
    s->refusal_due = s->refused != 0;
    coll_wake_at(c, 0);
}

void courier_farewell(struct client *c)
{
    uint64_t now = c->env.now(c->env.user);
    for (int r = 0; r < c->size; r++) {
        courier_stream(c, r)->handed_on = courier_stream(c, r)->direct;
        pump(c, r, now);
    }
}

int courier_hands_over_to(const struct client *c)
{
    for (int r = 0; r < c->size && c->coll.broken == KEEL_OK; r++) {
        const struct stream *s = &c->coll.stream[r];
        if (c->coll.life[r].life && s->handed_on && may_send(s))
            return r;
    }
    return -1;
}

bool courier_has_handed_over(void *arg)
{
    return courier_hands_over_to(arg) < 0;
}

void courier_reset(struct client *c, int rank)
{
    struct stream *s = courier_stream(c, rank);
    struct parcel *p = s->head;
    const struct known_life *l = &c->coll.life[rank];
    bool keeps = s->refused && (s->refused == l->life || s->refused > l->newest); /* that life is still to hear of it */
    uint64_t refused = keeps ? s->refused : 0;
    bool due = keeps && s->refusal_due;
    free(s->whole);
    *s = (struct stream){.tail = &s->head,
                         .retry_ns = COURIER_RETRY_FIRST_NS,
                         .put_by = s->put_by,
                         .hollow = s->hollow,
                         .refused = refused,
                         .refusal_due = due};
    while (p) {
        struct parcel *next = p->next;
        if (p->borrowed)
            coll_delivered(c, p->tag.group, p->tag.seq, rank, c->env.now(c->env.user));
        parcel_free(c, s, p);
        p = next;
    }
}

uint64_t courier_tick(struct client *c, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (int r = 0; r < c->size; r++) {
        struct stream *s = courier_stream(c, r);
        if (s->refusal_due) {
            courier_retry_refusal(c, r, now);
            next = s->refusal_due && now + COURIER_RETRY_FIRST_NS < next ? now + COURIER_RETRY_FIRST_NS : next;
        }
        if (!c->coll.life[r].life)
            continue;
        if (s->ack_due)
            courier_acknowledge(c, r, now);
        if (s->missed && now >= s->missed_at) {
            bool data = s->missed_data;
            s->missed = s->missed_data = false;
            coll_lost(c, r, data, now);
        }
        next = s->missed && s->missed_at < next ? s->missed_at : next;
        pump(c, r, now);
        bool waits = s->ack_due || may_send(s);
        uint64_t at = now < s->retry_at ? s->retry_at : now + COURIER_RETRY_FIRST_NS;
        if (waits && at < next)
            next = at;
    }
    return next;
}

void courier_free(struct client *c)
{
    for (int r = 0; c->coll.stream && r < c->size; r++) {
        for (struct parcel *p = c->coll.stream[r].head, *next; p; p = next) {
            next = p->next;
            parcel_free(c, &c->coll.stream[r], p);
        }
        free(c->coll.stream[r].whole);
    }
    free(c->coll.stream);
    free(c->coll.spare);
    for (struct parcel *p; (p = take_put_by(c)) != NULL;)
        free(p);
    c->coll.stream = NULL;
    c->coll.spare = NULL;
}
