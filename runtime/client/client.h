/* A rank's side of everything: one instance, which reads no clock and opens no socket. libkeel keeps one for the process
 * (job.c hands it transports, sockets and the clock); the simulation keeps one per simulated rank. Its parts:
 *   link.c       connections to agents, and the notes that they keep for us (wire/note.h)
 *   plan.c       where the pieces of an operation go, for one route; pure
 *   op.h         operations: from the call to completion on all live copies
 *   progress.c   events, deadlines, waiting
 *   rma.c, shaped.c, segment.c, collective.c, task.c, signal.c   what the public calls do
 *   coll.h       groups and their collectives, between ranks
 *   hall.h       messages to ranks of the same node
 *   direct.h     connections to ranks of others
 *   job.c, public*.c  the process's instance and its entry points
 *
 * One mutex (lock) covers links and operations. Same-node access to unreplicated segments, and same-node gets, take none. */
#ifndef KEEL_CLIENT_CLIENT_H
#define KEEL_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/client/group/coll.h"
#include "runtime/client/stream/direct.h"
#include "runtime/client/stream/hall.h"
#include "runtime/client/op/op.h"
#include "runtime/client/segment/range.h"
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
     * node's copy, r->bytes long with its marks behind (client_env.unmap frees both), at the address that *memory held if it was not NULL; else memory is
     * NULL. */
    keel_status (*request)(void *user, struct control *r, void **memory);
    void (*unmap)(void *user, void *memory, size_t bytes);
    /* One request without an answer. False: not taken now, try again. */
    bool (*tell)(void *user, const struct control *r);
    bool (*agent_is_gone)(void *user);
    /* A store into a copy on this node, with plain stores of at least aligned words. */
    void (*copy)(void *user, void *dst, const void *src, size_t len);
    /* Addresses that are kept free for the parts of segments, the same in every process of the job; range_bytes 0: none. */
    uint64_t range, range_bytes;
    /* Where this thread runs, counted from 1; 0, or NULL: unknown. */
    uint32_t (*processor)(void *user);
    /* Run on another processor that it is allowed to, if there is one. */
    void (*move)(void *user);
    /* The segment is about to be unmapped. NULL: nobody wants to know. */
    void (*leaving)(void *user, const struct keel_segment *segment);
};

/* A rank's part that this process reaches by plain loads and stores as long as the route's tag has the value it had when
 * this was filled in. 0 is no tag: not reachable so. Zeroed memory that was never touched is right for all others. */
struct near {
    const _Atomic uint64_t *tag;
    uint64_t get_tag, put_tag; /* puts: unreplicated only, others tell the other copies */
    uint64_t add_tag;          /* accumulates and atomics: the same, and the agent knows that ranks do them */
    _Atomic(uint8_t *) base;
};

struct keel_segment {
    struct client *client;
    struct keel_segment *next; /* of the client */
    uint32_t index;
    uint64_t unit;        /* what an agent thinks that each rank has: its copies are as large as that needs */
    uint64_t largest;     /* part */
    uint64_t *part_bytes; /* [ranks] */
    uint64_t *part_at;    /* [ranks] where it begins in its slot's copy */
    struct near *near;    /* [ranks] */
    keel_redundancy redundancy;
    uint64_t what;            /* 0: the program's own */
    struct keel_group *group; /* whose members made it, NULL: all live ranks */
    uint16_t group_generation;
    bool freed;              /* before this process joined */
    bool retired;            /* freed by this process */
    bool attached;           /* one part of it, which this process has no share in (segment_part.c) */
    _Atomic(uint8_t *) *map; /* [nodes] this node's copy of each slot's part, NULL until mapped */
    size_t *map_bytes;       /* [nodes] without the marks behind */
    _Atomic uint64_t
        *shared;       /* [nodes] 1 + the generation under which the agent adds by the processor's atomics, as we may */
    uint64_t base;     /* of its place in the address range, 0: none */
    uint64_t *slot_at; /* [nodes] where the slot's copy lies from there */
    uint8_t *view;     /* a second mapping of view_slot's copy, the one that the program gets (track.c); NULL: none */
    int view_slot;
};

