/* Simulation of membership and barrier: `sim --scenario NAME --nodes N --seed S [--count C]`. One seed gives one run.
 * KEEL_SEED in the environment replaces --seed. Exit 0 if every property held. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

static struct rng *random_source;

static uint64_t upto(uint64_t n)
{
    return rng_below(random_source, n);
}

static struct action *add(struct scenario *sc, int kind, int node, uint64_t at)
{
    struct action *a = &sc->actions[sc->n_actions++];
    *a = (struct action){.at = at, .node = node};
    a->kind = kind;
    return a;
}

/* a victim not chosen yet, or -1 */
static int fresh_victim(const struct scenario *sc)
{
    for (int tries = 0; tries < 100; tries++) {
        int v = (int)upto((uint64_t)sc->n);
        bool used = false;
        for (int i = 0; i < sc->n_actions; i++)
            used |= sc->actions[i].node == v;
        if (!used)
            return v;
    }
    return -1;
}

static int at_most(int n, int limit)
{
    return n < limit ? n : limit;
}

/* One node is killed: everybody commits within 20 ms. */
static void kill_one(struct scenario *sc)
{
    add(sc, ACT_KILL, fresh_victim(sc), 500 * MS + upto(100 * MS));
    sc->commit_within = 20 * MS;
    sc->submitters = 0;
}

/* Any number of kills, at once or spread, with submissions going on. */
static void kill_many(struct scenario *sc)
{
    int kills = 1 + (int)upto((uint64_t)at_most(sc->n - 1, 12));
    uint64_t span = upto(3) ? upto(300 * MS) + 1 : 1;
    for (int i = 0; i < kills; i++) {
        int v = fresh_victim(sc);
        if (v >= 0)
            add(sc, ACT_KILL, v, 400 * MS + upto(span));
    }
}

/* One node's host is cut off, switched off or stands still for good: known 50 ms after the limit; or its agent alone is
 * stopped, starved or hung while it is waited for: the same with that limit; or nobody waits: never, or its death
 * would cost data: four limits. */
static void silent_one(struct scenario *sc)
{
    int v = fresh_victim(sc);
    static const int kinds[] = {ACT_POWER_OFF, ACT_FREEZE, ACT_CUT, ACT_HANG};
    int kind = kinds[upto(4)];
    struct action *a = add(sc, kind, v, 500 * MS + upto(100 * MS));
    a->peer = kind == ACT_FREEZE ? (int)upto(FREEZES) : 1;
    a->duration = 1000 * SEC;
    bool silent = kind != ACT_HANG && (kind != ACT_FREEZE || a->peer == FREEZE_HOST), costly = silent && !upto(3);
    if (upto(4))
        sc->waited = v;
    if (costly)
        sc->costly = v;
    if (sc->n == 2 && v == 0)
        sc->may_lose_quorum = true; /* of two the one with the lower id goes on */
    sc->submitters = 0;
    sc->barriers = sc->n > 2 ? sc->barriers : 0;
    if (sc->may_lose_quorum)
        return;
    if (!silent && sc->waited < 0) {
        sc->quiet = sc->no_views = true;
        sc->barriers = 0;
        return;
    }
    int times = costly ? 4 : sc->n == 2 ? 2 : 1;
    uint64_t limit = silent ? (uint64_t)times * sc->params.limit_ns : sc->params.stopped_ns;
    sc->commit_not_before = limit - 2 * sc->params.period_ns;
    sc->commit_within = limit + (silent ? 50 * MS : 200 * MS);
}

/* Less than half fall silent, others are killed meanwhile. */
static void silent_many(struct scenario *sc)
{
    int silent = 1 + (int)upto((uint64_t)at_most((sc->n - 1) / 2, 6));
    if (sc->n < 3)
        silent = 0;
    for (int i = 0; i < silent; i++) {
        int v = fresh_victim(sc);
        struct action *a = add(sc, upto(2) ? ACT_POWER_OFF : ACT_FREEZE, v, 400 * MS + upto(1500 * MS));
        a->duration = 2 * SEC + upto(2 * SEC);
    }
    int kills = (int)upto((uint64_t)at_most(sc->n / 3 + 1, 5));
    sc->may_lose_quorum = 2 * (silent + kills) >= sc->n;
    if (sc->may_lose_quorum)
        sc->end = 12 * SEC; /* those that thaw late, after others ended, need their time to end too */
    for (int i = 0; i < kills; i++)
        add(sc, ACT_KILL, fresh_victim(sc), 400 * MS + upto(1500 * MS));
}

