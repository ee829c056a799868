/* Who is a member, who is dead, and whom this member believes dead. */
#ifndef KEEL_DETECT_ROSTER_H
#define KEEL_DETECT_ROSTER_H

#include "detect/datagram.h"
#include "detect/idset.h"

struct roster {
    int next_id;           /* the ids from here on are unborn */
    struct idset gone;     /* declared dead up to our epoch, or unborn: all others are the view */
    struct idset dead;     /* these, or believed dead here */
    struct idset positive; /* of these: certain */
    struct idset seen;     /* ever heard of; */
    bool all_seen;         /* all in the view were */
};

/* Deaths that are believed, and not yet declared. */
struct verdicts {
    struct death *deaths; /* by node, ascending */
    int n, cap;
    int n_uncertain;           /* of these */
    uint64_t undeclared_since; /* that nobody proposes them */
};
#endif