enum { SEQ_SLOTS = 256 }; /* hash of messages that wait for an answer */

enum { GIVEN_UP = 2 }; /* those whose taking up is waited for, and those that were given up since */

struct link {
    struct client *client;
    int node;
    int rank;                                    /* -1: to the node's agent; else to a rank, part of a struct direct */
    struct way way;                              /* the own agent's is up, and not this module's to make */
    uint64_t check_at;                           /* when the agent was last asked about the node */
    struct tp_moved moved;                       /* there, when it was last looked at, */
    uint64_t came_at, went_at;                   /* and when that had last changed: lived time, as the next one */
    uint64_t looked_at;                          /* when that was last looked at */
    uint64_t notes[NOTES_MAX / 64];              /* bit set: in use */
    uint64_t given_up[GIVEN_UP][NOTES_MAX / 64]; /* of these, by what was given up: client.given_up */
};

struct lane {
    uint64_t number; /* of its last operation */
    bool busy;
};

enum { CLIENT_EVENTS = 32 };

struct client {
    struct client_env env;
    atomic_bool ready; /* other threads may call while one finalizes */
    bool leaving,
        left; /* a thread is in keel_finalize; has left: the transports are, or will soon be, gone. Under the lock */
    int rank, size, node;
    uint32_t incarnation;
    bool restarted, resumed;
    uint64_t job;
    uint8_t *secret; /* 32 bytes */
    const struct page *page;
    struct intent_page *intents;
    uint64_t timeout_ns;
    /* Who waits looks so long before it sleeps; the longer time where there may be a processor for each rank: spin_begin. */
    uint64_t spin_ns, spin_long_ns;
    bool looks_once; /* nothing comes between two looks at the clock, as in a simulation: one is as good as many */
    struct {
        unsigned vain;          /* weight of the long ones of late at whose end nothing had come */
        unsigned good;          /* others since then */
        unsigned pause, pauses; /* so many short ones follow; and will, when they are in vain again */
    } looks;
    uint64_t move_at;                      /* not before */
    struct tp_event events[CLIENT_EVENTS]; /* being handled: too many for a stack */
    uint64_t came;                         /* events of transports and the hall, so many so far */
    /* operations and links */
    pthread_mutex_t lock;
    _Atomic unsigned
        stores; /* a bit for each class of copies: the process stores plainly into its part of such segments */
    _Atomic int lookers, wanted; /* threads in client_wait that do not sleep; those that want the lock of them */
    atomic_bool several;         /* threads have met at the lock */
    struct follower *followers;
    _Atomic unsigned waits_said; /* a bit for each of intents->wait that is in use */
    struct tp *net, *shm;
    bool bytewise; /* net's remote writes and reads may tear aligned words: a kernel copies the bytes */
    struct ways ways;
    struct link *link; /* [members]; the own node's is the shared-memory connection */
    uint64_t epoch_seen;
    /* Time that this process lived: a long time between two looks at the clock is its own, not its peers'. */
    uint64_t lived_ns, looked_at;
    unsigned polls;
    uint64_t next_seq;
    uint64_t next_number; /* of puts */
    int large;            /* announced puts under way */
    struct lane lane[LANES_MAX];
    struct piece *by_seq[SEQ_SLOTS];
    struct piece *free_pieces;
    struct op *free_ops;
    struct packed *free_packed;
    struct op *active, *active_last;
    struct op *announced;               /* active puts some plan of which was in chunks */
    struct op *waiting, **waiting_tail; /* served in order when something is given back */
    bool serve;                         /* something was given back */
    uint64_t retry_at;                  /* of the earliest operation that tries again later */
    int messages;                       /* awaiting answers */
    /* Errors of implicit operations since the last fence, in the order of their coming, one of each rank. */
    struct implicit_error {
        struct implicit_error *next;
        int rank;
        keel_status status;
    } * implicit_errors;
    keel_status implicit_error; /* one for which there was no memory */
    uint64_t scan_at;
    keel_status fatal; /* the job is lost for this process */
    /* What was given up while it may still come, or be in some copies only: told to the agent, not yet taken up by a view. */
    bool doubt_untold;
    uint32_t behind; /* the number of the last of these doubts, 0: there is none. It may still be on its way */
    /* What they hold, and their notes (link.given_up), until it is taken up: a process without memory gets these back, too, and so does one that
     * goes on giving up. */
    struct given_up {
        bool any;
        uint32_t number;  /* of the last doubt */
        uint64_t intents; /* bit set: an entry of the page */
        uint32_t open;    /* in intents->open */
    } given_up[GIVEN_UP];
    /* segments, collectives: user's thread, under the rule that collectives are called in order */
    struct keel_segment *segments, *system;
    struct keel_segment *retired, *retired_last; /* in the order in which they were freed */
    unsigned retired_n;
    struct range range;
    uint32_t segments_next, segments_known;
    keel_redundancy most_copies; /* of the segments that all ranks have allocated so far */
    uint64_t instance;           /* allocations and frees of all live ranks that are complete here */
    struct uncounted { /* one more: its end was told to the agent, and does not count here before all agents know it */
        bool any;
        uint32_t seg;
        keel_status agreed; /* KEEL_OK: it was freed */
    } uncounted;
    uint64_t collectives; /* their collectives */
    struct unfinished {   /* an allocation or a free that ended by its time-out, to be gone on with; NULL: none */
        struct keel_segment *segment;
        bool frees;
        uint64_t wanted;  /* of an allocation: segment_fingerprint */
        keel_status said; /* by this rank */
        keel_status met;  /* before, by operations */
        bool under_way;
    } unfinished;
    /* the task being run */
    uint64_t task;
    uint32_t task_round;
    bool in_task;
    bool drawing;     /* some thread draws a task */
    bool task_broken; /* an accumulate of it may have taken effect in part: it is run again from its beginning */
    struct task_steps {
        int copyset;
        uint32_t steps;
    } * task_steps; /* [task_copysets] operations of the task towards each copyset */
    int task_copysets, task_copysets_max;
    struct coll coll; /* groups and their collectives */
    struct mail mail;
    struct hall hall;
    struct directs direct;
    uint64_t signals;       /* that have come */
    uint64_t pieces_living; /* for leak checks */
    uint64_t ops_living;
    uint64_t packed_living, packed_bytes;
};

