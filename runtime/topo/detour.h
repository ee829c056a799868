/* Paths around broken cables: the policy of FT-routing (Zarza, Lugones, Franco, Luque), sections 2, 2.1 and 2.2.
 *
 * A source keeps, per destination, a list of multi-step paths: static minimal routes (fabric.h) to a few intermediate
 * routers and on to the destination. It learns from what comes back: a message was acknowledged with a latency, a
 * router met a broken cable on its way, or nothing was heard. Each next message gets a path:
 *
 *     fault notified  --> the cable's counter goes up; at `threshold` the fault is permanent
 *     acknowledged    --> every cable of that path is cleared; the path's latency estimate moves
 *     nothing heard   --> the path's estimate doubles; after `silence_limit` in a row it rests for `silence_hold_ns`
 *     choose          --> the original path unless a permanent fault is on it; else alternatives; when waiting grows
 *                         beyond grow_wait_ns per hop further paths are opened, and closed below shrink_wait_ns;
 *                         with several, a path's probability is proportional to 1 / latency
 *
 * Pure: no clock, no I/O, no threads; `now` and random numbers are arguments. `now` may begin anywhere, differ between
 * sources, stand still and leap ahead, but not go back. A struct detour is scratch space for one
 * thread; a struct detour_source belongs to one source. Memory: detour is linear in the links; a source holds at most
 * max_faults faults and `cache` destinations, and nothing at all for destinations whose original path works and is not
 * crowded.
 *
 * Differs from the paper: nothing in it says how candidates at the same distance are ordered (here: by hops, then by
 * router number), or what a source does when every path it knows of is cut (here: it sends on the original path, so
 * that the routers decide). `forget`, `tell`, `shortest` and `spread` are improvements over the paper, off in
 * detour_config_paper and on in detour_config_plus. */
#ifndef KEEL_TOPO_DETOUR_H
#define KEEL_TOPO_DETOUR_H
#include "runtime/base/rng.h"
#include "runtime/topo/demand.h"
#include "runtime/topo/detour_faults.h"
#include "runtime/topo/flow.h"

enum { DETOUR_MAX_PATHS = 8 }; /* the original path and 7 alternatives */

struct detour_config {
    uint32_t threshold;    /* notifications that make a fault permanent, at least 1 */
    int max_paths;         /* 1..DETOUR_MAX_PATHS, the original one included */
    int max_distance;      /* candidates up to this many hops from source, destination or the router at the fault */
    uint32_t hop_ns;       /* latency of a hop without load */
    uint32_t grow_wait_ns; /* mean waiting per hop above which one more path is opened */
    uint32_t shrink_wait_ns;
    uint64_t settle_ns;     /* least time between two changes of the number of paths */
    uint32_t silence_limit; /* messages in a row without an answer that put a path to rest */
    uint64_t silence_hold_ns;
    uint32_t max_faults; /* per source, 1 to INT32_MAX */
    uint32_t cache;      /* destinations remembered per source */
    /* Improvements over the paper */
    bool forget; /* avoid a cable from its first notification, and try it again with one message when it is as likely to
                  * work as not: after as long as it has been out already, that being from retry_ns to retry_max_ns, or
                  * up to 16 times as long where that is turns_ns and more (sources take turns) */
    uint64_t retry_ns, retry_max_ns, turns_ns;
    uint64_t flight_ns;  /* how long news may have been on their way without who hears them knowing: as much is added to
                          * their ages */
    uint64_t tell_ns;    /* shorter outages are over before others have heard of them */
    uint32_t tell_times; /* news are passed on that often (1 to 255), then with every so many-th message only */
    uint64_t
        lasting_ns; /* longer ones are remembered until a message came through (or for 2 * retry_max_ns and more) */
    bool tell;      /* acknowledgements pass on what their sender knows: detour_recall and detour_told */
    bool shortest;  /* rank candidates by their hops and draw among the best, instead of nearest first */
    bool spread;    /* open all max_paths where the original path is cut, one more with every message */
    int sharpness;  /* a path's probability is proportional to 1 / latency to this power, 1..16; the paper's is 1 */
    /* take the cheapest way (flow.h) as the traffic is expected around the faults that have been out for
     * lasting_ns and were first found at least plan_after_ns ago, as others have heard of them by then:
     * where the original path is cut; where everybody sends to one other by a map of coordinates
     * (demand.h), or the pairs are at most plan_pairs and a link is expected to be busy, for all. Sources
     * that know the same expect the same. Each looks every plan_look_ns; at most one new expectation is
     * made every plan_every_ns, as it takes time, and one that another source has use for, too
     * (detour_compare), unless it is as old as plan_after_ns; until then a source keeps the one it has, or expects what
     * uniform traffic does without faults. Only in grids of one or two dimensions, and while a pattern is seen. */
    bool plan;
    uint64_t plan_after_ns, plan_look_ns, plan_every_ns;
    size_t plan_pairs;
    struct flow_traffic traffic;
    struct flow_plan expect; /* how the traffic is expected; avoid and routes do not count */
};

