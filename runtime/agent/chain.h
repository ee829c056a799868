/* The way of what a primary does to its copyset to the other copies.
 *
 * Whole copies form a chain: the primary sends to the next one in the copyset's list, that one to the one after it,
 * each in its stream. So every copy has all that those behind it have, whoever dies: the next primary never lacks what
 * another copy holds. A copy that is being filled gets everything from the primary, in the stream that fills it.
 *
 *   primary ──► copy 1 ──► copy 2          copy 1 tells the primary up to where copy 2 has acknowledged (WIRE_RELAYED)
 *      └─────► copy being filled */
#ifndef KEEL_AGENT_CHAIN_H
#define KEEL_AGENT_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/view/view.h"
#include "runtime/wire/wire.h"

struct agent;
struct passed_on; /* chain.c */

/* What other copies must have acknowledged. */
struct chain_mark {
    int nodes;
    int node[COPIES_MAX - 1];
    uint64_t seq[COPIES_MAX - 1];
    uint64_t relayed; /* the first of them has passed on what is up to here, 0: it passes nothing on */
    int behind;       /* the node to which it passes that on */
};

/* What is passed on here, and what others pass on for us. */
struct chain_relays {
    struct passed_on *first, **tail; /* not yet acknowledged, in the order in which it came */
    bool due;                        /* that of some node is */
    struct relays_of {
        bool due;               /* something of theirs was passed on, and they do not know that it arrived */
        uint64_t told;          /* sum of what we have told them */
        uint64_t sent;          /* position in our stream to them of the last that they pass on, */
        uint64_t passed;        /* and up to where they say that it has arrived, */
        uint64_t passed_living; /* but for nodes that they do not wait for */
    } * of;                     /* [members] */
};

/* False: out of memory. chain_fini frees what was made, also of an all-zero one. */
bool chain_init(struct chain_relays *relays, int members);
void chain_fini(struct chain_relays *relays);

/* Send to all other copies; *mark says when they have it (and all that was sent before). */
void chain_send(struct agent *a, int copyset, const struct wire *w, const void *body, struct chain_mark *mark);
/* What is sent may have to be sent again. */
bool chain_keeps(const struct view_copyset *g);
/* Nothing new: *mark says when they have all that was sent so far. */
void chain_mark(const struct agent *a, int copyset, struct chain_mark *mark);
bool chain_reached(const struct agent *a, const struct chain_mark *mark);
/* The same, without waiting for nodes that are cut off or believed dead. */
bool chain_reached_living(const struct agent *a, const struct chain_mark *mark);
/* May `from` send what changes this node's copy of the copyset? It is the one before in the chain, or the primary of a
 * copy that is being filled. */
bool chain_is_before(const struct agent *a, int copyset, int from);
/* Something came with chain_ask_for_word, is passed on, or is of no use any more: either way they will be told. */
void chain_came(struct chain_relays *relays, int from);
/* What came from there was applied here: pass it on. */
void chain_relay(struct agent *a, int copyset, int from, const struct wire *w, const void *body);
/* Nothing that was passed on is unacknowledged, but by nodes that are cut off or believed dead. */
bool chain_drained(const struct agent *a);
/* Tell those before what those behind have acknowledged. */
void chain_step(struct agent *a);
/* WIRE_RELAYED */
void chain_told(struct chain_relays *relays, int from, const struct wire *w);
#endif