/* ---- the instance ---- */

/* What joining brings (control.h), and the transports; page, intents and transports stay the owner's. */
keel_status client_init(struct client *c, const struct client_env *env, const struct control_welcome *w,
                        const struct page *page, struct intent_page *intents, struct tp *net, struct tp *shm);
/* own: the link's ep of the shared-memory connection, whose user must be client_own_link. */
struct link *client_own_link(struct client *c);
void client_attach(struct client *c, struct tp_ep *own);
/* Frees what the client allocated. Nothing may be in progress. */
void client_fini(struct client *c);
/* keel_finalize but for the transports. */
keel_status client_leave(struct client *c);

/* link.c; lock held */
void link_init(struct client *c);
struct tp_ep *link_up(struct client *c, int node, uint64_t now); /* the connection, or NULL and it is being made */
void link_event(struct link *link, const struct tp_event *e, uint64_t now);
void link_drop(struct client *c, int node);
/* What this rank says at the start of a connection, to an agent (link.c) or to a rank (direct.c). Returns its bytes. */
size_t link_hello(const struct client *c, const struct way *w, uint64_t to_incarnation, uint8_t *out);
void link_ask_agent(struct client *c, int node, uint64_t now);
/* An answer of the node's agent is missing: does anything move? */
void link_look(struct client *c, int node, bool goes_elsewhere);
int link_note_take(struct link *l); /* -1: none is free */
void link_note_free(struct client *c, struct link *l, int note);
/* It is given back with the others of client.given_up[which]. */
void link_note_give_up(struct link *l, int note, int which);
/* Those of given_up[0] are free, and the others are these now. */
void link_notes_taken_up(struct client *c, struct link *l);

