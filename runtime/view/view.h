/* The view: who is alive, which node runs which rank, which nodes hold the copies of which data. Pure.
 *
 * The data of the ranks that start on one node form a *slot*. Slot s is that of initial node s; rank r always belongs
 * to slot rank[r].slot, wherever it runs. What a slot holds in segments of one redundancy class forms a *copyset*
 * (wire/layout.h): it is placed, promoted and filled as a whole. A copyset has a list of copies, the primary first.
 *
 * Every agent applies the same totally ordered events (detect/member.h) with view_apply, so all hold the same sequence
 * of views. After a node death
 *   - its copies leave the lists; where the primary died, the next whole copy is the primary (FT-ARMCI, "data
 *     redundancy
 *     model"),
 *   - under `substitute` the dead node's ranks get another one (view/plan.h), a free spare (Spare-nodes, 0D); under
 *     `degrade`,
 *     or without a free spare, or in a program whose processes cannot be started again, the ranks stay dead,
 *   - a program that needs all its processes, and has not said that it goes on, ends in this same view,
 *   - missing copies are placed on other nodes (view/policy.h) and filled there,
 *   - a copyset none of whose copies was whole starts again on another node: what it held is lost.
 * A node that has no memory for a new copy declines it, and gets no further ones; it keeps those that it has.
 * A node may be born later, under the next of the ids for which there is room: it is a free spare from that view on,
 * like one that was there from the start; what lacks copies then has them placed there in this same view. Ranks that
 * were given up before stay dead.
 *
 * A node that cannot start a process for a rank *refuses* it (VIEW_REFUSED). It lives, with its ranks and copies, but
 * no rank begins there any more: this one goes where its slot would go if the node were dead, or stays dead if that is
 * nowhere. That is no restart, as nothing ran.
 *
 * A rank *moves* when its process has ended on one node so that its next life begins on another one (VIEW_RANK_MOVED,
 * by the agent on whose node it ended). That is no failure: no death and no restart is counted, and a rank may move as
 * often as it likes. To its data it is the end of a writer, as a death is, unless the process had nothing on its way
 * when it ended and said so. The ranks of a slot move one by one; the slot stays with its node until the last of them
 * has gone. Then its data follow, or are there already (follow.c), and a node that nobody is left on is a free spare.
 * What else may come to be:
 *   - the target is dead by this view, or none: the next life begins on the node where the rank was, which also counts
 *     for no restart, as the process has ended;
 *   - the rank's node is dead by this view, or another event has ended this life: the rank has had its next life, and
 *     the event says nothing;
 *   - the rank had left: it is done;
 *   - processes of this job are not started again: the end is a death like any other.
 *
 *           a writer dies or gives up; a copy is missing, or suspected        all copies are whole and equal again
 *   DIRECT ─────────────────────────────────────────────────────► REPAIR ────────────────────────► DIRECT
 *                                                                  │      ▲ (VIEW_RESTORED, by the primary)
 *                                                                  └──────┘ another death: a new generation
 *
 * In DIRECT the copies are equal but for writes in progress, and writers write each of them. In REPAIR they write
 * through the primary (docs/protocols/replication.md). Every change of a copyset gives it a new generation, the epoch
 * of the change; copyset_set_mode is the only place that does so.
 */
#ifndef KEEL_VIEW_VIEW_H
#define KEEL_VIEW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/job_settings.h"
#include "runtime/base/life.h"
#include "runtime/base/replica.h"
#include "runtime/base/view_event.h"
#include "runtime/wire/layout.h"

enum copyset_mode { COPYSET_DIRECT, COPYSET_REPAIR };

enum rank_state {
    RANK_RUNNING,
    RANK_DEAD, /* no process, none will come */
    RANK_DONE, /* ended by itself */
};

enum { VIEW_MAX_RESTARTS = 3 }; /* a rank that died this often on a live node is left dead */

struct view_copy {
    int node;
    bool whole;      /* holds every completed write; false: it is being filled */
    uint64_t placed; /* epoch at which it came to this node */
};

