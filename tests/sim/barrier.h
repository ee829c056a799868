/* Barrier among nodes on a hypercube of any size, that any number of failures before or during it neither hangs nor
 * opens early. One struct per node (agent); the agent enters it when all its live ranks have entered. Pure: no I/O, no
 * clock. tests/sim/barrier.md has the diagram and the argument.
 *
 * Barriers are numbered 1, 2, 3, ...; a node enters number s only after it completed s-1. Messages carry the set of
 * nodes known to have entered, so that nothing but that knowledge opens the barrier: it completes where
 * entered >= members. Messages go over reliable agent-to-agent connections that may break; what was lost is sent
 * again on a timer while the node waits.
 *
 * threads  none inside; the owner serialises. Callbacks come from inside the calls.
 * source   FT-ARMCI, "Fault-Resilient Collective Communication Primitives": hypercube, and going on with the partner
 *          that
 *          the dead one would have met next. Differs: sets of entered nodes instead of counting messages. */
#ifndef KEEL_SIM_BARRIER_H
#define KEEL_SIM_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/limits.h"

enum { BARRIER_NODES_MAX = LIMIT_NODES, BARRIER_MESSAGE_MAX = 1100 };

struct barrier_ops {
    void *user;
    /* Reliable in order while the connection holds; dropped if there is none. */
    void (*send)(void *user, int to, const void *data, size_t len);
    /* Barrier seq is complete here: its ranks may go on. Once per seq, in order. */
    void (*complete)(void *user, uint64_t seq);
};

struct barrier;

/* Members at first: none. NULL if out of memory or out of range. */
struct barrier *barrier_create(int n, int self, const struct barrier_ops *ops);
void barrier_destroy(struct barrier *b);

/* The nodes that take part from now on (bitset of n): at the start, and with each committed view while frozen (between
 * barrier_freeze and barrier_thaw; the first time also without). */
void barrier_set_members(struct barrier *b, const uint64_t *members, uint64_t now);
/* This node takes part for the first time, with members' largest completed count. Call it while frozen; the node then
 * enters completed+1, and answers DONE for what came before. */
void barrier_join(struct barrier *b, uint64_t completed);

/* This node has entered barrier barrier_completed()+1. */
void barrier_enter(struct barrier *b, uint64_t now);
/* seq of the barrier entered and not completed, or 0. */
uint64_t barrier_waiting(const struct barrier *b);
/* From PREPARE on nothing may be handed in from a node that is to be declared dead: it may live, and not be frozen. */
void barrier_receive(struct barrier *b, int from, const void *data, size_t len, uint64_t now);
/* The connection to node is (again) up: what it may have missed is sent again. */
void barrier_connected(struct barrier *b, int node, uint64_t now);
void barrier_tick(struct barrier *b, uint64_t now);
uint64_t barrier_deadline(const struct barrier *b); /* UINT64_MAX: none */

/* View change: between freeze (PREPARE) and thaw (COMMIT, after set_members) nothing completes here, so that the value
 * of barrier_completed() given to the view change stays true. Freezing twice is one freeze. */
void barrier_freeze(struct barrier *b);
void barrier_thaw(struct barrier *b, uint64_t now);
/* Instances completed here. */
uint64_t barrier_completed(const struct barrier *b);
#endif