/* A working set of values for links of 1 Gbps and packets of about 1 kB; the paper gives none of them. */
struct detour_config detour_config_paper(void);
/* The same with every improvement but `plan`. */
struct detour_config detour_config_plus(void);
/* All of them. The caller sets `traffic`. */
struct detour_config detour_config_plan(void);

struct detour_route {
    struct detour_path path;
    uint16_t hops;
    bool tried;          /* latency_ns is measured, not assumed */
    bool fresh;          /* measured since the number of open paths last changed */
    uint32_t silent;     /* messages in a row without an answer */
    uint64_t rest_until; /* no message before that */
    double latency_ns;   /* estimate: smoothed latency of the head of a message */
};

/* Which destination an entry of a source's list is about, kept apart from it because it is looked for most often. */
struct detour_key {
    int32_t dest;  /* endpoint */
    uint64_t used; /* the source's count of choices at the last use, for replacement */
};

/* One destination's paths; route[0] is the original one. */
struct detour_metapath {
    int32_t dest; /* endpoint */
    int open;     /* how many paths traffic is spread over */
    int nroutes;
    uint32_t version; /* of the faults, and of the view, when the routes were last checked */
    uint32_t view;
    uint64_t changed_ns;
    struct detour_route route[DETOUR_MAX_PATHS];
};

struct detour_source {
    int32_t endpoint;
    struct detour_faults faults;
    struct detour_key *key;        /* [npaths] */
    struct detour_metapath *paths; /* [npaths] */
    uint32_t npaths, cap;
    uint64_t choices;
    uint32_t turn, turn_latest; /* where detour_recall goes on */
    uint32_t recalls;           /* its calls for some */
    struct demand *demand;      /* what it sees of the traffic; NULL before its first message, and without `plan` */
    uint64_t scene, scene_ns;   /* what it plans for, faults and pattern, and since when; when it looks again */
    uint64_t look_ns;
    uint64_t confirmed; /* the scene that another source has, too */
    uint64_t planned;   /* the scene of the plan it uses */
    uint32_t pattern, planned_pattern;
};

/* What is expected of a scene. */
struct detour_plan {
    bool made;
    uint64_t scene;
    uint32_t pattern;
    uint64_t used;
    struct flow flow;           /* prices */
    struct detour_path *routes; /* of [endpoint] under a map, of [from * endpoints + dest] of few pairs, or NULL */
};

struct detour {
    const struct fabric *fabric; /* not owned */
    struct detour_config config;
    uint8_t *avoid;  /* [link] how many reasons there are not to use it: dead routers, and faults during a search */
    uint8_t *dead;   /* [router] */
    uint32_t view;   /* counts changes of it */
    uint32_t *stamp; /* [router] scratch of breadth-first walks */
    int32_t *queue, *parent;
    uint32_t round;
    struct detour_fault *scene; /* [max_faults] scratch: the faults a source plans for */
    struct detour_plan *plan;   /* [nplans] made up to now, at most plans */
    int nplans, plans;
    uint64_t planning, plan_next_ns;
};

/* returns false when memory is out or a value of config is out of range. */
bool detour_init(struct detour *d, const struct fabric *fabric, const struct detour_config *config);
void detour_fini(struct detour *d);
void detour_source_init(struct detour_source *s, int32_t endpoint);
void detour_source_fini(struct detour_source *s);
/* Membership: no path leads over a router that is not alive, nor is one sought to it. All are alive at first. */
void detour_alive(struct detour *d, int32_t router, bool alive);

/* The path of the next message from s to the endpoint dest.
 * returns  false when every path is cut by what s knows, or rests; *path is then the original one. */
bool detour_choose(struct detour *d, struct detour_source *s, int32_t dest, uint64_t now, struct rng *rng,
                   struct detour_path *path);

/* The source sends a message of its own traffic to dest: what it expects of the others begins with what it does itself.
 * Nothing without `plan`. */
void detour_sent(struct detour *d, struct detour_source *s, int32_t dest);

/* A message of this path arrived; its head took latency_ns from leaving the source, waiting included. */
void detour_acked(struct detour *d, struct detour_source *s, int32_t dest, const struct detour_path *path,
                  uint64_t latency_ns, uint64_t now);
