#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "runtime/agent/store.h"
#include "runtime/wire/layout.h"
#include "runtime/wire/wire.h"
#include "tests/lib/net/mem.h"

enum { SLOTS = 2 };

static const int slot_ranks[SLOTS] = {2, 3};
static struct tp *net;
static struct store s;
static int made; /* copies with memory */

static keel_status make(void *user, size_t bytes, void **base, int64_t *handle)
{
    (void)user;
    *base = calloc(1, bytes);
    *handle = 100 + made;
    if (!*base)
        return KEEL_ERR_NOMEM;
    made++;
    return KEEL_OK;
}

static void drop(void *user, void *base, size_t bytes, int64_t handle)
{
    (void)user, (void)bytes, (void)handle;
    free(base);
    made--;
}

static size_t emptied;

static void empty(void *user, void *base, int64_t handle, size_t offset, size_t bytes)
{
    (void)user, (void)handle;
    memset((char *)base + offset, 0, bytes);
    emptied += bytes;
}

static int setup(void **state)
{
    (void)state;
    struct tp_config config = {.host = "store-test"};
    struct store_ops ops = {.make = make, .free = drop, .empty = empty};
    return tp_mem.open(&config, &net) == KEEL_OK && store_init(&s, &ops, net, SLOTS, slot_ranks) == KEEL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    store_fini(&s);
    net->table->close(net);
    return memory_living() == 0 && made == 0 ? 0 : -1;
}

/* Whether some memory of the node is registered under the key: it cannot be registered twice. */
static bool is_reachable(uint64_t key)
{
    uint8_t byte;
    if (net->table->reg(net, &byte, 1, key) != KEEL_OK)
        return true;
    net->table->unreg(net, key);
    return false;
}

static struct store_segment *define(uint32_t seg, uint64_t bytes)
{
    assert_int_equal(store_define(&s, seg, bytes, 1, 0), KEEL_OK);
    return store_find(&s, seg);
}

static void test_store_defined_segment_is_found_freed_one_is_not(void **state)
{
    (void)state;
    assert_null(store_find(&s, 3));
    assert_false(store_was_freed(&s, 3));
    assert_int_equal(store_define(&s, 3, 100, 2, 17), KEEL_OK);
    const struct store_segment *g = store_find(&s, 3);
    assert_int_equal(g->bytes_per_rank, 100);
    assert_int_equal(g->redundancy, 2);
    assert_int_equal(g->instance, 17);
    assert_null(store_copy(&s, 3, 0)); /* no memory yet */
    assert_null(store_copy(&s, 3, SLOTS));
    assert_null(store_copy(&s, 3, -1));
    store_free(&s, 3);
    assert_null(store_find(&s, 3));
    assert_true(store_was_freed(&s, 3));
    assert_false(store_was_freed(&s, 4));
    store_free(&s, 3); /* twice */
    assert_int_equal(s.living, 0);
}

static void test_store_other_arguments_are_a_mismatch(void **state)
{
    (void)state;
    assert_int_equal(store_define(&s, 1, 100, 1, 0), KEEL_OK);
    assert_int_equal(store_define(&s, 1, 100, 1, 0), KEEL_OK);
    assert_int_equal(store_define(&s, 1, 101, 1, 0), KEEL_ERR_MISMATCH);
    assert_int_equal(store_define(&s, 1, 100, 2, 0), KEEL_ERR_MISMATCH);
    assert_int_equal(store_define(&s, 2, 100, CLASSES, 0), KEEL_ERR_LIMIT);
    assert_int_equal(store_define(&s, 2, UINT64_MAX, 1, 0), KEEL_ERR_LIMIT);
    assert_null(store_find(&s, 2));
    assert_int_equal(s.living, 1);
}

static void test_store_copy_is_zeroed_and_holds_all_ranks_of_the_slot(void **state)
{
    (void)state;
    struct store_segment *g = define(1, 5000);
    assert_int_equal(store_make(&s, g, 1, 4), KEEL_OK);
    const struct store_copy *c = store_copy(&s, 1, 1);
    assert_true(c->bytes >= 3 * layout_stride(5000) && c->bytes % 4096 == 0);
    for (size_t i = 0; i < c->bytes; i++)
        assert_int_equal(c->base[i], 0);
    assert_true(is_reachable(wire_key(1, 1, 4)));
    c->base[0] = 1;
    assert_int_equal(store_make(&s, g, 1, 5), KEEL_OK); /* it is there */
    assert_int_equal(c->base[0], 1);
    assert_int_equal(c->generation, 4);
    assert_int_equal(made, 1);
}

