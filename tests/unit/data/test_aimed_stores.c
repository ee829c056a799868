/* Plain stores: when they may begin, and which words a flush brings to the other copy (runtime/client/segment/twins.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/segment/twins.h"
#include "runtime/wire/marks.h"

static const int here_first[] = {3, 0}, there_first[] = {0, 3};
static int sleeps, goes_home_at, direct_at;

static int own_group(void)
{
    return copyset_of(3, KEEL_REDUNDANCY_SHADOW);
}

static void route(enum route_mode mode, const int *nodes)
{
    static uint64_t generation = 1000;
    page_route_write(w.node[3].agent.page, own_group(), route_tag(mode, ++generation), 0, nodes, 2);
}

static void route_changes(void)
{
    sleeps++;
    w.now += 1000000;
    if (sleeps == goes_home_at)
        route(ROUTE_THROUGH, here_first);
    if (sleeps == direct_at)
        route(ROUTE_DIRECT, here_first);
}

static int stores_open(void **state)
{
    setup(state);
    client_open();
    sleeps = goes_home_at = direct_at = 0;
    return 0;
}

static int stores_close(void **state)
{
    on_sleep = NULL;
    gone_in = 0;
    return client_close(state);
}

/* Else a repair makes the copy equal to another one, and what was stored is gone. */
static void test_aimed_stores_wait_until_the_own_copy_is_what_others_are_made_equal_to(void **state)
{
    (void)state;
    keel_status status;
    route(ROUTE_DIRECT, there_first);
    on_sleep = route_changes;
    goes_home_at = 3;
    direct_at = 7;
    assert_ptr_equal(segment_map_home(shadow, &status), bytes_at(3, SEG_SHADOW, 3));
    assert_int_equal(sleeps, 7);
}

static void test_aimed_stores_do_not_wait_for_an_agent_that_is_gone(void **state)
{
    (void)state;
    keel_status status;
    route(ROUTE_DIRECT, there_first);
    on_sleep = route_changes;
    gone_in = 2;
    assert_null(segment_map_home(shadow, &status));
    assert_int_equal(status, KEEL_ERR_AGENT_GONE);
}

/* Who stores plainly into its part comes back from a collective when what a dead writer left there has been made
 * equal. */
static void test_aimed_stores_wait_at_a_collective_for_what_a_dead_writer_left(void **state)
{
    (void)state;
    static uint8_t twin[SEG_BYTES];
    struct twins t;
    keel_status status;
    route(ROUTE_THROUGH, here_first);
    assert_true(segment_stores_rest(&c)); /* it has never stored */
    route(ROUTE_DIRECT, here_first);
    assert_int_equal(twins_init(&t, &c, shadow, segment_map_home(shadow, &status), twin), KEEL_OK);
    assert_true(segment_stores_rest(&c));
    route(ROUTE_THROUGH, here_first);
    assert_false(segment_stores_rest(&c));
    route(ROUTE_THROUGH, there_first); /* elsewhere: this copy is made equal to that one, and nobody stores here */
    assert_true(segment_stores_rest(&c));
    route(ROUTE_THROUGH, here_first);
    on_sleep = route_changes;
    sleeps = 0;
    direct_at = 3;
    pthread_mutex_lock(&c.lock);
    segment_await_rest(&c);
    pthread_mutex_unlock(&c.lock);
    assert_true(segment_stores_rest(&c));
    twins_fini(&t);
}

enum { STORED = 64, BESIDE = 1024 };

/* A word is stored that another process of the node had stored, or nobody; what the other copy has then, where it
 * had something else already. */