/* A router found this cable broken, out_ns after it went out (0: not known). */
void detour_faulted(struct detour *d, struct detour_source *s, int32_t cable, uint64_t out_ns, uint64_t now);
/* What one endpoint says to another about a cable: that it was found broken, or that it works again. Ages, as clocks
 * differ; the receiver adds what it knows of the time on the way, and flight_ns must be no less than the rest: else
 * what is said again and again stays new, and what was found broken once is left alone for ever. */
struct detour_news {
    int32_t cable;
    bool works;
    uint64_t out_ns;   /* how long it had been out when that was seen */
    uint64_t age_ns;   /* how long ago that was */
    uint64_t known_ns; /* how long ago somebody first found it broken, that time */
};
/* Makes no fault permanent by itself. Whatever the news say, a cable is left alone for a bounded time, and what is no
 * cable of the network is ignored. */
void detour_told(struct detour *d, struct detour_source *s, const struct detour_news *news, uint64_t now);
/* Up to max things to pass on: half of them the latest, the others in turn over calls. Only what changes another's
 * choice is passed on: outages of tell_ns and more, broken ones for as long as they are likely to last, ended ones for
 * as long as others may still avoid them; and unless `all`, with most calls only what has been passed on less than
 * tell_times, as news that ride on each message are traffic, too. With `all` and `plan` outages of lasting_ns and more,
 * ended ones too, for as long as they are remembered, as a plan is for the faults that everybody knows. What can change
 * nobody's choice any more is dropped.
 * returns how many. */
int detour_recall(struct detour *d, struct detour_source *s, uint64_t now, bool all, int max, struct detour_news *news);
/* Where somebody sends to: returns whether that was new. And up to max such things to pass on: returns how many.
 * Nothing without `plan`. */
bool detour_told_flow(struct detour *d, struct detour_source *s, const struct demand_flow *flow);
int detour_recall_flows(struct detour *d, struct detour_source *s, int max, struct demand_flow *flow);
/* What sources compare when they talk: equal numbers, equal knowledge. */
struct detour_digest {
    uint64_t faults; /* lasting ones */
    uint64_t scene;  /* what it plans for */
};
struct detour_digest detour_digest(const struct detour_source *s);
/* Another source has this digest: whoever plans for the same confirms that it is worth a plan.
 * returns whether both know different faults. */
bool detour_compare(struct detour_source *s, const struct detour_digest *other);
/* Neither of both came back in the caller's time limit: the signal of a system whose nodes are their own routers. The
 * only cable of a path that can break is taken for broken at once; of several each comes under suspicion, and is taken
 * for broken after silence_limit silences without a message that came through. */
void detour_silent(struct detour *d, struct detour_source *s, int32_t dest, const struct detour_path *path,
                   uint64_t now);

/* The way on from a router that met a broken cable, to the home of the endpoint dest, avoiding every cable of
 * known[0..n-1]: intermediates by distance from that router first, then any path. returns  false when these cables cut
 * the router off from the destination. */
bool detour_escape(struct detour *d, int32_t at, int32_t dest, const int32_t *known, int n, struct rng *rng,
                   struct detour_path *path);

/* What a message carries where nodes relay: broken cables it has met, nodes that have held it, and of these the trail
 * from where it began to where it is: without the holder, and without those that sent it back. Where there is little
 * room cables that do not end at the holder may be left out: what is lost is time. None is named twice; numbers that
 * the network does not have are ignored. */
struct detour_met {
    const int32_t *cable, *node, *trail;
    int ncables, nnodes, ntrail;
};
enum detour_relayed {
    /* the caller lets the message forget, waits for a random time (else in step with what flaps), asks again */
    DETOUR_NO_WAY,
    DETOUR_ON,   /* to a node that has not held it; the holder goes to the end of the trail */
    DETOUR_BACK, /* to the last of the trail, who is taken from it */
};
/* The way on from the home of s by what the message carries and what s knows: a depth-first search. Cables that s takes
 * for broken are used only where there is no way without, those that are due to be tried first, and never those that
 * the message itself has met; a node that has held it is given it again only by one that it gave it to and that knows
 * no way on. So between two beginnings a message makes at most 2 * (nodes - 1) hops, whatever breaks or comes back, and
 * those who know different things do not send it to and fro. */
enum detour_relayed detour_relay(struct detour *d, const struct detour_source *s, int32_t dest,
                                 const struct detour_met *met, uint64_t now, struct rng *rng, struct detour_path *path);
#endif
