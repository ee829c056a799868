/* Programs for test_partner_deaths.c: drawn from a number, the same for each set. They race for nothing, and what a
 * rank writes follows from all that it has read; so a byte that is read too early, too late or out of another interval
 * is in the result. */
#ifndef KEEL_TEST_PARTNER_PROGRAM_H
#define KEEL_TEST_PARTNER_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/client/replica/partner.h"
#include "runtime/client/replica/passing.h"

enum {
    RANKS = 3,
    SHARED = 4, /* words of a part that a phase gives to somebody */
    BOXES = SHARED,
    MAILS = BOXES + 2,
    PASSING = MAILS + RANKS, /* of collectives (passing.h) */
    ROUNDS = 2,
    WORDS = PASSING + ROUNDS + 2 * RANKS,
    PHASES = 4,
    STEPS = 6,
    MAIL = 5,
    COLLECTIVE = 2 + ROUNDS * (RANKS - 1 + 2) + RANKS,
    OPS = STEPS + MAIL + COLLECTIVE /* of a phase */
};

/* LOAD, STORE: of the rank's own part, without a call. WAIT: until the word of the own part says this phase. PASS: a
 * put of what lies at the same place in the own part. */
enum what { PUT, PASS, ADD, EXCHANGE, SIGNAL, GET, LOAD, STORE, WAIT, MEET, END, NOTHING };

struct op {
    enum what what;
    int target, word;
    bool in_collective; /* no meeting before it */
};

uint64_t mixed(uint64_t a, uint64_t b);
/* The rank's operation in a phase, `at` from 0 to OPS - 1. */
struct op op_at(uint64_t program, int phase, int rank, int at);
#endif