/* progress.c; lock held */
/* A look of one who waits: the processor is offered to others from `keep` on, and it ends at `until`; then say how. `lent`: how
 * much later others' turns may make its end, as they are not time that this process has looked. */
struct spin {
    uint64_t begun, keep, until, lent;
    bool longer;
};
struct spin spin_begin(struct client *c);
void spin_end(struct client *c, const struct spin *spin, bool came);
/* Something came, though not all that is waited for: the look begins anew. */
void spin_again(const struct client *c, struct spin *spin, uint64_t now);
/* Others had the processor from `since` on, if that is longer than offering it takes: the look ends so much later. Returns what the clock says. */
uint64_t spin_lend(const struct client *c, struct spin *spin, uint64_t since);
/* Who is waited for runs on the processor that we look on. The second of two (`moves`) goes to another one, where there is room; both give this one
 * away until that is so. */
void spin_beside(struct client *c, uint64_t now, bool moves);
void client_progress(struct client *c);
/* Take the lock: a thread that looks for what is under way has it most of the time, and gives it to who wants it by this. */
void client_lock(struct client *c);
/* Wait until done(arg), with the lock given back in between; false if the process has lost the job. wait: what it is told to be, if it lasts. */
bool client_wait(struct client *c, bool (*done)(void *arg), void *arg, struct wait *wait);

/* signal.c */
keel_status signal_send(struct client *c, keel_segment *s, int rank, size_t word, int64_t add);
/* The word was changed: who waits there is to look. Takes the lock. */
void signal_tell(struct client *c, int rank);
keel_status signal_wait(struct client *c, keel_segment *s, size_t word, keel_compare how, int64_t value, int from,
                        int64_t *got);

/* segment.c */
/* This node's copy of the slot's part, or NULL. *status says why not: KEEL_ERR_DATA_LOST, KEEL_ERR_STATE (not here) or KEEL_IN_PROGRESS (it is being
 * filled; the second call waits for its end). */
uint8_t *segment_map(struct keel_segment *s, int slot, keel_status *status);
uint8_t *segment_map_whole(struct keel_segment *s, int slot, keel_status *status);
/* The same of the client's own part, for plain stores: waits until it is the copy that others are made equal to. Before that, what a dead rank left
 * may be made equal from another copy, and take with it what was stored here. Not under the lock. */
uint8_t *segment_map_home(struct keel_segment *s, keel_status *status);
/* For a collective that ends, with the lock: if the process stores plainly into its part, nothing that a dead writer left there is being made equal any
 * more; what is stored from now on stays. */
bool segment_stores_rest(const struct client *c);
void segment_await_rest(struct client *c);
/* update.c: keel_update_begin and keel_update_end on an instance. Not under the lock. */
keel_status update_begin(struct client *c, keel_segment *s, size_t offset, size_t len, uint8_t **address);
keel_status update_end(struct client *c, keel_segment *s, size_t offset, size_t len);
/* Map the copy with the rank's part a second time, for the library; *view is where it was and what the program goes on to get. */
keel_status segment_map_twice(struct keel_segment *s, int rank, uint8_t **view);
keel_status segment_alloc(struct client *c, size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out);
/* For mutexes or a pool of so many tasks, which nobody may take for anything else, with as many copies as what the program has allocated before, and two
 * at least; a rank takes part whether it is able to or not: then all get its error. */
enum { SEGMENT_OF_MUTEXES = 1 };
#define SEGMENT_OF_TASKS ((uint64_t)1 << 33)
keel_status segment_alloc_for(struct client *c, keel_status able, uint64_t what, size_t bytes_per_rank,
                              keel_segment **out);
/* Parts of different sizes: bytes [ranks]. */
keel_status segment_alloc_parts(struct client *c, const size_t *bytes, keel_redundancy redundancy, keel_segment **out);
keel_status segment_free(struct client *c, struct keel_segment *segment);
/* segment_group.c: collective over a group; bytes [members]; the other ranks have parts of no bytes. */
keel_status segment_alloc_group(struct keel_group *g, const size_t *bytes, keel_redundancy redundancy,
                                keel_segment **out);
