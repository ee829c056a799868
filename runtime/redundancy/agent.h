/* The data half of an agent: one struct, used by its data thread only. What its parts do:
 *   core/peer        reliable ordered streams between agents
 *   redundancy/replica  operations on copies, forwarding to the shadow
 *   recovery/recover    what happens at a view change: fence, promote
 *   recovery/push       make the copies of a slot equal again: settle doubts, rebuild
 *   init/plane          the thread, its queues, ranks' control sockets */
#ifndef KEEL_REDUNDANCY_AGENT_H
#define KEEL_REDUNDANCY_AGENT_H

#include "runtime/core/intent.h"
#include "runtime/core/page.h"
#include "runtime/core/peer.h"
#include "runtime/core/view.h"
#include "runtime/core/wire.h"
#include "runtime/redundancy/dedup.h"
#include "runtime/redundancy/store.h"

/* A range of a slot's part of a segment. */
struct patch {
    uint32_t seg;
    int slot;
    uint64_t offset;
    uint64_t len;
    bool torn;    /* this copy may hold part of a write only */
    bool second;  /* torn: the writer had written the other copy before */
    uint64_t put; /* number of the writer's put, announced writes only */
};

enum { CONN_RING = 128, CONN_OPEN = 64 };

/* A connection of a rank (this node's over shm, others over the network). */
struct conn {
    struct conn *next;
    struct tp_ep *ep;
    int rank;
    uint32_t incarnation;
    int node;
    bool up;
    uint64_t attempt; /* the newest of its hellos */
    /* the last direct puts, newest at ring[(puts - 1) % CONN_RING]; a rank has fewer than CONN_RING in flight */
    struct patch ring[CONN_RING];
    uint64_t puts;
    /* remote writes announced and not known to be in both copies; len 0: free. A rank has fewer at once. */
    struct patch open[CONN_OPEN];
};

/* Patches in doubt that this node knows of, of dead writers. Kept until the slot is a pair again. */
struct doubt {
    struct doubt *next;
    int rank;
    uint32_t incarnation;
    struct patch patch;
};

/* A reply that waits until the shadow has acknowledged what was forwarded up to seq. */
struct waiter {
    struct waiter *next;
    struct conn *conn; /* NULL: the origin is gone, only the order counts */
    struct wire reply;
    int node; /* the shadow's node */
    uint64_t seq;
};

/* A request that came while its slot was frozen by a view change. */
struct stashed {
    struct stashed *next;
    struct conn *conn;
    struct wire wire;
    uint8_t body[];
};

/* The push of a slot to its new shadow, or of the patches in doubt to its old one. */
struct push {
    bool active;
    bool finished;      /* VIEW_RESTORED was submitted */
    bool own_done;      /* everything this node has to send is in the stream */
    bool shadow_done;   /* SYNC: the shadow has told all its doubts */
    bool torn;          /* SYNC: this copy waits for good bytes from the shadow; the slot executes nothing until then */
    int fetches;        /* SYNC: answers awaited; nothing of this copy is sent before they are here */
    struct doubt *told; /* SYNC: doubts that the shadow has told meanwhile */
    uint64_t generation; /* of the slot (view slot.changed) that this push is for */
    uint64_t last_seq;   /* stream position of the last message */
    uint32_t seg;        /* REBUILD: cursor */
    uint64_t offset;
    uint64_t bytes; /* sent */
    uint64_t started_at;
};

struct agent {
    int self, members;
    uint64_t job;
    uint8_t secret[32];
    uint64_t incarnation;
    uint64_t *node_incarnation; /* [members] */
    struct tp *net, *shm;
    struct view view;
    struct view_slot *slots_before; /* [slots] scratch of a view change */
    struct page *page;
    struct store store;
    struct dedup *dedup; /* [slots] */
    struct peers peers;
    struct conn *conns;
    uint32_t *rank_fence; /* [ranks] lowest incarnation that may connect */
    bool *node_fence;     /* [members] refused */
    bool *node_doomed;    /* [members] believed dead here: it will be declared, or this node ends */
    struct waiter *waiters, **waiters_tail;
    struct stashed *stash, **stash_tail;
    bool frozen;
    uint64_t preparing; /* number of the proposal being prepared, not yet answered; 0: none */
    uint64_t settled;   /* highest settled epoch */
    struct doubt *doubts;
    struct push *push; /* [slots], where this node is the primary */
    struct barrier *barrier;
    bool takes_part;      /* in barriers */
    uint64_t collectives; /* barrier instances completed here that the user called */
    uint64_t now;         /* of this round of the loop */
    bool broken;          /* out of memory or the like: the agent must end */
    void *owner;          /* struct plane */
};

/* What the parts ask of the plane. */
void node_submit(struct agent *a, const struct view_event *event);
void node_check_node(struct agent *a, int node);
void node_refused_node(struct agent *a, int node);
void node_prepared(struct agent *a, uint64_t proposal, uint64_t value);
void node_break(struct agent *a, const char *why);
/* One line of the event log: name, then a printf of the further JSON members ("" for none, else starting with a comma). */
__attribute__((format(printf, 3, 4))) void node_event(struct agent *a, const char *name, const char *fmt, ...);
/* The connection is dropped and its memory given back. */
void node_drop_conn(struct agent *a, struct conn *c);
/* Local ranks: their intents become doubts when they die; they may go on when they join. */
void node_note_intents(struct agent *a, int rank, uint32_t incarnation);
#endif
