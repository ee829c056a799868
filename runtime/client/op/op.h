/* Operations: from the call to the moment when every live copy has the bytes (op.c). What an operation consists of is
 * this header's; who but the rooms of op.c looks into one are those that start it (rma.c, shaped_ops.c, task.c),
 * progress.c and wait.c. The lock of the client is held in all calls. */
#ifndef KEEL_CLIENT_OP_OP_H
#define KEEL_CLIENT_OP_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <keel/keel.h>

#include "runtime/client/op/lane.h"
#include "runtime/client/op/plan.h"
#include "runtime/wire/digested.h"
#include "runtime/wire/page.h"
#include "runtime/wire/wire.h"
#include "runtime/net/transport.h"

struct client;
struct op;
struct packed;

/* A part of an operation on its way to one node: a message that awaits its answer, or a remote write or read.
 * Accumulates and atomics keep theirs, with its step, until it is answered, whatever route it goes meanwhile. */
struct piece {
    struct tp_op tp;
    struct op *op;
    struct piece *next;    /* in the hash, or the free list */
    struct piece *sibling; /* of the same operation, in order */
    uint64_t seq;          /* of the message on its way, 0: it is not on its way */
    uint64_t offset, len;  /* relative to the operation */
    int node;
    int leg;
    uint32_t step;        /* of the task, or of the operation: msg_identity's */
    bool remote_access;   /* the provider uses our memory until its event: a write, a read, or a message sent from it */
    struct digested made; /* of such a message; else its type is 0 */
    bool done;            /* only that event is missing */
    int level;            /* of an announced put: so many copies have the chunk */
    uint8_t *flown;       /* what goes instead of the caller's bytes, with a wrong bit; NULL: nothing */
};

/* Notes that an operation holds at the agents of its legs, until all copies have the bytes. One per message or chunk.
 * Operations stand on stacks, most of whose need these are. */
struct held_note {
    int16_t node;
    int16_t note;
    bool done;            /* this copy has the bytes */
    uint64_t offset, len; /* of the bytes that it covers, in the operation */
    uint64_t clearing;    /* all copies have them, and the agent was asked so under this number to forget it; 0: no */
};
_Static_assert(sizeof(struct held_note) == 32, "see above");
enum { OP_NOTES_MAX = 48 };

/* What it holds of what is limited, while it is under way (op_hold.c, op_note.c). */
struct op_holds {
    int notes;
    int intent;     /* entry of the intent page, -1: none */
    bool large;     /* counts in ops.large */
    bool counted;   /* in intents->open */
    bool announced; /* some plan of it was in chunks: its notes may say torn */
    struct op *next_announced;
    struct held_note note[OP_NOTES_MAX];
};

/* The line of those who found none left of it. */
struct op_line {
    struct op *next;
    bool waiting; /* for a note, an intent entry, the message window, a large put to end, or behind who had its lane */
    bool first;   /* it is its turn */
    bool wants;   /* and it could not go on */
};

/* An accumulate of a task (task.h). */
struct op_task {
    bool is;         /* it is one */
    bool step_ahead; /* its caller does not wait for it at once */
    uint32_t round;
    uint64_t id;
};

/* In lived time, but retry_at. */
struct op_times {
    uint64_t started, deadline;
    uint64_t retry_at, retry_ns;
};

/* What is on its way. */
struct op_out {
    struct piece *pieces, **pieces_tail;
    int accesses;   /* pieces with remote_access */
    int unanswered; /* messages: what was sent again counts twice */
    uint64_t sent;  /* pieces, under any plan */
    uint32_t named; /* pieces of an accumulate, from 1 */
};

/* What holds notes comes last: few operations have more than one or two of them. */
struct op {
    enum op_kind kind;
    struct client *client;
    struct keel_segment *segment;
    int copyset, slot;
    int rank;        /* whose part it is to */
    uint64_t offset; /* in the slot's part */
    uint64_t len;
    struct packed *packed; /* many pieces in one message (packed.h), the operation's own; NULL: none */
    const uint8_t *src;
    uint8_t *dst;
    uint32_t what;           /* element type of an accumulate (keel_type), or atomic operation (arith.h) */
    uint8_t word;            /* bytes of the word of an atomic */
    int64_t a, b, result;    /* an accumulate's scale is in a, b */
    uint64_t flying;         /* 1 + the bit that is to be wrong in what is sent, once; 0: none */
    bool strong;             /* a get of which nothing is taken back */
    bool inspects, compares; /* a get of hashes, or of comparisons with bytes that it brings (inspect.h) */
    bool always_through;     /* through the primary also when the copies are equal */
    bool patient;            /* waits for memory, and for a node that does not answer, until that is declared dead. With
                                replicas all that counts once does: one of them must not give up what others do */
    bool unordered;          /* an addition that nobody is told of: sets of replicas need no order for it */
    struct op_task of_task;
    struct lane_op name; /* of what counts once, outside tasks */
    bool named;          /* by its caller, who brings it to several sets: its lane knows nothing of it */
    /* the plan, for one route */
    struct route route;
    struct plan plan;
    bool planned, replan;
    uint64_t no_access; /* tag of the route under which a remote access failed, 0: none did */
    uint64_t number;    /* of a put, in its announcements */
    uint64_t answered;  /* units of what counts once that took effect */
    uint8_t *base;      /* in the copy on this node */
    uint64_t stored;    /* bytes of a put that are in it */
    struct op_out out;
    /* the end */
    bool finished;
    bool implicit;
    keel_status status;
    keel_handle *handle;
    struct op_times times;
    struct op *next, *prev; /* active */
    struct op_line line;
    struct op_holds held;
};

void op_init(struct client *c, struct op *op, enum op_kind kind, struct keel_segment *segment, int rank, size_t offset,
             size_t len);
/* Start it; lock held. */
void op_start(struct op *op);
/* Start it and wait until it is finished; takes the lock. (wait.c) */
keel_status op_run(struct op *op);
struct op *op_alloc(struct client *c); /* lock held; NULL when out of memory */
void op_free(struct op *op);
void op_advance(struct op *op, uint64_t now);
bool op_is_once(const struct op *op); /* it must count once, however often it is sent */
bool op_changes(const struct op *op); /* memory */
void op_fail(struct op *op, keel_status status);
void op_later(struct op *op, uint64_t now);
/* Is it a get from a node in doubt that another copy can serve? It is planned again, unless a remote read is on its
 * way. */
bool op_turns_away(struct op *op);
void op_serve(struct client *c, uint64_t now); /* those that wait for what was given back */
void op_connection_lost(struct client *c, int node);
void op_connection_up(struct client *c, int node);
void op_answered(struct client *c, const struct wire *w, const void *body, size_t len, uint64_t now);
void op_access_done(struct piece *p, keel_status status);
/* Who has the turn in its lane: itself, if it does not wait for that (or has none). */
const struct op *op_with_turn(const struct op *op);
/* The node whose answer is missing, or to which there was no way; of one that has no turn in its lane that of who has
 * it. -1: it had no plan, or it was not its turn. (progress.c) */
int op_waits_for(const struct op *op, bool *went_out);
#endif