keel_status segment_free_group(struct client *c, struct keel_segment *segment);
/* segment_part.c: a part of such a segment, for others; all local. */
keel_status segment_describe(const struct keel_segment *s, int rank, keel_segment_part *out);
keel_status segment_attach_part(struct client *c, const keel_segment_part *part, struct keel_segment **out);
keel_status segment_detach(struct client *c, struct keel_segment *s);
/* The nodes that hold the copies of the rank's part now, the primary first; *n gets their number, 0: it is lost. */
keel_status segment_copies(const keel_segment *s, int rank, int *nodes, int *n);
void segment_release(struct keel_segment *s);
void segment_forget_all(struct client *c);
void *segment_address(keel_segment *s, int rank);
keel_status segment_locate(struct client *c, int rank, const void *address, keel_segment **segment, size_t *offset);
/* What an allocation is given, the same at all ranks that take part. */
struct segment_want {
    const size_t *parts; /* [ranks], or NULL: bytes each */
    uint64_t bytes;
    keel_redundancy redundancy;
    uint64_t what; /* 0: the program's own */
};
/* Not in the address range yet. NULL: out of memory. */
struct keel_segment *segment_new(struct client *c, uint32_t index, const struct segment_want *want);
/* In its place among the segments of all ranks; parts of one size. */
struct keel_segment *segment_attach(struct client *c, uint32_t index, uint64_t bytes_per_rank,
                                    keel_redundancy redundancy);
/* Lays out its copies. Bytes of the address range that it takes, 0: more than there are. */
uint64_t segment_lay_out(struct keel_segment *s);
/* Zeroed memory of the process for the next allocation; NULL only where all are told that there is none. */
void *segment_zeroed(struct client *c, size_t n, size_t bytes);
/* Another number for other sizes, or something else. */
uint64_t segment_fingerprint(const struct client *c, const struct segment_want *want);

/* rma.c: the public calls on an instance */
keel_status rma_put(struct client *c, keel_segment *s, int rank, size_t offset, const void *src, size_t len);
keel_status rma_get(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len);
keel_status rma_get_strong(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len);
keel_status rma_start(struct client *c, enum op_kind kind, keel_segment *s, int rank, size_t offset, const void *src,
                      void *dst, size_t len, keel_handle *handle);
keel_status rma_start_strong(struct client *c, keel_segment *s, int rank, size_t offset, void *dst, size_t len,
                             keel_handle *handle);
/* Start an operation of op_alloc; lock held. handle: in use (handle.h), or NULL. */
void rma_op_start(struct op *op, keel_handle *handle);
/* The part may be reached by plain loads and stores from now on. */
void rma_near_update(struct client *c, keel_segment *s, int rank);
keel_status rma_aggregate(struct client *c, keel_handle *handle);
keel_status rma_wait_all(struct client *c, keel_handle *handles, size_t n);
keel_status rma_wait_any(struct client *c, keel_handle *handles, size_t n, size_t *which);
keel_status rma_wait(struct client *c, keel_handle *handle);
keel_status rma_test(struct client *c, keel_handle *handle);
keel_status rma_fence(struct client *c, int rank); /* -1: all */
void rma_acc_init(struct client *c, struct op *op, keel_segment *s, int rank, size_t offset, keel_type type,
                  const void *scale, const void *src, size_t n);
keel_status rma_acc(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                    const void *src, size_t n);
/* For an operation that ends in the call itself: no lock, if no other uses the handle, which may be NULL. */
keel_status rma_use_at_once(struct client *c, keel_handle *handle);
keel_status rma_acc_nb(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, const void *scale,
                       const void *src, size_t n, keel_handle *handle);
keel_status rma_acc_double(struct client *c, keel_segment *s, int rank, size_t offset, double scale, const double *src,
                           size_t n);
