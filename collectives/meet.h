/* Meetings: every live member of a group brings something small, all leave with the combination of everything. The plan
 * of one member is a straight list of "send what I know to" and "wait for", made from the roster alone, so that all who
 * are in the same view have plans that fit together.
 *
 *   MEET_CUBE  in step k tell the member 2^k places on and hear from the one 2^k places back: ceil(log2 n) messages
 *              each
 *              and as many steps, for any number of live members. Duties of a dead member go to whom it would have met
 *              next, because places have no gaps.
 *   MEET_TREE  gather to the first live member and back: 2 (n - 1) messages in all, twice log2 n steps. A block of 2^k
 *              members
 *              is spoken for by its first live one: a dead member's duties are the next live one's.
 *   nodes      members of a node, where messages are cheap, first tell the first of them, as in the tree; these, one of
 *              each node, meet as in the
 *              cube; then back. So of n members on k nodes k log2 k messages go between nodes.
 *
 * source   CUBE: FT-ARMCI, "Fault-Resilient Collective Communication Primitives". Differs: partners at distance 2^k in
 *          one direction,
 *          which needs no case for sizes that are no power of two, where members of a hypercube have to speak for
 *          absent corners.
 *          TREE: Liveness-discovery, algorithm 1 with its duties reassigned. Differs: who is dead is in the roster, so
 *          the
 *          successor is known at once and not found by asking one after the other. */
#ifndef KEEL_COLLECTIVES_MEET_H
#define KEEL_COLLECTIVES_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/roster.h"

enum meet_shape { MEET_CUBE, MEET_TREE };

struct meet_step {
    int member;
    bool wait; /* else send */
    uint8_t tag;
};

enum { MEET_STEPS_MAX = 130 }; /* for any number of members that an int can count */

enum { MEET_NODES_MAX = 1024 }; /* larger groups meet as if all were on nodes of their own */

/* node[]: of each member. False: all or none of them are together, or they are too many: then it is no use. */
bool meet_has_nodes(const struct roster *r, const int *node);
/* The steps of member self, which is live, if it is. */
int meet_plan_nodes(const struct roster *r, const int *node, int self, struct meet_step *steps);
/* The steps of member self, which is live. Returns their number, at most MEET_STEPS_MAX. */
int meet_plan(enum meet_shape shape, const struct roster *r, int self, struct meet_step *steps);
#endif
