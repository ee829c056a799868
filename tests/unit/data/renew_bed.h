/* A program that keeps, in two or three sets that begin anew when they have lost a process: the processes of all sets,
 * what is under way between them, and the views, which each of them hears of in its own time. */
#ifndef KEEL_TEST_RENEW_BED_H
#define KEEL_TEST_RENEW_BED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/rng.h"
#include "runtime/client/replica/renew.h"
#include "runtime/view/view.h"

enum {
    RANKS = 3,
    SETS = REPLICAS_MAX,
    NATIVES = RANKS * SETS,
    SPARES = 6,
    STEPS = 120, /* the first ones see deaths, and the others have time enough for sets to be whole again */
    VIEWS = 400,
    WORDS = 3, /* of a rank: what it computes with, and what its neighbour reads in even and odd steps */
    QUEUE = 128,
    EVENTS = 64
};

/* Between replicas of a rank. */
enum { SUM, ANSWER, WAITS, TOLD, KINDS };
struct word {
    int kind;
    uint32_t life; /* of the sender: attempt of its set */
    uint64_t number, value[REPLICAS_MAX];
};

struct facts {
    struct renew_set set[SETS];
    uint32_t life[NATIVES];
    bool dead[NATIVES];
};

enum phase {
    BEGINS,    /* a guest, up to keel_keep_restore */
    IS_GUEST,  /* it waits there */
    READS,     /* word after word */
    HAS_READ,  /* and says so to the other guests */
    AWAITS,    /* the view in which its set is whole */
    COMPUTES,  /* a step */
    MEETS,     /* commit: replicas compare, */
    ASKS,      /* take the answer of the one that decides, */
    MEETS_ALL, /* compare that, */
    GATHERS,   /* and all ranks of the set say it */
    HOSTS,     /* it stands still */
    DONE
};

struct process {
    struct bed *bed;
    int native, rank, set;
    uint32_t life;
    bool dead, hangs; /* before it is a guest */
    enum phase phase;
    bool said; /* in this phase */
    int view;  /* that it has heard of */
    uint64_t step, word[WORDS];
    uint32_t with[SETS]; /* lives that it goes on with; ALONE: none */
    struct word sum[SETS][2], answer[SETS][2];
    uint32_t waits[SETS];
    struct renew_waits who_waits;
    struct renew_host host;
    struct renew_guest guest;
    int reading; /* which word */
};
#define ALONE UINT32_MAX

/* What ranks of a set say to each other: complete when all have. */
struct gathered {
    unsigned who;
    uint64_t greatest[2 * REPLICAS_MAX];
    bool broken; /* who died had not said it to all */
};

struct bed {
    struct rng rng;
    int sets;
    struct replica_map map;
    struct view view;
    struct facts facts[VIEWS];
    int views;
    struct view_event event[EVENTS];
    int events;
    struct process process[NATIVES];
    struct word queue[NATIVES][NATIVES][QUEUE];
    int first[NATIVES][NATIVES], last[NATIVES][NATIVES];
    struct gathered step[SETS][STEPS + 1], guests[SETS][VIEWS];
    int joined, told_again; /* how often that has happened */
    uint64_t changed[SETS]; /* the step at which the set was lost, or has begun anew */
};

void bed_open(struct bed *b, uint64_t seed, int sets);
void bed_close(struct bed *b);
/* Something happens somewhere. */
void bed_tick(struct bed *b);
/* One process, or a node, dies: of those without which a set is left that is whole. */
void bed_one_dies(struct bed *b, bool with_its_node);
/* What the rank has computed in the end, alone. */
uint64_t bed_expected(int rank);

/* ---- between the bed and its processes (renew_process.c) ---- */

void process_begin(struct process *p, struct bed *b, int native, uint32_t life, bool guest);
void process_step(struct process *p);
void process_takes(struct process *p, int from_set, const struct word *w);
void bed_submit(struct bed *b, const struct view_event *e);
void bed_send(struct bed *b, int from, int to, const struct word *w);
#endif
