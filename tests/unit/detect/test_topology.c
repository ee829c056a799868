#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "detect/member_internal.h"
#include "runtime/base/rng.h"

/* Whoever is gone, every live node is read by a live one. */
static void every_live_node_is_read(enum member_topology topology, const int *edges, int edge_count)
{
    struct rng r;
    rng_seed(&r, 11);
    for (int round = 0; round < 300; round++) {
        struct member_params p;
        int n = 2 + (int)rng_below(&r, 70);
        struct idset gone = {0};
        uint64_t read[2] = {0};
        member_params_default(&p, n, 0);
        p.topology = topology;
        p.edges = edges;
        p.edge_count = edge_count;
        p.degree = 1 + (int)rng_below(&r, 3);
        for (int i = 0; i < n; i++)
            if (rng_below(&r, 4) < (uint64_t)(round % 4))
                assert_true(idset_add(&gone, i));
        for (p.self = 0; p.self < n; p.self++) {
            int out[WATCH_MAX];
            if (idset_has(&gone, p.self))
                continue;
            int count = topology_targets(&p, &gone, out, WATCH_MAX);
            for (int i = 0; i < count; i++) {
                assert_false(idset_has(&gone, out[i]));
                assert_int_not_equal(out[i], p.self);
                bitset_add(read, out[i]);
            }
        }
        int live = n - gone.count;
        if (live > 1)
            assert_int_equal(bitset_count(read, 2), live);
        idset_free(&gone);
    }
}

static void test_topology_ring_reads_every_live_node(void **state)
{
    (void)state;
    every_live_node_is_read(MEMBER_RING, NULL, 0);
}

static void test_topology_torus_reads_every_live_node(void **state)
{
    (void)state;
    every_live_node_is_read(MEMBER_TORUS, NULL, 0);
}

static void test_topology_hypercube_reads_every_live_node(void **state)
{
    (void)state;
    every_live_node_is_read(MEMBER_HYPERCUBE, NULL, 0);
}

static void test_topology_random_reads_every_live_node(void **state)
{
    (void)state;
    every_live_node_is_read(MEMBER_RANDOM, NULL, 0);
}

static void test_topology_file_with_gaps_reads_every_live_node(void **state)
{
    (void)state;
    const int edges[] = {0, 1, 0, 1, 1, 0};
    every_live_node_is_read(MEMBER_FILE, edges, 3);
}

/* Whose readers have more to read than the one that takes it over may: its next live node is among that in any case. */
static void test_topology_file_of_busy_readers_reads_every_live_node(void **state)
{
    (void)state;
    enum { BUSY = 3, EACH = WATCHERS_MAX, NODES = 2 * BUSY + BUSY * EACH };
    int edges[2 * BUSY * EACH], out[WATCH_MAX];
    struct idset gone = {0};
    struct member_params p;
    uint64_t read[1 + NODES / 64] = {0};
    member_params_default(&p, NODES, 0);
    p.topology = MEMBER_FILE;
    p.edges = edges;
    p.edge_count = BUSY * EACH;
    for (int i = 0; i < BUSY * EACH;
         i++) { /* the last of them reads the node behind itself, and the others those far away */
        edges[2 * i] = i / EACH;
        edges[2 * i + 1] = i == BUSY * EACH - 1 ? BUSY : 2 * BUSY + i;
    }
    for (int i = 1; i < BUSY; i++)
        assert_true(idset_add(&gone, i));
    for (p.self = 0; p.self < NODES; p.self++) {
        int count = idset_has(&gone, p.self) ? 0 : topology_targets(&p, &gone, out, WATCH_MAX);
        for (int i = 0; i < count; i++)
            bitset_add(read, out[i]);
    }
    for (int i = 0; i < NODES; i++)
        assert_int_equal(bitset_has(read, i), !idset_has(&gone, i));
    idset_free(&gone);
}

static void test_topology_ring_closes_over_the_dead(void **state)
{
    (void)state;
    struct member_params p;
    int out[WATCH_MAX];
    struct idset gone = {0};
    assert_true(idset_add(&gone, 1) && idset_add(&gone, 2));
    member_params_default(&p, 6, 0);
    p.degree = 1;
    assert_int_equal(topology_targets(&p, &gone, out, WATCH_MAX), 1);
    assert_int_equal(out[0], 3);
    idset_free(&gone);
}

/* Ids that nobody has had yet are no losses. */
static void test_topology_is_the_same_with_room_for_more(void **state)
{
    (void)state;
    struct idset nobody = {0}, unborn = {0};
    for (int id = 8; id < 16; id++)
        assert_true(idset_add(&unborn, id));
    for (int topology = MEMBER_RING; topology < MEMBER_FILE; topology++)
        for (int self = 0; self < 8; self++) {
            struct member_params p;
            int out[WATCH_MAX], with_room[WATCH_MAX];
            member_params_default(&p, 8, self);
            p.topology = (enum member_topology)topology;
            int n = topology_targets(&p, &nobody, out, WATCH_MAX);
            assert_int_equal(topology_targets(&p, &unborn, with_room, WATCH_MAX), n);
            assert_memory_equal(out, with_room, (size_t)n * sizeof *out);
        }
    idset_free(&unborn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topology_ring_reads_every_live_node),
        cmocka_unit_test(test_topology_torus_reads_every_live_node),
        cmocka_unit_test(test_topology_hypercube_reads_every_live_node),
        cmocka_unit_test(test_topology_random_reads_every_live_node),
        cmocka_unit_test(test_topology_file_with_gaps_reads_every_live_node),
        cmocka_unit_test(test_topology_file_of_busy_readers_reads_every_live_node),
        cmocka_unit_test(test_topology_ring_closes_over_the_dead),
        cmocka_unit_test(test_topology_is_the_same_with_room_for_more),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
