/* In which order the replicas of a part execute what does not commute: accumulates and atomic operations. Pure; one
 * struct for each part that an agent holds, of any number of replicas.
 *
 * Replicas of a rank run the same program and name their operations alike (client/op/lane.h), but their messages reach
 * agents in any order. So the agent that holds the part in the *leading* set decides: it writes each operation's name
 * into a log as it comes, and executes it. The log goes along the chain of live sets, from the leader to the next and
 * so on to the last; each executes the operations of its own set's ranks in the order of the log, and holds what has no
 * entry yet. An operation is answered when the last of the chain has its entry: so what any rank of any set has been
 * told is known to all sets that live.
 *
 *     ranks of set 0 --operation--> leader --entries--> set 1 --entries--> set 2
 *                       <--answer--        <----acked--       <----acked--
 *
 *  - Each log is a beginning of the log before it in the chain. When a set is retired its neighbours close the gap: who
 *    is before it sends again what was not acknowledged. When the leader is, the next one decides from then on, behind
 *    what is in its log: it has what any live set has.
 *  - An entry whose operation has not come from the own set's rank is waited for, also by who leads. It does come: the
 *    rank of a set before has sent it, and what that had done before is in the log, too.
 *  - A set that has begun anew joins where all sets have come to the same and nothing is under way: there all logs are
 *    known to all, and begin anew as well. What was sent before that is the owner's to drop.
 *  - Nobody acknowledges what lies more than ORDER_AHEAD entries behind what it has executed: sets stay so near to each
 *    other, and logs so short.
 *
 * The owner (the agent) calls when something comes, drops what comes from sets that its view has retired, and carries
 * out what the functions in struct order_ops say, which call nothing here.
 * source    rMPI and RedMPI order messages by the lowest replica's; the chain is van Renesse's and Schneider's. */
#ifndef KEEL_AGENT_ORDER_H
#define KEEL_AGENT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDER_AHEAD = 4096 };

/* What replicas call an operation: its rank and lane, its number there, and the piece; or a task's. Equal for all
 * replicas, different for all operations of a part. */
struct order_name {
    uint64_t origin, number;
    uint64_t step;
};

struct order_entry {
    struct order_name name;
    uint64_t what; /* what the operation does and where, as a hash: replicas that differ are found out */
};

struct order_ops {
    /* Execute the operation, once. Its answer waits. */
    void (*execute)(void *user, void *op);
    /* All live sets have the operation's entry: its rank may be told. op: as given last; never NULL. */
    void (*answer)(void *user, void *op);
    /* The own set's operation is another one than the leader's of that name. It has that place all the same: who is
     * right is not for an order to say, and nobody is to wait for what never comes. */
    void (*differ)(void *user, void *op, const struct order_entry *entry);
    /* To the next in the chain: entries first, first + 1, ... */
    void (*send)(void *user, uint64_t first, const struct order_entry *entry, size_t n);
    /* To the one before in the chain: all from here on have the entries up to this one. */
    void (*ack)(void *user, uint64_t upto);
};

struct order_logged {
    struct order_entry entry;
    void *op; /* of the own set; NULL: it has not come, or nobody waits for its answer */
};

struct order_held {
    struct order_entry entry;
    void *op;
};

/* Zeroed, then order_init. */
struct order {
    const struct order_ops *ops;
    void *user;
    bool leads, has_next;
    uint64_t known;           /* entries are 1 .. known */
    uint64_t executed;        /* those up to this one are */
    uint64_t passed;          /* those up to this one all behind us have */
    uint64_t acked;           /* and so it was told to the one before us */
    uint64_t answered;        /* those up to this one are forgotten */
    struct order_logged *log; /* of answered + 1 .. known, a ring */
    size_t room;              /* 0, or a power of two */
    struct order_held *held;  /* [helds] operations without an entry, by arrival */
    size_t helds, held_room;
};

/* The first set of the chain leads; the last has no next one. */
void order_init(struct order *o, bool leads, bool has_next, const struct order_ops *ops, void *user);
/* Owned operations are the caller's. */
void order_fini(struct order *o);

/* An operation of the own set has come that was not executed here. what: as in struct order_entry. The same one may
 * come again, as another op: the last one counts.
 * errors    false: no memory; nothing has happened, and it may come again. */
bool order_arrived(struct order *o, struct order_name name, uint64_t what, void *op);
/* One that was executed here has come again. True: its answer waits, for this op; false: it can be given now. */
bool order_repeated(struct order *o, struct order_name name, void *op);
/* Nobody waits for this op any more. If it was not executed it has not come. */
void order_forget(struct order *o, const void *op);

/* Entries first .. first + n - 1 have come from the one before in the chain; some may be known.
 * errors    false: no memory, or some before them are missing; nothing has happened. Without them this set cannot go
 *           on. */
bool order_entries(struct order *o, uint64_t first, const struct order_entry *entry, size_t n);
/* The next in the chain says so. */
void order_acked(struct order *o, uint64_t upto);
/* Who is before or behind us in the chain has changed.
 * errors    false: no memory; nothing has happened. */
bool order_chain(struct order *o, bool leads, bool has_next);
/* A set has joined: the log begins anew, with these neighbours.
 * errors    false: something is under way; nothing has happened. */
bool order_begin_anew(struct order *o, bool leads, bool has_next);
#endif
