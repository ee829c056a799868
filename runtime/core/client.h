/* Inside libkeel: the one client of this process. A rank's side of everything.
 *   job.c        start, end, control socket
 *   link.c       connections to agents
 *   op.c         operations: from the call to completion on all live copies
 *   rma.c, segment.c, collective.c, task.c   the public calls
 *
 * One mutex (client.lock) covers links and operations; the control socket has its own. Same-node access to unreplicated
 * segments, and same-node gets, take neither. */
#ifndef KEEL_CORE_CLIENT_H
#define KEEL_CORE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/core/control.h"
#include "runtime/core/intent.h"
#include "runtime/core/page.h"
#include "runtime/core/stripe.h"
#include "runtime/core/wire.h"

#define KEEL_EXPORT __attribute__((visibility("default")))

enum {
    CLIENT_SEGMENTS_MAX = 4096,
    CLIENT_SEQ_SLOTS = 1024,  /* hash of messages that wait for an answer */
    CLIENT_LARGE_MAX = 6,     /* announced puts at once: their chunks are fewer than CONN_OPEN */
    CLIENT_MESSAGES_MAX = 96, /* of them at once: fewer than CONN_RING and DEDUP_WINDOW, which remember them */
};

/* A rank's part that this process reaches by plain loads and stores as long as *route has the value it had when this was
 * filled in. A value of 0 is no route: not reachable so. */
struct near {
    const _Atomic uint64_t *route;
    uint64_t get_route, put_route; /* puts and atomics: unreplicated only, others tell the shadow */
    _Atomic(uint8_t *) base;
};

struct keel_segment {
    uint32_t index;
    uint64_t bytes_per_rank;
    struct near *near; /* [ranks] */
    size_t stride;
    keel_redundancy redundancy;
    bool freed;              /* before this process joined */
    _Atomic(uint8_t *) *map; /* [nodes] this node's copy of each slot's part, NULL until mapped */
    size_t *map_bytes;       /* [nodes] */
};

enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_UP };

struct link {
    int node;
    enum link_state state;
    struct tp_ep *ep;
    uint64_t retry_at, retry_ns;
    uint64_t check_at; /* when the agent was last asked about the node */
    uint64_t attempts; /* to connect; see wire_hello */
};

enum op_kind { OP_PUT, OP_GET, OP_ACC, OP_ADD, OP_CAS, OP_ENTER };

struct op;

/* A part of an operation on its way to one node: a message that awaits its answer, or a remote write or read. */
struct piece {
    struct tp_op tp;
    struct op *op;
    struct piece *next;    /* in the hash, or the free list */
    struct piece *sibling; /* of the same operation */
    uint64_t seq;
    uint64_t offset, len; /* relative to the operation */
    int node;
    int leg;
    bool remote_access; /* a write or read: the provider uses our memory until its event */
    bool second;        /* of an announced put: the other copy has the chunk */
};

struct op {
    enum op_kind kind;
    struct keel_segment *segment;
    int slot;
    uint64_t offset; /* in the slot's part */
    uint64_t len;
    const uint8_t *src;
    uint8_t *dst;
    double scale;
    int64_t a, b, result;
    uint64_t task; /* with WIRE_F_TASK */
    uint32_t step;
    uint8_t flags;
    bool always_through; /* through the primary also when the slot is a pair */
    /* the plan, for one route */
    uint64_t route;
    bool planned, replan;
    bool by_message; /* else remote access */
    int legs;
    int leg_node[2];
    uint64_t posted[2], done[2];
    uint64_t window[2];
    /* a large put: announced remote writes */
    bool announced;
    bool staged;          /* the copy on this node gets each chunk when the other has it */
    struct stripe stripe; /* else: both copies are elsewhere, by leg */
    uint64_t number;      /* of the put in its announcements, 0: none yet */
    struct piece *pieces;
    int accesses; /* pieces with remote_access */
    uint64_t seq; /* of an exactly-once message in flight or to be repeated, 0: none */
    int intent;   /* entry of the intent page, -1: none */
    /* the end */
    bool finished;
    keel_status status;
    keel_handle *handle;
    bool implicit;
    uint64_t deadline, retry_at, retry_ns, started;
    struct op *next, *prev; /* active */
};

struct client {
    bool ready, left;
    int rank, size, node;
    uint32_t incarnation;
    bool restarted, resumed;
    uint64_t job;
    uint8_t secret[32];
    const struct page *page;
    struct intent_page *intents;
    uint64_t timeout_ns;
    uint64_t spin_ns;
    /* control socket */
    pthread_mutex_t control_lock;
    int control_fd;
    uint32_t control_id;
    /* operations and links */
    pthread_mutex_t lock;
    struct tp *net, *shm;
    struct link *link; /* [members]; the own node's is the shared-memory connection */
    int epoll_fd;
    uint64_t epoch_seen;
    uint64_t next_seq;
    uint64_t next_number; /* of announced puts */
    int large;            /* announced puts under way */
    bool large_waiting;   /* others wait for one of them to end */
    struct piece *by_seq[CLIENT_SEQ_SLOTS];
    struct piece *free_pieces;
    struct op *free_ops;
    struct op *active;
    int messages;               /* awaiting answers */
    keel_status implicit_error; /* first error of an implicit operation since the last fence */
    uint64_t scan_at;
    keel_status fatal; /* the job is lost for this process */
    /* segments, collectives: user's thread, under the rule that collectives are called in order */
    struct keel_segment *segment[CLIENT_SEGMENTS_MAX];
    uint32_t segments, segments_known;
    uint64_t instance, collectives;
    /* the task being run */
    uint64_t task;
    uint32_t task_step;
    bool in_task;
};

extern struct client client;

/* job.c */
/* One request and its answer; fd (may be NULL) receives a passed descriptor or -1. Blocks until the agent answers. */
keel_status control_request(struct control *r, int *fd);
void control_tell(const struct control *r);
bool control_is_broken(void);

/* link.c; client.lock held */
struct tp_ep *link_up(int node, uint64_t now); /* the connection, or NULL and it is being made */
void link_event(struct link *link, const struct tp_event *e, uint64_t now);
void link_drop(int node);
void link_ask_agent(int node, uint64_t now);

/* op.c */
void op_init(struct op *op, enum op_kind kind, struct keel_segment *segment, int rank, size_t offset, size_t len);
/* Start it; client.lock held. */
void op_start(struct op *op);
keel_status op_run(struct op *op); /* start and wait; takes the lock */
struct op *op_alloc(void);         /* client.lock held; NULL when out of memory */
void op_free(struct op *op);
void op_progress(void); /* client.lock held */
/* Wait until done(arg) with the lock held in between; false if the process has lost the job. */
bool op_wait(bool (*done)(void *arg), void *arg);
void op_link_lost(int node);
void op_links_changed(void);
void op_answered(const struct wire *w, const void *body, size_t len);
void op_access_done(struct piece *p, keel_status status);

/* segment.c */
/* This node's copy of the slot's part, or NULL. *status says why not: KEEL_ERR_DATA_LOST or KEEL_ERR_STATE (it is not here). */
uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status);
struct keel_segment *segment_attach(uint32_t index, uint64_t bytes_per_rank, keel_redundancy redundancy);
void segment_release(struct keel_segment *s);

/* collective.c */
keel_status collective_enter(bool internal);
keel_status collective_contribute(uint32_t kind, const void *data, size_t len);
keel_status collective_read(int rank, uint32_t kind, void *data, size_t len, bool *present);
#endif
