/* Balanced substitution: Keel's own method. It looks at what each candidate would do to the network and takes the best.
 *
 * Candidates for a failed node are
 *   - every slide that is possible: each dimension, direction and order, 1D to qD;
 *   - the nearest free nodes, BALANCE_NEAR of them;
 *   - the whole map that each reference method (hybrid(all), hybrid without 2D, 0D) would have reached by now. These
 * are kept beside the real map and follow the same failures. Each is tried on the link load; the best by key.h wins. A
 * reference map costs many moves, so it is taken only when it has fewer collisions than every
 * local candidate.
 *
 * Guarantee: after every substitution the collisions are at most those of each reference method after the same
 * failures, and so are mean and worst over any set of failures. Not so with a bound on moves (place_method.moves): what
 * has more is left out, the maps of the references first of all.
 *
 * Use: the method is one step of a struct place_method,
 *   balance_init(&b, &place, &load); place_method_add(&method, balance_plan, &b);
 * The load must follow the place, as it does in load_substitute. The guarantee needs to see every failure, in
 * place->dead_list. Cost: a few tens of trial routes per failure, microseconds to a few milliseconds at 24x24x24;
 * docs/placement.md has the numbers. Memory: four more maps and link loads. threads one caller at a time. blocks never.
 * Only balance_init allocates. source  new; Spare-nodes leaves the search for better mappings as future work. */
#ifndef KEEL_TOPO_BALANCE_H
#define KEEL_TOPO_BALANCE_H
#include "runtime/topo/key.h"

enum { BALANCE_NEAR = 16, BALANCE_REFERENCES = 3 };

struct balance_reference {
    struct place_method method;
    struct place place;
    struct load load;
};

struct balance {
    struct load *load;   /* the caller's */
    struct place launch; /* the map at launch, everything alive, and its load */
    struct load launch_load;
    struct balance_reference ref[BALANCE_REFERENCES];
    int refs;
    bool together;      /* the last reference, hybrid(-2D), has the map of the first so far, and is not kept up */
    int32_t collisions; /* after the last plan */
    bool straight;      /* a mesh in every dimension */
    int32_t seen;       /* failures the references know: a prefix of place->dead_list */
    int32_t returns;    /* place->returns as they know it */
    struct place_plan trial;
    struct load_key key[2]; /* best so far, and the one at hand */
    int32_t *mark;          /* [slots] for putting a reference map into an order of moves */
    int64_t adopted;        /* times a reference map was taken */
};

/* p and l are the caller's and outlive b; p is as at launch (place_init or place_reset).
 * returns   false when out of memory. */
bool balance_init(struct balance *b, const struct place *p, struct load *l);
void balance_fini(struct balance *b);
/* To be called after place_reset or place_copy on the place. */
void balance_reset(struct balance *b);
/* A place_fn; arg is the struct balance. */
bool balance_plan(const struct place *p, int32_t node, struct place_plan *plan, void *arg);
#endif
