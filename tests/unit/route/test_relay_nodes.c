/* What nodes of a running system differ in, on the bed of relay_bed.h: clocks, views, rails, and who is joined to
 * whom. */
#include "relay_bed.h"

static struct bed bed;

static void flap(struct bed *b, uint64_t now)
{
    (void)now;
    bed_flap(b);
}

/* Nobody knows how long what he hears was on its way. */
static void make_unaware(struct bed *b)
{
    b->unaware = true;
    for (int i = 0; i < b->nodes; i++)
        b->d[i].config.flight_ns = 2 * HOP_NS;
}

/* Node 0 tells and hears of a cable that it found broken, thousands of times. returns when it tries it again. */
static uint64_t tried_again(struct bed *b)
{
    struct detour_path path = {.nvia = 0};
    detour_silent(&b->d[0], &b->s[0], 1, &path, SILENCE_NS);
    for (uint64_t now = SILENCE_NS + 1; now < END_NS; now += HOP_NS)
        for (int from = 0; from < b->nodes; from++) {
            int to = (from + 1 + (int)rng_below(&b->rng, (uint64_t)b->nodes - 1)) % b->nodes;
            bed_tell(b, from, to, now);
            if (detour_choose(&b->d[0], &b->s[0], 1, bed_clock(b, 0, now), &b->rng, &path) && path.nvia == 0)
                return now;
        }
    return UINT64_MAX;
}

static void test_relay_what_is_said_again_and_again_gets_older(void **state)
{
    (void)state;
    for (int unaware = 0; unaware < 2; unaware++) {
        bed_full(&bed, 8, 1, 0, 600);
        if (unaware)
            make_unaware(&bed);
        uint64_t first = tried_again(&bed);
        /* it was new, so it is left alone for retry_ns, and for what sources differ by */
        if (first > SILENCE_NS + 3 * bed.d[0].config.retry_ns)
            fail_msg("%s it is tried after %g ms", unaware ? "unaware" : "aware", (double)first / 1e6);
        bed_fini(&bed);
    }
}

/* Clocks begin anywhere and run at rates that differ by up to two thousandths, and nobody knows how long news were on
 * their way: as many hops, within what chance does, as with one clock. */
static void test_relay_delivers_though_no_two_clocks_agree(void **state)
{
    (void)state;
    int hops[2] = {0};
    for (int i = 0; i < 24; i++) {
        bed_full(&bed, 8 + 8 * (i / 2 % 3), 1 + i / 6 % 2, i / 2 % 2 ? 0.3 : 0.6, 700 + (uint64_t)i / 2);
        if (i % 2)
            make_unaware(&bed);
        for (int k = 0; i % 2 && k < bed.nodes; k++) {
            bed.begin_ns[k] = k % 3 == 0 ? 0 : rng_u64(&bed.rng) >> (k % 3 == 1 ? 2 : 34);
            bed.drift[k] = (rng_double(&bed.rng) - 0.5) / 250;
        }
        bed_run(&bed, 500, 0, 2000000, flap);
        bed_check_cost(&bed, "clocks", i, 3, 50);
        hops[i % 2] += bed.hops;
        bed_fini(&bed);
    }
    if (hops[1] * 10 > hops[0] * 11)
        fail_msg("%d hops with one clock, %d with many", hops[0], hops[1]);
}

/* A node that did nothing for a while finds its clock far ahead. */
static void leap(struct bed *b, uint64_t now)
{
    bed_flap(b);
    if (now % 10000000 == 0)
        b->begin_ns[rng_below(&b->rng, (uint64_t)b->nodes)] += rng_u64(&b->rng) >> (24 + rng_below(&b->rng, 20));
}

static void test_relay_delivers_while_clocks_leap_ahead(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bed_full(&bed, i % 2 ? 33 : 8, 1, i < 2 ? 0.1 : i < 4 ? 0.3 : 0.6, 800 + (uint64_t)i);
        make_unaware(&bed);
        bed_run(&bed, 500, 0, 2000000, leap);
        bed_check_cost(&bed, "leaps", i, 1.2 + 2 * bed.share, 50);
        bed_fini(&bed);
    }
}

/* Nodes 0 and 1 leave and come back, with what they knew, and each hears of that at a time of its own: so it happens
 * that one takes a node for alive and the next one does not. */
