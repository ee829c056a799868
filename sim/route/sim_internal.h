/* The parts of the simulator share this; nothing else includes it. sim.c: life of a run; sim_router.c: buffers and
 * links; sim_fault.c: broken links; sim_avoid.c: deadlocks; sim_check.c: invariants; sim_traffic.c: who sends to whom.
 */
#ifndef KEEL_SIM_ROUTE_SIM_INTERNAL_H
#define KEEL_SIM_ROUTE_SIM_INTERNAL_H
#include "sim/route/sim.h"
#include "sim/route/wheel.h"

#include <assert.h>

enum packet_kind { PACKET_DATA, PACKET_ACK, PACKET_FAULT, PACKET_NEWS, PACKET_RUMOUR };

/* Whose slot a packet fills. */
enum hold {
    HOLD_NONE, /* source memory, or a router's own notification that has no slot yet */
    HOLD_IN,   /* the input buffer at the far end of port `hold` */
    HOLD_OUT,  /* the output buffer of port `hold` */
};

enum {
    FLAG_FAULTED = 1,  /* met a broken link */
    FLAG_MEASURED = 2, /* counts in the means */
    FLAG_PLACED = 4,   /* on a link by way of the avoidance queue; its slot at the far end is held already */
    KNOWN_MAX = 256,   /* broken cables that a message can name */
    NEWS_MAX = 8,      /* faults that an acknowledgement passes on */
    NEWS_BYTES = 8,
    RUMOUR_BYTES = 10, /* of a thing that a rumour passes on: of a fault also when it was first found */
    RUMOUR_DIGEST = 16,
    RUMOUR_OLD = 2,
    RUMOUR_NEWS = 32,
    RUMOUR_NEWS_MAX = 256, /* faults and flows that a rumour passes on */
    RUMOUR_FLOWS = 4,
    RUMOUR_EVERY = 8,  /* that has nothing new to say goes out at every eighth time only */
    FLAG_STRANDED = 8, /* waits for an output while it holds a slot of another one, which counts it */
    NONE = -1,
};

struct packet {
    uint64_t created;
    uint64_t started; /* on its first link; of a notification: since when the cable is out */
    int32_t next;     /* in an output buffer, a list of waiting packets, or the free list */
    int32_t ev_next;
    int32_t at;                   /* the router its head is at or goes to; NONE behind an ejection port */
    int32_t target;               /* router at the end of the present segment */
    int32_t src, dst;             /* endpoints */
    int32_t hold;                 /* port */
    int32_t ext;                  /* index of its struct ext, or NONE */
    int32_t came;                 /* the link whose avoidance slot it fills, while FLAG_PLACED */
    uint32_t info;                /* of an acknowledgement: latency in ns, or the broken cable */
    uint32_t hops : 28, step : 4; /* step: of the path's segments */
    uint16_t bytes;
    uint8_t kind : 4, hold_kind : 4, flags;
};

/* A broken cable a packet has met. Times since the packet was made, at most UINT32_MAX ns. */
struct known {
    int32_t cable;
    uint32_t since; /* when it went out; 0: before the packet was made */
    uint32_t seen;
    uint32_t out; /* how long it was out by then */
};

/* What only packets on multi-step paths, or that met faults, carry. */
struct ext {
    struct detour_path sent; /* chosen by the source; an acknowledgement brings it back */
    struct detour_path way;  /* followed now */
    int32_t nknown;
    struct known known[KNOWN_MAX]; /* broken cables it has met */
    int nnews;                     /* of a message: faults it has met, the latest NEWS_MAX of them below */
    struct detour_news news[NEWS_MAX];
    int32_t next_free;
};

/* What an endpoint tells another one at random, beside its acknowledgements. */
struct rumour {
    int nnews, nflows;
    bool answer; /* to one that knows other faults: as many as fit */
    struct detour_digest digest;
    struct detour_news news[RUMOUR_NEWS_MAX];
    struct demand_flow flow[RUMOUR_FLOWS];
    int32_t next_free;
};