/* Freezes shorter than the limit: nobody dies of it. */
static void freeze_short(struct scenario *sc)
{
    for (int i = 0; i < 1 + (int)upto((uint64_t)at_most(sc->n, 5)); i++) {
        struct action *a = add(sc, ACT_FREEZE, (int)upto((uint64_t)sc->n), 300 * MS + upto(1500 * MS));
        a->peer = (int)upto(FREEZES);
        a->duration = 10 * MS + upto((a->peer ? sc->params.stopped_ns : sc->params.limit_ns) / 2);
    }
}

/* Some links fail and come back: nobody dies of it, though others are killed meanwhile. */
static void link_down(struct scenario *sc)
{
    if (sc->n < 5)
        return;
    int a = (int)upto((uint64_t)sc->n), b = (a + 1 + (int)upto((uint64_t)sc->n - 1)) % sc->n;
    add(sc, ACT_LINK_DOWN, a, 300 * MS)->peer = b;
    if (upto(2)) {
        int v = fresh_victim(sc);
        if (v != a && v != b)
            add(sc, ACT_KILL, v, 500 * MS + upto(1500 * MS));
    }
    if (upto(2))
        add(sc, ACT_LINK_UP, a, 2 * SEC + upto(SEC));
}

/* One link fails, both ways or in one direction only, between nodes that watch each other: nobody dies, and everybody
 * knows of that link and no other. Or it comes back: everybody knows of none. */
static void link_told(struct scenario *sc)
{
    if (sc->n < 5)
        return;
    int a = (int)upto((uint64_t)sc->n), b = (a + 1) % sc->n;
    bool swap = upto(2);
    sc->params.topology = MEMBER_RING;
    add(sc, upto(2) ? ACT_ONE_WAY : ACT_LINK_DOWN, swap ? b : a, 300 * MS)->peer = swap ? a : b;
    if (upto(2))
        add(sc, ACT_LINK_UP, a, 2 * SEC + upto(SEC));
    sc->links_told = true;
    sc->submitters = 0;
}

/* Links that fail and come back all the time, one at a node: nobody dies, no view changes, few words are made of it. */
static void flapping(struct scenario *sc)
{
    int links = sc->n < 6 ? 1 : at_most(sc->n / 4, 10);
    if (sc->n < 5)
        return;
    for (int k = 0; k < links; k++) {
        int a = 2 * k * (sc->n / (2 * links)), b = a + 1, kind = upto(3) ? ACT_LINK_DOWN : ACT_ONE_WAY;
        for (uint64_t t = 300 * MS + upto(300 * MS); t < 5 * SEC && sc->n_actions + 2 < ACTIONS_MAX;) {
            add(sc, kind, a, t)->peer = b;
            t += 20 * MS + upto(700 * MS);
            add(sc, ACT_LINK_MEND, a, t)->peer = b;
            t += 20 * MS + upto(700 * MS);
        }
    }
    sc->submitters = 0;
    sc->links_told = true; /* of none: each works at the end, and has for a while */
    sc->link_words = 20;
    sc->end = 60 * SEC; /* who broke five times is watched for longest */
    sc->no_views = true;
}

/* A group is cut off; the network heals before or after the verdict, or never. */
static void partition(struct scenario *sc)
{
    int group = 1 + (int)upto((uint64_t)at_most(sc->n - 1, ACTIONS_MAX - 20));
    uint64_t at = 400 * MS + upto(200 * MS);
    bool contiguous = upto(2);
    int start = (int)upto((uint64_t)sc->n);
    for (int i = 0; i < group; i++)
        add(sc, ACT_CUT, contiguous ? (start + i) % sc->n : fresh_victim(sc), at)->peer = 1;
    if (upto(3))
        add(sc, ACT_HEAL, 0, at + upto(2 * SEC));
    sc->may_lose_quorum = true;
}

