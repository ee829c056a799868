/* What comes from other members: for an instance, for one that is not begun here yet, or about one that is complete. */
#include <stdlib.h>
#include <string.h>

#include "collectives/engine_int.h"

static struct letter *letter_of(struct engine *e, const struct message_head *h, int from, const uint8_t *body,
                                size_t len)
{
    bool vote =
        h->kind == MESSAGE_VOTE || h->kind == MESSAGE_DECIDED || h->kind == MESSAGE_RESULT || h->kind == MESSAGE_SKIP;
    size_t skip = vote ? MESSAGE_VOTE_BYTES : 0;
    struct letter *l = letter_new(e, len - skip, h->kind != MESSAGE_DATA); /* of data that are lost it must hear */
    if (!l)
        return NULL;
    *l = (struct letter){0};
    l->head = *h;
    l->from = from;
    if (vote)
        message_vote_read(body, &l->vote);
    body += skip;
    len -= skip;
    l->len = len;
    if (len)
        memcpy(l->data, body, len);
    return l;
}

static void send_result(struct engine *e, int to, const struct record *r, uint32_t signature)
{
    uint8_t bytes[MESSAGE_HEAD + MESSAGE_VOTE_BYTES];
    const struct decision *d = &r->decision;
    struct message_head h = {MESSAGE_RESULT, d->attempt, (uint32_t)r->status, signature, 0, e->id, r->seq, d->epoch};
    message_head_write(bytes, &h);
    message_vote_write(bytes + MESSAGE_HEAD, &d->vote);
    e->ops.send(e->ops.user, to, 0, bytes, sizeof bytes, r->len ? r->bytes : NULL, r->len);
}

/* Who asks about an instance that is complete here has not heard of it: it goes by a later view, or says that it waits.
 * If it has joined since then the decision tells it nothing, as it was made in a view that it was not in. */
static void answer(struct engine *e, const struct record *r, const struct message_head *h, int from)
{
    const struct decision *d = &r->decision;
    if (r->keeps && h->epoch > d->epoch && h->attempt <= d->attempt && h->kind != MESSAGE_FLUSH)
        send_result(e, from, r, d->vote.signature_min);
    bool waits = h->kind == MESSAGE_WANT || h->kind == MESSAGE_ASK || (h->kind == MESSAGE_VOTE && h->epoch > d->epoch);
    if (waits && h->attempt == d->attempt)
        engine_send_decision(e, from, h->seq, d);
}

static const struct record *record_of(const struct engine *e, uint64_t seq)
{
    const struct record *r = e->records;
    while (r && r->seq != seq)
        r = r->next;
    return r;
}

static void receive_revoked(struct engine *e, const struct message_head *h, int from)
{
    if (h->kind == MESSAGE_REVOKED) {
        engine_revoke_for(e, h->tag <= (uint32_t)e->n ? (int)h->tag - 1 : -1, e->now);
        engine_heard_revoked(e, from);
    } else if (h->kind == MESSAGE_VOTE || h->kind == MESSAGE_WANT || h->kind == MESSAGE_ASK) {
        engine_send_revoked(e, from);
    }
}

/* Votes and questions are asked for again when they do not come. Data are not: who sent them believes that they are
 * here. */
static void starve(struct engine *e, struct instance *i, const struct message_head *h)
{
    if (h->kind == MESSAGE_DATA && i)
        instance_starved(e, i, h);
    else if (h->kind == MESSAGE_DATA)
        e->stream[seq_stream(h->seq)].starved |= 1ull << (seq_number(h->seq) % ENGINE_WINDOW);
}

void engine_starved(struct engine *e, int from, const void *head, size_t len, uint64_t now)
{
    struct message_head h;
    e->now = now;
    if (len < MESSAGE_HEAD || !message_head_read(head, len, &h) || h.group != e->id || from == e->self ||
        !roster_has(engine_roster(e), from))
        return;
    int s = seq_stream(h.seq);
    struct instance *i = engine_find(e, h.seq);
    if ((i && i->state != INSTANCE_COMPLETE) ||
        (!i && seq_number(h.seq) > e->stream[s].started && seq_number(h.seq) <= e->stream[s].started + ENGINE_WINDOW))
        starve(e, i, &h);
}

