/* What a copy does with requests: the primary of a slot in one process, its shadow's stream never acknowledged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <keel/segment.h>

#include "runtime/redundancy/replica.h"

enum { SEG = 1 };

/* What the plane would do. */
void node_submit(struct agent *a, const struct view_event *e)
{
    (void)a, (void)e;
}
void node_check_node(struct agent *a, int node)
{
    (void)a, (void)node;
}
void node_prepared(struct agent *a, uint64_t proposal, uint64_t value)
{
    (void)a, (void)proposal, (void)value;
}
void node_break(struct agent *a, const char *why)
{
    (void)a;
    fail_msg("%s", why);
}

static void peer_nothing(void *user, int node)
{
    (void)user, (void)node;
}
static void peer_no_message(void *user, int from, const struct wire *w, const void *body)
{
    (void)user, (void)from, (void)w, (void)body;
}
static void peer_no_ack(void *user, int node, uint64_t seq)
{
    (void)user, (void)node, (void)seq;
}

static struct agent a;
static struct conn origin = {.rank = 1, .incarnation = 0, .node = 1, .up = true};

static int setup(void **state)
{
    (void)state;
    static const int rank_node[] = {0, 1, 2};
    static const uint8_t secret[32];
    memset(&a, 0, sizeof a);
    a.members = 3;
    a.waiters_tail = &a.waiters;
    a.stash_tail = &a.stash;
    struct tp_config config = {.host = "replica-test", .provider = "mem"};
    struct peers_ops ops = {NULL, peer_no_message, peer_no_ack, peer_nothing, peer_nothing, peer_nothing};
    a.node_fence = calloc(3, sizeof *a.node_fence);
    a.node_doomed = calloc(3, sizeof *a.node_doomed);
    a.dedup = calloc(3, sizeof *a.dedup);
    a.push = calloc(3, sizeof *a.push);
    bool ok = view_init(&a.view, VIEW_SUBSTITUTE, 3, 0, 3, rank_node) && tp_mem.open(&config, &a.net) == KEEL_OK &&
              peers_init(&a.peers, 0, 3, a.net, 1, 1, secret, &ops) == KEEL_OK &&
              store_init(&a.store, a.net, 3, a.view.slot_ranks) == KEEL_OK &&
              store_define(&a.store, SEG, 64, KEEL_REDUNDANCY_SHADOW, 0) == KEEL_OK &&
              store_make(&a.store, SEG, 0) == KEEL_OK;
    for (int s = 0; s < 3; s++)
        ok = ok && dedup_init(&a.dedup[s], 3);
    struct tp_addr somewhere;
    ok = ok && a.net->table->listen(a.net, &somewhere) == KEEL_OK;
    for (int node = 1; node < 3; node++)
        peer_address(&a.peers, node, 0, &somewhere);
    return ok ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    replica_forget(&a, &origin);
    for (struct waiter *w = a.waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    for (int s = 0; s < 3; s++)
        dedup_fini(&a.dedup[s]);
    store_fini(&a.store);
    peers_fini(&a.peers);
    a.net->table->close(a.net);
    view_fini(&a.view);
    free(a.node_fence);
    free(a.node_doomed);
    free(a.dedup);
    free(a.push);
    return 0;
}

static int64_t word(void)
{
    int64_t value;
    memcpy(&value, store_copy(&a.store, SEG, 0)->base, sizeof value);
    return value;
}

static void request(uint8_t type, uint8_t flags, uint64_t seq, int64_t value)
{
    struct wire w = {.type = type, .flags = flags, .slot = 0, .seg = SEG, .seq = seq, .rank = 1};
    if (type == WIRE_PUT)
        w.len = sizeof value;
    else
        w.a = value;
    replica_request(&a, &origin, &w, &value);
}

static void test_replica_put_through_the_primary_of_a_pair_is_refused(void **state)
{
    (void)state;
    assert_int_equal(a.view.slot[0].mode, SLOT_PAIR);
    uint64_t before = a.peers.peer[1].next;
    request(WIRE_PUT, WIRE_F_THROUGH, 1, 7); /* sent when the slot was being made equal */
    assert_int_equal(word(), 0);
    assert_int_equal(a.peers.peer[1].next, before); /* nothing forwarded that could overtake the writer's next put */
    a.view.slot[0].mode = SLOT_SYNC;
    request(WIRE_PUT, WIRE_F_THROUGH, 2, 8);
    assert_int_equal(word(), 8);
    assert_int_equal(a.peers.peer[1].next, before + 1);
}

static void test_replica_put_stashed_while_the_pair_is_restored_is_refused(void **state)
{
    (void)state;
    a.view.slot[0].mode = SLOT_SYNC;
    replica_freeze(&a);
    request(WIRE_PUT, WIRE_F_THROUGH, 1, 7);
    a.view.slot[0].mode = SLOT_PAIR;
    replica_thaw(&a);
    assert_int_equal(word(), 0);
}

static void test_replica_collective_put_goes_through_the_primary_always(void **state)
{
    (void)state;
    request(WIRE_PUT, WIRE_F_THROUGH | WIRE_F_ALWAYS, 1, 7);
    assert_int_equal(word(), 7);
}

static void test_replica_repeated_add_counts_once(void **state)
{
    (void)state;
    request(WIRE_ADD, 0, 1, 5);
    request(WIRE_ADD, 0, 1, 5);
    assert_int_equal(word(), 5);
}

static void test_replica_is_not_drained_until_the_shadow_has_acknowledged(void **state)
{
    (void)state;
    assert_true(replica_drained(&a));
    request(WIRE_ADD, 0, 1, 5);
    assert_false(replica_drained(&a));
}

/* Else a view proposed before the death was found could never be prepared, nor the next one, which declares it. */
static void test_replica_does_not_wait_for_a_node_believed_dead_to_be_drained(void **state)
{
    (void)state;
    request(WIRE_ADD, 0, 1, 5);
    a.node_doomed[1] = true;
    assert_true(replica_drained(&a));
    replica_acked(&a, 1);
    assert_non_null(a.waiters); /* the origin is not told before the node is declared dead */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_replica_put_through_the_primary_of_a_pair_is_refused),
        TEST(test_replica_put_stashed_while_the_pair_is_restored_is_refused),
        TEST(test_replica_collective_put_goes_through_the_primary_always),
        TEST(test_replica_repeated_add_counts_once),
        TEST(test_replica_is_not_drained_until_the_shadow_has_acknowledged),
        TEST(test_replica_does_not_wait_for_a_node_believed_dead_to_be_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
