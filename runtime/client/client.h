/* A rank's side of everything: one instance, which reads no clock and opens no socket. libkeel keeps one for the
 * process (job.c hands it transports, sockets and the clock); the simulation keeps one per simulated rank. Its parts:
 *   stream/connection.h      connections to agents, and the notes that they keep for us (wire/note.h)
 *   stream/direct.h, stream/hall.h   connections to ranks of other nodes; messages to ranks of this one
 *   stream/courier.h, stream/mail.h  streams between ranks over these; users' messages
 *   op/plan.h          where the pieces of an operation go, for one route; pure
 *   op/op.h, op/ops.h  operations: from the call to completion on all live copies; those of the process
 *   op/doubt.h         what was given up before its copies were equal
 *   segment/segment.h, segment/segments.h   segments; those of the process
 *   group/coll.h       groups and their collectives, between ranks
 *   progress.h         events, deadlines, waiting
 *   spin.h, threads.h, waits.h   how long who waits looks; several threads; what is told of waits
 *   op/rma.h, op/shaped.h, op/task.h, op/signal.h, group/collective.h   what the public calls do
 *   keep/keep.h        memory of the rank's own that its next life finds again
 *   job, api           the process's instance and its entry points
 *
 * One mutex (lock) covers links and operations. Same-node access to unreplicated segments, and same-node gets, take
 * none. */
#ifndef KEEL_CLIENT_CLIENT_H
#define KEEL_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/base/replica.h"
#include "runtime/client/group/coll.h"
#include "runtime/client/stream/direct.h"
#include "runtime/client/stream/hall.h"
#include "runtime/client/stream/connection.h"
#include "runtime/client/stream/mail.h"
#include "runtime/client/op/doubt.h"
#include "runtime/client/op/flying.h"
#include "runtime/client/op/op.h"
#include "runtime/client/op/ops.h"
#include "runtime/client/op/task.h"
#include "runtime/client/progress.h"
#include "runtime/client/segment/segments.h"
#include "runtime/client/spin.h"
#include "runtime/client/threads.h"
#include "runtime/client/waits.h"
#include "runtime/wire/control.h"
#include "runtime/wire/note.h"
#include "runtime/wire/page.h"
#include "runtime/wire/wire.h"
#include "runtime/net/way.h"

/* What a client asks of its owner. */
struct client_env {
    void *user;
    uint64_t (*now)(void *user);
    /* Sleep until a transport has something for us, or for ms. The client's lock is not held. */
    void (*sleep)(void *user, int ms);
    /* Somebody else may need this processor. */
    void (*yield)(void *user);
    /* One request and its answer, over the control socket; blocks. With CONTROL_SEG_MAP and KEEL_OK *memory gets this
     * node's copy, r->bytes long with its marks behind (client_env.unmap frees both), at the address that *memory held
     * if it was not NULL; else memory is NULL. */
    keel_status (*request)(void *user, struct control *r, void **memory);
    void (*unmap)(void *user, void *memory, size_t bytes);
    /* One request without an answer. False: not taken now, try again. */
    bool (*tell)(void *user, const struct control *r);
    bool (*agent_is_gone)(void *user);
    /* A store into a copy on this node, with plain stores of at least aligned words. */
    void (*copy)(void *user, void *dst, const void *src, size_t len);
    /* Addresses that are kept free for the parts of segments, the same in every process of the job; range_bytes 0:
     * none. */
    uint64_t range, range_bytes;
    /* Where this thread runs, counted from 1; 0, or NULL: unknown. */
    uint32_t (*processor)(void *user);
    /* Run on another processor that it is allowed to, if there is one. */
    void (*move)(void *user);
    /* The segment is about to be unmapped. NULL: nobody wants to know. */
    void (*leaving)(void *user, const struct keel_segment *segment);
    /* The rank was released, and this is a point at which it may end so that its next life begins elsewhere (move.h).
     * NULL: it goes on. The client's lock is not held. */
    void (*moves)(void *user);
};

enum client_ready { CLIENT_DIRECT = 1, CLIENT_WRAPPED };

/* What each put and get of the own node looks at comes first, on one line of the cache. */
struct client {
    /* False, or how calls are made (calls.h). Other threads may call while one finalizes. */
    _Atomic enum client_ready ready;
    bool leaving,
        left; /* a thread is in keel_finalize; has left: the transports are, or will soon be, gone. Under the lock */
    int rank, size, node;
    struct client_env env;
    uint32_t incarnation;
    bool restarted, resumed;
    uint64_t job;
    uint8_t *secret; /* 32 bytes */
    const struct page *page;
    struct intent_page *intents;
    uint64_t timeout_ns;
    struct task_run task_run;
    struct looks looks; /* of who waits */
    /* operations and links */
    pthread_mutex_t lock;
    struct threads threads;
    _Atomic unsigned waits_said;    /* a bit for each of intents->wait that is in use */
    struct connections connections; /* to agents */
    struct progress progress;
    struct ops ops;
    keel_status fatal; /* the job is lost for this process */
    struct doubts doubts;
    /* segments, collectives: user's thread, under the rule that collectives are called in order */
    struct segments segments;
    uint64_t collectives; /* of all live ranks, that are complete here */
    /* moving to another node (move.h) */
    bool chooses_to_move;      /* the program does, */
    atomic_bool told_to_move;  /* and was told that it is to: its keel_finalize is the end of this process only */
    keel_status move_status;   /* of what was under way when it let go */
    _Atomic int mutexes_taken; /* held or waited for by threads of this process */
    struct coll coll;          /* groups and their collectives */
    struct mail mail;
    struct hall hall;
    struct directs direct;
    uint64_t signals;  /* that have come */
    struct keep *keep; /* NULL: nothing is kept */
    /* Who is who for the program: rank and size above are native (base/replica.h). What else there is to know is in
     * the view page: check, on_mismatch, set. */
    struct replica_map replicas;
    struct flying flying;  /* of the thread that calls */
    _Atomic uint64_t step; /* where the program says that it is (keel_timestep) */
    void (*lasts)(void);   /* a wait does; called without the lock, also again. NULL: nobody wants to know */
};
_Static_assert(offsetof(struct client, node) + sizeof(int) <= 64, "see above");

/* ---- the instance ---- */

/* What joining brings (control.h), and the transports; page, intents and transports stay the owner's. */
keel_status client_init(struct client *c, const struct client_env *env, const struct control_welcome *w,
                        const struct page *page, struct intent_page *intents, struct tp *net, struct tp *shm);
/* own: the link's ep of the shared-memory connection, whose user must be client_own_connection. */
struct connection *client_own_connection(struct client *c);
void client_attach(struct client *c, struct tp_ep *own);
/* Frees what the client allocated. Nothing may be in progress. */
void client_fini(struct client *c);
/* keel_finalize but for the transports. */
keel_status client_leave(struct client *c);
/* What this process has begun is complete, and what it has sent has arrived, or is its agent's; the lock is held. The
 * status is that of what it had under way. blocks   until then, but for no peer that is dead; and not once the job is
 * lost (c->fatal). */
keel_status client_let_go(struct client *c);
/* What is counted under the lock. */
static inline struct counter_block *client_counts(const struct client *c)
{
    return &c->intents->counters.block[COUNTER_LOCKED];
}
/* Of which process of the rank this is the end. */
static inline struct life client_life(const struct client *c)
{
    return life_of(c->rank, c->incarnation);
}
#endif
