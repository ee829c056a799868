/* A simulated group: n members with an engine each, joined by a network that delays and reorders, under virtual time
 * and from one seed. Members call a list of collectives one after the other. Members die and freeze; views reach the
 * others later, each at its own time.
 *
 * Checked (a breach ends the program with what repeats it):
 *   - nobody completes a call that a member that lives has not begun;
 *   - all who complete a call, those who die later included, get the same: status, members covered, agreed value;
 *   - the members covered are at least those who live at the end, and have all begun the call; for them the data are
 *     right;
 *   - an error is one that the failures explain;
 *   - all who live at the end have completed all calls;
 *   - who is through and leaves has returned what the others return: the status, and where the result is made from
 *     everybody's data the members
 *     covered. */
#ifndef KEEL_TESTS_SIM_COLL_WORLD_H
#define KEEL_TESTS_SIM_COLL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/engine.h"
#include "runtime/base/rng.h"

enum { COLL_CALLS_MAX = 8, COLL_FAULTS_MAX = 8, COLL_BUFFER_ALIGN = 16 };

struct coll_spec {
    enum engine_kind kind;
    enum meet_shape shape;
    enum engine_agree agree;
    enum schedule_kind move;
    int algorithm; /* + 1, 0: chosen */
    int root;
    int count;                                     /* elements of the vector, or of a block */
    bool varying, in_place, user_op, async, early; /* async: sends complete later */
    enum element_op op;
    enum element_type type; /* INT64, or DOUBLE to compare bits */
};

struct coll_fault {
    /* LOSES: its connections break, with what is on the way. OUTCAST: it is declared dead and goes on without knowing,
     * after a freeze perhaps; those who know take nothing from it any more. PARTS: it leaves, as soon as it may,
     * without waiting for the call that it has begun. */
    enum { COLL_DIES, COLL_FREEZES, COLL_LOSES, COLL_OUTCAST, COLL_PARTS, COLL_REVOKES } kind;
    int member;
    uint64_t after;    /* so many events have happened */
    bool with_letters; /* DIES: what it has sent and is on its way is lost, too */
    uint64_t duration; /* FREEZES, ns */
};

struct coll_params {
    int n;
    uint64_t seed;
    uint64_t delay_ns, jitter_ns;  /* of messages */
    uint64_t detect_ns, spread_ns; /* from a death to the views that tell it */
    int start_dead;                /* so many are dead at the start, known to all */
    int unknown_dead; /* so many more are dead at the start, known to nobody; the views come detect_ns later */
    const int *node;
    int calls;
    struct coll_spec call[COLL_CALLS_MAX];
    int faults;
    struct coll_fault fault[COLL_FAULTS_MAX];
    uint64_t skew_ns; /* members begin up to so much later */
    bool ahead;       /* they begin calls before those before are complete */
    bool board;       /* they share memory, and try that first */
    uint64_t ack_ns;  /* so much later than it could who has sent something hears that it is there; */
    bool no_keep;     /* and nobody copies it meanwhile */
    bool leave;       /* who is through leaves the group, as soon as it may; views say so */
    const char *what; /* printed with a breach */
};

struct coll_stats {
    uint64_t events;          /* in all */
    uint64_t messages, bytes; /* sent */
    uint64_t most_messages;   /* of one member */
    uint64_t longest;         /* message */
    uint64_t end_ns;          /* when the last member completed its last call */
    uint64_t retries;         /* results that do not cover a member that was live at the start */
    uint64_t placed;          /* pieces of data that went where they belong at once */
    uint64_t boarded, left;   /* calls that a member has completed on the board; that it has left */
    uint64_t left_group;      /* members that were through, and left */
    uint64_t kept;            /* sends that ended because the call's data were copied */
    uint64_t arrived;         /* calls of which it was known that what was sent had arrived */
    double *sums;             /* [calls]: first element of the first member's result, if DOUBLE */
};

/* Runs it and checks everything. Prints and exits with 1 on a breach. */
void coll_world_run(const struct coll_params *p, struct coll_stats *stats);
#endif
