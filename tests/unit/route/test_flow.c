/* Traffic expected and the cheapest ways: prices by hand on a small torus, ways against a search through all of
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/topo/detour.h"
#include "runtime/topo/flow_int.h"
#include "sim/route/outage.h"
#include "tests/unit/route/cables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 20, ROUTERS = WIDE * WIDE };

struct fixture {
    struct fabric fabric;
    struct flow flow;
    struct rng rng;
    uint8_t *avoid;
};

static const struct flow_traffic traffic = {.rate = 1e-5, .serial_ns = 1000, .serial2_ns = 2e6, .hop_ns = 200};

/* Mean waiting that the streams cause, ns per message, when all endpoints send. */
static double waiting_of(const struct flow *w)
{
    double sum = 0;
    for (int32_t l = 0; l < fabric_links(w->fabric) + ends(w->fabric); l++) {
        const float *stream = w->stream + (ptrdiff_t)l * w->inputs;
        double pairs = (double)w->sum[l] * w->sum[l], busy = w->sum[l] * w->traffic.serial_ns;
        for (int i = 0; i < w->inputs; i++)
            pairs -= (double)stream[i] * stream[i];
        sum += pairs * w->traffic.serial2_ns / 2 / (busy < 0.95 ? 1 - busy : 0.05);
    }
    return sum / (w->traffic.rate * w->fabric->endpoints);
}

static int make(void **state, const char *net)
{
    struct fixture *t = calloc(1, sizeof *t);
    if (!t || fabric_parse(&t->fabric, net) || !flow_init(&t->flow, &t->fabric, &traffic))
        return -1;
    t->avoid = calloc((size_t)fabric_links(&t->fabric) + 1, 1);
    t->flow.avoid = t->avoid;
    rng_seed(&t->rng, 7);
    *state = t;
    return t->avoid ? 0 : -1;
}

static int setup_torus(void **state)
{
    return make(state, "8tx8t");
}

static int setup_tree(void **state)
{
    return make(state, "tree:3,3");
}

static int setup_mesh(void **state)
{
    return make(state, "6x5");
}

static int setup_wide(void **state)
{
    return make(state, "20x20t");
}

static int teardown(void **state)
{
    struct fixture *t = *state;
    flow_fini(&t->flow);
    free(t->avoid);
    fabric_fini(&t->fabric);
    free(t);
    return 0;
}

static void cut(struct fixture *t, int32_t link, uint8_t value)
{
    t->avoid[link] = t->avoid[t->fabric.reverse[link]] = value;
}

static void test_flow_price_counts_streams_of_other_inputs_only(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0}, turn = {.via = {8}, .nvia = 1};
    assert_true(fabs(flow_price(&t->flow, 0, &original, 3) - 600) < 0.01); /* nobody there: three hops */
    flow_add(&t->flow, 0, &original, 3, 1e-4);                             /* 0 1 2 3 */
    /* The same way from the same start adds nothing: it comes by the same inputs. */
    assert_true(fabs(flow_price(&t->flow, 0, &original, 3) - 600) < 0.01);
    /* From 1 the stream comes by another input, at the first of two hops: 2e6 * 1e-4 / (1 - 0.1)^2 = 246.9. */
    assert_true(fabs(flow_price(&t->flow, 1, &original, 3) - 646.9) < 0.1);
    /* 8 9 1 2: joins at router 1. */
    assert_true(fabs(flow_price(&t->flow, 9, &(struct detour_path){.via = {1}, .nvia = 1}, 2) - 646.9) < 0.1);
    assert_true(flow_price(&t->flow, 0, &turn, 3) > 1000 - 0.01); /* five hops */
    flow_add(&t->flow, 0, &original, 3, -1e-4);
    assert_true(fabs(flow_price(&t->flow, 1, &original, 3) - 400) < 0.01);
}

