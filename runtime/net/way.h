/* Connections that a process makes to other nodes: a rank's to the agents, an agent's streams, the detector's
 * heartbeats. One way each, named by the node it leads to, by the network that it goes over (rail) and by the node that
 * passes it on (via). Which it is of all that lead there is chosen for each attempt, in one place: way_pick. Today
 * every way is direct.
 *
 *             way_try            TP_CONNECTED: way_connected
 *   DOWN ----------------> CONNECTING ----------------> UP
 *     ^                        |  TP_CLOSED: way_drop     |
 *     +------------------------+--------------------------+   or at any time
 *
 * A way that fails is tried again, later each time; at once where another rail is there that has not failed of late.
 * Its owner says when it is wanted, and what the connection begins with. Pure but for the transport it is given; not
 * thread-safe. */
#ifndef KEEL_NET_WAY_H
#define KEEL_NET_WAY_H

#include "runtime/base/clock.h"
#include "runtime/base/counters.h"
#include "runtime/net/addrs.h"

enum { WAY_DIRECT = -1 };

struct way_key {
    int node;
    int rail;
    int via; /* WAY_DIRECT */
};

/* What is known of the ways to one node, by rail. */
struct way_past {
    struct {
        uint64_t failed_at; /* a connection over it broke, or could not be made; 0: not since it was up last */
        uint32_t times;     /* so often since a connection over it stood for long */
        bool stood;         /* one has been up: who listens there is that node */
    } rail[TP_RAILS_MAX];
};

/* A rail that has failed is left alone for so long, twice as long each time up to the second one. */
#define WAY_REST_NS KEEL_NS_PER_S
#define WAY_REST_MAX_NS (16 * KEEL_NS_PER_S)
/* Where there is another rail: a connection that does not come up, or takes none of our bytes, or none of whose peer's
 * answers come, for so long is given up. The first is more than a packet that was lost costs. */
#define WAY_STUCK_NS (250 * KEEL_NS_PER_MS)
#define WAY_UNANSWERED_NS KEEL_NS_PER_S

/* The way to take to the node, of all that lead there: over the first of its rails that does not rest; else over the
 * one that has failed longest ago. `to` has at least one. via is WAY_DIRECT: a relay would be chosen here, where no
 * rail leads there. Pure. */
struct way_key way_pick(int node, const struct tp_addrs *to, const struct way_past *past, uint64_t now);
/* Does it rest? */
bool way_rests(const struct way_past *past, int rail, uint64_t now);

/* What has moved on a connection, as it was looked at last. */
struct way_look {
    struct tp_moved moved;     /* there, */
    uint64_t came_at, went_at; /* and when that had last changed */
    uint64_t at;               /* when that was last looked at */
};

enum way_state { WAY_DOWN, WAY_CONNECTING, WAY_UP };

struct way {
    struct way_key key;
    enum way_state state;
    struct tp_ep *ep;  /* NULL: DOWN */
    uint64_t attempts; /* so far; the number of a connection's hello */
    uint64_t retry_at; /* not before */
    uint64_t retry_ns; /* from one attempt to the next */
    uint64_t begun_at; /* this attempt, or the last one */
    bool broke;        /* it was up, and no attempt since then */
    struct way_past past;
    struct way_look look;
    /* for who reads the log */
    uint64_t down_since; /* the first attempt since it was up; 0: none has been made */
    uint64_t told_at;    /* that it fails; 0: it was not */
    uint64_t tell_ns;    /* from then until it is told again, doubled each time */
    int error;           /* the system's, of the last attempt that failed; 0: not known */
};

/* What all ways of one kind have in common. */
struct ways {
    struct tp *tp;
    uint64_t first_ns, max_ns; /* from one attempt to the next, doubled with each that fails */
    /* Write the connect data of the attempt that way->attempts counts, at most TP_HELLO_MAX bytes; returns their
     * number. */
    size_t (*hello)(void *user, const struct way *way, uint8_t *out);
    void *user;
    /* It has been tried in vain for this time; with `to` NULL: it is there after this time. Called after
     * WAY_PATIENCE_NS, and again later each time. NULL: nobody wants to know. */
    void (*tell)(const struct ways *kind, const struct way *w, const struct tp_addr *to, uint64_t for_ns);
    /* For way_log: what the log calls the other end, and its number (NULL: the key's node). */
    const char *whose;
    int (*number)(int node);
    struct counter_block *counts; /* of the thread that drives them: connections; NULL: nobody counts */
};

#define WAY_PATIENCE_NS (3 * KEEL_NS_PER_S)
/* A `tell` that warns. Not pure. */
void way_log(const struct ways *kind, const struct way *w, const struct tp_addr *to, uint64_t for_ns);

void way_init(struct way *w, const struct ways *kind, struct way_key key);
/* If it is down and its time has come, begin to connect, over what way_pick says; ep_user is what tp_ep_user returns.
 * True unless it is down after that. */
bool way_try(struct way *w, const struct ways *kind, const struct tp_addrs *to, void *ep_user, uint64_t now);
void way_connected(struct way *w, const struct ways *kind, uint64_t now);
/* No event of it is wanted any more: the endpoint is destroyed. */
void way_drop(struct way *w);
/* The other end is another process from now on: what was tried to reach the one before says nothing of it. The owner
 * has disconnected the endpoint, and destroys it when its TP_CLOSED comes. */
void way_anew(struct way *w, const struct ways *kind);
/* As way_drop, and the rail has failed: its TP_CLOSED has come, or it was stuck. */
void way_failed(struct way *w, uint64_t now);
/* The last attempt was refused by the node's kernel: does that say that its process is gone? Over a rail where nobody
 * has answered yet it may be another host that has the same address there. */
bool way_refusal_counts(const struct way *w);
/* It has failed: is it a matter for those who watch the node? It was up once and broke, and there is no other rail to
 * try. True once. */
bool way_has_broken(struct way *w, const struct tp_addrs *to, uint64_t now);
/* Is there another rail, which does not rest? */
bool way_has_other(const struct way *w, const struct tp_addrs *to, uint64_t now);
/* Is the connection to be given up for another rail, of which there is one that does not rest? Somebody waits for an
 * answer over it if waits; asks the transport. */
bool way_is_stuck(struct way *w, const struct tp_addrs *to, bool waits, uint64_t now);
/* Nothing has come for `still`, and nothing of ours that is on its way was taken for `stuck`, or all was. Called often
 * while somebody waits. now: of whoever waits. */
bool way_is_still(struct way_look *l, const struct tp_ep *ep, uint64_t stuck, uint64_t still, uint64_t now);

static inline struct way_key way_direct(int node)
{
    return (struct way_key){.node = node, .via = WAY_DIRECT};
}
#endif
