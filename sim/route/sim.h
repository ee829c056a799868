/* Discrete-event simulator of a network of routers, for the study of routing around broken links (FT-routing section
 * 3).
 *
 * Router: one input buffer per link in, one output buffer per link out, both counted in slots of the largest packet; an
 * input buffer is organised by output, so a packet that waits does not hold up others behind it. Virtual cut-through: a
 * packet moves on as soon as its head is routed and the next input buffer has a free slot, otherwise it is kept whole;
 * with `store_forward` it moves on when its tail has arrived. Credits return without delay. Links carry one packet at a
 * time; acknowledgements go before data, without interrupting a packet. A link that breaks still delivers the packet
 * that is on it. Endpoints take everything that arrives, and keep messages they cannot inject yet in memory.
 * One run is one thread; the same configuration gives the same result to the last bit. */
#ifndef KEEL_SIM_ROUTE_SIM_H
#define KEEL_SIM_ROUTE_SIM_H
#include "sim/route/outage.h"
#include "runtime/topo/detour.h"
#include "runtime/topo/flow.h"

#include <stdatomic.h>

enum { SIM_MAX_SIZES = 8, SIM_HIST_OCTAVES = 44, SIM_HIST_STEPS = 16, SIM_HOPS_MAX = 1024, SIM_BINS = 50 };

enum sim_pattern { SIM_UNIFORM, SIM_TRANSPOSE, SIM_COMPLEMENT, SIM_HOTSPOT, SIM_NEIGHBOR, SIM_PATTERNS };

/* dor      plain static routes: a message that meets a broken link is lost
 * single   the source changes to one alternative path when it is told of a fault; what meets a fault is lost
 * ft       the paper's method: escape at the router, notification, multi-step paths, counter of notifications
 * ft-perm  the same with every fault permanent at its first notification (the authors' earlier method)
 * ft-plus  ours: faults are forgotten by time, paths ranked by hops and spread, acknowledgements pass on known faults
 * ft-plan  ft-plus, and what has to go around lasting faults takes the way that the traffic expected leaves cheapest
 */
enum sim_method { SIM_DOR, SIM_SINGLE, SIM_FT, SIM_FT_PERM, SIM_FT_PLUS, SIM_FT_PLAN, SIM_METHODS };

struct sim_config {
    const struct fabric *fabric;
    enum sim_pattern pattern;
    enum sim_method method;
    struct detour_config detour; /* filled in by sim_method_apply */
    bool notify, escape;
    double link_gbps;
    uint32_t hop_ns;              /* head: router decision and wire */
    uint32_t buffer_bytes;        /* of one router: half for input, half for output */
    uint32_t size[SIM_MAX_SIZES]; /* bytes of packets, header included, drawn with equal probability */
    int nsizes;
    uint32_t ack_bytes;
    double rate_gbps; /* of every endpoint that sends */
    bool poisson;     /* times between messages: exponential instead of constant */
    bool store_forward;
    bool avoidance;       /* the deadlock avoidance queue and its rules */
    uint64_t stall_ns;    /* how long an output waits for a free slot before those rules act */
    uint64_t warmup_ns;   /* messages made before are not measured */
    uint64_t time_ns;     /* messages are made until then */
    uint64_t drain_ns;    /* time after that for those under way */
    uint64_t watchdog_ns; /* nothing moved for so long: the run is stuck */
    uint64_t seed;
    const struct outages *outages;    /* NULL: none */
    const struct detour_path *routes; /* [source * endpoints + destination] fixed ways; NULL: the policy chooses */
    uint32_t check_every;             /* events between two checks of every invariant; 0: never */
    uint64_t rumour_ns;               /* how often an endpoint tells a random other one what it knows; 0: never */
    const atomic_bool *stop;          /* NULL, or set from outside to end early */
    _Atomic uint32_t *permille;       /* NULL, or where progress is written */
};

struct sim_result {
    double latency_ns; /* mean from a message's making to its last byte's arrival, measured messages */
    double head_ns;    /* mean from leaving the source to the head's arrival */
    double hops;       /* mean, between routers */
    double p50_ns, p99_ns, max_ns;
    double offered_gbps;                                          /* per endpoint, in [warmup, time) */
    double accepted_gbps;                                         /* delivered per endpoint in [warmup, time) */
    uint64_t created, delivered, lost, undeliverable, unfinished; /* all messages */
    uint64_t measured;                                            /* messages the means are over */
    uint64_t hit;                                                 /* messages that met a broken link */
    uint64_t escapes;                                             /* escape paths taken, by messages */
    uint64_t ack_escapes;                                         /* the same, by acknowledgements and notifications */
    uint64_t fresh_starts;      /* times that a packet forgot the faults it knew, as they cut it off */
    uint64_t dropped_connected; /* packets given up at a router with a whole way to their destination: must be 0 */
    uint64_t multistep;         /* messages sent by a path other than the original */
    uint64_t acks, fault_acks, rumours;
    uint64_t exchanges, bypasses, swaps; /* actions of the deadlock avoidance rules */
    uint64_t knots;                      /* ticks at which a closed set of waiting ports was found */
    uint64_t deadlock_ns;                /* without avoidance: when it was found, else 0 */
    bool stuck;                          /* the watchdog found that nothing moves */
    bool stopped;                        /* ended early from outside */
    uint64_t end_ns;
    uint64_t events;
    uint64_t checks;          /* of every invariant */
    double seconds;           /* of this thread's processor time */
    uint32_t max_in, max_out; /* fullest buffers seen, slots */
    uint32_t cap_in, cap_out;
    uint32_t max_packets;             /* in memory at once */
    double link_max, link_mean;       /* share of time busy, links between routers */
    double lat_by_hops[SIM_HOPS_MAX]; /* sum of head latency by hops of the message, measured and met no fault */
    uint64_t n_by_hops[SIM_HOPS_MAX];
    double lat_by_time[SIM_BINS]; /* sum of latency of measured messages by the part of the run they were made in */
    uint64_t n_by_time[SIM_BINS];
};

/* The defaults of the paper where it gives them: 1 Gbps, 2 MB of router buffers. No fabric, no outages. */
struct sim_config sim_config_default(const struct fabric *fabric);
/* Set the method and what follows from it. */
void sim_method_apply(struct sim_config *c, enum sim_method method);
/* NULL, or a constant text that says what is wrong with it. */
const char *sim_config_wrong(const struct sim_config *c);

/* One run. link_busy, if not NULL, gets fabric_links() shares of time.
 * returns  NULL, or a constant text: out of memory, or a broken invariant (a bug). */
const char *sim_run(const struct sim_config *c, struct sim_result *result, float *link_busy);

/* The endpoint each one sends to (negative: none), for patterns with fixed ones; NULL for others, or when memory is
 * out. The caller frees it. */
int32_t *sim_partners(const struct fabric *f, enum sim_pattern pattern);
/* What the traffic of a configuration is to the price of a path. */
struct flow_traffic sim_flow_traffic(const struct sim_config *c);

const char *sim_pattern_name(enum sim_pattern p);
const char *sim_method_name(enum sim_method m);
/* -1 when there is no such name */
int sim_pattern_parse(const char *name);
int sim_method_parse(const char *name);
#endif
