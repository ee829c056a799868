/* Aimed schedules of mutexes: what a rank makes of a word that another one has written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aimed.h"
#include "runtime/client/op/mutex.h"
#include "runtime/client/op/mutex_int.h"
#include "runtime/client/segment/segment.h"

/* Without the other ranks, in a segment that is there. */
static keel_mutexes *attached(void)
{
    keel_mutexes *m = malloc(sizeof *m);
    assert_non_null(m);
    mutexes_attach(m, &c, shadow, 1);
    return m;
}

/* A process of rank 1 has the mutex: so say all copies. */
static void rank_1_owns(uint64_t incarnation)
{
    int64_t word = (int64_t)(incarnation & 0x7ff) << 20 | (1 + 1);
    for (int node = 0; node < 2; node++)
        memcpy(bytes_at(node, SEG_SHADOW, 0), &word, sizeof word);
}

/* What this node's page says of rank 1. */
static void see_rank_1(int node, uint64_t incarnation)
{
    atomic_store(&page_rank(w.node[3].agent.page, 1)->where, (uint64_t)(uint32_t)node << 32 | incarnation);
}

/* its owner is a process that began again, and here the view with that is still to come: nobody else gets it. */
static void test_aimed_mutex_of_a_process_that_is_not_in_the_view_yet(void **state)
{
    (void)state;
    int dead;
    client_open();
    keel_mutexes *m = attached();
    const struct {
        int node;
        uint64_t seen, owner;
        keel_status status;
    } look[] = {
        {1, 0, 0, KEEL_IN_PROGRESS},
        {1, 0, 1, KEEL_IN_PROGRESS},
        {-1, 0, 1, KEEL_IN_PROGRESS},
        {-1, 0, 2, KEEL_IN_PROGRESS},
        {1, 0x7ff, 0x800, KEEL_IN_PROGRESS},
        {1, 1, 1, KEEL_IN_PROGRESS},
        {-1, 0, 0, KEEL_OK},
        {1, 1, 0, KEEL_OK},
        {-1, 1, 1, KEEL_OK},
        {1, 0x800, 0x7ff, KEEL_OK},
    };
    for (size_t i = 0; i < sizeof look / sizeof look[0]; i++) {
        rank_1_owns(look[i].owner);
        see_rank_1(look[i].node, look[i].seen);
        keel_status status = mutex_lock(m, 0, 0, false, &dead);
        if (status != look[i].status)
            fail_msg("rank 1 at node %d is seen as %d, the owner is %d: %s", look[i].node, (int)look[i].seen,
                     (int)look[i].owner, keel_status_name(status));
        if (status != KEEL_OK)
            continue;
        assert_int_equal(dead, 1);
        assert_int_equal(mutex_unlock(m, 0, 0), KEEL_OK);
    }
    mutexes_detach(m);
}

static int64_t word_of(int rank)
{
    return rank + 1; /* of its first process */
}

static int64_t owner_at(int node)
{
    return word_at(node, SEG_SHADOW, 0, 0) & 0x7fffffff;
}

static void write_at(int node, uint64_t offset, int64_t value)
{
    memcpy(bytes_at(node, SEG_SHADOW, 0) + offset, &value, sizeof value);
}

static int sleeps; /* until something happens in the middle of a call */
static void (*happens)(void);
static void sleep_until_it_happens(void *u, int ms)
{
    (void)u, (void)ms;
    if (sleeps && --sleeps == 0)
        happens();
    world_turn();
}

static void rank_1_hands_over_in_one_copy(void)
{
    int64_t arrivals = word_at(0, SEG_SHADOW, 0, 0) >> 32;
    write_at(0, 0, arrivals << 32 | word_of(3));
}

/* the holder hands over, and that is in one copy so far: if its node died together with the holder it would not have
 * happened. */
