/* Streams when connections come and go, when a view is seen, as time passes, and at the end. */
#include <stdlib.h>

#include "runtime/client/stream/courier_int.h"
#include "runtime/client/stream/connection.h"

void courier_connection_up(struct client *c, int node, uint64_t now)
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
            courier_pump(c, r, now);
        }
    }
}

/* With the connection to the own agent whatever others had sent this way may be lost: pieces, acknowledgements,
 * refusals. They do not know. */
void courier_connection_lost(struct client *c, int node)
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
    courier_pump(c, rank, now);
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
        courier_pump(c, r, now);
    }
}

int courier_hands_over_to(const struct client *c)
{
    for (int r = 0; r < c->size && c->coll.broken == KEEL_OK; r++) {
        const struct stream *s = &c->coll.stream[r];
        if (c->coll.life[r].life && s->handed_on && courier_may_send(s))
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
        courier_pump(c, r, now);
        bool waits = s->ack_due || courier_may_send(s);
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
    parcel_free_put_by(c);
    c->coll.stream = NULL;
    c->coll.spare = NULL;
}

bool courier_lacks_connection(const struct client *c, int rank)
{
    const struct stream *s = &c->coll.stream[rank];
    int node = courier_node_of(c, rank);
    return c->coll.life[rank].life && courier_may_send(s) && hall_place(c, rank) < 0 && !s->direct &&
           !(node >= 0 && c->connections.of[node].way.state == WAY_UP);
}