/* One direction of a cable, or an endpoint's link into (injection) or out of (ejection) its router. List 0 of two is
 * for acknowledgements, list 1 for data. */
struct port {
    uint64_t busy_until, busy_ns, blocked_since, down_since;
    int32_t head[2], tail[2];   /* output buffer */
    int32_t whead[2], wtail[2]; /* packets in input buffers that wait for a slot of the output buffer */
    int32_t ev_next, stall_next;
    int32_t to;                 /* router at the far end, NONE for ejection */
    uint32_t down;              /* outages in force */
    uint16_t out_used, in_used; /* slots: of this output buffer, of the input buffer at the far end */
    uint16_t stranded;          /* slots of this output buffer held by packets that wait for another output */
    uint8_t sending;            /* 0, 1, or 2 when the slot of the packet on the link is not to be freed */
    uint8_t daq_used;           /* the avoidance queue's slot at the far end */
    uint8_t claimed;            /* the other direction wants to exchange as soon as this link is idle */
    bool ev_set, stall_set, blocked;
};

struct sim {
    struct sim_config c;
    const struct fabric *f;
    uint64_t now, last_move;
    int32_t nlinks, nports, eject0, inject0;
    struct port *port;
    struct packet *packet;
    int32_t npackets, cap_packets, free_packet, live;
    struct ext *ext;
    int32_t next_ext, cap_ext, free_ext;
    struct rumour *rumour;
    int32_t next_rumour, cap_rumour, free_rumour;
    struct {
        uint32_t faults, turn;
        bool has_news;
    } * teller;        /* [endpoint] its rumours, where they are told */
    int32_t *nic_next; /* [endpoint] event list; then [endpoint] that of rumours */
    int32_t *partner;  /* [endpoint] fixed destination, or NULL */
    struct detour detour;
    struct detour_source *source;
    struct rng rng;      /* policy and escapes */
    struct rng *nic_rng; /* [endpoint] sizes and destinations: the same whatever the routing does */
    struct wheel wheel;
    size_t next_outage;
    struct {
        uint64_t at;
        int32_t cable;
    } * repair; /* binary heap by time */
    size_t nrepair;
    uint16_t cap_in, cap_out;
    uint32_t ser_max;
    bool failed;        /* out of memory */
    const char *broken; /* a broken invariant */
    struct sim_result *r;
    double sum_latency, sum_head, sum_hops;
    uint64_t bytes_offered, bytes_accepted;
    uint32_t *hist;
};

enum event { EV_HEAD, EV_PORT, EV_STALL, EV_NIC, EV_OUTAGE, EV_TICK, EV_RUMOUR };

static inline uint32_t event_code(enum event type, int32_t index)
{
    return (uint32_t)index << 3 | (uint32_t)type;
}

/* Where the link of an event's list lives. */
static inline int32_t *event_link(struct sim *s, enum event type, int32_t i)
{
    switch (type) {
    case EV_HEAD:
        return &s->packet[i].ev_next;
    case EV_PORT:
        return &s->port[i].ev_next;
    case EV_STALL:
        return &s->port[i].stall_next;
    case EV_NIC:
        return &s->nic_next[i];
    case EV_RUMOUR:
        return &s->nic_next[s->f->endpoints + i];
    default:
        return &s->nic_next[2 * s->f->endpoints + (type == EV_TICK)];
    }
}

/* Inline, so that each caller has the code of its own event alone. */
static inline void sim_at(struct sim *s, uint64_t time, enum event type, int32_t index)
{
    assert(time >= s->now);
    uint32_t code = event_code(type, index);
    if (time - s->now < WHEEL_SLOTS)
        wheel_push(&s->wheel, time, code, event_link(s, type, index));
    else if (!wheel_push_far(&s->wheel, time, code))
        s->failed = true;
}

