/* A simulated machine: n nodes, each with a membership core, a barrier core and a small model of the runtime between
 * them, joined by a network that delays, loses, doubles and reorders, under virtual time and from one seed.
 *
 * Checked at every step (a breach ends the program with the seed):
 *   - every node commits the same events with the same value in the same epoch;
 *   - no two nodes that run have views that exclude each other;
 *   - nobody is declared dead who is well (the scenario says who may be);
 *   - each submitted event is ordered once, in its submitter's order;
 *   - an epoch is settled only when every live member has committed it;
 *   - links that come and go change no view, and are reported a bounded number of times;
 *   - ids are born in order and once, and who joins answers no phase and sends no vote before it is born;
 *   - a barrier opens only when every live participant has entered it, newly joined ones included.
 * Checked at the end: everybody has the same report of broken links (where the scenario watches them); those who run
 * are exactly the view of everybody who runs, all events are ordered, all epochs settled, and all participants have
 * come through all barriers. */
#ifndef KEEL_TESTS_SIM_WORLD_H
#define KEEL_TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/barrier.h"
#include "detect/member.h"
#include "runtime/base/rng.h"

#define MS 1000000ull
#define SEC (1000 * MS)

struct net {
    double loss, duplicate, slow; /* probabilities; slow: delayed by up to slow_ns */
    uint64_t delay_ns, jitter_ns, slow_ns;
};

struct action {
    uint64_t at;
    enum {
        ACT_KILL,
        ACT_POWER_OFF,
        ACT_FREEZE,
        ACT_CUT,
        ACT_HEAL,
        ACT_LINK_DOWN,
        ACT_LINK_UP,
        ACT_HANG,
        ACT_ONE_WAY,
        ACT_LINK_MEND,
        ACT_JOIN
    } kind;
    int node, peer;
    uint64_t duration; /* freeze; peer: how */
};

/* The whole machine; the agent for want of a processor, or by a signal, as its witness says. */
enum { FREEZE_HOST, FREEZE_STARVED, FREEZE_AGENT, FREEZES };
enum { ACTIONS_MAX = 400, LINKS_MAX = 16 };
struct scenario {
    const char *name;
    int n, spares; /* n: ids, of which the last ones are unborn at the start: */
    int joiners;
    uint64_t seed;
    struct net net;
    struct action actions[ACTIONS_MAX];
    int n_actions;
    int submitters;             /* nodes that submit events all the time */
    uint64_t barriers;          /* each participant goes through so many */
    uint64_t end;               /* last action and load are before; then time to settle */
    int waited, costly;         /* all wait for this node all the time; its death would cost data; -1 */
    bool quiet;                 /* nobody is to be declared dead, nor to end */
    uint64_t commit_not_before; /* after the first action */
    uint64_t told_before;       /* who ends for want of others said so long before that it is cut off */
    bool may_lose_quorum;       /* everybody may halt */
    bool no_views;              /* none may change */
    bool whole;                 /* no link is broken, and none is to be called so */
    bool links_told;            /* at the end everybody knows exactly the links that are down */
    int link_words;             /* at most so many reports of links at each node (0: not checked) */
    uint64_t commit_within;     /* of the first action, on every running node (0: not checked) */
    struct member_params params;
    bool verbose, measure; /* measure: one line of figures at the end */
};

struct event {
    uint64_t t, order;
    enum event_kind {
        EV_TICK,
        EV_DATAGRAM,
        EV_READ,
        EV_READ_DONE,
        EV_BROKEN,
        EV_PROBE,
        EV_REFUSED,
        EV_KERNEL,
        EV_BARRIER,
        EV_PREPARED,
        EV_ENTER,
        EV_SUBMIT,
        EV_ACTION,
        EV_BARRIER_TICK
    } kind;
    int node, from;
    uint32_t len;
    uint64_t value;
    uint8_t *data;
};

struct simnode {
    int id;
    struct world *w;
    struct member *m;
    struct barrier *b;
    int how;                                       /* frozen */
    bool dead, off, frozen, hung, halted, tainted; /* tainted: frozen, cut, ...: others may rightly declare it dead */
    uint32_t born;                                 /* ids, in its log */
    uint64_t birth;                                /* epoch of its own */
    bool dead_known;
    int link_words;
    uint64_t cut_off_at; /* said so, 0: not */
    int side;            /* partition */
    uint64_t frozen_since, thaw_at, hang_since;
    uint64_t tick_at, barrier_tick_at;
    uint64_t entered;   /* barriers entered */
    uint64_t join_base; /* barriers that were complete when its part began */
    bool participant;
    uint64_t *participants;
    uint32_t submitted, *ordered; /* ordered[n]: last seq by submitter in this node's log */
    uint64_t *watchers;
    uint64_t *fenced; /* nothing is taken from these any more */
};

struct decision {
    int n;
    uint64_t max_value;
    struct view_event events[MEMBER_EVENTS_MAX];
};

struct world {
    struct scenario sc;
    struct rng rng;
    uint64_t now, order;
    struct event *heap;
    int n_heap, cap_heap;
    struct simnode *nodes;
    struct decision *history; /* of epoch i+1 */
    uint64_t n_history, cap_history;
    struct {
        int a, b;
        bool one_way; /* only what a sends to b is lost */
    } links_down[LINKS_MAX];
    int n_links_down, n_cut;
    uint64_t events, datagrams, first_action, last_commit, last_barrier, target;
};

/* Runs it; true if everything held. Prints the breach and the scenario's seed otherwise. */
bool world_run(const struct scenario *sc);

/* inside */
void sim_fail(struct world *w, int node, const char *fmt, ...) __attribute__((noreturn, format(printf, 3, 4)));
struct event *world_push(struct world *w, uint64_t t, enum event_kind kind, int node, int from);
bool world_path(const struct world *w, int a, int b);
void world_send(struct world *w, enum event_kind kind, int from, int to, const void *data, size_t len);
uint64_t world_delay(struct world *w);
void world_exit(struct world *w, struct simnode *s); /* the process ends: connections break */
size_t node_init(struct world *w, int id);           /* bytes that its membership core takes */
void node_fini(struct simnode *s);
void node_event(struct simnode *s, const struct event *e);
void node_sync(struct simnode *s); /* after any call into its cores: its next tick */
void world_check_end(struct world *w);
void world_check_settled(struct world *w, const struct simnode *s, uint64_t epoch);
void world_check_commit(struct world *w, struct simnode *s, uint64_t epoch, const struct view_event *events, int n,
                        uint64_t max_value);
void world_check_barrier(struct world *w, const struct simnode *s, uint64_t seq);
#endif