struct view_copyset {
    int copies; /* at least 1 as long as a node lives */
    struct view_copy copy[COPIES_MAX];
    enum copyset_mode mode;
    uint64_t generation; /* epoch of the last change */
    uint64_t lost_at;    /* epoch at which the last whole copy died: what was there before is gone; 0: never */
    uint64_t doubted_at; /* epoch of the last death (or doubt) of a writer */
};

struct view_rank {
    int slot;
    int index;            /* position within the slot */
    int node;             /* -1: nobody runs it */
    uint32_t incarnation; /* 0 at the start, one more with each process that takes the rank over */
    enum rank_state state;
    bool left;   /* called keel_finalize: takes part in no collective any more */
    bool writes; /* files, with partners */
    int restarts;
    uint64_t joined;  /* epoch at which this incarnation joined; 0 for the first */
    uint32_t doubted; /* VIEW_RANK_DOUBT of this incarnation so far */
    struct view_death {
        int times;      /* processes of this rank that died */
        uint64_t epoch; /* of the last one's death; 0: none */
        int node;       /* where it ran */
        int signal;     /* what killed it (base/signals.h: SIGNAL_HIDDEN), 0: its node died */
    } death;
    struct view_moved {
        int times;
        uint64_t epoch; /* of the last time; 0: never */
        int from;       /* where it ran before */
        uint32_t order; /* number of that move in its plan */
    } moved;
};

struct view {
    uint64_t epoch;
    enum view_policy policy;
    int nodes, spares, ranks; /* of the start: nodes 0..nodes+spares-1 */
    int room;                 /* ids for nodes that are born later; an array of `ids` has nodes+spares+room entries */
    int next_id;              /* the ids from here on are unborn */
    bool *alive;              /* [ids] */
    bool *spare_free;         /* [ids] */
    bool *full;               /* [ids] has no memory for a further copy */
    bool *refuses;            /* [ids] could not start a process: no rank begins there any more */
    struct view_node_death {
        uint64_t epoch;           /* 0: it lives, or is unborn */
        uint32_t evidence;        /* detect/member.h */
    } * node_death;               /* [ids] */
    uint64_t *born_at;            /* [ids] epoch; 0: there from the start, or unborn */
    struct view_copyset *copyset; /* [nodes * CLASSES] */
    int *home;                    /* [nodes] view_slot_node; follow_slot sets it */
    int *began;                   /* [nodes] where the slot's ranks began, all together, the last time */
    struct view_rank *rank;       /* [ranks] */
    int *slot_ranks;              /* [nodes] ranks per slot */
    struct copy_rule copies;      /* its array is the view's */
    int *ring;                    /* [nodes] who stands where in the ring by which copies are placed (policy.h) */
    int *load;                    /* [CLASSES][ids] scratch of policy.c: copies on each node, */
    int *live;                    /* [ids] its number among the live nodes of the ring, -1: none, */
    int live_nodes;               /* and how many these are; */
    struct view_step {
        int from; /* -1: the way begins here; -2: no way leads here */
        int copyset, copy;
    } * way;    /* [ids] how copies may move to get there, */
    int *queue; /* [ids] and the nodes that were reached */
    struct view_move {
        int slot, from, to;
    } * plan;                               /* the slots that move by the last deaths and births (plan.h), */
    int planned;                            /* so many */
    struct sliding *sliding;                /* plan.c: the nodes stand on a grid; NULL: on none */
    int *died;                              /* [ids] scratch: nodes that die in this view, */
    struct plan_birth *births;              /* [ids] and that are born */
    const struct replica_map *replicas;     /* NULL: the program runs once */
    bool partners;                          /* a set goes on without a rank that lives in another one (sets.c) */
    struct replica_loss loss[REPLICAS_MAX]; /* of each set (sets.c) */
    struct view_renewal {
        uint32_t attempt; /* how often it has begun anew */
        int in_vain;      /* since it was whole */
        /* by what the last of these came to nothing; all 0 but a node of -1: by the rank's end, with 0 */
        struct replica_loss last;
    } renewal[REPLICAS_MAX]; /* of each set (renew.c) */
    bool keeps, stays;       /* sets that are lost are to begin anew: the program keeps memory; and they cannot */
    uint64_t joined;         /* epoch of the last view in which a set joined, 0: none has */
    /* the end */
    bool
        needs_all; /* the program is one whose processes cannot be started again, and it ends by the first that dies, */
    bool survives; /* unless it has said that it goes on */
    bool by_loss;  /* it has ended so: stopped, too */
    bool stopped;  /* nothing more will run */
    int code;      /* the job's exit code, valid when stopped */
    char why[192];
};