static void come_and_go(struct bed *b, uint64_t now)
{
    int node = (int)rng_below(&b->rng, 2);
    bool alive = !b->dead[node], joined;
    for (int i = 0; alive && i < b->n; i++)
        if (b->ready[i] != UINT64_MAX && b->m[i].at == node)
            return; /* its messages would have to be sent again */
    b->dead[node] = alive;
    joined = bed_is_joined(b);
    b->dead[node] = !alive;
    if (joined)
        bed_view(b, node, !alive, now);
}

static void test_relay_delivers_while_views_differ(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bed_full(&bed, i % 2 ? 16 : 8, 1 + i / 3, i % 3 == 0 ? 0.2 : i % 3 == 1 ? 0.4 : 0.6, 900 + (uint64_t)i);
        bed.lag_ns = 5000000;
        bed_run(&bed, 500, 2, 3000000, come_and_go);
        bed_check_cost(&bed, "views", i, 1.4 + 2 * bed.share, 50);
        bed_fini(&bed);
    }
}

/* One node after the other stands still for 20 ms, and no view says so: silence only. */
static int stopped;

static void stop_one(struct bed *b, uint64_t now)
{
    int next = (int)(now / 20000000) % b->nodes;
    bool was = b->dead[stopped];
    b->dead[stopped] = false;
    if (!bed_is_joined(b)) {
        b->dead[stopped] = was;
        return;
    }
    b->dead[next] = true;
    b->dead[next] = bed_is_joined(b);
    stopped = next;
}

static void test_relay_delivers_though_nodes_stand_still(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        bed_full(&bed, i % 2 ? 16 : 8, 1 + i / 3, i % 3 == 0 ? 0.1 : i % 3 == 1 ? 0.3 : 0.6, 950 + (uint64_t)i);
        make_unaware(&bed);
        stopped = 0;
        bed_run(&bed, 500, 0, 20000000, stop_one);
        bed_check_cost(&bed, "stopped", i, 4, 80);
        bed_fini(&bed);
    }
}

enum { EDGES_MAX = ROUTERS_MAX * 8 };

/* A random graph of nodes on one to three rails each: on each rail a tree joins those that are on it, the first rail
 * has them all, and there are as many cables more. returns the number of edges. */
static int random_graph(struct rng *rng, int nodes, struct fabric_edge *edge, int *routers)
{
    int on_rail[3][NODES_MAX], count[3] = {nodes}, n = 0;
    *routers = nodes;
    for (int k = 0; k < nodes; k++) {
        on_rail[0][k] = k;
        for (int rail = 1; rail < 3; rail++)
            if (rng_below(rng, 2)) {
                edge[n++] = (struct fabric_edge){k, *routers, true};
                on_rail[rail][count[rail]++] = (*routers)++;
            }
    }
    for (int rail = 0; rail < 3; rail++)
        for (int k = 1, *on = on_rail[rail]; k < count[rail]; k++) {
            int parent = (int)rng_below(rng, (uint64_t)k), other = (int)rng_below(rng, (uint64_t)k);
            edge[n++] = (struct fabric_edge){on[k], on[parent], false};
            if (other != parent)
                edge[n++] = (struct fabric_edge){on[k], on[other], false};
        }
    return n;
}

static void test_relay_delivers_on_any_graph_with_rails_on_some_nodes(void **state)
{
    (void)state;
    static const int nodes[] = {2, 3, 8, 24, 64};
    for (int i = 0; i < 20; i++) {
        static struct fabric_edge edge[EDGES_MAX];
        struct rng rng;
        rng_seed(&rng, 1000 + (uint64_t)i);
        int n = nodes[i % 5], routers, edges = random_graph(&rng, n, edge, &routers);
        bed_graph(&bed, n, routers, edge, edges, i < 10 ? 0.2 : 0.5, 1000 + (uint64_t)i);
        make_unaware(&bed);
        bed_run(&bed, 300, 0, i / 5 % 2 ? 2000000 : 0, flap);
        bed_check_cost(&bed, "graph", i, 5, 50);
        bed_fini(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_what_is_said_again_and_again_gets_older),
        cmocka_unit_test(test_relay_delivers_though_no_two_clocks_agree),
        cmocka_unit_test(test_relay_delivers_while_clocks_leap_ahead),
        cmocka_unit_test(test_relay_delivers_while_views_differ),
        cmocka_unit_test(test_relay_delivers_though_nodes_stand_still),
        cmocka_unit_test(test_relay_delivers_on_any_graph_with_rails_on_some_nodes),
    };
    return cmocka_run_group_tests_name("relay between unlike nodes", tests, NULL, NULL);
}