/* Of a tree: 0 to 2 hang on one switch. Their streams are inputs of their own; a way down does not meet one up. */
static void test_flow_price_in_a_tree_tells_endpoints_and_children_apart(void **state)
{
    struct fixture *t = *state;
    const struct detour_path original = {.nvia = 0};
    int others = 0;
    assert_true(fabs(flow_price(&t->flow, 0, &original, 9) - 800) < 0.01); /* up twice, down twice */
    assert_true(fabs(flow_price(&t->flow, 0, &original, 1)) < 0.01);       /* the same switch */
    flow_add(&t->flow, 0, &original, 9, 1e-4);
    assert_true(fabs(flow_price(&t->flow, 0, &original, 9) - 800) < 0.01);
    /* The neighbour shares all four links, and comes by another input at the first: 2e6 * 1e-4 / (1 - 0.1)^2. */
    assert_true(fabs(flow_price(&t->flow, 1, &original, 9) - 1046.9) < 0.1);
    /* By whichever root, it meets the stream once: at the last link, to the endpoint, if not before. */
    for (int i = 0, top;
         (top = fabric_ancestor(&t->fabric, fabric_home(&t->fabric, 3), fabric_home(&t->fabric, 9), i)) >= 0; i++)
        others += fabs(flow_price(&t->flow, 3, &(struct detour_path){.via = {top}, .nvia = 1}, 9) - 1046.9) < 0.1;
    assert_int_equal(others, 9);
    /* From the next switch up to the same root: meets it at the second link. */
    int32_t root = fabric_ancestor(&t->fabric, fabric_home(&t->fabric, 0), fabric_home(&t->fabric, 9), 0);
    flow_clear(&t->flow);
    flow_add(&t->flow, 0, &(struct detour_path){.via = {root}, .nvia = 1}, 9, 1e-4);
    assert_true(fabs(flow_price(&t->flow, 3, &(struct detour_path){.via = {root}, .nvia = 1}, 9) - 1046.9) < 0.1);
    assert_true(fabs(flow_price(&t->flow, 9, &(struct detour_path){.via = {root}, .nvia = 1}, 0) - 800) < 0.01);
    t->avoid[root * t->fabric.ports + 1] = 1; /* down to 9 */
    assert_true(flow_price(&t->flow, 3, &(struct detour_path){.via = {root}, .nvia = 1}, 9) < 0);
}

static int hops_of(const struct fixture *t, int32_t from, const struct detour_path *path, int32_t dest)
{
    struct detour_walk w;
    int hops = 0;
    detour_walk_begin(&w, &t->fabric, fabric_home(&t->fabric, from), path, dest);
    for (int32_t link; (link = detour_walk_next(&w)) >= 0; hops++)
        assert_false(t->avoid[link]);
    assert_int_equal(w.at, fabric_home(&t->fabric, dest));
    return hops;
}

/* The input by which a hop comes to the next router. */
static int input_by(const struct fixture *t, int32_t link)
{
    return (t->fabric.kind == FABRIC_TREE ? t->fabric.reverse[link] : link) % t->fabric.ports;
}

/* The price of the cheapest of all shortest ways, by trying each. */
static double cheapest(const struct fixture *t, int32_t at, int32_t dest, int input, const int *dist)
{
    double best = HUGE_VAL;
    if (at == fabric_home(&t->fabric, dest)) {
        int32_t out = fabric_links(&t->fabric) + dest;
        return t->fabric.kind != FABRIC_TREE
                   ? 0
                   : (double)(t->flow.gain[out] * (t->flow.sum[out] - t->flow.stream[out * t->flow.inputs + input]));
    }
    for (int p = 0; p < t->fabric.ports; p++) {
        int32_t link = at * t->fabric.ports + p, to = t->fabric.neighbor[link];
        if (to < 0 || t->avoid[link] || dist[to] != dist[at] - 1)
            continue;
        double wait =
            (double)(t->flow.gain[link] * (t->flow.sum[link] - t->flow.stream[link * t->flow.inputs + input]));
        double cost = traffic.hop_ns + wait + cheapest(t, to, dest, input_by(t, link), dist);
        best = cost < best ? cost : best;
    }
    return best;
}