void sim_port_at(struct sim *s, int32_t o, uint64_t time);

static inline int packet_class(const struct packet *p)
{
    return p->kind == PACKET_DATA || p->kind == PACKET_RUMOUR;
}

static inline uint64_t serial_ns(const struct sim *s, uint32_t bytes)
{
    return (uint64_t)(bytes * 8 / s->c.link_gbps + 0.5);
}

/* sim_packet.c */
int32_t packet_make(struct sim *s, enum packet_kind kind, int32_t src, int32_t dst, uint32_t bytes);
void packet_free(struct sim *s, int32_t i);
struct ext *packet_ext(struct sim *s, int32_t p);

/* Lists of packets. */
static inline void list_append(struct sim *s, int32_t *head, int32_t *tail, int32_t p)
{
    s->packet[p].next = NONE;
    if (*head == NONE)
        *head = p;
    else
        s->packet[*tail].next = p;
    *tail = p;
}

static inline int32_t list_pop(struct sim *s, int32_t *head, int32_t *tail)
{
    int32_t p = *head;
    *head = s->packet[p].next;
    if (*head == NONE)
        *tail = NONE;
    return p;
}

static inline void list_remove(struct sim *s, int32_t *head, int32_t *tail, int32_t p)
{
    int32_t before = NONE;
    for (int32_t i = *head; i != p; i = s->packet[i].next)
        before = i;
    if (before == NONE)
        *head = s->packet[p].next;
    else
        s->packet[before].next = s->packet[p].next;
    if (*tail == p)
        *tail = before;
}

/* sim_router.c */
void router_release(struct sim *s, int32_t p);
void router_take(struct sim *s, int32_t i);    /* a packet is at its `at`: find its output and queue it there */
bool router_advance(struct sim *s, int32_t p); /* true when the packet is at its last router */
void router_swap_slots(struct sim *s, int32_t a, int32_t b); /* of one router */
/* The youngest packet that waits at a router for another output, *at, while it holds a slot of output o; or NONE. */
int32_t router_stranded(const struct sim *s, int32_t router, int32_t o, int32_t *at);
bool packet_is_older(const struct sim *s, int32_t a, int32_t b); /* a total order that never changes */
void router_send(struct sim *s, int32_t o);                      /* start the next packet of an output if it can go */
void router_transmit(struct sim *s, int32_t o, int32_t i);
void router_head(struct sim *s, int32_t i); /* event: the head of a packet has been routed */
void router_port(struct sim *s, int32_t o); /* event: an output may go on */

/* sim_fault.c */
bool fault_met(struct sim *s, int32_t p, int32_t link);     /* false: the packet is gone; else it has another way */
void fault_replan(struct sim *s, int32_t p, int32_t cable); /* the same before it got there, told by the next router */
void fault_event(struct sim *s);
void fault_schedule(struct sim *s);

/* sim_avoid.c */
void avoid_stall(struct sim *s, int32_t o);
void avoid_claimed(struct sim *s, int32_t o);
void avoid_arrived(struct sim *s, int32_t p);
int32_t avoid_knot(struct sim *s); /* ports in a closed set of waiting ones: none of them can ever move again */

/* sim_traffic.c */
bool traffic_init(struct sim *s);
void traffic_start(struct sim *s);
void traffic_nic(struct sim *s, int32_t e); /* event: an endpoint makes its next message */
void traffic_delivered(struct sim *s, int32_t i);

void traffic_inject(struct sim *s, int32_t p); /* a packet of an endpoint whose policy chooses its path */

/* sim_rumour.c */
void rumour_start(struct sim *s);
void rumour_event(struct sim *s, int32_t e); /* event: an endpoint may tell what it knows */
void rumour_heard(struct sim *s, int32_t i);
void rumour_free(struct sim *s, uint32_t i);

/* sim_check.c */
const char *sim_check(struct sim *s);
#endif