static void store_again(bool held, int64_t *stored, int64_t *beside)
{
    static uint8_t twin[SEG_BYTES];
    const int64_t value = 7, other = 9;
    uint8_t *own = bytes_at(3, SEG_SHADOW, 3);
    struct twins t;
    keel_status status;
    assert_ptr_equal(segment_map_home(shadow, &status), own);
    assert_int_equal(twins_init(&t, &c, shadow, own, twin), KEEL_OK);
    if (held) { /* and nobody knows what it has brought to the others */
        assert_true(holders_add(&holders_of(own, t.bytes)[0], t.index));
        memcpy(own + STORED, &value, 8);
    }
    memcpy(bytes_at(0, SEG_SHADOW, 3) + BESIDE, &other, 8);
    assert_true(twins_take(&t, STORED));
    memcpy(own + STORED, &value, 8);
    assert_int_equal(twins_flush(&t, false), KEEL_OK);
    *stored = word_at(0, SEG_SHADOW, 3, STORED);
    *beside = word_at(0, SEG_SHADOW, 3, BESIDE);
    assert_int_equal(atomic_load(&holders_of(own, t.bytes)[0]), 0);
    twins_fini(&t);
}

static void test_aimed_stores_of_a_process_that_died_are_brought_with_the_same_stores_of_the_next(void **state)
{
    (void)state;
    int64_t stored, beside;
    store_again(true, &stored, &beside);
    assert_int_equal(stored, 7);
    assert_int_equal(beside, 0);
}

static void test_aimed_stores_where_nobody_else_was_are_brought_alone(void **state)
{
    (void)state;
    int64_t stored, beside;
    store_again(false, &stored, &beside);
    assert_int_equal(stored, 7);
    assert_int_equal(beside, 9);
}

/* Else the old word of one that stores meanwhile comes over its new one, and its own flush sees no difference. */
static void test_aimed_flush_of_a_whole_piece_leaves_the_words_of_neighbours(void **state)
{
    (void)state;
    int64_t stored, beside;
    shadow->part_bytes[3] = BESIDE; /* what lies behind is in another one's part */
    store_again(true, &stored, &beside);
    shadow->part_bytes[3] = SEG_BYTES;
    assert_int_equal(stored, 7);
    assert_int_equal(beside, 9);
}

/* What lies behind BESIDE is in the part of another living rank of the slot, which has stored to the piece, too, or
 * not. The caller stores there; what the other copy has after its flush. */
static int64_t store_into_neighbours(bool all, bool held)
{
    static uint8_t twin[SEG_BYTES];
    const int64_t value = 7;
    uint8_t *own = bytes_at(3, SEG_SHADOW, 3);
    struct page_rank *neighbour = page_rank(c.page, 2);
    const struct page_rank before = {.slot = neighbour->slot, .index = neighbour->index};
    const uint64_t at_before = shadow->part_at[2], bytes_before = shadow->part_bytes[2];
    struct twins t;
    keel_status status;
    neighbour->slot = 3;
    neighbour->index = 1;
    shadow->part_bytes[3] = shadow->part_at[2] = BESIDE;
    shadow->part_bytes[2] = SEG_BYTES - BESIDE;
    assert_ptr_equal(segment_map_home(shadow, &status), own);
    assert_int_equal(twins_init(&t, &c, shadow, own, twin), KEEL_OK);
    assert_true(twins_take(&t, BESIDE));
    if (held)
        (void)holders_add(&holders_of(own, t.bytes)[0], neighbour->index);
    memcpy(own + BESIDE, &value, 8);
    assert_int_equal(twins_flush(&t, all), KEEL_OK);
    assert_int_equal(atomic_load(&holders_of(own, t.bytes)[0]), held ? 2 : 0);
    twins_fini(&t);
    neighbour->slot = before.slot;
    neighbour->index = before.index;
    shadow->part_bytes[3] = SEG_BYTES;
    shadow->part_at[2] = at_before;
    shadow->part_bytes[2] = bytes_before;
    return word_at(0, SEG_SHADOW, 3, BESIDE);
}

static void test_aimed_stores_into_a_neighbours_part_are_not_brought_beside_its_stores(void **state)
{
    (void)state;
    assert_int_equal(store_into_neighbours(false, false), 0);
}

