/* The order of operations that do not commute, where the program has replicas (order.h): of the parts that an agent
 * holds, those of the slot whose ranks began on its node, one of each redundancy class.
 *
 * A request for such a part becomes an operation that waits for its turn, and then for all sets to know it; who has an
 * entry sends it on. The same part of another set is that of the node where the same rank runs there. A set that the
 * view has retired is no part of the chain any more; nor is a part whose primary is another node than the one where its
 * ranks began: they have all come to their end before, or the set is retired by their death.
 *
 * A set that has begun anew (view/renew.c) is alone until it joins. In the view in which it does nothing is under way,
 * and all parts of all whole sets begin their orders anew; what another set had said in an older view is dropped.
 *
 * Where replicas do each other's part a request has its turn whichever replica of its rank sends it, by its name; and
 * of several that ask for the same name each is answered.
 *
 * While a view is made nothing is executed, so what other sets say waits here until it is there. Requests wait in the
 * stash before they come here. */
#ifndef KEEL_AGENT_ORDERING_H
#define KEEL_AGENT_ORDERING_H

#include "runtime/agent/dedup.h"
#include "runtime/agent/order.h"
#include "runtime/base/replica.h"
#include "runtime/wire/wire.h"

struct agent;
struct conn;

enum { ORDERED_PLACES = 256 };

struct ordering {
    const struct replica_map *map; /* NULL: the program runs once, or no rank begins here */
    int slot;                      /* whose ranks began here */
    int rank, set;                 /* the first of them */
    uint32_t attempt;              /* the how manieth beginning of its set that was */
    uint64_t joined;               /* epoch of the last view in which a set joined */
    bool alike;                    /* their parts lie in a copy as those of the other sets do */
    bool said;                     /* that sets differ */
    struct ordered_part {
        struct agent *agent;
        unsigned class;
        struct order order;
        bool in;                               /* it is one of the chain */
        int before, behind;                    /* the nodes next to it in the chain, -1: it is the first, the last */
        struct ordered *waiting;               /* operations that have come and are not answered, */
        struct ordered *named[ORDERED_PLACES]; /* and by their names */
    } part[CLASSES];
    struct order_late *late, **late_tail; /* what other sets have said while nothing is executed */
};

/* After the view, and what replicas it has. */
void ordering_init(struct agent *a);
/* Also of an all-zero one. */
void ordering_fini(struct ordering *o);

/* Is the request of a set that is retired? Its order is known to nobody any more, whichever node has the part now, and
 * its processes are being ended: it is not executed, and none is told what others do not know. */
bool ordering_is_over(const struct agent *a, const struct wire *w);
/* Likewise of a set that lives, to a part of one that is retired: who does somebody's part there does it no more. It is
 * told so. */
bool ordering_refuses(const struct agent *a, const struct wire *w, int copyset);
/* Has the request its turn in an order? It is for a part that this node is the primary of. */
bool ordering_has_turn(const struct agent *a, const struct wire *w, int copyset);
/* Does a rank of the node that has sent it do the next of its kind by itself? No other set needs to know of them, and
 * no partner needs a name to do it again. */
bool ordering_shares(const struct agent *a, const struct wire *w);
/* Such a request, and what is remembered of it: from here on it is executed and answered in its turn. */
void ordering_take(struct agent *a, struct conn *c, const struct wire *w, const void *body, int copyset,
                   enum dedup_verdict verdict);
/* Nobody waits for what came on that connection. */
void ordering_forget(struct agent *a, const struct conn *c);

/* WIRE_ORDER, WIRE_ORDERED */
void ordering_told(struct agent *a, int from, const struct wire *w, const void *body);
/* The view is another one, and execution goes on. */
void ordering_view_committed(struct agent *a);
/* What was said meanwhile is looked at again. */
void ordering_unstash(struct agent *a);

/* Do operations wait here for another set; for that node? */
bool ordering_waits(const struct agent *a);
bool ordering_waits_for(const struct agent *a, int node);
#endif
