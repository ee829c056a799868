/* How good a map is for the network, to choose between maps: fewest collisions; then fewest links that carry so many,
 * fewest that carry one less, and so on down; then the lowest mean load (hops); then the fewest moves. A pattern of
 * several phases has the sum of the squares of the links' loads in place of the count of links. */
#ifndef KEEL_TOPO_KEY_H
#define KEEL_TOPO_KEY_H
#include "runtime/topo/load.h"

/* Compared field by field, lower is better. */
struct load_key {
    int32_t collisions;
    int32_t *links_with; /* one phase: links with 0, 1, 2 ... messages, up to collisions */
    int64_t squares;     /* several phases: sum over links of messages squared */
    int64_t hops;
    int32_t moves;
};

/* A key for any state of the load. returns false when out of memory. */
bool load_key_init(struct load_key *k, const struct load *l);
void load_key_fini(struct load_key *k);
/* The load as it is now, reached with so many moves. */
void load_key_read(struct load_key *k, const struct load *l, int32_t moves);
/* Is a better than b? Both of the same load. */
bool load_key_better(const struct load_key *a, const struct load_key *b);
#endif
