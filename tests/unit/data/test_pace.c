/* How fast a copy is filled, and how much of the processor others get meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/agent/pace.h"
#include "runtime/agent/turns.h"

enum { WAY_NS = 10000 };

/* A way that serves one block after the other. Returns the blocks that went through in the time. */
struct way {
    struct pace pace;
    uint64_t way_ns; /* 0: WAY_NS */
    uint64_t jitter_ns, random;
    uint64_t now, sent, acked, busy_until, last;
    uint64_t done[4 * PACE_MAX]; /* when the block at the position is acknowledged */
    unsigned most;
};

static uint64_t run(struct way *w, uint64_t ns, uint64_t service_ns)
{
    uint64_t before = w->acked, end = w->now + ns;
    for (; w->now < end; w->now += 500) {
        while (w->acked < w->sent && w->done[(w->acked + 1) % (4 * PACE_MAX)] <= w->now)
            w->acked++;
        while (pace_may_send(&w->pace, w->acked, w->now)) {
            uint64_t from = w->now > w->busy_until ? w->now : w->busy_until;
            w->busy_until = from + service_ns;
            w->random = w->random * 6364136223846793005u + 1442695040888963407u;
            uint64_t done = w->busy_until + (w->way_ns ? w->way_ns : WAY_NS) +
                            (w->jitter_ns ? (w->random >> 33) % w->jitter_ns : 0);
            w->last = done > w->last ? done : w->last;
            w->done[++w->sent % (4 * PACE_MAX)] = w->last;
            pace_sent(&w->pace, w->sent, w->now);
        }
        if (w->sent - w->acked > w->most)
            w->most = (unsigned)(w->sent - w->acked);
    }
    return w->acked - before;
}

static void test_pace_keeps_a_free_way_busy(void **state)
{
    (void)state;
    struct way w = {0};
    run(&w, 10000000, 5000);
    assert_in_range(run(&w, 10000000, 5000), 1900, 2000); /* of 2000 */
    assert_true(w.most <= PACE_MAX);
}

static void test_pace_leaves_no_long_queue(void **state)
{
    (void)state;
    struct way w = {0};
    run(&w, 100000000, 20000);
    w.most = 0;
    run(&w, 10000000, 20000);
    assert_in_range(w.most, PACE_MIN, 12);
}

static void test_pace_goes_back_when_the_way_gets_slow_and_forth_again(void **state)
{
    (void)state;
    struct way w = {.way_ns = 40000};
    run(&w, 20000000, 2000);
    assert_true(w.most > 12);
    run(&w, 20000000, 50000);
    w.most = 0;
    run(&w, 10000000, 50000);
    assert_in_range(w.most, PACE_MIN, 8);
    run(&w, 20000000, 2000);
    assert_in_range(run(&w, 10000000, 2000), 4500, 5000);
}

static void test_pace_never_stands_still(void **state)
{
    (void)state;
    struct way w = {0};
    run(&w, 10000000, 1000);
    assert_true(run(&w, 1000000000, 10000000) >= 95); /* one in 10 ms */
    assert_true(w.pace.window >= PACE_MIN);
}

/* Agents share their processors with ranks: now a block is acknowledged after 60 us, now after half a millisecond, and
 * it is worked on in 40. With two on their way at a time, a third as many would go through. */
static void test_pace_is_not_misled_by_processors_that_are_shared(void **state)
{
    (void)state;
    struct way w = {.way_ns = 60000, .jitter_ns = 540000};
    run(&w, 100000000, 40000);
    w.most = 0;
    assert_in_range(run(&w, 1000000000, 40000), 15000, 25000); /* of 25000 */
    assert_in_range(w.most, 8, PACE_MAX);
}

/* The other agent stood still while it was to be found out how long a block takes. */
static void test_pace_does_not_take_a_stop_for_the_way(void **state)
{
    (void)state;
    struct way w = {.busy_until = 5000000};
    run(&w, 20000000, 40000);
    w.most = 0;
    run(&w, 50000000, 40000);
    assert_in_range(w.most, PACE_MIN, 8);
}

/* Everything takes five times as long: what waits is what counts, not the time. */
static void test_pace_keeps_busy_what_has_become_slow(void **state)
{
    (void)state;
    struct way w = {.way_ns = 40000};
    run(&w, 20000000, 8000);
    w.way_ns = 200000;
    run(&w, 100000000, 40000);
    w.most = 0;
    assert_in_range(run(&w, 100000000, 40000), 1500, 2500); /* of 2500 */
    assert_in_range(w.most, PACE_MIN, 12);
}

static void test_turns_are_as_long_as_the_others(void **state)
{
    (void)state;
    struct turns t = {0};
    assert_true(turns_due(&t, 1000));
    turns_back(&t, 1000, 300); /* nobody was there, or somebody who waits as well */
    assert_false(turns_due(&t, 1299));
    assert_true(turns_due(&t, 1300));
    turns_back(&t, 2000, 3000000); /* somebody computes */
    assert_false(turns_due(&t, 3001999));
    assert_true(turns_due(&t, 3002000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace_is_not_misled_by_processors_that_are_shared),
        cmocka_unit_test(test_pace_does_not_take_a_stop_for_the_way),
        cmocka_unit_test(test_pace_keeps_busy_what_has_become_slow),
        cmocka_unit_test(test_turns_are_as_long_as_the_others),
        cmocka_unit_test(test_pace_keeps_a_free_way_busy),
        cmocka_unit_test(test_pace_leaves_no_long_queue),
        cmocka_unit_test(test_pace_goes_back_when_the_way_gets_slow_and_forth_again),
        cmocka_unit_test(test_pace_never_stands_still),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