static void distances(const struct fixture *t, int32_t dest, bool whole, int *dist)
{
    int32_t queue[ROUTERS], head = 0, tail = 0;
    for (int i = 0; i < t->fabric.routers; i++)
        dist[i] = -9;
    dist[dest] = 0;
    queue[tail++] = dest;
    while (head < tail) {
        int32_t r = queue[head++];
        for (int p = 0; p < t->fabric.ports; p++) {
            int32_t link = r * t->fabric.ports + p, to = t->fabric.neighbor[link];
            if (to < 0 || dist[to] >= 0 || (!whole && t->avoid[link]))
                continue;
            dist[to] = dist[r] + 1;
            queue[tail++] = to;
        }
    }
}

static void test_flow_route_is_the_cheapest_shortest_way_or_any_that_is_left(void **state)
{
    struct fixture *t = *state;
    int shortest = 0, longer = 0, none = 0;
    for (int round = 0; round < 400; round++) {
        flow_clear(&t->flow);
        memset(t->avoid, 0, (size_t)fabric_links(&t->fabric));
        for (int i = 0; i < 40; i++) {
            int32_t a = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints);
            int32_t b = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints);
            flow_add(&t->flow, a, &(struct detour_path){.nvia = 0}, b, 1e-4 * rng_double(&t->rng));
        }
        for (int i = 0; i < round % 30; i++) {
            int32_t link = (int32_t)rng_below(&t->rng, (uint64_t)fabric_links(&t->fabric));
            if (t->fabric.neighbor[link] >= 0)
                cut(t, link, 1);
        }
        int32_t from = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints), dest = from;
        while (dest == from)
            dest = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints);
        int dist[ROUTERS], left[ROUTERS], input = t->fabric.ports;
        int32_t home = fabric_home(&t->fabric, from), to = fabric_home(&t->fabric, dest);
        input += t->fabric.kind == FABRIC_TREE ? from % t->fabric.arity : 0;
        distances(t, to, true, dist);
        distances(t, to, false, left);
        struct detour_path path;
        double price = flow_route(&t->flow, from, dest, 0, NULL, &path);
        double best = cheapest(t, home, dest, input, dist);
        if (price < 0) {
            none++;
            assert_true(left[home] < 0);
            continue;
        }
        int hops = hops_of(t, from, &path, dest);
        assert_true(fabs(price - flow_price(&t->flow, from, &path, dest)) <= 0.01 * price);
        if (best < HUGE_VAL) {
            assert_int_equal(hops, dist[home]);
            assert_true(fabs(price - best) <= 0.001 * best);
            shortest++;
        } else {
            assert_true(hops >= left[home]);
            longer++;
        }
    }
    assert_true(shortest > 200 && longer > 5);
    (void)none;
}

/* The price of the cheapest way of any length: costs spread over the links until none falls. */
static double cheapest_of_all(const struct fixture *t, int32_t from, int32_t dest)
{
    static float cost[ROUTERS * 4];
    const struct fabric *f = &t->fabric;
    const struct flow *w = &t->flow;
    double best = HUGE_VAL;
    for (int32_t l = 0; l < fabric_links(f); l++)
        cost[l] = HUGE_VALF;
    for (bool falls = true; falls;) {
        falls = false;
        for (int32_t l = 0; l < fabric_links(f); l++) {
            int32_t at = l / f->ports;
            for (int p = -1; p < f->ports && f->neighbor[l] >= 0 && !t->avoid[l]; p++) {
                int32_t before = p < 0 ? -1 : f->reverse[at * f->ports + p]; /* the link that comes in there */
                if (before < 0 && (p >= 0 || at != from))
                    continue;
                int input = p < 0 ? f->ports : before % f->ports;
                float sum = (p < 0 ? 0 : cost[before]) + (float)traffic.hop_ns +
                            w->gain[l] * (w->sum[l] - w->stream[l * w->inputs + input]);
                if (sum < cost[l] * 0.99999f) {
                    cost[l] = sum;
                    falls = true;
                }
            }
        }
    }
    for (int32_t l = 0; l < fabric_links(f); l++)
        best = f->neighbor[l] == dest && (double)cost[l] < best ? (double)cost[l] : best;
    return best;
}

/* Longer ways where they are cheaper: as cheap as any, but for those with more turns than can be named, and never
 * dearer than the shortest. */
