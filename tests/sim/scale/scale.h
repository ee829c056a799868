/* The membership core alone, in jobs of up to 100,000 nodes: how soon a failure is found and known, what it costs, and
 * whether anybody is declared dead who is well. One process, virtual time, one seed. Unlike tests/sim/world.h it keeps
 * nothing whose size is the square of the number of nodes.
 *
 * A message takes delay_ns and up to jitter_ns more, and is lost with probability `loss`. A heartbeat read and its
 * answer are one event; where one of the two is lost they are repeated after 20, 40, 80 ms as an RC queue pair does,
 * and then the read has failed.
 *
 * With `cores` the nodes share so many processors, first come first served: to take an event in costs `work_ns`, each
 * message that is sent because of it as much again. */
#ifndef KEEL_TESTS_SIM_SCALE_SCALE_H
#define KEEL_TESTS_SIM_SCALE_SCALE_H

#include "detect/member.h"
#include "runtime/base/rng.h"
#include "tests/sim/scale/wheel.h"

#define MS 1000000ull
#define SEC (1000 * MS)

struct plan {
    int n;
    uint64_t seed, end; /* end: of the run, from the start */
    uint64_t at;        /* of the failures */
    double loss, spike; /* spike: probability that a message is late by up to spike_ns */
    uint64_t spike_ns;
    int killed, off, frozen, starved; /* nodes, at `at`; starved ones for starve_ns */
    uint64_t starve_ns;
    double slow; /* part of the nodes that handle each event up to slow_ns late */
    uint64_t slow_ns;
    double cut; /* part of the nodes, the last ones, that is cut off from the others at `at`, for cut_ns */
    uint64_t cut_ns;
    int flapping;  /* links between neighbours that fail and come back all the time */
    bool together; /* the failed ones are neighbours */
    int submitted; /* nodes that submit an event each, at `at` */
    int cores;     /* shared by all nodes; 0: each has its own */
    uint64_t work_ns;
    int trace; /* what the node trace - 1 reports goes to stderr; 0: nobody */
    struct member_params params;
};

enum { SCALE_TYPES = 16 };
struct outcome {
    uint64_t events, messages, reads, suspicions;
    uint64_t by_type[SCALE_TYPES]; /* of the messages, enum datagram_type; the rest are knocks */
    uint64_t detected, known;      /* from `at`: the first verdict; the last live node's commit. 0: none */
    int failed, declared, wrong, halted, ordered; /* ordered: of the events submitted */
    bool consistent, agreed; /* one history; at the end all that run have its end, and the failed are out */
    bool ended;              /* nobody runs of the smaller part that was cut off for good */
    bool two_jobs;           /* two that ran had each other outside their views; only looked at with `cut` */
    size_t longest;          /* message, in bytes */
    size_t node_bytes;       /* of a core, at the end */
    double cpu_s;
};

/* False: out of memory. */
bool scale_run(const struct plan *plan, struct outcome *out);
#endif