/* Everything at once: only safety, and that those who are left agree. */
static void chaos(struct scenario *sc)
{
    static const int kinds[] = {ACT_KILL, ACT_POWER_OFF, ACT_FREEZE, ACT_FREEZE,   ACT_CUT,
                                ACT_CUT,  ACT_HEAL,      ACT_HANG,   ACT_LINK_DOWN};
    int links = 0;
    for (int i = 0; i < 3 + (int)upto(10); i++) {
        int kind = kinds[upto(9)];
        if (kind == ACT_LINK_DOWN && links++ >= 3)
            continue;
        struct action *a = add(sc, kind, (int)upto((uint64_t)sc->n), 300 * MS + upto(3 * SEC));
        a->peer = kind == ACT_CUT ? 1 + (int)upto(2) : (a->node + 1 + (int)upto((uint64_t)sc->n - 1)) % sc->n;
        a->duration = upto(2 * SEC);
    }
    add(sc, ACT_HEAL, 0, 4 * SEC);
    add(sc, ACT_LINK_UP, 0, 4 * SEC);
    sc->may_lose_quorum = true;
    sc->net.loss = 0.1 * rng_double(random_source);
    sc->end = 12 * SEC;
}

/* No failure at all but a bad network. */
static void lossy(struct scenario *sc)
{
    sc->net.loss = 0.05 + 0.15 * rng_double(random_source);
    sc->net.duplicate = 0.1;
    sc->net.slow = 0.05;
    sc->net.slow_ns = 30 * MS;
    if (upto(2))
        add(sc, ACT_KILL, fresh_victim(sc), 500 * MS);
}

static void with_defaults(struct scenario *sc)
{
    enum member_topology topology = sc->params.topology;
    member_params_default(&sc->params, sc->n, 0);
    sc->params.topology = topology;
    sc->submitters = at_most(sc->submitters, 2);
    sc->barriers = at_most((int)sc->barriers, 20);
}

/* Agents are stopped one after the other, and go on so: as a whole job is suspended and resumed, while it works. From
 * the first to the last it takes less than a stopped node is waited for. Everybody lives. */
static void suspended(struct scenario *sc)
{
    uint64_t skew = 60 * MS + upto(940 * MS), length = SEC + upto(59 * SEC), most = 25 * SEC / (uint64_t)sc->n;
    with_defaults(sc);
    skew = skew + skew / 2 < most ? skew : most * 2 / 3;
    uint64_t jitter = skew / 2 + 1;
    for (int i = 0; i < sc->n; i++) {
        struct action *a = add(sc, ACT_FREEZE, i, SEC + (uint64_t)i * skew + upto(jitter));
        a->peer = upto(2) ? FREEZE_AGENT : FREEZE_STARVED;
        a->duration = length;
    }
    sc->quiet = true;
    sc->end = 90 * SEC + length;
}

/* Some agents, never so many that the others are no quorum, are stopped at about the same time, and go on one after the
 * other: who goes on first has in its sockets what the others sent before they were stopped. Everybody lives. */
static void stopped_some(struct scenario *sc)
{
    with_defaults(sc);
    int some = 1 + (int)upto((uint64_t)at_most((sc->n - 1) / 2, 10));
    for (int i = 0; i < some && sc->n > 2; i++) {
        struct action *a = add(sc, ACT_FREEZE, fresh_victim(sc), 4 * SEC + upto(SEC));
        a->peer = FREEZE_AGENT;
        a->duration = 200 * MS + upto(19 * SEC);
    }
    sc->quiet = sc->whole = true;
    sc->end = 90 * SEC;
}

/* Hosts stand still for less than the limit, several at once: virtual machines that migrate. */
static void pauses(struct scenario *sc)
{
    with_defaults(sc);
    for (int i = 0; i < at_most(sc->n, 10); i++) {
        uint64_t at = SEC + upto(3 * SEC);
        for (int k = 0; k < 8; k++) { /* one pause is over for a while before the next one of the same node */
            struct action *a = add(sc, ACT_FREEZE, i, at);
            a->peer = FREEZE_HOST;
            a->duration = 100 * MS + upto(2300 * MS);
            at += a->duration + SEC + upto(6 * SEC);
        }
    }
    sc->quiet = true;
    sc->end = 90 * SEC;
}

