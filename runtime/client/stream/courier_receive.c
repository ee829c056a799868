/* What comes of other ranks' messages: pieces, in the order of their numbers, gathered or put where they belong; what cannot be taken is sent back. */
#include <stdlib.h>
#include <string.h>

#include "collectives/group.h"
#include "runtime/client/stream/courier_int.h"
#include "runtime/client/stream/link.h"
#include "runtime/client/stream/mail.h"

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
        ep = node >= 0 ? link_up(c, node, now) : NULL;
    struct wire back = {.type = WIRE_PARCEL_BACK,
                        .rank = (uint32_t)c->rank,
                        .incarnation = c->incarnation,
                        .a = parcel_to(rank, (uint32_t)(life - 1)),
                        .seq = s->received + 1};
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

static void returned(struct client *c, const struct wire *w, uint64_t now)
{
    bool own = w->rank == (uint32_t)c->rank && w->incarnation == c->incarnation;
    int64_t who = own ? w->a : parcel_to((int)w->rank, w->incarnation);
    int rank = parcel_rank(who);
    if (rank < 0 || rank >= c->size || (uint64_t)parcel_incarnation(who) + 1 != c->coll.life[rank].life)
        return;
    struct stream *s = courier_stream(c, rank);
    if (w->seq > s->sent || s->sent == s->acked)
        return;
    courier_rewind(
        s); /* what followed was not taken either; so also if the piece itself has come another way meanwhile */
    s->retry_ns = 2 * s->retry_ns > COURIER_RETRY_MAX_NS ? COURIER_RETRY_MAX_NS : 2 * s->retry_ns;
    s->retry_at = now + s->retry_ns;
    coll_wake_at(c, s->retry_at);
}

_Static_assert((COURIER_PIECE - ENGINE_HEAD) % ENGINE_PIECE_UNIT == 0 && COURIER_PIECE % ENGINE_PIECE_UNIT == 0,
               "pieces of data");

static uint64_t pieces_of(const struct wire *w)
{
    return w->len ? ((uint64_t)w->len + COURIER_PIECE - 1) / COURIER_PIECE : 1;
}

/* The first pieces of a message of a collective that waits for just this one: there is no need to gather it. */
static bool place_first(struct client *c, const struct wire *w, const uint8_t *body, uint64_t now)
{
    int from = (int)w->rank;
    struct stream *s = courier_stream(c, from);
    if (w->step != PARCEL_ENGINE || w->len <= ENGINE_HEAD || w->identity < w->len ||
        !coll_place(c, from, body, w->identity - ENGINE_HEAD, 0, body + ENGINE_HEAD, w->len - ENGINE_HEAD, now))
        return false;
    free(s->whole);
    s->whole = NULL;
    s->dropping = false;
    memcpy(s->first, body, ENGINE_HEAD);
    s->placed = true;
    s->whole_len = w->identity;
    s->whole_have = w->len;
    s->received += pieces_of(w);
    return true;
}

static bool place_next(struct client *c, const struct wire *w, const uint8_t *body, uint64_t now)
{
    int from = (int)w->rank;
    struct stream *s = courier_stream(c, from);
    if (w->identity != s->whole_len || w->offset != s->whole_have || w->len > s->whole_len - s->whole_have)
        return false; /* no piece of a sender of ours */
    s->whole_have += w->len;
    s->placed = s->whole_have < s->whole_len;
    s->received += pieces_of(w);
    (void)coll_place(c, from, s->first, s->whole_len - ENGINE_HEAD, w->offset - ENGINE_HEAD, body, w->len, now);
    return true;
}

/* Who waits for it has come meanwhile. */
static bool place_rest(struct client *c, const struct wire *w, const uint8_t *body, uint64_t now)
{
    int from = (int)w->rank;
    struct stream *s = courier_stream(c, from);
    if (!s->whole || w->step != PARCEL_ENGINE || s->whole_have <= ENGINE_HEAD ||
        !coll_place(c, from, s->whole, s->whole_len - ENGINE_HEAD, 0, s->whole + ENGINE_HEAD,
                    s->whole_have - ENGINE_HEAD, now))
        return false;
    memcpy(s->first, s->whole, ENGINE_HEAD);
    free(s->whole);
    s->whole = NULL;
    s->placed = true;
    return place_next(c, w, body, now);
}

/* What is whole with these pieces: a user's message must be kept, one of a collective may have to be answered with a note. */
static bool can_be_kept(struct client *c, const struct wire *w)
{
    if (w->offset + w->len != w->identity)
        return true;
    return w->step == PARCEL_MAIL ? mail_room(c, w->identity) : w->step != PARCEL_ENGINE || courier_reserve(c);
}