/* Types of the events that agents submit to the membership log; operands a, b, c, d. Node deaths and births are the
 * log's own (base/view_event.h). */
enum view_event_type {
    VIEW_RANK_DEAD = 16, /* a rank, b incarnation, c signal, 0: SIGNAL_HIDDEN */
    VIEW_RANK_DONE = 17, /* a rank, b incarnation, c exit code, d 1: with puts that were not complete */
    VIEW_RANK_LEFT = 18, /* a rank, b incarnation */
    VIEW_RESTORED = 19,  /* a copyset, d its generation */
    VIEW_STOP = 20,      /* a exit code, b rank + 1 of who asked (0: the user) */
    /* a rank, b incarnation: it lives, and gave up 1 + c operations that may still come, and, unless d is 1, be in
     * some copies only */
    VIEW_RANK_DOUBT = 21,
    VIEW_DECLINED = 22,   /* a node: it has no memory for the copies that are being filled there, or for further ones */
    VIEW_NEEDS = 23,      /* a: control.h's CONTROL_NEEDS; b: NEEDS_FILES: of which rank */
    VIEW_RANK_MOVED = 24, /* a rank, b incarnation: its process has ended, c node of the next one, d view_moved_word */
    VIEW_FIGURE = 25,     /* what `auto` weighs: a enum view_figure, the rest as that says (plan.h) */
    VIEW_REBALANCE = 26,  /* should slots that live stand elsewhere? a 1 + the node that wants to hear, 0: none; b
                             seconds in which it is to pay, 0: the horizon; d which of its questions */
    VIEW_SUSPECT = 27,    /* a copyset, d its generation: one of its copies may have changed by itself */
    VIEW_SET_BEGINS = 28, /* a set, b its attempts so far: its ranks are to begin anew (renew.c) */
    VIEW_SET_JOINS = 29,  /* a set, b attempt: each of its processes has what the whole sets have */
    VIEW_REFUSED = 30,    /* a rank, b incarnation: no process could be started for it, c on its node */
};

/* a of VIEW_FIGURE. What it says holds until the next one of its kind; of a slot only what is of that slot. One that
 * makes no sense changes nothing, nor does any where the nodes stand on no grid or the method is another one. */
enum view_figure {
    FIGURE_PATTERN, /* b view_pattern_word, c steps in 1000 s, d bytes of a message */
    FIGURE_SLOT,    /* b slot, d its bytes */
    FIGURE_RATE,    /* d bytes per second over a link */
    FIGURE_BEGIN,   /* d us until a rank that moves has begun again */
};

/* b of FIGURE_PATTERN: to whom (topo/weigh.h: enum weigh_shape), whether the program said so, and for how long the
 * choice is to pay. */
enum { VIEW_HORIZON_MAX = (1 << 24) - 1 };
static inline uint32_t view_pattern_word(uint32_t shape, bool declared, uint32_t horizon_s)
{
    return (horizon_s < VIEW_HORIZON_MAX ? horizon_s : VIEW_HORIZON_MAX) << 8 | (uint32_t)declared << 7 | (shape & 127);
}

/* d of VIEW_RANK_MOVED. complete: all that the process had begun was complete in all copies when it ended. */
static inline uint64_t view_moved_word(bool complete, uint32_t order)
{
    return (uint64_t)order << 1 | complete;
}
static inline bool view_moved_complete(uint64_t word)
{
    return word & 1;
}
static inline uint32_t view_moved_order(uint64_t word)
{
    return (uint32_t)(word >> 1);
}

_Static_assert((int)VIEW_RANK_DEAD >= (int)VIEW_EVENT_FIRST, "those below are the detector's");

