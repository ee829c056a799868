/* The data half of an agent: one instance. It starts no thread, opens no socket and reads no clock; its owner (plane/
 * in a keeld, tests/sim/data in the simulation) hands it transports, memory, the time, and what happens. Its parts:
 *   peer          reliable ordered streams between agents
 *   store         copies of segments
 *   segments      which segments exist, and who knows of them (said.h: what the others say of them)
 *   execute       requests of ranks: operations on copies, forwards to the others
 *   ordering      in which order replicas of a program execute what does not commute
 *   strong        gets whose value is never taken back
 *   verify        an audit: are all copies equal?
 *   scrub         copies at rest: has one changed by itself?
 *   recover       what happens at a view change: fence, apply, show
 *   repair        making the copies of a copyset equal again, and filling new ones
 *   ranks         this node's ranks: joining, barriers, what they leave behind
 *   weighing      what a choice between moving and colliding knows, and what is told of it
 *   health        what ranks may know of nodes, links and each other's processes */
#ifndef KEEL_AGENT_AGENT_H
#define KEEL_AGENT_AGENT_H

#include "runtime/base/life.h"
#include "runtime/agent/chain.h"
#include "runtime/agent/connect.h"
#include "runtime/agent/dedup.h"
#include "runtime/agent/health.h"
#include "runtime/agent/ordering.h"
#include "runtime/agent/peer.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/repair.h"
#include "runtime/agent/scrub.h"
#include "runtime/agent/segments.h"
#include "runtime/agent/stash.h"
#include "runtime/agent/store.h"
#include "runtime/agent/strong.h"
#include "runtime/agent/verify.h"
#include "runtime/agent/weighing.h"
#include "runtime/base/json.h"
#include "runtime/wire/control.h"
#include "runtime/wire/note.h"
#include "runtime/wire/page.h"
#include "runtime/wire/reply.h"
#include "runtime/wire/wire.h"
#include "runtime/view/view.h"

enum { AGENT_BATCH = 64 };

/* A connection of a rank (this node's over shm, others over the network). */
struct conn {
    struct conn *next;
    struct tp_ep *ep;
    struct life life;
    int node;
    uint64_t attempt;             /* the newest of its hellos */
    struct patch note[NOTES_MAX]; /* len 0: none */
};

/* A process of this node that runs a rank, or waits for one. */
struct proc {
    struct proc *next;
    int id;           /* the owner's, unique and never reused */
    struct life life; /* LIFE_NONE: standby */
    bool exited;
    bool held;           /* to be asked at once, when it is known at which collective */
    bool released;       /* it is to end so that the rank's next life begins elsewhere: */
    int moves_to;        /* on that node, */
    uint32_t move_order; /* by that number of a plan, */
    uint64_t released_at;
    bool lingers;                /* it has come to its end since, and does not end: that was said */
    bool by_plan;                /* which is the view's, and may be another one by the next view */
    bool told_stopped;           /* all nodes are told that it is stopped */
    struct conn *conn;           /* its shared-memory connection */
    struct intent_page *intents; /* the owner's memory, valid until proc_end */
    uint32_t doubts_told;        /* of intents->doubted */
    bool freeing;                /* has told what became of a segment, and not all nodes know it: */
    uint32_t freeing_id;         /* the request that asks for an answer, 0: none does */
    uint64_t freeing_number;     /* by that call */
    uint64_t counted;            /* allocations and frees of which all nodes know: it may not have looked yet */
};

/* A reply that waits until the other copies have what was forwarded. */
struct waiter {
    struct waiter *next;
    struct conn *conn; /* NULL: the origin is gone, only the order counts */
    struct msg_reply reply;
    int copyset;
    bool answered_there; /* the last copy answers (msg_forward: answer) */
    struct chain_mark mark;
    bool forwarded; /* forward and its bytes are kept, to be sent again if the chain breaks */
    struct wire forward;
    uint8_t bytes[];
};

