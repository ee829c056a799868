/* What the files of waits.h have in common: waits.c keeps reports and says when, waits_why.c finds reasons,
 * waits_text.c says them. */
#ifndef KEEL_PM_WAITS_PARTS_H
#define KEEL_PM_WAITS_PARTS_H

#include "pm/wire/waits.h"

#define WAITS_SECOND UINT64_C(1000000000)
#define WAITS_DOUBT_NS UINT64_C(1500000000) /* who waits for a node that does not answer has said so by then */

struct why {
    enum waits_why why;
    int a, b;
    bool view; /* SILENT: a view waits for it */
    bool own;  /* HOLDER: another thread of who waits */
};

/* The node that runs it, -1: none. */
static inline int waits_node_of(const struct waits *w, int rank)
{
    return rank >= 0 && rank < w->ranks ? w->rank_node[rank] : -1;
}

/* What the wait is for in the end. A ring has one name: its lowest rank. */
struct why waits_find_why(const struct waits *w, const struct waits_entry *e);

/* A line about those that wait for this, and that it is over. */
void waits_tell(struct waits *w, struct waits_reason *r, uint64_t now);
void waits_tell_end(const struct waits *w, const struct waits_reason *r);
/* A node that does not answer, for itself: nobody waits for it, as far as is known, or who does was told with what was
 * known then. Returns when to look again. */
uint64_t waits_tell_alone(struct waits *w, int node, uint64_t now);
#endif