static void test_store_rekeyed_copy_is_reachable_under_the_new_generation_only(void **state)
{
    (void)state;
    struct store_segment *g = define(1, 64);
    assert_int_equal(store_rekey(&s, g, 0, 9), KEEL_OK); /* no memory: nothing */
    assert_int_equal(store_make(&s, g, 0, 1), KEEL_OK);
    for (uint64_t generation = 2; generation < 70000; generation += 997) {
        uint64_t before = g->copy[0].generation;
        assert_int_equal(store_rekey(&s, g, 0, generation), KEEL_OK);
        assert_false(is_reachable(wire_key(1, 0, before)));
        assert_true(is_reachable(wire_key(1, 0, generation)));
    }
    store_drop(&s, g, 0);
    assert_false(is_reachable(wire_key(1, 0, g->copy[0].generation)));
    assert_null(store_copy(&s, 1, 0));
}

static void test_store_lost_copy_has_no_memory_until_it_is_dropped(void **state)
{
    (void)state;
    struct store_segment *g = define(1, 64);
    assert_int_equal(store_make(&s, g, 0, 1), KEEL_OK);
    store_mark_lost(&s, g, 0);
    assert_int_equal(made, 0);
    assert_false(is_reachable(wire_key(1, 0, 1)));
    assert_true(store_copy(&s, 1, 0)->lost);
    assert_int_equal(store_make(&s, g, 0, 2), KEEL_OK);
    assert_null(store_copy(&s, 1, 0)->base);
    store_drop(&s, g, 0);
    assert_null(store_copy(&s, 1, 0));
}

static void test_store_segments_stay_in_the_order_of_their_definition(void **state)
{
    (void)state;
    const uint32_t order[] = {5, 2, 64, 128, 9};
    for (int i = 0; i < 5; i++)
        define(order[i], 8);
    store_free(&s, 64);
    store_free(&s, 9);
    define(7, 8);
    const struct store_segment *g = s.first;
    const uint32_t left[] = {5, 2, 128, 7};
    for (int i = 0; i < 4; i++, g = g->next)
        assert_int_equal(g->seg, left[i]);
    assert_null(g);
    assert_int_equal(s.limit, 129);
}

static void test_store_65536_segments_live_and_no_more(void **state)
{
    (void)state;
    for (uint32_t seg = 0; seg < STORE_LIVING_MAX; seg++)
        assert_int_equal(store_define(&s, seg * 7, seg, seg % CLASSES, 0), KEEL_OK);
    assert_int_equal(store_define(&s, 7 * STORE_LIVING_MAX, 8, 0, 0), KEEL_ERR_LIMIT);
    assert_null(store_find(&s, 7 * STORE_LIVING_MAX));
    assert_int_equal(store_define(&s, 7, 1, 1, 0), KEEL_OK); /* known: no new one */
    for (uint32_t seg = 0; seg < STORE_LIVING_MAX; seg++)
        assert_int_equal(store_find(&s, seg * 7)->bytes_per_rank, seg);
    store_free(&s, 7);
    assert_int_equal(store_define(&s, 7 * STORE_LIVING_MAX, 8, 0, 0), KEEL_OK);
    assert_int_equal(store_define(&s, 7 * STORE_LIVING_MAX + 1, 8, 0, 0), KEEL_ERR_LIMIT);
}

static void test_store_million_segments_one_after_the_other_leave_memory_where_it_was(void **state)
{
    (void)state;
    size_t before = memory_living();
    for (uint32_t seg = 0; seg < 1000000; seg++) {
        struct store_segment *g = define(seg, 8);
        if (seg % 100 == 0)
            assert_int_equal(store_make(&s, g, 0, seg), KEEL_OK);
        store_free(&s, seg);
    }
    assert_int_equal(memory_living(), before);
    assert_int_equal(s.living, 0);
    assert_true(store_was_freed(&s, 999999) && store_was_freed(&s, 0));
}

