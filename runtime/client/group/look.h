/* Which member of a call is stopped (SIGSTOP, a debugger)? A rank that waits for long has agents ask the kernel: how is
 * the process that the call waits for, and, since the one that is stopped may be waited for by others only, how are the
 * others, one after the other. Who is seen stopped by its agent is told to all nodes, on whose pages it stands then:
 * whoever waits asks about that one next, whatever the number of members. Pure. */
#ifndef KEEL_CLIENT_GROUP_LOOK_H
#define KEEL_CLIENT_GROUP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#define LOOK_NS (20ull * 1000 * 1000) /* an answer is looked for after so long */

struct look {
    int asked;   /* the member that was asked about last, at asked_at; -1: nobody */
    int stopped; /* the member whose process was seen to be stopped, first at stopped_since; -1: none */
    int turn;    /* members are asked about in turn */
    bool seen;   /* the answer to the last question */
    bool surely; /* asked about when the time was over, it was stopped */
    uint64_t asked_at, stopped_since;
    uint64_t next; /* look again; UINT64_MAX: when it is due */
};

/* What the page says of a member. */
struct look_member {
    bool lives;        /* and is another process */
    bool stopped;      /* when its process was last looked at, for whomever */
    uint64_t answered; /* the time of the last question of this node that was answered */
};
typedef struct look_member look_at_member(const void *user, int member);

void look_begin(struct look *l);
/* due: the call has waited for as long again as before. waits: for that member, -1: for none.
 * Result: the member to ask about now, of `members`, -1: none. Look again at l->next, too. */
int look_turn(struct look *l, int members, int waits, bool due, look_at_member *at, const void *user,
              uint64_t timeout_ns, uint64_t now);
/* It has been seen stopped for the time-out, the last time just now: l->stopped. */
bool look_found(const struct look *l);
/* It is not waited for any more; or anew from now on. */
void look_forget(struct look *l);
void look_again(struct look *l, uint64_t now);
#endif
