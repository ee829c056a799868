/* Connections that a process makes to other nodes: a rank's to the agents, an agent's streams, the detector's
 * heartbeats. One way each, named by the node it leads to, by the own interface it leaves from (rail) and by the node
 * that passes it on (via). Today there is one rail, and every way is direct.
 *
 *             way_try            TP_CONNECTED: way_connected
 *   DOWN ----------------> CONNECTING ----------------> UP
 *     ^                        |  TP_CLOSED: way_drop     |
 *     +------------------------+--------------------------+   or at any time
 *
 * A way that fails is tried again, later each time. Its owner says when it is wanted, and what the connection begins
 * with. Pure but for the transport it is given; not thread-safe. */
#ifndef KEEL_NET_WAY_H
#define KEEL_NET_WAY_H

#include "runtime/base/clock.h"
#include "runtime/base/counters.h"
#include "runtime/net/transport.h"

enum { WAY_DIRECT = -1 };

struct way_key {
    int node;
    int rail;
    int via; /* WAY_DIRECT */
};

enum way_state { WAY_DOWN, WAY_CONNECTING, WAY_UP };

struct way {
    struct way_key key;
    enum way_state state;
    struct tp_ep *ep;  /* NULL: DOWN */
    uint64_t attempts; /* so far; the number of a connection's hello */
    uint64_t retry_at; /* not before */
    uint64_t retry_ns; /* from one attempt to the next */
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
/* If it is down and its time has come, begin to connect; ep_user is what tp_ep_user returns. True unless it is down
 * after that. */
bool way_try(struct way *w, const struct ways *kind, const struct tp_addr *to, void *ep_user, uint64_t now);
void way_connected(struct way *w, const struct ways *kind, uint64_t now);
/* Its TP_CLOSED has come, or no event of it is wanted any more: the endpoint is destroyed. */
void way_drop(struct way *w);

static inline struct way_key way_direct(int node)
{
    return (struct way_key){.node = node, .via = WAY_DIRECT};
}
#endif
