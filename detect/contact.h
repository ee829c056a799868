/* This member's own contact with the others: was it away, and does it still hear a quorum? */
#ifndef KEEL_DETECT_CONTACT_H
#define KEEL_DETECT_CONTACT_H

#include "detect/idset.h"
#include "detect/member.h"

/* Do we still hear a majority? Pings everybody until it is clear. */
struct contact_check {
    bool active;
    int next;
    uint64_t start, end, next_ping;
    uint64_t gap;       /* between pings, longer with each time that all were asked */
    uint64_t passed_at; /* it was clear that we hear a quorum */
    struct idset heard;
    struct idset hosts; /* of whose hosts we have heard; emptied now and then */
};

struct contact {
    struct contact_check check;
    bool cut_told;                        /* that we hear too few */
    uint64_t refused_since, refused_last; /* verdicts not passed, because no quorum would be left */
    uint64_t last_sign;                   /* of life of anybody: outer time */
    bool absent;                          /* there was none for nearly a limit: the others may have left us out */
    uint64_t absent_at;                   /* inner time at which that was last so */
};

void contact_note_absence(struct member *m);
/* began: when the question was asked that this answers, 0: none was, or not known. */
void contact_sign_of_life(struct member *m, int node, uint64_t began);
void contact_sign_of_life_relayed(struct member *m, int node);
void contact_no_quorum(struct member *m);
/* Do we hear a quorum? Asks everybody, if that is not being asked; if we do not, we end, some time after `end`. */
void contact_check_begin(struct member *m, uint64_t end);
bool contact_stays_admissible(struct member *m, int node, enum member_evidence evidence);
void contact_host(struct member *m, int node); /* its kernel has answered */
void contact_tick(struct member *m);
bool contact_has_seen(const struct member *m, int node);
void contact_note_seen(struct member *m, int node);
#endif