static void test_flow_longer_route_is_the_cheapest_of_all(void **state)
{
    struct fixture *t = *state;
    int longer = 0, dearer = 0;
    for (int round = 0; round < 400; round++) {
        flow_clear(&t->flow);
        memset(t->avoid, 0, (size_t)fabric_links(&t->fabric));
        for (int i = 0; i < 60; i++) {
            int32_t a = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints);
            int32_t b = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints);
            flow_add(&t->flow, a, &(struct detour_path){.nvia = 0}, b, 2.5e-4 * rng_double(&t->rng));
        }
        for (int i = 0; i < round % 15; i++) {
            int32_t link = (int32_t)rng_below(&t->rng, (uint64_t)fabric_links(&t->fabric));
            if (t->fabric.neighbor[link] >= 0)
                cut(t, link, 1);
        }
        int32_t from = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints), dest = from;
        while (dest == from)
            dest = (int32_t)rng_below(&t->rng, (uint64_t)t->fabric.endpoints);
        struct detour_path path, shortest;
        double price = flow_route_longer(&t->flow, from, dest, 0, NULL, &path);
        double least = flow_route(&t->flow, from, dest, 0, NULL, &shortest);
        assert_true((price < 0) == (least < 0));
        if (price < 0)
            continue;
        double best = cheapest_of_all(t, from, dest);
        longer += hops_of(t, from, &path, dest) > hops_of(t, from, &shortest, dest);
        assert_true(fabs(price - flow_price(&t->flow, from, &path, dest)) <= 0.001 * price);
        assert_true(price <= least * 1.001 && price >= best * 0.999);
        dearer += price > best * 1.001;
    }
    if (longer < 40 || dearer > 4)
        fail_msg("%d of 400 are longer, %d dearer than the cheapest", longer, dearer);
}

/* Everybody sends to the other end of the network and a fifth of the cables is out: with longer ways they wait less. */
static void test_flow_longer_ways_wait_less(void **state)
{
    struct fixture *t = *state;
    double cost[2];
    t->flow.traffic.rate = 5e-5;
    int32_t partner[ROUTERS], endpoints = t->fabric.endpoints;
    struct detour_path routes[ROUTERS];
    for (int32_t e = 0; e < endpoints; e++)
        partner[e] = endpoints - 1 - e;
    for (int32_t c = 0, out = 0; out < fabric_cables(&t->fabric) / 5; c += 7) {
        int32_t link = c % fabric_links(&t->fabric);
        if (t->fabric.neighbor[link] < 0 || t->avoid[link])
            continue;
        cut(t, link, 1);
        out++;
    }
    for (int longer = 0; longer < 2; longer++) {
        const struct flow_plan plan = {
            .partner = partner, .sweeps = 16, .all_move = true, .longer = longer, .seed = 1, .routes = routes};
        memset(routes, 0, sizeof routes);
        assert_true(flow_expect(&t->flow, &plan));
        cost[longer] = waiting_of(&t->flow);
        for (int32_t e = 0; e < endpoints; e++)
            cost[longer] += hops_of(t, e, &routes[e], partner[e]) * traffic.hop_ns / endpoints;
    }
    if (cost[1] > 0.99 * cost[0])
        fail_msg("%g ns a message with longer ways, %g without", cost[1], cost[0]);
}

/* Where all traffic turns at every hop, so does the cheapest way: more often than a path has room for. What can be
 * named is found, nevertheless, and it is among the shortest. */
static void test_flow_route_of_many_turns_is_one_that_can_be_named(void **state)
{
    struct fixture *t = *state;
    for (int32_t e = 0; e < ROUTERS; e++) {
        struct detour_path stairs = {.nvia = DETOUR_MAX_VIA};
        int32_t at = e;
        for (int i = 0; i < DETOUR_MAX_VIA; i++)
            stairs.via[i] = at = (at / WIDE + 1) % WIDE * WIDE + (at + 1) % WIDE;
        flow_add(&t->flow, e, &stairs, (at / WIDE + 1) % WIDE * WIDE + (at + 1) % WIDE, 2e-5);
    }
    for (int32_t e = 0; e < ROUTERS; e++)
        for (int32_t dest = WIDE - 1; dest < ROUTERS; dest += 3 * WIDE) {
            struct detour_path path;
            if (e == dest)
                continue;
            double price = flow_route(&t->flow, e, dest, 0, NULL, &path);
            assert_true(price >= 0);
            assert_int_equal(hops_of(t, e, &path, dest), fabric_hops(&t->fabric, e, dest, dest));
            assert_true(fabs(price - flow_price(&t->flow, e, &path, dest)) <= 0.01 * price);
        }
}

