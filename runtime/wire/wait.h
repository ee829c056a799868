/* What a rank says of a wait that lasts: for its agent, in memory that both share. Written by the rank, when it has
 * waited for WAIT_SAID_NS and goes to sleep once more, so that a wait that is short costs nothing, or before a sleep
 * that nothing interrupts; read by the agent once in a while, which leaves out those that have not lasted so long.
 * The version is odd while the note is being written; call is WAIT_NO_CALL where nobody waits. */
#ifndef KEEL_WIRE_WAIT_H
#define KEEL_WIRE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WAIT_SAID_NS UINT64_C(1000000000)

enum { WAIT_NOTES = 8 }; /* threads of a process whose waits are said; more wait unsaid */

enum wait_call {
    WAIT_NO_CALL,
    WAIT_PUT,
    WAIT_GET,
    WAIT_ACC,
    WAIT_RMW,
    WAIT_HANDLE,
    WAIT_FENCE,
    WAIT_BARRIER,
    WAIT_BCAST,
    WAIT_ALLREDUCE,
    WAIT_ALLOC,
    WAIT_GROUP_BARRIER,
    WAIT_GROUP_AGREE,
    WAIT_GROUP_SHRINK,
    WAIT_GROUP_CREATE,
    WAIT_GROUP_FIRST, /* in the order of enum schedule_kind */
    WAIT_GROUP_LAST = WAIT_GROUP_FIRST + 9,
    WAIT_SEND,
    WAIT_RECEIVE,
    WAIT_UNTIL,
    WAIT_LOCK,
    WAIT_UNLOCK,
    WAIT_TASK,
    WAIT_FINALIZE,
    WAIT_REPLICAS,
    WAIT_ADDRESS,
    WAIT_PART,
    WAIT_KEEP_COMMIT,
    WAIT_KEEP_SAVE,
    WAIT_KEEP_RESTORE,
    WAIT_KEEP_ROLLBACK,
    WAIT_CALLS,
};

/* What of it is waited for. */
enum wait_whom {
    WAIT_FOR_NODE,    /* the node's agent: an answer */
    WAIT_FOR_ENTRY,   /* the rank has to come to the same call */
    WAIT_FOR_WORD,    /* the rank has to send a message, or to change the word; rank -1: any */
    WAIT_FOR_TAKING,  /* the rank has to take what was sent to it */
    WAIT_FOR_HOLDER,  /* the rank has the lock, or the task; -1: some */
    WAIT_FOR_VIEW,    /* a view, or copies that are being made equal */
    WAIT_FOR_MEMORY,  /* the process has none for what it does */
    WAIT_FOR_LEAVING, /* the rank, of the same slot, has to leave its node: the slot's memory follows then */
    WAIT_WHOMS,
};

struct wait_said {
    uint32_t call, whom;
    int32_t rank, node; /* -1: none */
    uint64_t since_ns;  /* CLOCK_MONOTONIC of the node */
};

struct wait_note {
    _Atomic uint32_t version, call, whom;
    _Atomic int32_t rank, node;
    _Atomic uint64_t since_ns;
};

/* The names that a user knows. */
static inline const char *wait_call_name(uint32_t call)
{
    static const char *const names[WAIT_CALLS] = {
        "?",
        "keel_put",
        "keel_get",
        "keel_acc",
        "keel_rmw",
        "keel_wait",
        "keel_fence",
        "keel_barrier",
        "keel_bcast",
        "keel_allreduce_sum",
        "keel_segment_alloc or _free",
        "keel_group_barrier",
        "keel_group_agree",
        "keel_group_shrink",
        "keel_group_create",
        "keel_group_bcast",
        "keel_group_reduce",
        "keel_group_allreduce",
        "keel_group_reduce_scatter",
        "keel_group_scan",
        "keel_group_exscan",
        "keel_group_gather",
        "keel_group_scatter",
        "keel_group_allgather",
        "keel_group_alltoall",
        "keel_message_send",
        "keel_message_receive",
        "keel_wait_until",
        "keel_mutex_lock",
        "keel_mutex_unlock",
        "keel_task_next",
        "keel_finalize",
        "a comparison of replicas",
        "keel_address or keel_update_begin",
        "keel_update_begin or keel_segment_track",
        "keel_keep_commit",
        "keel_keep_save",
        "keel_keep_restore",
        "keel_keep_rollback",
    };
    return names[call < WAIT_CALLS ? call : WAIT_NO_CALL];
}

static inline const char *wait_whom_name(uint32_t whom)
{
    static const char *const names[WAIT_WHOMS] = {"node",   "entry", "word",   "taking",
                                                  "holder", "view",  "memory", "leaving"};
    return names[whom < WAIT_WHOMS ? whom : WAIT_FOR_VIEW];
}

static inline void wait_note_write(struct wait_note *n, const struct wait_said *w)
{
    uint32_t version = atomic_load_explicit(&n->version, memory_order_relaxed);
    atomic_store_explicit(&n->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&n->call, w->call, memory_order_relaxed);
    atomic_store_explicit(&n->whom, w->whom, memory_order_relaxed);
    atomic_store_explicit(&n->rank, w->rank, memory_order_relaxed);
    atomic_store_explicit(&n->node, w->node, memory_order_relaxed);
    atomic_store_explicit(&n->since_ns, w->since_ns, memory_order_relaxed);
    atomic_store_explicit(&n->version, version + 2, memory_order_release);
}

/* False: nobody waits, or it is being written. What it says is the rank's word, and may be anything. */
static inline bool wait_note_read(const struct wait_note *n, struct wait_said *w)
{
    uint32_t version = atomic_load_explicit(&n->version, memory_order_acquire);
    w->call = atomic_load_explicit(&n->call, memory_order_relaxed);
    w->whom = atomic_load_explicit(&n->whom, memory_order_relaxed);
    w->rank = atomic_load_explicit(&n->rank, memory_order_relaxed);
    w->node = atomic_load_explicit(&n->node, memory_order_relaxed);
    w->since_ns = atomic_load_explicit(&n->since_ns, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return !(version & 1) && atomic_load_explicit(&n->version, memory_order_relaxed) == version &&
           w->call > WAIT_NO_CALL && w->call < WAIT_CALLS && w->whom < WAIT_WHOMS;
}
#endif