static void send_over(struct engine *e, int to, uint64_t seq)
{
    uint8_t bytes[MESSAGE_HEAD];
    struct message_head h = {.kind = MESSAGE_OVER, .group = e->id, .seq = seq};
    message_head_write(bytes, &h);
    e->ops.send(e->ops.user, to, 0, bytes, sizeof bytes, NULL, 0);
}

/* What is in the last memory is looked at now or not at all, so that what is waited for now can come: who waits for
 * it later asks again. */
static void take_back_letter(struct engine *e, const struct letter *l)
{
    for (struct instance *i = e->instances; i && !e->put_by.letters; i = i->next)
        for (struct letter **at = &i->inbox; *at; at = &(*at)->next)
            if (*at == l) {
                struct letter *mine = *at;
                *at = mine->next;
                letter_free(e, mine);
                break;
            }
}

/* Data that are waited for just now need none. */
static void without_letter(struct engine *e, int from, const void *data, size_t len, const struct message_head *h)
{
    struct instance *i = engine_find(e, h->seq);
    if (i && h->kind == MESSAGE_DATA)
        instance_ready(e, i);
    if (i && h->kind == MESSAGE_DATA &&
        engine_place(e, from, data, len - MESSAGE_HEAD, 0, (const uint8_t *)data + MESSAGE_HEAD, len - MESSAGE_HEAD,
                     e->now))
        return;
    starve(e, engine_find(e, h->seq), h);
}

/* Of a call that has not begun here. */
static void keep_early(struct engine *e, struct letter *l)
{
    if (!e->put_by.letters) {
        letter_free(e, l);
        return;
    }
    struct letter **end = &e->early;
    while (*end)
        end = &(*end)->next;
    *end = l;
}

static void receive(struct engine *e, int from, const void *data, size_t len)
{
    struct message_head h;
    if (!message_head_read(data, len, &h) || h.group != e->id || from == e->self || !roster_has(engine_roster(e), from))
        return;
    int s = seq_stream(h.seq);
    if (h.kind == MESSAGE_REVOKED || (e->revoked && s == STREAM_ORDINARY)) {
        receive_revoked(e, &h, from);
        return;
    }
    const struct record *r = record_of(e, h.seq);
    struct instance *i = engine_find(e, h.seq);
    if (h.kind == MESSAGE_WANT && h.tag == MESSAGE_WHETHER_OVER) {
        if (seq_number(h.seq) <= e->stream[s].started && (!i || i->told || i->state == INSTANCE_COMPLETE))
            send_over(e, from, h.seq);
        return;
    }
    if (h.kind == MESSAGE_OVER)
        engine_heard_over(e, from, h.seq);
    if (r) {
        answer(e, r, &h, from);
        return;
    }
    if (!i && h.kind == MESSAGE_WANT && seq_number(h.seq) <= e->stream[s].everywhere) {
        send_over(e, from, h.seq);
        return;
    }
    if (h.kind == MESSAGE_OVER) {
        if (i && i->told)
            engine_returned_everywhere(e, s, seq_number(h.seq));
        return;
    }
    bool early = seq_number(h.seq) > e->stream[s].started;
    if (i && i->state == INSTANCE_COMPLETE)
        return;
    bool asks = h.kind == MESSAGE_WANT || h.kind == MESSAGE_ASK; /* it will ask again */
    if (!i && asks && engine_pair_disagrees(e, &h)) {
        if (e->ops.misfit)
            e->ops.misfit(e->ops.user, from);
        engine_revoke(e, e->now);
        return;
    }
    if ((!i && (!early || asks)) || seq_number(h.seq) > e->stream[s].started + ENGINE_WINDOW)
        return;
    struct letter *l = letter_of(e, &h, from, (const uint8_t *)data + MESSAGE_HEAD, len - MESSAGE_HEAD);
    if (!l) {
        without_letter(e, from, data, len, &h);
        return;
    }
    if (i) {
        instance_receive(e, i, l);
        if (!e->put_by.letters)
            take_back_letter(e, l);
        return;
    }
    keep_early(e, l);
}

void engine_receive(struct engine *e, int from, const void *data, size_t len, uint64_t now)
{
    e->now = now;
    receive(e, from, data, len);
    engine_forget_returned(e);
    engine_go_on_leaving(e);
}
