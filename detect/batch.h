/* What one entry of the log holds: the events that a view change brings. */
#ifndef KEEL_DETECT_BATCH_H
#define KEEL_DETECT_BATCH_H

#include "detect/member.h"

struct batch_entry {
    int node;     /* who submitted it; for VIEW_NODE_DEAD who found it */
    uint32_t seq; /* its number on that node; 0 for VIEW_NODE_DEAD */
    struct view_event event;
};
/* Where many have died at once an entry of deaths stands for several: bit i of d says that node a + 1 + i is dead, too,
 * and by the same evidence. Together a batch says no more than MEMBER_EVENTS_MAX things. */
struct batch {
    int n;
    struct batch_entry e[MEMBER_BATCH_MAX];
};
enum { BATCH_SPAN = 65 }; /* ids that one entry may stand for */
/* The least node above `after` that the event declares dead, or -1. From after = -1 on. */
int batch_next_death(const struct view_event *e, int after);
bool batch_declares(const struct batch *b, int node);
/* An event that came to nothing: a birth of a node that was not the next one. The runtime does not get it. */
enum { BATCH_VOID = 3 };
/* The birth in it, or NULL. */
const struct view_event *batch_birth(const struct batch *b);
/* As the runtime gets them, one for each death. Returns their number. */
int batch_events(const struct batch *b, struct view_event out[MEMBER_EVENTS_MAX]);
#endif
