/* Messages per directed link: how many messages of a pattern cross each link of the network under a map of slots.
 *
 * A load keeps a map of its own, which starts as that of a place and follows it: load_move recounts only the routes of
 * the slots that move, so the cost of a substitution is that of its moves. "Collisions" are, as in Spare-nodes, the
 * number of messages on the most used link (1 means that no two messages meet). A pattern of several phases is counted
 * phase by phase and its collisions are the sum of the phases' maxima: the time of the collective, in units of one
 * message on a free link.
 *
 * Counting conventions:
 *   LOAD_ALL      every message counts (the default)
 *   LOAD_RECEIVED messages sent by a slot that is not on its node of launch are left out; those sent to it count. The
 *                 published laws for 0D come out under this one.
 * Links between a node and its switch count on a fat tree and do not exist on a grid. Slots without a live node neither
 * send nor receive.
 *
 * threads   one caller at a time; the pattern is shared and only read. blocks never. Only load_init allocates. */
#ifndef KEEL_TOPO_LOAD_H
#define KEEL_TOPO_LOAD_H
#include "runtime/topo/fattree.h"
#include "runtime/topo/grid.h"
#include "runtime/topo/pattern.h"
#include "runtime/topo/place.h"

enum { LOAD_LOG = 1 << 13 };

enum load_convention { LOAD_ALL, LOAD_RECEIVED };

/* What the messages travel on: the place's grid, or a fat tree over the same nodes (tree.nodes > 0). */
struct load_network {
    struct fattree tree;
};

struct load_phase {
    int32_t *count; /* [links] messages on each link */
    int32_t *hist;  /* [2 * cap + 2] links with that many messages */
    int32_t max;    /* messages on the most used link */
    int32_t cap;    /* messages of the phase: no link can carry more */
    /* of the trial at hand */
    bool logging;
    int32_t *log;       /* [LOAD_LOG] the links that changed: link for one message more, ~link for one less */
    int32_t nlog;       /* how many did, also beyond LOAD_LOG */
    int32_t max_before; /* max when it began */
};

struct load_mover {
    uint32_t stamp;        /* now: the slot moves in the plan at hand, and the rest is valid */
    int32_t was;           /* the node it stood on before, -1 none */
    int32_t before, after; /* how far that was from its node of launch, and the new one is; in a large plan */
};

struct load {
    const struct pattern *pattern;
    const struct place *place; /* for what never changes: grid, coordinates, homes */
    struct load_network net;
    enum load_convention convention;
    int32_t links;
    struct load_phase *phase; /* [pattern->phases] */
    int64_t hops;             /* messages times links, over all phases */
    int64_t hops_before;      /* as the trial at hand began */
    int32_t longest;          /* links of the longest route */
    struct load_mover *mover; /* [slots] */
    uint32_t now;             /* of the plan at hand */
    int32_t *movers, nmovers; /* the slots that move in it */
    int32_t *left;            /* [nodes] the mover that stood there, while a plan is counted; -1 none */
    uint32_t *along;          /* [slots] the shape of a mover and the peers that move along with it, in a large plan */
    uint8_t *shape; /* [slots] equal for slots with equal peers, seen from where they stand at launch; 0 like none */
    int32_t *at;    /* [slots] the map as counted */
    bool *absent;   /* [slots] dropped: its messages are not in the network */
};

struct load_user {
    int32_t slot, messages;
};

/* returns   false when out of memory, or the fat tree's nodes are not the place's. */
bool load_init(struct load *l, const struct pattern *pattern, const struct place *p, const struct load_network *net,
               enum load_convention convention);
/* The same for many millions of slots: also returns false soon after *stop was set. */
bool load_init_until(struct load *l, const struct pattern *pattern, const struct place *p,
                     const struct load_network *net, enum load_convention convention, const atomic_bool *stop);
void load_fini(struct load *l);

/* Count everything anew. returns   false when stopped; stop may be NULL. */
bool load_count(struct load *l, const struct place *p, const atomic_bool *stop);
/* dst becomes src; both were made with equal arguments. */
void load_copy(struct load *dst, const struct load *src);

/* The messages of a slot leave the network: to be called when its node fails, before load_move. */
void load_drop(struct load *l, int32_t slot);
/* They are back, with the slot on this node. */
void load_put(struct load *l, int32_t slot, int32_t node);
/* The same, unless a link would then carry more than limit messages: then the slot stays dropped. returns  is it
 * back? */
bool load_put_within(struct load *l, int32_t slot, int32_t node, int32_t limit);
/* Takes back a load_put_within that succeeded; nothing has changed since. As load_drop, but quicker. */
void load_put_back(struct load *l, int32_t slot);
/* The slots of a plan move and their routes are recounted; the dropped slot is back. */
void load_move(struct load *l, const struct place_plan *plan);
/* Takes back a load_move of a plan for a dropped slot, which is dropped again: for looking at several plans in turn. */
void load_undo(struct load *l, const struct place_plan *plan);
/* load_move to look at what comes of it, and then back, with nothing else in between: quicker than load_undo. */
void load_try(struct load *l, const struct place_plan *plan);
void load_try_back(struct load *l, const struct place_plan *plan);

/* place_substitute, with the load following.
 * plan      initialised for the place; receives the moves (none unless PLACE_MOVED).
 * returns   as place_substitute; after PLACE_CANNOT the slot sends and receives nothing. */
enum place_result load_substitute(struct load *l, struct place *p, const struct place_method *method, int32_t node,
                                  struct place_plan *plan);

/* The first link that carries as many messages as any, and its phase; -1 when there are no messages. */
int32_t load_hottest(const struct load *l, int32_t *phase);
/* The slots at either end of the messages that cross a link in a phase, without duplicates, and how many of the
 * messages each is an end of. slot_at tells who stands on each node (< 0: nobody) and agrees with the load's map.
 * returns   how many there are; no more than cap are written. */
int load_users(const struct load *l, const int32_t *slot_at, int32_t phase, int32_t link, struct load_user *users,
               int cap);
/* How many messages of the slot would cross that link if it stood on that node, the others where they are? On a
 * grid. */
int load_crossings(const struct load *l, int32_t phase, int32_t link, int32_t slot, int32_t node);

/* Messages on the most used link; summed over the phases. */
int32_t load_collisions(const struct load *l);
/* Mean messages per link that carries any, over all phases; 0 when none does. */
double load_mean(const struct load *l);
#endif
