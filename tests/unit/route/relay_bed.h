/* A pure bed for the path policy where nodes are their own routers: 8 to 64 nodes that hand messages on to each other,
 * while a share of the cables is cut at random, one way or both, and flaps. Whoever holds a message tries one hop; the
 * hop is done when its completion came back, else there is silence and the holder tries another way. Nothing but the
 * policy decides. Each node has a view, and may have a clock, of its own. The cables that work both ways always join
 * all nodes that are alive. */
#ifndef KEEL_TESTS_RELAY_BED_H
#define KEEL_TESTS_RELAY_BED_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/topo/detour.h"

enum {
    NODES_MAX = 64,
    ROUTERS_MAX = 4 * NODES_MAX,
    KNOWN = 2 * NODES_MAX,
    MESSAGES = 1000,
    COPIES = 4 * MESSAGES,
    NEWS_OLD = 64,
};
#define HOP_NS 10000ull
#define SILENCE_NS 1000000ull
#define END_NS 200000000ull

struct message {
    int id, at, dest, hops, nknown, nheld, ntrail, starts;
    uint64_t ready, begun;
    int32_t known[KNOWN], held[NODES_MAX], trail[NODES_MAX];
};

struct bed {
    int nodes;
    struct fabric f;
    int owner[ROUTERS_MAX]; /* [router] the node that it is, or hangs on */
    struct detour d[NODES_MAX];
    struct detour_source s[NODES_MAX];
    struct rng rng;
    uint8_t *cut; /* [link] this direction is cut */
    bool dead[NODES_MAX];
    uint64_t hears_ns[NODES_MAX][NODES_MAX]; /* when a node hears that another one left or came; 0: it has */
    uint64_t lag_ns;                         /* up to so much later */
    uint64_t begin_ns[NODES_MAX];
    double drift[NODES_MAX]; /* of a node's clock, which begins at begin_ns */
    bool unaware;            /* who hears something does not know how long it was on its way */
    struct message m[COPIES];
    uint64_t ready[COPIES]; /* of each, apart from it as it is looked at for each attempt */
    int n;
    bool delivered[MESSAGES];
    int arrived, silences, late_silences, hops, most_hops, starts, to_dead;
    uint64_t longest_ns;              /* from a message's beginning to its arrival */
    double share;                     /* of cables that flap() leaves cut */
    uint8_t *other;                   /* what a test cuts next time */
    struct detour_news old[NEWS_OLD]; /* what liars have heard, to be said again */
    int nold;
    bool lies;
};

/* All nodes joined to each other on every rail; `share` of the cables is cut. */
void bed_full(struct bed *b, int nodes, int rails, double share, uint64_t seed);
/* Any graph whose first routers are the nodes, and whose others hang on one of them by a firm link. */
void bed_graph(struct bed *b, int nodes, int routers, const struct fabric_edge *edge, int edges, double share,
               uint64_t seed);
void bed_fini(struct bed *b);

bool bed_works(const struct bed *b, int32_t link);
bool bed_is_joined(const struct bed *b);
int bed_broken_cables(const struct bed *b);
/* Cut a random cable, one way or both, or mend it; not where that takes the nodes apart. */
void bed_flap_for(struct bed *b, double share);
void bed_flap(struct bed *b);
/* A node leaves, or another one takes its number: the nodes hear of that, each at a time of its own up to lag_ns
 * later. */
void bed_view(struct bed *b, int node, bool alive, uint64_t now);
/* What a node's clock shows. */
uint64_t bed_clock(const struct bed *b, int node, uint64_t now);
/* News that leave at `now` and are a hop on their way. */
void bed_tell(struct bed *b, int from, int to, uint64_t now);
/* The first hop of a path: its cable as a link, and the path to the node at its end alone. */
int32_t bed_first_hop(const struct bed *b, int at, const struct detour_path *path, int dest, struct detour_path *hop);
/* Messages from and to the nodes from `first` on, while `step` is done every period. All must arrive. */
void bed_run(struct bed *b, int messages, int first, uint64_t period_ns, void (*step)(struct bed *b, uint64_t now));
/* What a schedule may cost: hops on average, and time from the begin of a message to its end. */
void bed_check_cost(const struct bed *b, const char *what, int i, double hops, double ms);
#endif
