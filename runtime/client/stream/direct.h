/* Connections between ranks of different nodes: the streams of courier.h go over them without an agent's help, so that
 * a message passes two processes and no third one has to get a processor. Two ranks make one when the first of them has
 * something for the other: each tells the other, through the agents, where it listens, and the one of the higher number
 * connects. A connection belongs to one life of each. Nothing rests on it: while there is none the streams go through
 * the agents, and when one breaks they go on there with what was not acknowledged.
 *
 * Like all of the client: under its lock. */
#ifndef KEEL_CLIENT_STREAM_DIRECT_H
#define KEEL_CLIENT_STREAM_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/net/way.h"

enum { DIRECT_MAX = 64 }; /* of a process, over its life; other ranks are reached through agents */

struct client;
struct direct;
struct connection;

struct directs {
    struct tp *tp;
    struct direct **of; /* [ranks], NULL: none */
    int n, ups;
    bool down; /* one that we would make again is */
    bool asked, listens;
    bool crowded; /* something waits until a socket takes it */
    struct tp_addrs here;
    struct ways ways;
};

bool direct_init(struct client *c);
/* Another transport than the one that leads to agents; before the first call. It stays the owner's. */
void direct_over(struct client *c, struct tp *tp);
void direct_free(struct client *c);
/* There is something for the rank, and there may be more. */
void direct_want(struct client *c, int rank, uint64_t now);
/* It says where it listens: addresses, as in net/addrs.h. */
void direct_told(struct client *c, int from, const void *data, size_t len, uint64_t now);
/* Somebody connects to us: TP_CONNREQ. */
void direct_asked(struct client *c, const struct tp_event *e, uint64_t now);
/* Of a connection whose link has a rank. */
void direct_event(struct connection *l, const struct tp_event *e, uint64_t now);
/* NULL: none is up. */
struct tp_ep *direct_up(const struct client *c, int rank);
/* What a view says: that life of the rank is over. */
void direct_reset(struct client *c, int rank);
/* Returns when it is needed next. */
uint64_t direct_tick(struct client *c, uint64_t now);
#endif