/* What an agent asks of its owner. None blocks. */
struct agent_ops {
    void *user;
    /* To the detector and the agreement (detect/member.h). */
    void (*submit)(void *user, const struct view_event *event);
    void (*check)(void *user, int node); /* somebody waits for it: asked again while that is so */
    void (*refused)(void *user, int node);
    void (*broken)(void *user, int node);
    void (*prepared)(void *user, uint64_t proposal, uint64_t value);
    /* This agent cannot keep its promises: it must end as a dead node. */
    void (*fatal)(void *user, const char *why);
    /* A line of the event log: name and further JSON members ("" or starting with a comma). */
    void (*event)(void *user, const char *name, const char *members);
    /* Zeroed memory for a copy, that the owner can pass to ranks by its handle. */
    keel_status (*memory_make)(void *user, size_t bytes, void **base, int64_t *handle);
    void (*memory_free)(void *user, void *base, size_t bytes, int64_t handle);
    /* Write into such memory, to which nobody else writes meanwhile and which nobody reads: what was never touched may
     * cost less this way than by storing into it. Not KEEL_OK: there is no memory behind it, and not all is written. */
    keel_status (*memory_fill)(void *user, void *base, int64_t handle, size_t offset, const void *from, size_t bytes);
    /* The memory is not needed now: the system may have it for something else, and it reads as zeros. */
    void (*memory_empty)(void *user, void *base, int64_t handle, size_t offset, size_t bytes);
    /* Answer a control request of a process; with CONTROL_SEG_MAP and KEEL_OK pass the handle along. */
    void (*answer)(void *user, struct proc *proc, const struct control *reply, int64_t handle);
    /* A process (one that waits, or NULL: start one) is this life of its rank from now on: ranks_welcome it. */
    void (*assign)(void *user, struct proc *proc, struct life life);
    /* The opposite: the process is to end as moved, at a point of its program where nothing of its own is under way, or
     * when the owner does not wait for that any longer: it asks ranks_overdue then. ranks_moved follows, or
     * ranks_exited if it ends for a reason of its own. */
    void (*release)(void *user, struct proc *proc);
    /* And back: it stays, and is waited for no longer. */
    void (*stay)(void *user, struct proc *proc);
    /* The process is forgotten here: its intents and its connection are not looked at any more. */
    void (*forgotten)(void *user, struct proc *proc);
    /* What the kernel says of the process (enum page_process), and the processor time it has used. */
    unsigned (*look_at)(void *user, const struct proc *proc, uint64_t *ticks);
    /* The view page has deaths that were not in it: wake who waits for such. */
    void (*failed)(void *user);
    /* An audit (agent/verify.h) has ended: JSON members, result first. */
    void (*verified)(void *user, uint64_t id, const char *members);
    /* weighing_ask is answered: JSON members, result first. NULL: nobody asks. */
    void (*rebalanced)(void *user, uint64_t id, const char *members);
    /* What the node's death would cost, from now on. NULL: nobody wants to know. */
    void (*stake)(void *user, int node, enum view_stake stake);
    /* Was any of these bytes ever written to? NULL: any may have been. */
    bool (*memory_used)(void *user, int64_t handle, size_t offset, size_t bytes);
};

/* Events that were polled together. An end that goes meanwhile is taken out of those behind `at`. */
struct event_batch {
    struct tp_event *events;
    int n, at;
};

struct agent {
    struct agent_ops ops;
    int self, members; /* members: ids for them */
    uint64_t job;
    const uint8_t *secret;
    uint64_t incarnation;
    uint64_t *node_incarnation; /* [members] */
    struct tp *net, *shm;
    struct view view;
    struct page *page;
    struct store store;
    struct dedup *dedup; /* [copysets] */
    uint32_t
        *forwards; /* [copysets] number of the last one, in the order applied: the same for all copies that have it */
    struct peers peers;
    struct conn *conns;
    struct newcomers newcomers;
    struct fences fences;
    struct stakes stakes;
    struct waiter *waiters, **waiters_tail;
    struct chain_relays relays;
    struct stash stash;   /* requests that cannot be executed yet: a view change, a copy that waits for good bytes */
    struct stash parcels; /* for processes that are still to come (agent/parcels.c) */
    uint8_t *gathered;    /* what a get asks for, on its way into an answer (agent/execute.c); NULL: none yet */
    const struct replica_map *partners; /* whose replicas do each other's part, by the same names; NULL: nobody's */
    struct ordering ordering;
    struct strong strong;
    struct audits audits;
    struct scrub scrub;
    struct recovery recovery;
    struct repairs repairs;
    struct ranks ranks;
    struct segment_book segments;
    struct weighing weighing;
    uint64_t now;                /* of this round of the owner's loop */
    uint64_t acks_at;            /* when to say next for which nodes operations wait */
    struct counter_block counts; /* of the thread that owns this agent */
    bool broken;                 /* agent_break was called */
    struct event_batch batch;    /* what agent_poll works on */
};