static void test_aimed_stores_into_a_neighbours_part_are_brought_where_all_meet(void **state)
{
    (void)state;
    assert_int_equal(store_into_neighbours(true, false), 7);
}

/* It would bring them with its own; it does not. */
static void test_aimed_stores_into_the_part_of_a_neighbour_that_does_not_flush_are_brought(void **state)
{
    (void)state;
    assert_int_equal(store_into_neighbours(true, true), 7);
}

/* A process of the slot has stored into the caller's part and died; the caller has not stored there. */
static void test_aimed_stores_of_a_process_that_died_are_brought_where_the_others_meet(void **state)
{
    (void)state;
    static uint8_t twin[SEG_BYTES];
    const int64_t value = 7;
    uint8_t *own = bytes_at(3, SEG_SHADOW, 3);
    struct page_rank *neighbour = page_rank(c.page, 2);
    const uint32_t slot = neighbour->slot, index = neighbour->index;
    const uint64_t where = atomic_load(&neighbour->where);
    struct twins t;
    keel_status status;
    neighbour->slot = 3;
    neighbour->index = 1;
    atomic_store(&neighbour->where, (uint64_t)UINT32_MAX << 32);
    assert_ptr_equal(segment_map_home(shadow, &status), own);
    assert_int_equal(twins_init(&t, &c, shadow, own, twin), KEEL_OK);
    assert_true(holders_add(&holders_of(own, t.bytes)[0], neighbour->index));
    memcpy(own + STORED, &value, 8);
    assert_int_equal(twins_flush(&t, false), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 3, STORED), 0);
    assert_int_equal(twins_flush(&t, true), KEEL_OK);
    assert_int_equal(word_at(0, SEG_SHADOW, 3, STORED), 7);
    assert_int_equal(atomic_load(&holders_of(own, t.bytes)[0]), 0);
    twins_fini(&t);
    neighbour->slot = slot;
    neighbour->index = index;
    atomic_store(&neighbour->where, where);
}

/* They share one place, which nobody empties: never is it said that nobody else was there. */
static void test_aimed_stores_of_the_last_of_many_ranks_are_never_alone(void **state)
{
    (void)state;
    _Atomic uint64_t holders = 0;
    assert_true(holders_add(&holders, HOLDERS_LAST - 1));
    holders_remove(&holders, HOLDERS_LAST - 1);
    assert_int_equal(atomic_load(&holders), 0);
    assert_true(holders_add(&holders, HOLDERS_LAST));
    holders_remove(&holders, HOLDERS_LAST);
    assert_false(holders_add(&holders, 1000));
    assert_false(holders_add(&holders, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_stores_wait_until_the_own_copy_is_what_others_are_made_equal_to,
                                        stores_open, stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_do_not_wait_for_an_agent_that_is_gone, stores_open,
                                        stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_wait_at_a_collective_for_what_a_dead_writer_left, stores_open,
                                        stores_close),
        cmocka_unit_test_setup_teardown(
            test_aimed_stores_of_a_process_that_died_are_brought_with_the_same_stores_of_the_next, stores_open,
            stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_where_nobody_else_was_are_brought_alone, stores_open,
                                        stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_flush_of_a_whole_piece_leaves_the_words_of_neighbours, stores_open,
                                        stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_into_a_neighbours_part_are_not_brought_beside_its_stores,
                                        stores_open, stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_into_a_neighbours_part_are_brought_where_all_meet,
                                        stores_open, stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_into_the_part_of_a_neighbour_that_does_not_flush_are_brought,
                                        stores_open, stores_close),
        cmocka_unit_test_setup_teardown(test_aimed_stores_of_a_process_that_died_are_brought_where_the_others_meet,
                                        stores_open, stores_close),
        cmocka_unit_test(test_aimed_stores_of_the_last_of_many_ranks_are_never_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
