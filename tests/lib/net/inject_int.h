/* Between inject.c and inject_queue.c. */
#ifndef KEEL_TESTS_LIB_NET_INJECT_INT_H
#define KEEL_TESTS_LIB_NET_INJECT_INT_H

#include <sys/queue.h>

#include "tests/lib/net/inject.h"

/* A post or an event that waits. */
struct parcel {
    STAILQ_ENTRY(parcel) link;
    uint64_t due; /* poll number; UINT64_MAX: not before it is released */
    bool break_after;
    /* a post */
    enum inject_point point;
    const void *src;
    void *dst;
    size_t hlen, len;
    uint64_t key, offset;
    struct tp_op *op;
    /* or an event */
    struct tp_event event;
    uint8_t bytes[]; /* copied message */
};
STAILQ_HEAD(parcel_list, parcel);

struct inject_ep {
    struct tp_ep base;
    struct tp_ep *inner;
    struct parcel_list out, in;
    bool held, closed;
    TAILQ_ENTRY(inject_ep) link;
};
TAILQ_HEAD(inject_ep_list, inject_ep);

struct inject_tp {
    struct tp base;
    struct tp *inner;
    inject_decide decide;
    void *arg;
    uint64_t polls, passed[INJECT_POINT_COUNT];
    struct parcel_list requests, held; /* delayed TP_CONNREQ; messages the caller is looking at */
    struct inject_ep_list eps, graveyard;
};

static inline struct inject_tp *inject_tp_of(const struct tp_ep *ep)
{
    return (struct inject_tp *)ep->tp;
}

/* inject_queue.c: posts that have not left, events that were not delivered. */
keel_status inject_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len,
                        struct tp_op *op);
keel_status inject_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset,
                         struct tp_op *op);
keel_status inject_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);
bool inject_room(const struct tp_ep *tp_ep);
bool inject_moved(const struct tp_ep *tp_ep, struct tp_moved *moved);
int inject_poll(struct tp *base, struct tp_event *events, int max);
bool inject_arm(struct tp *base);
void inject_break(struct inject_ep *ep);
/* What has not left yet will not. */
void inject_fail_waiting(struct inject_ep *ep);
void inject_parcels_free(struct parcel_list *list);
/* What the caller looked at, and ends that it destroyed, are his no longer. */
void inject_bury(struct inject_tp *tp);
#endif