/* Of an event about a rank: whose process. Events name no replica: a rank has one. */
static inline struct life view_event_life(const struct view_event *event)
{
    return life_of((int)event->a, event->b);
}
static inline struct view_event view_event_of_life(enum view_event_type type, struct life life)
{
    return (struct view_event){.type = type, .a = (uint32_t)life.rank, .b = life.incarnation};
}

/* The job at its start, and room for so many more nodes. rank_node[ranks]: initial node of each rank (0..nodes-1).
 * copies is the caller's; NULL: the default, without domains. Returns false when out of memory. */
bool view_init(struct view *v, enum view_policy policy, int nodes, int spares, int room, int ranks,
               const int *rank_node, const struct copy_rule *copies);
/* The program runs several times, as the map says, which outlives the view. After view_init. */
void view_replicate(struct view *v, const struct replica_map *map);
/* And replicas of a rank that has died do its part for the set. After view_replicate. */
void view_take_partners(struct view *v);
/* Bit s: the program's rank has a process in set s, or has come to its end there, and the set is not retired. The view
 * has replicas. */
unsigned view_rank_lives(const struct view *v, int rank);
/* The set whose files count: the lowest that goes on and in which all ranks live that have written some; -1: none. */
int view_files_set(const struct view *v);
/* Has the set all its ranks, as far as they have not come to their end? With partners: does it go on? */
bool view_set_is_whole(const struct view *v, int set);
/* Bit s: set s is not whole, and what is left of it ends. */
unsigned view_sets_retired(const struct view *v);
/* Has it begun anew, and is not whole yet? Its attempts so far, with this one. */
bool view_set_is_coming(const struct view *v, int set);
uint32_t view_set_attempt(const struct view *v, int set);
/* By what it came to nothing the last time, if it does not begin anew any more for that; else NULL. */
const struct replica_loss *view_set_in_vain(const struct view *v, int set);
/* Would VIEW_SET_BEGINS begin it? */
bool view_set_may_begin(const struct view *v, int set);
/* Do all its parts lie where its ranks began? A set that is coming joins only then, and they do so until it loses a
 * rank: the agents there say in which order they execute (agent/ordering.h). */
bool view_set_is_at_home(const struct view *v, int set);
/* Ids for nodes: all that may ever be. */
static inline int view_ids(const struct view *v)
{
    return v->nodes + v->spares + v->room;
}
void view_fini(struct view *v);
/* Apply one committed batch: the view becomes that of `epoch`. Unknown, stale and repeated events change nothing. */
void view_apply(struct view *v, uint64_t epoch, const struct view_event *events, int n);

/* The life of the rank that runs, or was the last one. */
static inline struct life view_life(const struct view *v, int rank)
{
    return life_of(rank, v->rank[rank].incarnation);
}
/* The node that runs the slot's ranks, or, while they move from one to another, some of them: there its data belong.
 * -1: nobody runs them. */
int view_slot_node(const struct view *v, int slot);
/* Are processes of this job begun again? Only such ranks move. */
bool view_ranks_begin_again(const struct view *v);
/* Does the rank take part in collectives? */
bool view_rank_takes_part(const struct view *v, int rank);
/* Does the node run a rank that takes part in collectives? */
bool view_node_takes_part(const struct view *v, int node);
/* Does the event put in doubt what the writer has on its way: may copies differ? */
bool view_event_doubts(const struct view_event *event, struct life writer);
/* Does it end what the writer has on its way? That is so of all that put it in doubt. */
bool view_event_fences(const struct view_event *event, struct life writer);
/* What a node's death would cost. used: bit c, there are data of redundancy class c. */
enum view_stake { STAKE_NONE, STAKE_DATA, STAKE_JOB };
enum view_stake view_stake(const struct view *v, int node, unsigned used);
/* Copies of the copyset that hold every completed write. */
int view_whole_copies(const struct view_copyset *g);
/* Is the node one of the copyset's copies? Its place in the list, or -1. */
int view_copy_at(const struct view_copyset *g, int node);
#endif
