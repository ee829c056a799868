/* Membership cores of some nodes in one process, in virtual time: each message takes a tenth of a millisecond,
 * processes may be killed, hosts switched off, single messages lost, single clocks go wrong. tests/sim has the many
 * seeds; this is for what is tried step by step.
 *
 * Checked all the time: who commits an epoch commits what the others did, with the same value; nobody is declared dead
 * who is well; of two that run neither is out of the other's view; a core that has ended does nothing any more. */
#ifndef KEEL_TESTS_UNIT_DETECT_CORES_H
#define KEEL_TESTS_UNIT_DETECT_CORES_H

#include "detect/member_internal.h"
#include "tests/sim/look.h"

#define MS 1000000ull

enum { CORES_MAX = 160 };

struct core {
    int id;
    struct member *m;
    bool killed, off, halted; /* killed: its kernel refuses connections; off: nothing answers */
    bool may_go;              /* others may declare it dead */
    const char *reason;       /* of its end */
    uint64_t commits, settled;
    uint32_t submitted, ordered; /* own events that the core took, and those in the log */
    uint64_t born_at;            /* epoch, of who joins */
    int64_t clock_off;           /* its clock is so far ahead of the time */
    uint64_t clock_stands;       /* at this time until it is 0 */
    int suspicions, verdicts;
};

struct cores {
    int n, joiners; /* joiners: the last ones of them, by `with` of cores_start */
    uint64_t now;
    struct core c[CORES_MAX];
    const struct core *running;      /* whose code runs now */
    bool lost[CORES_MAX][CORES_MAX]; /* all that the first sends to the second */
    /* Messages of the agreement, counted as they are sent: 1, 2, ... */
    long sent, lose, kill_at[2]; /* this one is lost; before this one goes out its sender ends */
    bool kill_off;               /* by losing its power */
    bool counts;                 /* from now on */
    uint64_t events;
};
extern struct cores cores;

/* Parameters may be changed by `with` before the core is made, NULL: the default. False: a core could not be made. */
bool cores_start(int n, void (*with)(struct member_params *p));
void cores_end(void);
void cores_pass(uint64_t ns);
void cores_kill(int node);
void cores_off(int node);
bool cores_submit(int node); /* false: not taken */
void cores_check(int node, int of);
bool cores_is_well(const struct core *c);
/* Those who run are one view, all events of theirs are ordered, all is settled. */
void cores_expect_one_view(void);
#endif
