/* What happened, as the agents order it: an entry of a view change. The detector orders events and delivers each to
 * every member that lives, in one order (detect/member.h); the view applies them (runtime/view/view.h). Both know the
 * two types below, which the detector makes; types from VIEW_EVENT_FIRST on are of view.h, where their operands are
 * said, and opaque to the detector. */
#ifndef KEEL_BASE_VIEW_EVENT_H
#define KEEL_BASE_VIEW_EVENT_H

#include <stdint.h>

enum {
    VIEW_NODE_DEAD = 1, /* a node, b evidence (detect/member.h), c the node that found it, or one that died with it */
    VIEW_NODE_BORN =
        2, /* a node, b incarnation, c 1 + the id of the node whose domains it has, as it is where that one was: itself
            * before, or one that it takes the place of; 0: none. d 1 + the place of the grid that it takes, and no
            * other; 0: that of c, or else the first where nobody lives */
    VIEW_EVENT_FIRST = 16,
};

struct view_event {
    uint32_t type;
    uint32_t a, b, c;
    uint64_t d;
};
#endif