static void test_store_without_memory_nothing_is_half_there(void **state)
{
    (void)state;
    define(0, 8);
    size_t before = memory_living();
    for (long n = 1; n <= 2; n++) {
        memory_fail_at(n);
        assert_int_equal(store_define(&s, 1, 8, 1, 0), KEEL_ERR_NOMEM);
        assert_true(memory_failed());
        assert_null(store_find(&s, 1));
        assert_false(store_was_freed(&s, 1));
        assert_int_equal(memory_living(), before);
    }
    struct store_segment *g = define(1, 8);
    before = memory_living();
    for (long n = 1; n <= 2; n++) { /* the memory, and what the transport needs for it */
        memory_fail_at(n);
        assert_int_equal(store_make(&s, g, 0, 1), KEEL_ERR_NOMEM);
        assert_true(memory_failed());
        assert_null(store_copy(&s, 1, 0));
        assert_int_equal(memory_living(), before);
        assert_int_equal(made, 0);
    }
    assert_int_equal(store_make(&s, g, 0, 1), KEEL_OK);
}

/* Without memory for more buckets everything is found all the same. */
static void test_store_without_memory_to_grow_chains_are_longer(void **state)
{
    (void)state;
    for (uint32_t seg = 0; seg < 1000; seg++) {
        memory_fail_at(s.living >= s.buckets ? 3 : 0);
        assert_int_equal(store_define(&s, seg, 8, 1, 0), KEEL_OK);
        (void)memory_failed();
    }
    assert_int_equal(s.buckets, 64);
    for (uint32_t seg = 0; seg < 1000; seg++)
        assert_int_equal(store_find(&s, seg)->seg, seg);
    for (uint32_t seg = 0; seg < 1000; seg += 3)
        store_free(&s, seg);
    for (uint32_t seg = 0; seg < 1000; seg++)
        assert_int_equal(store_find(&s, seg) != NULL, seg % 3 != 0);
}

/* Processes have it mapped: it stays as it is until nobody reads it any more, and the next copy here has the same. */
static void test_store_memory_of_a_copy_that_left_is_that_of_the_next_one(void **state)
{
    (void)state;
    enum { LARGE = 5 * 1024 * 1024 };
    struct store_segment *g = define(1, LARGE);
    assert_int_equal(store_make(&s, g, 0, 1), KEEL_OK);
    uint8_t *base = g->copy[0].base;
    memset(base, 7, 2 * LARGE);
    store_leave(&s, g, 0);
    assert_null(g->copy[0].base);
    assert_null(store_copy(&s, 1, 0));
    assert_false(is_reachable(wire_key(1, 0, 1)));
    assert_int_equal(base[0], 7);
    int rounds = 0;
    for (emptied = 0; store_empty_some(&s); rounds++)
        assert_true(base[0] == 7 || emptied == layout_memory_bytes(2 * LARGE));
    assert_int_equal(rounds, 3); /* not all at once: others wait */
    for (int half = 0; half < 2; half++) {
        assert_int_equal(store_make(&s, g, 0, 2), KEEL_OK);
        assert_ptr_equal(g->copy[0].base, base);
        assert_true(is_reachable(wire_key(1, 0, 2)));
        for (size_t i = 0; i < 2 * LARGE; i++)
            assert_int_equal(base[i], 0);
        assert_false(store_empty_some(&s));
        memset(base, 9, 2 * LARGE);
        store_leave(&s, g, 0);
        assert_true(store_empty_some(&s)); /* it comes back before all is given back */
    }
    assert_int_equal(made, 1);
    store_mark_lost(&s, g, 0);
    assert_true(g->copy[0].lost);
    store_free(&s, 1);
    assert_int_equal(made, 0);
    assert_false(store_empty_some(&s));
}

static void test_store_init_without_memory_fails(void **state)
{
    (void)state;
    struct store t;
    struct store_ops ops = {.make = make, .free = drop, .empty = empty};
    memory_fail_at(1);
    assert_int_equal(store_init(&t, &ops, net, SLOTS, slot_ranks), KEEL_ERR_NOMEM);
    assert_true(memory_failed());
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_store_defined_segment_is_found_freed_one_is_not),
        TEST(test_store_other_arguments_are_a_mismatch),
        TEST(test_store_copy_is_zeroed_and_holds_all_ranks_of_the_slot),
        TEST(test_store_rekeyed_copy_is_reachable_under_the_new_generation_only),
        TEST(test_store_lost_copy_has_no_memory_until_it_is_dropped),
        TEST(test_store_segments_stay_in_the_order_of_their_definition),
        TEST(test_store_65536_segments_live_and_no_more),
        TEST(test_store_million_segments_one_after_the_other_leave_memory_where_it_was),
        TEST(test_store_without_memory_nothing_is_half_there),
        TEST(test_store_without_memory_to_grow_chains_are_longer),
        TEST(test_store_memory_of_a_copy_that_left_is_that_of_the_next_one),
        TEST(test_store_init_without_memory_fails),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
