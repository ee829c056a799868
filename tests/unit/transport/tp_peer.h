/* Two or three ends of a transport in one thread: each `struct peer` records what its poll says, tests take the records
 * out in order. A wait that gets nothing for PEER_PATIENCE_S fails the test. */
#ifndef KEEL_TESTS_TP_PEER_H
#define KEEL_TESTS_TP_PEER_H

#include "runtime/net/transport.h"

enum { PEER_PATIENCE_S = 20, PEERS_MAX = 8 };

extern const char *peer_provider; /* of libfabric, if the transport is over it: tcp, unless a test says otherwise */

struct peer_record {
    struct tp_event event; /* data points to a copy */
    struct peer_record *next;
};

struct peer {
    const struct tp_table *table;
    struct tp *tp;
    struct tp_addr addr; /* len 0: does not listen */
    struct peer_record *first, **last;
    int batch; /* events asked of one poll */
};

struct world {
    struct peer *peers[PEERS_MAX];
    int count;
};

void peer_open(struct world *world, struct peer *peer, const struct tp_table *table, const char *host, bool listening);
void peer_close(struct world *world, struct peer *peer);
/* One poll; records what it said. Returns the number of events. */
int peer_step(struct peer *peer);
void world_step(struct world *world);
/* Next record of this type and, if not NULL, of this ep; earlier records of other types stay. Steps the world until it
 * is there. The caller owns the record: free with record_free. */
struct peer_record *world_await(struct world *world, struct peer *peer, enum tp_event_type type, struct tp_ep *ep);
/* world_await for tests that need nothing but the status. */
keel_status world_await_status(struct world *world, struct peer *peer, enum tp_event_type type, struct tp_ep *ep);
/* Step for so many milliseconds and expect no event of this type on this peer. */
void world_expect_none(struct world *world, struct peer *peer, enum tp_event_type type, int ms);
void record_free(struct peer_record *record);
/* a connects to b with hello "hi"; both ends are up on return */
void world_connect(struct world *world, struct peer *a, struct peer *b, struct tp_ep **a_ep, struct tp_ep **b_ep);

void fill_pattern(void *to, size_t len, uint64_t seed);
bool is_pattern(const void *from, size_t len, uint64_t seed);
#endif
