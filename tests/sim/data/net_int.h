/* Between the rooms of the simulated network:
 *   net.c        what the simulator does to it: opens, cuts, breaks, ends
 *   net_way.c    what is on its way, and what it does when it arrives
 *   net_table.c  the transport that its users see */
#ifndef KEEL_TESTS_SIM_DATA_NET_INT_H
#define KEEL_TESTS_SIM_DATA_NET_INT_H

#include "tests/sim/data/net.h"

enum { REGION_SLOTS = 64 };

enum item_kind { ITEM_ASK, ITEM_CONNECTED, ITEM_MESSAGE, ITEM_WRITE, ITEM_READ, ITEM_DATA, ITEM_DONE, ITEM_CLOSE };

/* An operation that asked for an event. Lives as long as its end of the connection. */
struct posted {
    struct posted *next;
    struct tp_op *op;
    bool over;
};

struct item {
    struct item *next;
    enum item_kind kind;
    uint64_t at;
    struct sim_ep *to; /* NULL: ITEM_ASK */
    struct posted *posted;
    keel_status status;
    uint64_t key, offset;
    uint8_t *dst; /* ITEM_READ, ITEM_DATA: of the origin */
    bool first, last;
    size_t len;
    uint8_t bytes[];
};

struct items {
    struct item *first, **tail;
};

/* One direction of a connection. */
struct channel {
    struct items flying;
    uint64_t delay, ns_per_kib, free_at, last_at;
    bool scheduled, stalled;
    bool stuck; /* until its end closes, or something wakes it */
    size_t queued;
};

enum ep_state { EP_CONNECTING, EP_UP, EP_CLOSED };

struct region {
    struct region *next;
    uint64_t key;
    uint8_t *memory;
    size_t len;
};

struct sim_ep {
    struct tp_ep base;
    struct sim_tp *tp;
    struct sim_ep *next; /* of the tp */
    struct sim_ep *peer;
    enum ep_state state;
    bool near, destroyed;
    uint64_t target; /* listener that it asks */
    struct channel out;
    uint64_t received, taken;
    struct posted *posted;
    const struct region *writes_to; /* found by the key of a write when its first piece came, for the others */
    struct region was;
};

struct tp_connreq {
    struct sim_ep *from;
    struct tp_connreq *next;
    bool answered;
    size_t len;
    uint8_t hello[TP_HELLO_MAX];
};

struct ready {
    struct ready *next;
    struct tp_event event;
    struct item *item; /* holds the bytes */
};

struct sim_tp {
    struct tp base;
    struct net *net;
    struct sim_tp *next;
    struct process *owner;
    int host;
    bool near, listening, dead;
    uint64_t id;
    struct sim_ep *eps;
    struct items arrived;
    struct ready *ready, **ready_tail;
    struct item *held; /* messages the caller looks at until the next poll */
    struct tp_connreq *reqs;
    struct region *region[REGION_SLOTS];
};

static inline struct sim_tp *tp_of(struct tp *tp)
{
    return (struct sim_tp *)tp;
}

/* net_way.c */
void net_items_init(struct items *q);
void net_items_add(struct items *q, struct item *i);
struct item *net_items_take(struct items *q);
/* What the owner of a transport will see in its next poll; the event has the item's bytes. */
void net_tell(struct sim_tp *tp, const struct tp_event *e, struct item *item);
void net_tell_ep(struct sim_ep *ep, enum tp_event_type type, keel_status status);
void net_posted_over(struct sim_ep *ep, struct posted *p, keel_status status);
void net_channel_init(struct net *n, struct sim_ep *ep);
/* What has been for long enough on its way from this end arrives. */
void net_channel_run(void *arg, uint64_t unused);
struct item *net_item_new(enum item_kind kind, struct sim_ep *to, size_t len);
void net_put_in(struct sim_ep *ep, struct item *i);
void net_send_close(struct sim_ep *ep, keel_status status);
/* Of what flies some part from the beginning still arrives. */
void net_lose_some(struct sim_ep *ep);
void net_forget_arrived(struct sim_tp *tp, const struct sim_ep *ep);
void net_forget_ready(struct sim_tp *tp, const struct sim_ep *ep, bool all);
/* One end drops the connection: it sees nothing more, the other sees some of what was on its way and then the end. */
void net_hang_up(struct sim_ep *ep);
struct region *net_region_find(struct sim_tp *tp, uint64_t key);
/* Where and in how many pieces: calls each(arg, from, len, last). */
void net_in_pieces(struct net *n, size_t len, void (*each)(void *arg, size_t from, size_t len, bool last), void *arg);
/* An item takes effect at its target, which frees it unless it is kept. */
void net_take_effect(struct item *i);
void net_refuse(struct sim_ep *from, struct sim_tp *by, keel_status status);
int net_target_host(const struct sim_ep *ep);

/* net_table.c */
extern const struct tp_table net_table;
struct sim_ep *net_ep_new(struct sim_tp *tp, void *user, enum ep_state state, bool near);
void net_req_end(struct sim_tp *tp, struct tp_connreq *req);
#endif
