/* Replicas for test_partner_deaths.c: each runs the program and does its part as runtime/client/replica/partner.h says,
 * with memory of its own, and messages that take any time. */
#ifndef KEEL_TEST_PARTNER_PROCESS_H
#define KEEL_TEST_PARTNER_PROCESS_H

#include <stddef.h>

#include "runtime/base/rng.h"
#include "runtime/client/replica/kept.h"
#include "runtime/client/replica/partner.h"
#include "tests/unit/data/partner_program.h"

enum { PUTS = KEPT_PUTS, NAMED = KEPT_NAMED, WAYS }; /* one overtakes the other */
enum { SETS = 3, LIMIT = 5 * sizeof(uint64_t), QUEUE = 128 };

struct write {
    enum what what;
    int target, word;
    uint64_t value, number; /* number: its name, with the rank; 0: it may be done again */
};

struct queue { /* in order */
    struct write write[QUEUE];
    size_t first, end;
};

struct words {
    unsigned complete[QUEUE];
    size_t first, end;
};

enum state { READY, FENCES, MEETS, ASKS, DONE };

struct process {
    struct sim *sim;
    int rank, set;
    bool dead;
    unsigned lives[RANKS]; /* as it was told */
    struct partner partner;
    struct partner_interval interval;
    enum state state;
    int phase, at;
    bool met;        /* and has done nothing since */
    uint64_t hash;   /* of all that it has read */
    uint64_t number; /* names given */
    unsigned owed;   /* sets in which names of what is kept follow when all that was put is there */
    unsigned fenced; /* sets in which it waits for its writes, before it comes to a meeting */
    unsigned taking; /* at a meeting: sets that are taken over */
    unsigned asked;  /* sets for an answer */
    struct kept kept;
    struct write last_write; /* an exchange may be asked for elsewhere */
    uint64_t word[WORDS];
    uint64_t last[RANKS], result[RANKS]; /* what was executed here, of each rank */
    struct queue out[WAYS][SETS][RANKS];
    struct words words[SETS];
};

struct sim {
    struct rng rng;
    uint64_t program;
    int sets;
    uint64_t ticks;
    struct process process[SETS][RANKS];
};

void sim_init(struct sim *s, uint64_t program, uint64_t seed, int sets);
void sim_fini(struct sim *s);

/* If it can. */
void process_step(struct process *p);
/* The next that it has under way to that part arrives, if any does; what it says to the replica in that set. */
void process_delivers(struct process *p, int way, int set, int target);
void process_delivers_word(struct process *p, int set);
/* Of what it has under way some arrives, in order. */
void process_dies(struct process *p);
/* That `dead` is. Nobody is told while something that it has sent is under way. */
void process_is_told(struct process *p, struct process *dead);
#endif
