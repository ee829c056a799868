/* Events on their way into the log: those submitted here, those that a coordinator has to order, and what was ordered
 * of whom. Each member numbers its own, from 1, and they are ordered in that order. Pure. */
#ifndef KEEL_DETECT_EVENTS_H
#define KEEL_DETECT_EVENTS_H

#include "detect/idset.h"
#include "runtime/base/view_event.h"

struct pending {
    int node;
    uint32_t seq; /* its number there */
    struct view_event event;
};

struct events {
    struct pending *queue; /* as coordinator: others' and own */
    int n_queue, cap_queue;
    struct pending *mine; /* submitted here, not ordered yet */
    int n_mine, cap_mine;
    uint32_t last_seq; /* given to one of ours */
    struct ordered {
        int node;
        uint32_t seq;
    } * ordered; /* last seq ordered, by node ascending; absent: 0 */
    int n_ordered, cap_ordered;
};

void events_free(struct events *e);
/* Submitted by self, which is this member. Returns its number, or 0: out of memory. */
uint32_t events_submit(struct events *e, int self, const struct view_event *event);
/* Into the queue, if it is the next one that is not known of its node. False: it is not, or there is no memory. */
bool events_enqueue(struct events *e, const struct pending *p);
/* Those of ours that are not in the queue. */
void events_enqueue_mine(struct events *e, int self);
/* Ordered: is in the log. False: out of memory. */
bool events_set_ordered(struct events *e, int node, uint32_t seq);
/* Number of the last event of that node that was ordered, or is in the queue. */
uint32_t events_last_known(const struct events *e, int node);
/* Drops what was ordered, and of the queue what comes from these. */
void events_drop(struct events *e, int self, const struct idset *gone);
#endif