static void test_aimed_mutex_is_taken_when_all_copies_say_so(void **state)
{
    (void)state;
    int dead;
    client_open();
    keel_mutexes *m = attached();
    rank_1_owns(0);
    c.env.sleep = sleep_until_it_happens;
    happens = rank_1_hands_over_in_one_copy;
    sleeps = 200;
    assert_int_equal(mutex_lock(m, 0, 0, true, &dead), KEEL_OK);
    assert_int_equal(sleeps, 0);
    assert_int_equal(owner_at(0), word_of(3));
    assert_int_equal(owner_at(1), word_of(3));
    assert_int_equal(mutex_unlock(m, 0, 0), KEEL_OK);
    mutexes_detach(m);
}

static void rank_1_died_and_its_successor_chose_us(void)
{
    for (int node = 0; node < 2; node++) {
        int64_t arrivals = word_at(node, SEG_SHADOW, 0, 0) >> 32;
        write_at(node, 8, 1);
        write_at(node, 0, arrivals << 32 | (int64_t)1 << 31 | word_of(3));
    }
    c.coll.broken = KEEL_ERR_NOMEM;
}

/* who was given the mutex of a dead one in the moment in which its call fails has not told its caller: the next one
 * does. */
static void test_aimed_mutex_of_a_dead_one_is_told_after_a_call_that_failed(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        int dead = -1;
        client_open();
        keel_mutexes *m = attached();
        rank_1_owns(0);
        c.env.sleep = sleep_until_it_happens;
        happens = rank_1_died_and_its_successor_chose_us;
        sleeps = 200;
        assert_int_equal(mutex_lock(m, 0, 0, true, &dead), KEEL_ERR_NOMEM);
        assert_int_equal(sleeps, 0);
        assert_int_equal(owner_at(0), 0);
        c.coll.broken = KEEL_OK;
        assert_int_equal(mutex_lock(m, 0, 0, waits, &dead), KEEL_OK);
        assert_int_equal(dead, 1);
        assert_int_equal(mutex_unlock(m, 0, 0), KEEL_OK);
        assert_int_equal(mutex_lock(m, 0, 0, waits, &dead), KEEL_OK); /* one holder is told */
        assert_int_equal(dead, -1);
        assert_int_equal(mutex_unlock(m, 0, 0), KEEL_OK);
        mutexes_detach(m);
        assert_int_equal(client_close(state), 0);
        assert_int_equal(setup(state), 0);
    }
    client_open();
}

/* The word says that we have it; what is behind it cannot be read now. */
static void sleep_until_only_the_word_is_there(void *u, int ms)
{
    (void)u, (void)ms;
    world_turn();
    if (owner_at(0) == word_of(3) && owner_at(1) == word_of(3))
        shadow->part_bytes[0] = sizeof(int64_t);
}

/* whose death it would have to tell cannot be read: who got an error does not hold the mutex, and the next one is
 * told. */
static void test_aimed_mutex_is_not_held_after_a_call_that_failed(void **state)
{
    (void)state;
    int dead;
    client_open();
    keel_mutexes *m = attached();
    rank_1_owns(0);
    see_rank_1(-1, 0);
    c.env.sleep = sleep_until_only_the_word_is_there;
    assert_int_equal(mutex_lock(m, 0, 0, false, &dead), KEEL_ERR_ARG);
    assert_int_equal(owner_at(0), 0);
    c.env.sleep = sleep_until_it_happens;
    shadow->part_bytes[0] = SEG_BYTES;
    assert_int_equal(mutex_lock(m, 0, 0, true, &dead), KEEL_OK);
    assert_int_equal(dead, 1);
    assert_int_equal(mutex_unlock(m, 0, 0), KEEL_OK);
    mutexes_detach(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_mutex_is_taken_when_all_copies_say_so, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_mutex_of_a_dead_one_is_told_after_a_call_that_failed, setup,
                                        client_close),
        cmocka_unit_test_setup_teardown(test_aimed_mutex_is_not_held_after_a_call_that_failed, setup, client_close),
        cmocka_unit_test_setup_teardown(test_aimed_mutex_of_a_process_that_is_not_in_the_view_yet, setup, client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