/* Nobody is left on a cut way, whatever the traffic and the seed, as long as there is another. */
static void test_flow_plan_of_everybody_leaves_nobody_on_a_cut_way(void **state)
{
    struct fixture *t = *state;
    int32_t partner[ROUTERS];
    int left[ROUTERS];
    struct detour_path routes[ROUTERS];
    for (int32_t e = 0; e < ROUTERS; e++)
        partner[e] = e % WIDE * WIDE + e / WIDE;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        memset(t->avoid, 0, (size_t)fabric_links(&t->fabric));
        for (int i = 0; i < 60; i++) {
            int32_t link = (int32_t)rng_below(&t->rng, (uint64_t)fabric_links(&t->fabric));
            if (t->fabric.neighbor[link] >= 0)
                cut(t, link, 1);
        }
        memset(routes, 0, sizeof routes);
        t->flow.traffic.rate = 2e-4;
        const struct flow_plan plan = {
            .partner = partner, .sweeps = 6, .noise = 0.3, .seed = seed, .all_move = true, .routes = routes};
        assert_true(flow_expect(&t->flow, &plan));
        for (int32_t e = 0; e < ROUTERS; e++) {
            distances(t, partner[e], false, left);
            if (left[e] >= 0)
                hops_of(t, e, &routes[e], partner[e]);
        }
    }
}

static void test_flow_expected_streams_carry_all_traffic_and_no_broken_link(void **state)
{
    struct fixture *t = *state;
    for (int32_t r = 0; r < 64; r += 5)
        cut(t, r * 4, 1);
    const struct flow_plan plan = {.sweeps = 2, .seed = 3};
    assert_true(flow_expect(&t->flow, &plan));
    double into[64] = {0};
    for (int32_t l = 0; l < fabric_links(&t->fabric); l++) {
        double sum = 0;
        for (int i = 0; i < t->flow.inputs; i++)
            sum += (double)t->flow.stream[l * t->flow.inputs + i];
        assert_true(fabs(sum - (double)t->flow.sum[l]) < 1e-9);
        assert_true(!t->avoid[l] || fabs(sum) < 1e-9);
        /* what comes in from the router's own endpoint */
        into[l / 4] += (double)t->flow.stream[l * t->flow.inputs + 4];
    }
    for (int r = 0; r < 64; r++)
        assert_true(fabs(into[r] - traffic.rate) < 0.001 * traffic.rate);
}

/* Detours share the ways round a hole instead of taking the same one: the second sweep waits less than the first, and
 * less than shortest ways that know of no traffic. */
static void test_flow_expectation_gets_better_with_sweeps(void **state)
{
    struct fixture *t = *state;
    for (int32_t r = 0; r < 64; r += 7)
        cut(t, r * 4 + 2, 1);
    double waiting[3];
    for (int sweeps = 1; sweeps <= 2; sweeps++) {
        const struct flow_plan plan = {.sweeps = sweeps, .seed = 3};
        assert_true(flow_expect(&t->flow, &plan));
        waiting[sweeps] = waiting_of(&t->flow);
    }
    assert_true(waiting[2] < waiting[1]);
    const struct flow_plan sampled = {.sweeps = 1, .sample = 2048, .seed = 3};
    assert_true(flow_expect(&t->flow, &sampled));
    assert_true(fabs(waiting_of(&t->flow) / waiting[1] - 1) < 0.1);
}

/* Two sources of a torus that know the same lasting fault, since `now`. */
struct pair {
    struct detour d;
    struct detour_source s[2];
    uint64_t now;
    int32_t broken;
};

