/* The public API of Keel for ranks that are threads of one process and take turns: for tests of programs, not a
 * runtime.
 *
 * At every call the turn goes to a rank drawn from the seed, so one seed is one interleaving, and calls take effect one
 * by one. A rank can be made to die in its n-th call, before the call's effect, after it, or (a put) half-way; from
 * then on its calls return KEEL_ERR_AGENT_GONE, so that the program under test unwinds and frees its memory. A dead
 * rank can be given a successor, which starts the program again as a restarted rank.
 *
 * Segments and pools live as long as the model: data survives any rank, as with shadow copies. Tasks count once. The
 * rules of the contract that the model can see are checked: same collective on all ranks, deterministic tasks, no
 * hang. */
#ifndef KEEL_TESTS_SCF_KEEL_MODEL_H
#define KEEL_TESTS_SCF_KEEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_RANKS = 8, MODEL_DEATHS = 8 };

struct model_death {
    int rank;
    uint64_t call;   /* the rank's n-th call from 1; a successor counts anew */
    int incarnation; /* 0: the first process of the rank, 1: its successor ... */
    bool after;      /* the call still takes effect */
    bool substitute; /* give the rank a successor */
    int delay;       /* turns until the successor starts */
};

struct model_config {
    int ranks;
    uint64_t seed;
    int ndeaths;
    struct model_death deaths[MODEL_DEATHS];
    /* What a rank runs; its return value is kept. user is the same for all. */
    int (*program)(void *user, int rank, int incarnation);
    void *user;
};

struct model_outcome {
    int returned[MODEL_RANKS];   /* by the last process of each rank that did not die; -1 if there is none */
    uint64_t calls[MODEL_RANKS]; /* made by the first process of each rank */
    uint64_t collectives;        /* completed */
    int deaths;                  /* that happened */
    int abort_code;              /* of keel_abort, 0 if nobody called it */
    char abort_message[512];
    char events[64][32]; /* names of keel_event calls */
    int nevents;
};

/* Runs the job to its end. Returns NULL, or what broke the contract (static storage). */
const char *model_run(const struct model_config *config, struct model_outcome *out);

#endif
