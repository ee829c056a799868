/* The method `auto`: of all methods' plans the one that costs least, moving and colliding taken together (weigh.h).
 *
 *   a node died      the plan of each sliding method, of balance and of repair, each within the bound on moves. Hybrids
 *                    are lists of sliding methods, so their plans are among these.
 *   somebody asks    whether slots that live should stand elsewhere: for each sliding method and hybrid the map that it
 *                    would have come to by the deaths so far. It is taken if getting there costs less than it saves.
 *
 * What is known of the program's messages, of bytes and rates stands in weigh.figures and weigh.slot_bytes; whoever has
 * the same ones chooses the same. Until something is known balance chooses alone.
 *
 * threads   one caller at a time. blocks never. Only auto_init allocates. source new. */
#ifndef KEEL_TOPO_AUTO_H
#define KEEL_TOPO_AUTO_H
#include "runtime/topo/balance.h"
#include "runtime/topo/remap.h"
#include "runtime/topo/weigh.h"

enum { AUTO_CANDIDATES = GRID_MAX_DIMS + 1 + 3, AUTO_DECISIONS = 8, AUTO_NAME = 16 };

/* One choice, for who tells it. */
struct auto_decision {
    int32_t slot; /* that lost its node; -1: somebody asked */
    int32_t node; /* which it stood on */
    bool known;   /* what the program sends: else candidates have no prices, and balance has chosen */
    struct weigh_figures figures;
    int count, chosen; /* -1: none is possible */
    struct auto_candidate {
        char name[AUTO_NAME]; /* "1D"; "stay": no slot moves */
        struct weigh_price price;
    } candidate[AUTO_CANDIDATES];
};

struct auto_method {
    struct weigh weigh;
    struct balance *balance; /* the caller's, as the next */
    struct remap *remap;
    struct place_plan trial;
    struct place replay;
    int32_t *to;                                   /* [slots] where the replay has them */
    int32_t *mark;                                 /* for place_arrange */
    struct auto_decision decision[AUTO_DECISIONS]; /* the first ones since auto_forget */
    int decisions;
};

/* All four are the caller's and outlive a. returns   false when out of memory. */
bool auto_init(struct auto_method *a, const struct place *p, struct balance *balance, struct remap *remap);
void auto_fini(struct auto_method *a);
/* No decision was made yet. */
void auto_forget(struct auto_method *a);
/* A place_fn; arg is the struct auto_method. */
bool auto_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg);
/* The moves of slots that live that cost less than they save; at most moves of them for each dead node, or in all if
 * there is none, 0: any number. returns   false: nothing pays, or a slot has no node, or what the program sends is not
 * known. */
bool auto_rebalance(struct auto_method *a, const struct place *p, int32_t moves, struct place_plan *plan);
#endif