/* Halves, or other parts, are cut for up to two seconds: everybody lives. */
static void cut_short(struct scenario *sc)
{
    with_defaults(sc);
    int group = 1 + (int)upto((uint64_t)at_most(sc->n - 1, 40)), start = (int)upto((uint64_t)sc->n);
    for (int k = 0; k < 4; k++) {
        uint64_t at = 4 * SEC + (uint64_t)k * 10 * SEC;
        for (int i = 0; i < group; i++)
            add(sc, ACT_CUT, (start + i) % sc->n, at)->peer = 1;
        add(sc, ACT_HEAL, 0, at + 400 * MS + upto(1700 * MS));
    }
    sc->may_lose_quorum = true; /* all are tainted; but: */
    sc->quiet = true;
    sc->end = 60 * SEC;
}

/* A part is cut off for good: the smaller one ends, after it has said so a while before, and there is no second
 * history. */
static void split(struct scenario *sc)
{
    with_defaults(sc);
    int group = 1 + (int)upto((uint64_t)at_most(sc->n - 1, 40)), start = (int)upto((uint64_t)sc->n);
    uint64_t at = 4 * SEC + upto(SEC);
    for (int i = 0; i < group; i++)
        add(sc, ACT_CUT, (start + i) % sc->n, at)->peer = 1;
    sc->may_lose_quorum = true;
    sc->told_before = sc->params.limit_ns / 2;
    sc->end = 40 * SEC;
}

/* One node is cut off for a second, and one of its readers has no way to it after that, while two others reach it. All
 * others have said before that they do not, and are stopped now: what they said is no vote any more, and everybody
 * lives. */
static void old_votes(struct scenario *sc)
{
    int x = (int)upto((uint64_t)sc->n), reader = (x + sc->n - 1) % sc->n, spared = 0;
    uint64_t at = 4 * SEC + upto(SEC);
    if (sc->n < 6 || sc->n > 30)
        return;
    with_defaults(sc);
    sc->params.topology = MEMBER_RING;
    add(sc, ACT_CUT, x, at)->peer = 1;
    add(sc, ACT_LINK_DOWN, reader, at)->peer = x;
    for (int i = 0; i < sc->n; i++) {
        if (i == x || i == reader || (spared < 2 && upto(3) == 0 && ++spared))
            continue;
        struct action *a = add(sc, ACT_FREEZE, i, at + 700 * MS + upto(100 * MS));
        a->peer = FREEZE_AGENT;
        a->duration = 20 * SEC;
    }
    add(sc, ACT_HEAL, 0, at + 900 * MS + upto(SEC));
    add(sc, ACT_LINK_UP, reader, at + 25 * SEC);
    sc->quiet = true;
    sc->end = 60 * SEC;
}

/* Nodes join, one after the other, while the coordinator, members or they themselves die, stand still or are cut off,
 * most often within some milliseconds of it. All that live at the end are one view. */
static void joins(struct scenario *sc)
{
    static const int kinds[] = {ACT_KILL, ACT_KILL, ACT_KILL, ACT_POWER_OFF, ACT_FREEZE, ACT_FREEZE, ACT_CUT};
    int before = sc->n, deaths = 0, most = (before - 1) / 2;
    sc->joiners = 1 + (int)upto(4);
    sc->n += sc->joiners;
    sc->spares += sc->joiners;
    sc->net.loss = upto(3) ? 0 : 0.2 * rng_double(random_source);
    sc->end = 12 * SEC;
    for (int i = 0; i < sc->joiners; i++) {
        uint64_t at = 300 * MS + upto(2 * SEC);
        add(sc, ACT_JOIN, before + i, at);
        for (int k = (int)upto(4); k > 0; k--) {
            int kind = kinds[upto(7)], who = upto(2) ? before + i : upto(2) ? deaths : (int)upto((uint64_t)before);
            if (kind != ACT_FREEZE && deaths++ >= most)
                break;
            struct action *a = add(sc, kind, who, at + upto(upto(2) ? 3 * MS : 300 * MS));
            a->peer = kind == ACT_CUT ? 1 : (int)upto(FREEZES);
            a->duration = upto(3) ? upto(sc->params.limit_ns / 2) : upto(3 * SEC);
            if (kind == ACT_FREEZE && a->duration > sc->params.limit_ns / 2 && deaths++ >= most)
                a->duration = sc->params.limit_ns / 2;
        }
    }
    sc->may_lose_quorum = 2 * deaths >= before;
}