keel_status rma_rmw(struct client *c, keel_segment *s, int rank, size_t offset, keel_type type, keel_rmw_op op,
                    const void *operand, const void *expected, void *old);
keel_status rma_fetch_add(struct client *c, keel_segment *s, int rank, size_t offset, int64_t add, int64_t *old);
keel_status rma_compare_swap(struct client *c, keel_segment *s, int rank, size_t offset, int64_t expected,
                             int64_t desired, int64_t *old);

/* shaped.c: strided and vector operations. */
struct shaped {
    enum op_kind kind; /* OP_PUT, OP_GET, OP_ACC */
    keel_type type;    /* OP_ACC */
    const void *scale; /* OP_ACC; NULL: one */
    keel_handle *handle;
    bool blocks; /* until it is complete; without a handle */
};
keel_status shaped_strided(struct client *c, const struct shaped *how, keel_segment *s, int rank, size_t offset,
                           const void *local, const keel_strided *shape);
keel_status shaped_vector(struct client *c, const struct shaped *how, keel_segment *s, int rank,
                          const keel_piece *pieces, size_t n);

/* collective.c */
/* Of allocations and frees: what all live ranks say of it, combined; those that joined after it are told the same. KEEL_ERR_TIMEOUT: a process is stopped;
 * the same call goes on with it, and nothing else does. KEEL_ERR_MISMATCH: they do not say it of the same. *open: nothing has been decided: it is to be gone on
 * with, or this process has lost the job or leaves it. */
keel_status collective_decide(struct client *c, const struct engine_call *call, uint64_t *value, bool *open);
/* Ranks were found in an allocation or a free where others were in a collective of all live ranks: all of these are KEEL_ERR_MISMATCH from then on. */
bool collective_disagrees(const struct client *c);
/* What was decided is done, and known to all agents. */
void collective_decided(struct client *c);
/* segment.c: the same of the last free, or allocation that came to nothing, whose end may still be on its way to some agent: waits for that. Before the
 * next thing that all live ranks do, so that what counts is one cut of the program's order. */
keel_status segment_count_last(struct client *c);
/* A collective of all live ranks, with a fence before. */
keel_status collective_run(struct client *c, const struct engine_call *call);
keel_status collective_barrier(struct client *c);
keel_status collective_barrier_begin(struct client *c);
/* KEEL_IN_PROGRESS: not complete. *epoch (or NULL): 0 but for KEEL_OK. */
keel_status collective_barrier_test(struct client *c, uint64_t *epoch);
keel_status collective_barrier_end(struct client *c, uint64_t *epoch);
/* This process takes part in what all live ranks do, and is not in the middle of such a call. */
bool collective_may_begin(const struct client *c);
keel_status collective_bcast(struct client *c, int root, void *buffer, size_t len);
keel_status collective_allreduce_sum(struct client *c, const double *in, double *out, size_t n);

/* task.c */
keel_status taskpool_create(struct client *c, keel_status able, int64_t count, keel_taskpool **out);
/* *gone: the pool is not there any more. */
keel_status taskpool_free(struct client *c, keel_taskpool *pool, bool *gone);
keel_status taskpool_reset(struct client *c, keel_taskpool *pool);
keel_status task_next(struct client *c, keel_taskpool *pool, int64_t *task);
keel_status task_commit(struct client *c, keel_taskpool *pool, int64_t task);
/* The number of the task's next operation towards the copyset; -1: out of memory. */
int64_t task_step(struct client *c, int copyset);
/* Wait until no accumulate of the task to the copyset is under way; -1: none at all. Lock held. */
void task_rest(struct client *c, int copyset);
/* Wait for the turn of the task's next accumulate to the rank's part: those to a copyset come one after the other. Lock
 * held. errors    KEEL_ERR_STATE: nothing more of the task is accepted. */
keel_status task_turn(struct client *c, const struct keel_segment *s, int rank);
/* Make the operation one of the task's. */
void task_mark(const struct client *c, struct op *op);
/* It has not taken effect, and never will. */
void task_unstep(struct client *c, int copyset);
#endif
