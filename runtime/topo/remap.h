/* Repair: Keel's second method. A few moves per failure, each of them where the network is hottest.
 *
 * When a node dies its slot goes where the link load is best: to one of the free nodes near its peers, or by a short
 * slide. Then, as long as the bound on moves allows, one slot whose messages cross a hottest link moves to a free node
 * or changes places with another one, whichever is best by key.h; it stops when nothing relieves that link.
 *
 * The bound counts migrations, that of the failed node's slot included: with 1 it is a 0D that looks at the network.
 * A plan lists each migration once (and one that steps aside twice), in an order in which every destination is free.
 *
 * Use: the method is one step of a struct place_method,
 *   remap_init(&r, &place, &load, 4); place_method_add(&method, remap_plan, &r);
 * The load must follow the place, as it does in load_substitute. Cost: some hundred trial moves per repair;
 * docs/placement.md has the numbers. threads one caller at a time. blocks never. Only remap_init allocates.
 * source  new; Spare-nodes leaves the search for better mappings as future work. */
#ifndef KEEL_TOPO_REMAP_H
#define KEEL_TOPO_REMAP_H
#include "runtime/topo/key.h"

enum {
    REMAP_MOVES = 8,       /* the bound when none is given */
    REMAP_MOVES_MAX = 256, /* the highest one */
    REMAP_NEAR = 16,       /* free nodes, and slots to change places with, that are tried for one slot */
    REMAP_SLOTS = 8,       /* slots on a hottest link that are tried */
    REMAP_USERS = 64,      /* those that are looked at for that */
};

struct remap_candidate {
    int32_t node, gain;
};

struct remap {
    struct load *load; /* the caller's */
    int32_t moves;     /* bound on moves per failure */
    int32_t most;      /* that, or the bound of the whole method */
    bool bounded;      /* the latter left something out */
    int32_t *slot_at;  /* [nodes] who stands where in the map under trial */
    int32_t *changed;  /* [slots] those that were moved in it */
    int32_t nchanged;
    int32_t *displaced; /* [slots] slots off their first nodes */
    int32_t ndisplaced;
    int32_t *index;               /* [slots] place in displaced, -1 none */
    int32_t *middle, *there;      /* [ndisplaced] the node in the middle of its peers, and hops to it */
    int32_t *mark;                /* for place_arrange */
    int32_t phase, link, hottest; /* the link to be relieved, and what it carries */
    struct load_key best, trial;
    struct place_plan slide;
};

/* p and l are the caller's and outlive r. moves 1..REMAP_MOVES_MAX. returns   false when out of memory. */
bool remap_init(struct remap *r, const struct place *p, struct load *l, int32_t moves);
void remap_fini(struct remap *r);
/* A place_fn; arg is the struct remap. */
bool remap_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg);
#endif