static const struct {
    const char *name;
    void (*make)(struct scenario *sc);
} scenarios[] = {
    {"kill_one", kill_one},         {"kill_many", kill_many}, {"silent_one", silent_one}, {"silent_many", silent_many},
    {"freeze_short", freeze_short}, {"link_down", link_down}, {"link_told", link_told},   {"flapping", flapping},
    {"partition", partition},       {"lossy", lossy},         {"chaos", chaos},           {"suspended", suspended},
    {"stopped_some", stopped_some}, {"pauses", pauses},       {"cut_short", cut_short},   {"split", split},
    {"old_votes", old_votes},       {"joins", joins},
};
enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static void run(int which, int n, uint64_t seed, bool verbose, bool measure)
{
    struct rng r;
    struct scenario sc = {.name = scenarios[which].name,
                          .n = n,
                          .seed = seed,
                          .waited = -1,
                          .costly = -1,
                          .verbose = verbose,
                          .measure = measure};
    rng_seed(&r, seed * 31 + (uint64_t)which);
    random_source = &r;
    member_params_default(&sc.params, n, 0);
    member_params_silence(&sc.params, seed / 2 % 2 ? 780 : 250, 780); /* but where the patience itself is the matter */
    if (n > 2 && seed % 4 == 3)
        sc.params.topology = (enum member_topology)(1 + upto(3));
    sc.spares = n > 3 ? (int)upto(3) : 0;
    sc.net = (struct net){.delay_ns = 40000, .jitter_ns = 100000, .slow = 0.01, .slow_ns = 2 * MS};
    sc.submitters = n < 8 ? n : 8;
    sc.barriers = n > 512 ? 20 : 100;
    sc.end = n > 512 ? 4 * SEC : 8 * SEC;
    if (measure) /* the figures are of membership alone */
        sc.barriers = 0;
    scenarios[which].make(&sc);
    world_run(&sc);
}

static struct options {
    const char *scenario;
    int nodes;
    uint64_t seed;
    int count;
    bool verbose, measure;
} opt = {NULL, 0, 1, 1, false, false};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 's':
        opt.scenario = arg;
        break;
    case 'n':
        opt.nodes = atoi(arg);
        if (opt.nodes < 1 || opt.nodes > BARRIER_NODES_MAX)
            argp_failure(state, 2, 0, "--nodes must be from 1 to %d", BARRIER_NODES_MAX);
        break;
    case 'S':
        opt.seed = strtoull(arg, NULL, 0);
        break;
    case 'c':
        opt.count = atoi(arg);
        break;
    case 'm':
        opt.measure = true;
        break;
    case 'v':
        opt.verbose = true;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"scenario", 's', "NAME", 0, "one scenario (default: all)", 0},
        {"nodes", 'n', "N", 0, "number of nodes (default: from 1 to 40, by the seed)", 0},
        {"seed", 'S', "S", 0, "first seed", 0},
        {"count", 'c', "C", 0, "number of seeds", 0},
        {"verbose", 'v', NULL, 0, "print what happens", 0},
        {"measure", 'm', NULL, 0, "a line of figures for each run", 0},
        {0},
    };
    static const struct argp argp = {options, parse, NULL, "Simulation of membership and barrier.", NULL, NULL, NULL};
    const char *env = getenv("KEEL_SEED");
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
        return 2;
    if (env)
        opt.seed = strtoull(env, NULL, 0);
    printf("seeds %llu to %llu\n", (unsigned long long)opt.seed,
           (unsigned long long)opt.seed + (uint64_t)opt.count - 1);
    fflush(stdout);
    int ran = 0;
    for (int i = 0; i < SCENARIOS; i++)
        for (int k = 0; k < opt.count; k++) {
            if (opt.scenario && strcmp(opt.scenario, scenarios[i].name) != 0)
                continue;
            uint64_t seed = opt.seed + (uint64_t)k;
            static const int sizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 23, 32, 40};
            run(i, opt.nodes ? opt.nodes : sizes[seed % (sizeof sizes / sizeof sizes[0])], seed, opt.verbose,
                opt.measure);
            ran++;
        }
    if (!ran) {
        fprintf(stderr, "sim: no scenario named %s\n", opt.scenario);
        return 2;
    }
    printf("%d runs, every property held\n", ran);
    return 0;
}
