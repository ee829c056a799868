/* Ballots and who leads. The states of a coordinator are drawn in agreement.c. */
#ifndef KEEL_DETECT_AGREEMENT_H
#define KEEL_DETECT_AGREEMENT_H

#include "detect/datagram.h"

struct agreement {
    uint64_t promised;     /* ballot: round << BALLOT_BITS | node */
    uint64_t seen_ballot;  /* highest heard of */
    bool leading;          /* promised is ours and a quorum gave us what it had accepted */
    bool collected;        /* and that was just now */
    bool newborn;          /* somebody was born since a quorum gave us its promise, and has given none */
    uint64_t next_collect; /* not before */
    int collect_attempts;
    bool bound; /* as coordinator: somebody had accepted, so the value of the next index is given */
    uint64_t bound_value;
};

int agreement_coordinator(const struct member *m);
void agreement_receive(struct member *m, const struct datagram *msg);
void agreement_pump(struct member *m);
void agreement_begin_anew(struct member *m);
void agreement_tick(struct member *m);
uint64_t agreement_deadline(const struct member *m);
void agreement_deaths_changed(struct member *m, bool own);
void agreement_wave_complete(struct member *m); /* root: everybody live has answered */
#endif
