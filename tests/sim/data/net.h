/* The simulated network, as a transport (runtime/net/transport.h). Each connection has delays and a bandwidth of
 * its own: in order inside one direction of a connection, any order between them. A remote write takes effect in
 * pieces, cut at arbitrary bytes, at different times. A connection that breaks, or whose end dies, loses what is on its
 * way, but may deliver the beginning of it. Between hosts that are cut apart everything waits, and what still has its
 * connection arrives after healing, however late. Accessing memory that is not registered tears the connection down.
 * Near connections (a rank and its agent: shared memory) are fast, lose nothing and never break. */
#ifndef KEEL_TESTS_SIM_DATA_NET_H
#define KEEL_TESTS_SIM_DATA_NET_H

#include "runtime/net/transport.h"
#include "tests/sim/data/sched.h"

enum { HOSTS_MAX = 20 };

struct sim_tp;

struct net {
    struct sched *sched;
    int hosts;
    /* Accesses take effect when they arrive (a card that does it alone), or when the target polls. */
    bool card;
    uint64_t delay_min, delay_max; /* of a connection */
    double slow;                   /* share of connections that are slow */
    double spike;                  /* share of items that come late */
    uint64_t spike_ns;
    unsigned pieces;               /* of one write, at most */
    int cut[HOSTS_MAX][HOSTS_MAX]; /* from, to: as often as it is cut */
    bool off[HOSTS_MAX];
    struct sim_tp *tps;
    uint64_t next_id;
    uint64_t items, breaks, bad_keys;
};

void net_init(struct net *n, struct sched *s, int hosts);
/* All that is left of it. */
void net_fini(struct net *n);
struct tp *net_open(struct net *n, struct process *owner, bool near);
/* The ends of a near connection. */
void net_pair(struct tp *agent, void *user, struct tp_ep **agent_ep, struct tp *rank, void *rank_user,
              struct tp_ep **rank_ep);
/* The owner was killed: its host ends its connections and refuses new ones. */
void net_owner_died(struct tp *base);
/* The host is gone without a word. Its processes are dead already. */
void net_host_off(struct net *n, int host);
/* One more (or one less) reason why nothing gets from one host to another. */
void net_cut(struct net *n, int from, int to, bool cut);
/* Connections between two hosts break, each with the probability. */
void net_break(struct net *n, int a, int b, double p);
/* Connections of agents of a host to ranks deliver nothing for so long in that direction, though both ends live, each
 * with the probability: a wake-up was lost, and the next one comes then. */
void net_stick(struct net *n, int host, double p, uint64_t ns);
/* Is there something to poll? */
bool net_has_work(const struct tp *tp);
uint64_t net_delay(struct net *n); /* of a datagram */
#endif