static void pair_begin(struct fixture *t, struct pair *p)
{
    struct detour_config config = detour_config_plan();
    config.traffic = traffic;
    assert_true(detour_init(&p->d, &t->fabric, &config));
    p->now = 100000000;
    p->broken = fabric_cable(&t->fabric, 1 * 4);
    for (int i = 0; i < 2; i++) {
        detour_source_init(&p->s[i], i);
        detour_faulted(&p->d, &p->s[i], p->broken, 10000000, p->now);
    }
}

static void pair_end(struct pair *p)
{
    for (int i = 0; i < 2; i++)
        detour_source_fini(&p->s[i]);
    detour_fini(&p->d);
}

/* Time goes on; the cable is still out; the source sends a message. */
static struct detour_path go_on(struct fixture *t, struct pair *p, int i, uint64_t ns, int32_t dest)
{
    struct detour_path path;
    p->now += ns;
    const struct detour_news still = {.cable = p->broken, .out_ns = 10000000, .known_ns = p->now - 100000000};
    detour_told(&p->d, &p->s[i], &still, p->now);
    assert_true(detour_choose(&p->d, &p->s[i], dest, p->now, &t->rng, &path));
    return path;
}

/* The policy: a source plans for lasting faults that others should have heard of, once somebody else does; sources that
 * know the same share what they expect, and take the ways it names. */
static void test_flow_plan_is_made_when_others_know_and_shared(void **state)
{
    struct fixture *t = *state;
    struct pair p;
    pair_begin(t, &p);
    uint64_t look = p.d.config.plan_look_ns, after = p.d.config.plan_after_ns;
    go_on(t, &p, 0, 0, 3);
    assert_int_equal(p.d.nplans, 0); /* nobody has sent yet: no pattern */
    for (int i = 0; i < 2; i++)
        for (int32_t dest = 10; dest < 26; dest++)
            detour_sent(&p.d, &p.s[i], dest);
    struct detour_path path = go_on(t, &p, 0, look, 3);
    assert_int_equal(hops_of(t, 0, &path, 3), 5);
    assert_int_equal(p.d.nplans, 1); /* without faults */
    for (int i = 0; i < 2; i++)
        go_on(t, &p, i, i ? 0 : after, 3);
    assert_int_equal(p.d.nplans, 1); /* nobody else plans for it as far as they know */
    const struct detour_digest same = detour_digest(&p.s[1]), other = {.faults = same.faults + 1, .scene = 0};
    assert_true(detour_compare(&p.s[0], &other)); /* it knows other faults, and plans for something else */
    go_on(t, &p, 0, look, 3);
    assert_int_equal(p.d.nplans, 1);
    assert_false(detour_compare(&p.s[0], &same));
    go_on(t, &p, 0, look, 3);
    assert_int_equal(p.d.nplans, 2);
    go_on(t, &p, 1, look, 3);
    assert_int_equal(p.d.nplans, 2);
    assert_true(p.s[0].planned == p.s[1].planned);
    cut(t, p.broken, 1);
    for (int32_t dest = 2; dest < 64; dest++) {
        path = go_on(t, &p, 0, 1, dest);
        hops_of(t, 0, &path, dest); /* over no broken cable */
        const struct detour_path *way = &p.d.plan[1].routes[dest];
        assert_true(path.nvia == way->nvia && memcmp(path.via, way->via, path.nvia * sizeof path.via[0]) == 0);
    }
    pair_end(&p);
}

/* Nobody confirms a plan: it is made when it is old enough. */
static void test_flow_plan_of_one_alone_is_made_later(void **state)
{
    struct fixture *t = *state;
    struct pair p;
    pair_begin(t, &p);
    for (int32_t dest = 10; dest < 26; dest++)
        detour_sent(&p.d, &p.s[0], dest);
    go_on(t, &p, 0, p.d.config.plan_after_ns, 3);
    go_on(t, &p, 0, p.d.config.plan_after_ns - 1, 3);
    assert_int_equal(p.d.nplans, 1);
    go_on(t, &p, 0, p.d.config.plan_look_ns, 3);
    assert_int_equal(p.d.nplans, 2);
    pair_end(&p);
}