/* The pieces that are next. False: there is no memory for them now. */
static bool take(struct client *c, const struct wire *w, const void *body, uint64_t now)
{
    int from = (int)w->rank;
    struct stream *s = courier_stream(c, from);
    if (!can_be_kept(c, w))
        return false;
    if (w->offset == 0 && w->identity == w->len) {
        s->received += pieces_of(w);
        coll_received(c, from, w->step, w->flags, body, w->len, now);
        return true;
    }
    if (w->offset == 0 && place_first(c, w, body, now))
        return true;
    if (w->offset > 0 && s->placed)
        return place_next(c, w, body, now);
    if (w->offset > 0 && place_rest(c, w, body, now))
        return true;
    if (w->offset == 0) {
        s->placed = false;
        free(s->whole);
        s->whole = malloc(w->identity);
        s->whole_len = w->identity;
        s->whole_have = 0;
        s->dropping = !s->whole && coll_starved(c, from, w->step, body, w->len, now);
    }
    if (!s->whole && !s->dropping)
        return false;
    if (w->identity != s->whole_len || w->offset != s->whole_have || w->len > s->whole_len - s->whole_have)
        return false; /* no piece of a sender of ours */
    if (s->whole)
        memcpy(s->whole + s->whole_have, body, w->len);
    s->whole_have += w->len;
    s->received += pieces_of(w);
    if (s->whole && s->whole_have == s->whole_len) {
        uint8_t *whole = s->whole;
        s->whole = NULL;
        coll_received(c, from, w->step, w->flags, whole, s->whole_len, now);
        free(whole);
    }
    return true;
}

/* Of pieces that came together some may be here: they came one by one before, another way. */
static const uint8_t *without_known(const struct stream *s, struct wire *w, const uint8_t *body)
{
    uint64_t known = w->seq <= s->received ? s->received + 1 - w->seq : 0;
    if (!known || known >= pieces_of(w))
        return body;
    w->seq += known;
    w->offset += known * COURIER_PIECE;
    w->len -= (uint32_t)known * COURIER_PIECE;
    return body + known * COURIER_PIECE;
}

/* Where a message holds several pieces many are on their way. */
static uint64_t told_after(const struct wire *w)
{
    return (pieces_of(w) > 1 ? COURIER_WINDOW_DIRECT / 2 : COURIER_WINDOW) / 4;
}

/* What has come of the message is of no use. */
static void skip_hollow(struct client *c, int from, const struct wire *w, uint64_t now)
{
    struct stream *s = courier_stream(c, from);
    uint64_t last = w->seq + w->count - 1;
    if (w->count && w->seq <= s->received + 1 && last > s->received) {
        free(s->whole);
        s->whole = NULL;
        s->dropping = s->placed = false;
        s->received = last;
        s->refused = s->refused == c->coll.life[from].life ? 0 : s->refused;
        s->refusal_due = s->refusal_due && s->refused;
    }
    if (w->seq <= s->received)
        courier_acknowledge(c, from, now);
}

void courier_receive(struct client *c, const struct wire *w, const void *body, size_t len, uint64_t now)
{
    if (len != w->len || w->rank >= (uint32_t)c->size || c->fatal != KEEL_OK || c->coll.broken != KEEL_OK)
        return;
    coll_see_views(c, now);
    if (w->type == WIRE_PARCEL_BACK) {
        returned(c, w, now);
        return;
    }
    if (w->type != WIRE_PARCEL || w->a != parcel_to(c->rank, c->incarnation))
        return;
    int from = (int)w->rank;
    uint64_t life = (uint64_t)w->incarnation + 1;
    if (w->seq && life > c->coll.life[from].newest)
        refuse(c, from, life, now); /* a view that is still to come here names it */
    if (life != c->coll.life[from].life)
        return;
    struct stream *s = courier_stream(c, from);
    courier_acknowledged(c, from, (uint64_t)w->b, now);
    if (!w->seq)
        return;
    if (w->flags & WIRE_F_HOLLOW) {
        skip_hollow(c, from, w, now);
        return;
    }
    struct wire next = *w;
    body = without_known(s, &next, body);
    bool again = next.seq <= s->received;
    if (next.seq == s->received + 1) {
        bool taken = take(c, &next, body, now);
        s->refused = s->refused == life ? 0 : s->refused;
        s->refusal_due = s->refusal_due && s->refused;
        if (!taken)
            refuse(c, from, life, now);
    }
    if (again || (s->received != s->told && (w->flags & WIRE_F_TELL)) || s->received - s->told >= told_after(w))
        courier_acknowledge(c, from, now);
}
