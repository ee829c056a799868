/* Between the rooms of the courier:
 *   courier.c          sends, and hears what has arrived
 *   courier_receive.c  takes what comes
 *   courier_parcel.c   memory of messages
 *   courier_call.c     what calls of groups ask and say of theirs
 *   courier_way.c      connections, views, time, the end */
#ifndef KEEL_CLIENT_STREAM_COURIER_INT_H
#define KEEL_CLIENT_STREAM_COURIER_INT_H

#include "runtime/client/client.h"
#include "runtime/client/stream/courier.h"

enum { COURIER_RETRY_FIRST_NS = 500000, COURIER_RETRY_MAX_NS = 16000000, PARCEL_OVERHEAD = 768 };

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

/* Of a message that no caller waits for, with what the kernel needs for it. */
static inline size_t parcel_weight(const struct parcel *p)
{
    return p->borrowed ? 0 : p->head_len + (p->hollow ? 0 : p->len) + PARCEL_OVERHEAD;
}

static inline struct stream *courier_stream(struct client *c, int rank)
{
    return &c->coll.stream[rank];
}

static inline int courier_node_of(const struct client *c, int rank)
{
    return (int)(int32_t)(atomic_load_explicit(&page_rank(c->page, rank)->where, memory_order_acquire) >> 32);
}

/* That rank has all pieces up to that number. */
void courier_acknowledged(struct client *c, int rank, uint64_t up_to, uint64_t now);
/* It is told what is here. */
void courier_acknowledge(struct client *c, int rank, uint64_t now);
/* What it has not said that it has is sent again. */
void courier_rewind(struct stream *s);
/* courier_receive.c: it is told that something was not taken, if not now then later. */
void courier_retry_refusal(struct client *c, int rank, uint64_t now);
/* There is something to send, and the window is open. */
bool courier_may_send(const struct stream *s);
/* What may be sent to the rank is. */
void courier_pump(struct client *c, int rank, uint64_t now);

/* courier_parcel.c. Memory for a message, whose data are the caller's at last if there is none for a copy. NULL:
 * there is none. */
struct parcel *parcel_new(struct client *c, const struct stream *s, const struct parcel_tag *tag, size_t len,
                          bool *borrowed);
void parcel_free(struct client *c, struct stream *s, struct parcel *p);
/* All that is put by. */
void parcel_free_put_by(struct client *c);
#endif
