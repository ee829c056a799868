/* Between mem.c and mem_move.c. */
#ifndef KEEL_TESTS_LIB_NET_MEM_INT_H
#define KEEL_TESTS_LIB_NET_MEM_INT_H

#include <pthread.h>
#include <sys/queue.h>

#include "tests/lib/net/mem.h"

enum item_kind { ITEM_MESSAGE, ITEM_WRITE, ITEM_READ };

/* One operation on its way. */
struct item {
    STAILQ_ENTRY(item) link;
    enum item_kind kind;
    struct tp_op *op;
    void *local; /* of the origin */
    uint64_t key, offset;
    size_t len;
    uint8_t bytes[]; /* ITEM_MESSAGE */
};
STAILQ_HEAD(item_list, item);

enum ep_state { EP_CONNECTING, EP_UP, EP_BROKEN /* inbox first, then TP_CLOSED */, EP_CLOSED };

struct mem_ep {
    struct tp_ep base;
    enum ep_state state;
    struct mem_ep *peer;     /* NULL unless EP_UP */
    struct tp_connreq *asks; /* while EP_CONNECTING */
    struct item_list inbox;
    size_t inbox_bytes;
    TAILQ_ENTRY(mem_ep) link;
};
TAILQ_HEAD(ep_list, mem_ep);

struct tp_connreq {
    struct mem_ep *from; /* NULL: it gave up */
    LIST_ENTRY(tp_connreq) link;
    size_t len;
    uint8_t hello[TP_CONNECT_MAX];
};

struct told {
    STAILQ_ENTRY(told) link;
    struct tp_event event;
};

struct region {
    LIST_ENTRY(region) link;
    uint64_t key;
    uint8_t *memory;
    size_t len;
};

struct mem_tp {
    struct tp base;
    uint64_t id;
    int rails, listening; /* how many there are, and on how many of them it does */
    bool armed;
    int bell;
    struct ep_list eps, graveyard;
    STAILQ_HEAD(, told) events;
    struct item_list held; /* messages the caller looks at until the next poll */
    LIST_HEAD(, region) regions;
    LIST_HEAD(, tp_connreq) reqs;
    LIST_ENTRY(mem_tp) link;
};

/* One guards everything: who calls a function below that names no lock has it. */
extern pthread_mutex_t mem_lock;

static inline struct mem_tp *mem_tp_of(struct tp *tp)
{
    return (struct mem_tp *)tp;
}

static inline struct mem_tp *mem_tp_of_ep(const struct mem_ep *ep)
{
    return (struct mem_tp *)ep->base.tp;
}

/* mem.c: telling, and connections that end. */
void mem_wake(struct mem_tp *tp);
void mem_tell_done(struct mem_ep *origin, struct tp_op *op, keel_status status);
void mem_end(struct mem_ep *ep, keel_status status);
void mem_break_at(struct mem_ep *ep);
void mem_recycle(struct mem_tp *tp);

/* mem_move.c: what is registered, on its way and delivered. They take the lock. */
keel_status mem_reg(struct tp *base, void *memory, size_t len, uint64_t key);
void mem_unreg(struct tp *base, uint64_t key);
keel_status mem_send(struct tp_ep *ep, const void *header, size_t hlen, const void *body, size_t len, struct tp_op *op);
keel_status mem_write(struct tp_ep *ep, const void *src, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);
keel_status mem_read(struct tp_ep *ep, void *dst, size_t len, uint64_t key, uint64_t offset, struct tp_op *op);
int mem_poll(struct tp *base, struct tp_event *events, int max);
int mem_wait_fd(struct tp *base);
bool mem_arm(struct tp *base);
#endif
