/* What comes of other ranks' messages: pieces, in the order of their numbers, gathered or put where they belong;
 * what cannot be taken is sent back. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/client/stream/courier_int.h"
#include "runtime/client/stream/connection.h"
#include "runtime/client/stream/mail.h"
#include "runtime/wire/kinds.h"
#include "runtime/wire/parcel.h"

/* The sender is told that the pieces from the next one on were not taken: it sends them again, later. A life that no
 * view seen here names yet is told after that view: until then the ways to the rank lead to the life before it.
 * False: not now. */
static bool tell_refused(struct client *c, int rank, uint64_t life, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    if (life != c->coll.life[rank].life)
        return false;
    int node = courier_node_of(c, rank);
    struct tp_ep *ep = s->direct ? direct_up(c, rank) : NULL;
    if (!ep)
        ep = node >= 0 ? connection_up(c, node, now) : NULL;
    struct wire back;
    msg_parcel_back_encode(&(struct msg_parcel){.sender = client_life(c),
                                                .receiver = life_of(rank, (uint32_t)(life - 1)),
                                                .piece = s->received + 1},
                           &back);
    return ep && tp_send(ep, &back, sizeof back, NULL, 0, NULL) == KEEL_OK;
}

void courier_retry_refusal(struct client *c, int rank, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    s->refusal_due = !tell_refused(c, rank, s->refused, now);
    if (s->refusal_due)
        coll_wake_at(c, now + COURIER_RETRY_FIRST_NS);
}

/* Not now. The sender does not send it again by itself, so it must hear of it.
 * A life before one that has sent is dead. */
static void refuse(struct client *c, int rank, uint64_t life, uint64_t now)
{
    struct stream *s = courier_stream(c, rank);
    if (life < s->refused)
        return;
    s->refused = life;
    courier_retry_refusal(c, rank, now);
}

static void returned(struct client *c, const struct msg_parcel *p, uint64_t now)
{
    const struct life who = life_equal(p->sender, client_life(c)) ? p->receiver : p->sender;
    if (life_is_none(who) || who.rank >= c->size || (uint64_t)who.incarnation + 1 != c->coll.life[who.rank].life)
        return;
    struct stream *s = courier_stream(c, who.rank);
    if (p->piece > s->sent || s->sent == s->acked)
        return;
    courier_rewind(
        s); /* what followed was not taken either; so also if the piece itself has come another way meanwhile */
    s->retry_ns = 2 * s->retry_ns > COURIER_RETRY_MAX_NS ? COURIER_RETRY_MAX_NS : 2 * s->retry_ns;
    s->retry_at = now + s->retry_ns;
    coll_wake_at(c, s->retry_at);
}

_Static_assert((COURIER_PIECE - ENGINE_HEAD) % ENGINE_PIECE_UNIT == 0 && COURIER_PIECE % ENGINE_PIECE_UNIT == 0,
               "pieces of data");

static uint64_t pieces_of(const struct msg_parcel *p)
{
    return p->len ? ((uint64_t)p->len + COURIER_PIECE - 1) / COURIER_PIECE : 1;
}

/* The first pieces of a message of a collective that waits for just this one: there is no need to gather it. */
static bool place_first(struct client *c, const struct msg_parcel *p, const uint8_t *body, uint64_t now)
{
    int from = p->sender.rank;
    struct stream *s = courier_stream(c, from);
    if (p->kind != PARCEL_ENGINE || p->len <= ENGINE_HEAD || p->total < p->len ||
        !coll_place(c, from, body, p->total - ENGINE_HEAD, 0, body + ENGINE_HEAD, p->len - ENGINE_HEAD, now))
        return false;
    free(s->whole);
    s->whole = NULL;
    s->dropping = false;
    memcpy(s->first, body, ENGINE_HEAD);
    s->placed = true;
    s->whole_len = p->total;
    s->whole_have = p->len;
    s->received += pieces_of(p);
    return true;
}

static bool place_next(struct client *c, const struct msg_parcel *p, const uint8_t *body, uint64_t now)
{
    int from = p->sender.rank;
    struct stream *s = courier_stream(c, from);
    if (p->total != s->whole_len || p->at != s->whole_have || p->len > s->whole_len - s->whole_have)
        return false; /* no piece of a sender of ours */
    s->whole_have += p->len;
    s->placed = s->whole_have < s->whole_len;
    s->received += pieces_of(p);
    (void)coll_place(c, from, s->first, s->whole_len - ENGINE_HEAD, p->at - ENGINE_HEAD, body, p->len, now);
    return true;
}

/* Who waits for it has come meanwhile. */
static bool place_rest(struct client *c, const struct msg_parcel *p, const uint8_t *body, uint64_t now)
{
    int from = p->sender.rank;
    struct stream *s = courier_stream(c, from);
    if (!s->whole || p->kind != PARCEL_ENGINE || s->whole_have <= ENGINE_HEAD ||
        !coll_place(c, from, s->whole, s->whole_len - ENGINE_HEAD, 0, s->whole + ENGINE_HEAD,
                    s->whole_have - ENGINE_HEAD, now))
        return false;
    memcpy(s->first, s->whole, ENGINE_HEAD);
    free(s->whole);
    s->whole = NULL;
    s->placed = true;
    return place_next(c, p, body, now);
}