/* Traffic by a map of coordinates: the way of the pair is what all expect, though the original one is whole; others
 * are not in the plan. A source that hears of a fault on its way leaves it. */
static void test_flow_plan_of_a_map_names_each_way(void **state)
{
    struct fixture *t = *state;
    struct pair p;
    pair_begin(t, &p);
    for (int i = 0; i < 16; i++)
        detour_sent(&p.d, &p.s[0], 63);
    for (int32_t e = 20; e < 40; e++)
        assert_true(detour_told_flow(&p.d, &p.s[0], &(struct demand_flow){e, 63 - e}));
    go_on(t, &p, 0, p.d.config.plan_after_ns, 63);
    go_on(t, &p, 0, p.d.config.plan_after_ns, 63);
    assert_int_equal(p.d.nplans, 1);
    struct detour_path path = go_on(t, &p, 0, 1, 63);
    assert_memory_equal(&path, &p.d.plan[0].routes[0], sizeof path);
    cut(t, p.broken, 1);
    for (int32_t e = 0; e < 64; e++)
        hops_of(t, e, &p.d.plan[0].routes[e], 63 - e);
    struct detour_walk w;
    detour_walk_begin(&w, &t->fabric, 0, &path, 63);
    int32_t second = fabric_cable(&t->fabric, detour_walk_next(&w));
    detour_faulted(&p.d, &p.s[0], second, 0, p.now);
    path = go_on(t, &p, 0, 1, 63);
    cut(t, second, 1);
    hops_of(t, 0, &path, 63);
    path = go_on(t, &p, 0, 1, 7);
    hops_of(t, 0, &path, 7);
    pair_end(&p);
}

/* A search that is stopped leaves each pair where it was. */
static void test_expected_traffic_stopped_keeps_the_ways_it_has(void **state)
{
    struct fixture *t = *state;
    atomic_bool stop = true;
    struct detour_path *ways = calloc((size_t)t->fabric.endpoints * (size_t)t->fabric.endpoints, sizeof *ways);
    assert_non_null(ways);
    for (int stopped = 0; stopped < 2; stopped++) {
        int moved = 0;
        const struct flow_plan p = {
            .sweeps = 1, .seed = 1, .all_move = true, .routes = ways, .stop = stopped ? &stop : NULL};
        memset(ways, 0, (size_t)t->fabric.endpoints * (size_t)t->fabric.endpoints * sizeof *ways);
        assert_true(flow_expect(&t->flow, &p));
        for (int32_t i = 0; i < t->fabric.endpoints * t->fabric.endpoints; i++)
            moved += ways[i].nvia > 0;
        assert_true(stopped ? moved == 0 : moved > 0);
    }
    free(ways);
}

#define ON(net, test) cmocka_unit_test_setup_teardown(test, setup_##net, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(torus, test_expected_traffic_stopped_keeps_the_ways_it_has),
        ON(torus, test_flow_price_counts_streams_of_other_inputs_only),
        ON(torus, test_flow_route_is_the_cheapest_shortest_way_or_any_that_is_left),
        ON(mesh, test_flow_route_is_the_cheapest_shortest_way_or_any_that_is_left),
        ON(tree, test_flow_route_is_the_cheapest_shortest_way_or_any_that_is_left),
        ON(torus, test_flow_longer_route_is_the_cheapest_of_all),
        ON(mesh, test_flow_longer_route_is_the_cheapest_of_all),
        ON(wide, test_flow_longer_ways_wait_less),
        ON(tree, test_flow_price_in_a_tree_tells_endpoints_and_children_apart),
        ON(wide, test_flow_route_of_many_turns_is_one_that_can_be_named),
        ON(wide, test_flow_plan_of_everybody_leaves_nobody_on_a_cut_way),
        ON(torus, test_flow_expected_streams_carry_all_traffic_and_no_broken_link),
        ON(torus, test_flow_expectation_gets_better_with_sweeps),
        ON(torus, test_flow_plan_is_made_when_others_know_and_shared),
        ON(torus, test_flow_plan_of_one_alone_is_made_later),
        ON(torus, test_flow_plan_of_a_map_names_each_way),
    };
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