struct agent_config {
    struct agent_ops ops;
    int self, nodes, spares, ranks; /* self: from nodes + spares on, it joins */
    int room;
    const int *rank_node; /* [ranks] */
    enum view_policy policy;
    struct copy_rule copies;            /* its array is the caller's */
    const struct replica_map *replicas; /* NULL: the program runs once. Outlives the agent. */
    enum replica_check check;           /* what ranks are told */
    enum replica_mismatch on_mismatch;
    enum replica_share set_copies;
    enum replica_death on_death;
    const struct flip_rules *inject; /* NULL: none */
    uint64_t scrub_rate;             /* bytes in a second (agent/scrub.h); 0: none */
    const struct grid_rule *grid;    /* on which the nodes stand; NULL: none. What it points to outlives the agent. */
    uint64_t job, incarnation;
    const uint8_t *secret; /* 32 bytes, the owner's, which outlive the agent */
    struct tp *net, *shm;
    struct page *page; /* page_bytes(), zeroed; the owner's */
    uint64_t now;
};

/* The agent's memory is the caller's. On an error what was made is freed by agent_fini. */
keel_status agent_init(struct agent *a, const struct agent_config *config);
void agent_fini(struct agent *a);
/* Where the other nodes are; after all are known, before anything else. One that joins: before the view in which it
 * is born. */
void agent_address(struct agent *a, int node, const struct tp_addrs *addrs, uint64_t incarnation);

enum { AGENT_POLLS_MAX = 1000 }; /* in a row, whatever still comes in */
/* Take what the transport has for us; the number of events. */
int agent_poll(struct agent *a, struct tp *tp);
/* Timers, acknowledgements, steps of repairs; true if there is more to do at once. */
bool agent_step(struct agent *a);
/* When agent_step is needed next; UINT64_MAX: not. */
uint64_t agent_deadline(const struct agent *a);

/* agent.c: what streams from other agents do with what comes. */
struct peers_ops agent_peers_ops(struct agent *a);

/* For the parts. From here on the agent tells nothing to anybody, and executes nothing. */
void agent_break(struct agent *a, const char *why);
/* An event, for the event log: agent_say(a, "refused", J_UINT("count", n), ...). Dropped if it is longer than 500
 * bytes. */
void agent_say_members(struct agent *a, const char *name, const struct json_member *m, size_t count);
#define agent_say(a, name, ...) agent_say_members(a, name, J_ALL(__VA_ARGS__))
/* Send on a connection of a rank. If it gets nothing for want of memory its connection breaks, so that it connects
 * again and asks again. */
void agent_answer(struct conn *c, const struct wire *w, const void *body);
/* The connection is closed; what it was writing stays known. */
void agent_close_conn(struct agent *a, struct conn *c);
/* It is closed and its memory given back. */
void agent_drop_conn(struct agent *a, struct conn *c);
/* Send into the stream to a live node; w->epoch is set. 0 if the node is declared dead. A failed allocation breaks the
 * agent: what it has promised would not be told. */
uint64_t agent_tell(struct agent *a, int node, struct wire *w, const void *body);
/* The same, and the bytes are sent from this copy in the store, as they are by then. */
uint64_t agent_tell_from_store(struct agent *a, int node, struct wire *w, const void *bytes);
/* The position in the stream to the node of what was told last. A node that is cut off but not declared dead yet gets
 * nothing: its position is never acknowledged. */
uint64_t agent_position(const struct agent *a, int node);
/* The node has processed everything up to the position, or is declared dead. */
bool agent_acked(const struct agent *a, int node, uint64_t position);
/* Do operations wait here for that node: an acknowledgement, its word about a strong get, bytes that may be torn
 * here? */
bool agent_waits_for(const struct agent *a, int node);
/* A view is being made: one is believed dead and not declared yet, or this node has prepared and does not know the
 * end. */
bool agent_makes_view(const struct agent *a);

static inline int agent_copysets(const struct agent *a)
{
    return a->view.nodes * CLASSES;
}
#endif