/* What is whole with these pieces: a user's message must be kept, one of a collective may have to be answered with a
 * note. */
static bool can_be_kept(struct client *c, const struct msg_parcel *p)
{
    if (p->at + p->len != p->total)
        return true;
    return mail_has(p->kind) ? mail_room(c, p->total) : p->kind != PARCEL_ENGINE || courier_reserve(c);
}

/* The pieces that are next. False: there is no memory for them now. */
static bool take(struct client *c, const struct msg_parcel *p, const void *body, uint64_t now)
{
    int from = p->sender.rank;
    struct stream *s = courier_stream(c, from);
    if (!can_be_kept(c, p))
        return false;
    if (p->at == 0 && p->total == p->len) {
        s->received += pieces_of(p);
        coll_received(c, from, p->kind, p->creating, body, p->len, now);
        return true;
    }
    if (p->at == 0 && place_first(c, p, body, now))
        return true;
    if (p->at > 0 && s->placed)
        return place_next(c, p, body, now);
    if (p->at > 0 && place_rest(c, p, body, now))
        return true;
    if (p->at == 0) {
        s->placed = false;
        free(s->whole);
        s->whole = malloc(p->total);
        s->whole_len = p->total;
        s->whole_have = 0;
        s->dropping = !s->whole && coll_starved(c, from, p->kind, body, p->len, now);
    }
    if (!s->whole && !s->dropping)
        return false;
    if (p->total != s->whole_len || p->at != s->whole_have || p->len > s->whole_len - s->whole_have)
        return false; /* no piece of a sender of ours */
    if (s->whole)
        memcpy(s->whole + s->whole_have, body, p->len);
    s->whole_have += p->len;
    s->received += pieces_of(p);
    if (s->whole && s->whole_have == s->whole_len) {
        uint8_t *whole = s->whole;
        s->whole = NULL;
        coll_received(c, from, p->kind, p->creating, whole, s->whole_len, now);
        free(whole);
    }
    return true;
}

/* Of pieces that came together some may be here: they came one by one before, another way. */
static const uint8_t *without_known(const struct stream *s, struct msg_parcel *p, const uint8_t *body)
{
    uint64_t known = p->piece <= s->received ? s->received + 1 - p->piece : 0;
    if (!known || known >= pieces_of(p))
        return body;
    p->piece += known;
    p->at += known * COURIER_PIECE;
    p->len -= (uint32_t)known * COURIER_PIECE;
    return body + known * COURIER_PIECE;
}

/* Where a message holds several pieces many are on their way. */
static uint64_t told_after(const struct msg_parcel *p)
{
    return (pieces_of(p) > 1 ? COURIER_WINDOW_DIRECT / 2 : COURIER_WINDOW) / 4;
}

/* What has come of the message is of no use. */
static void skip_hollow(struct client *c, int from, const struct msg_parcel *p, uint64_t now)
{
    struct stream *s = courier_stream(c, from);
    uint64_t last = p->piece + p->hollows - 1;
    if (p->hollows && p->piece <= s->received + 1 && last > s->received) {
        free(s->whole);
        s->whole = NULL;
        s->dropping = s->placed = false;
        s->received = last;
        s->refused = s->refused == c->coll.life[from].life ? 0 : s->refused;
        s->refusal_due = s->refusal_due && s->refused;
    }
    if (p->piece <= s->received)
        courier_acknowledge(c, from, now);
}

void courier_receive(struct client *c, const struct wire *w, const void *body, size_t len, uint64_t now)
{
    struct msg_parcel p;
    if (len != w->len || !wire_is_known(w, WIRE_TO_RANK) || c->fatal != KEEL_OK || c->coll.broken != KEEL_OK)
        return;
    msg_parcel_decode(w, &p);
    if (life_is_none(p.sender) || p.sender.rank >= c->size)
        return;
    coll_see_views(c, now);
    if (w->type == WIRE_PARCEL_BACK) {
        returned(c, &p, now);
        return;
    }
    if (w->type != WIRE_PARCEL || !life_equal(p.receiver, client_life(c)))
        return;
    int from = p.sender.rank;
    uint64_t life = (uint64_t)p.sender.incarnation + 1;
    if (p.piece && life > c->coll.life[from].newest)
        refuse(c, from, life, now); /* a view that is still to come here names it */
    if (life != c->coll.life[from].life)
        return;
    struct stream *s = courier_stream(c, from);
    courier_acknowledged(c, from, p.received, now);
    if (!p.piece)
        return;
    if (p.hollow) {
        skip_hollow(c, from, &p, now);
        return;
    }
    uint64_t often = told_after(&p);
    body = without_known(s, &p, body);
    bool again = p.piece <= s->received;
    if (p.piece == s->received + 1) {
        bool taken = take(c, &p, body, now);
        s->refused = s->refused == life ? 0 : s->refused;
        s->refusal_due = s->refusal_due && s->refused;
        if (!taken)
            refuse(c, from, life, now);
    }
    if (again || (s->received != s->told && p.tell) || s->received - s->told >= often)
        courier_acknowledge(c, from, now);
}
