/* Inside the courier: courier.c sends, courier_receive.c takes what comes. */
#ifndef KEEL_CLIENT_STREAM_COURIER_INT_H
#define KEEL_CLIENT_STREAM_COURIER_INT_H

#include "runtime/client/client.h"
#include "runtime/client/stream/courier.h"

enum { COURIER_RETRY_FIRST_NS = 500000, COURIER_RETRY_MAX_NS = 16000000 };

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
#endif
