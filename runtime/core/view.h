/* The view: who is alive, which node runs which rank, which nodes hold the copies of which data. Pure.
 *
 * The data of the ranks that start on one node form a *slot*: it is placed, promoted and rebuilt as a whole. Slot s is
 * that of initial node s; rank r always belongs to slot rank[r].slot, wherever it runs.
 *
 * Every agent applies the same totally ordered events (detect/member.h) with view_apply, so all hold the same sequence
 * of views. After a node death
 *   - a slot whose primary died is promoted: its shadow becomes the primary (FT-ARMCI, "data redundancy model"),
 *   - under `substitute` the dead node's ranks get the lowest free spare node (Spare-nodes, 0D), and the missing copy is
 *     rebuilt there; under `degrade`, or without a free spare, the ranks stay dead and the copy is rebuilt on the live
 *     node with the fewest copies,
 *   - the rebuilt copy is the shadow until it is whole; when the slot's ranks run on its node it then becomes the
 *     primary, so that data are local to their ranks again.
 *
 *                        a rank or node dies                 all patches in doubt are equal again
 *   SLOT_PAIR ───────────────────────────────► SLOT_SYNC ───────────────────────────────► SLOT_PAIR
 *   PAIR, SYNC: one copy dies (primary: promote the shadow) ─► SLOT_ALONE ─► SLOT_REBUILD on another node, if there is one
 *   REBUILD: whole again ─► PAIR; the rebuilding node dies ─► ALONE
 *   PAIR, SYNC: both copies die; ALONE, REBUILD: the primary dies ─► SLOT_LOST
 * VIEW_RESTORED, submitted by the primary, ends SYNC and REBUILD. In both, writers write through the primary
 * (docs/protocols/replication.md).
 */
#ifndef KEEL_CORE_VIEW_H
#define KEEL_CORE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

enum view_policy { VIEW_SUBSTITUTE, VIEW_DEGRADE, VIEW_ABORT };

enum slot_mode {
    SLOT_PAIR,    /* primary and shadow are equal: writers write to both */
    SLOT_ALONE,   /* only the primary exists */
    SLOT_REBUILD, /* the shadow is being filled by the primary: writers write through the primary */
    SLOT_SYNC,    /* both copies hold every completed write; patches of a dead writer may still differ */
    SLOT_LOST,    /* no copy is left */
};

enum rank_state {
    RANK_RUNNING,
    RANK_DEAD, /* no process, none will come */
    RANK_DONE, /* ended by itself */
};

enum { VIEW_MAX_RESTARTS = 3 }; /* a rank that died this often on a live node is left dead */

struct view_slot {
    int primary; /* node, -1 when lost */
    int shadow;  /* node, -1 when there is none */
    int home;    /* the node that runs the slot's ranks, -1 when nobody does */
    enum slot_mode mode;
    uint64_t changed; /* epoch of the last change of primary, shadow or mode */
    uint64_t lost_at; /* epoch of the last death of a primary: unreplicated data from before are gone; 0: never */
};

struct view_rank {
    int slot;
    int index;            /* position within the slot */
    int node;             /* -1: nobody runs it */
    uint32_t incarnation; /* 0 at the start, one more with each process that takes the rank over */
    enum rank_state state;
    bool left; /* called keel_finalize: takes part in no collective any more */
    int restarts;
    uint64_t joined; /* epoch at which this incarnation joined; 0 for the first */
};

struct view {
    uint64_t epoch;
    enum view_policy policy;
    int nodes, spares, ranks; /* members are 0..nodes+spares-1 */
    bool *alive;              /* [nodes+spares] */
    bool *spare_free;         /* [nodes+spares] */
    struct view_slot *slot;   /* [nodes] */
    struct view_rank *rank;   /* [ranks] */
    int *slot_ranks;          /* [nodes] ranks per slot */
    /* the end */
    bool stopped; /* nothing more will run */
    int code;     /* the job's exit code, valid when stopped */
    char why[192];
};

/* Types of the events that agents submit to the membership log; operands a, b, c. Node deaths are the log's own. */
enum view_event_type {
    VIEW_NODE_DEAD = 1,  /* a node */
    VIEW_RANK_DEAD = 16, /* a rank, b incarnation, c signal */
    VIEW_RANK_DONE = 17, /* a rank, b incarnation, c exit code */
    VIEW_RANK_LEFT = 18, /* a rank, b incarnation */
    VIEW_RESTORED = 19,  /* a slot, b node, d epoch of the slot's last change */
    VIEW_STOP = 20,      /* a exit code, b rank + 1 of who asked (0: the user) */
};

struct view_event {
    uint32_t type, a, b, c;
    uint64_t d;
};

/* rank_node[ranks]: initial node of each rank (0..nodes-1). Returns false when out of memory. */
bool view_init(struct view *v, enum view_policy policy, int nodes, int spares, int ranks, const int *rank_node);
void view_fini(struct view *v);
/* Apply one committed batch: the view becomes that of `epoch`. Unknown, stale and repeated events change nothing. */
void view_apply(struct view *v, uint64_t epoch, const struct view_event *events, int n);

/* Does the rank take part in collectives? */
bool view_rank_takes_part(const struct view *v, int rank);
/* Does the node run a rank that takes part in collectives? */
bool view_node_takes_part(const struct view *v, int node);
/* True when no slot waits for its rebuild or for its copies to become equal. */
bool view_redundancy_whole(const struct view *v);
#endif
