#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/sim/barrier.h"
#include "runtime/base/bitset.h"
#include "runtime/base/rng.h"

enum { N_MAX = 64, QUEUE = 1 << 16 };
#define MS 1000000ull

struct fake {
    int id;
    struct barrier *b;
    uint64_t completed;
};
static struct fake fakes[N_MAX];
static struct {
    int from, to, step;
    size_t len;
    uint8_t data[64];
} queue[QUEUE];
static int head, tail, now_step, n_nodes;
static bool gone[N_MAX];
static uint64_t members[1];

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct fake *f = user;
    assert_true(tail < QUEUE && len <= sizeof queue[0].data);
    queue[tail].from = f->id;
    queue[tail].to = to;
    queue[tail].step = now_step + 1;
    queue[tail].len = len;
    memcpy(queue[tail++].data, data, len);
}

static void on_complete(void *user, uint64_t seq)
{
    struct fake *f = user;
    assert_int_equal(seq, ++f->completed);
}

static void start(int n)
{
    struct barrier_ops ops = {.send = on_send, .complete = on_complete};
    n_nodes = n;
    head = tail = now_step = 0;
    memset(gone, 0, sizeof gone);
    members[0] = 0;
    bitset_fill(members, n);
    for (int i = 0; i < n; i++) {
        fakes[i] = (struct fake){.id = i};
        ops.user = &fakes[i];
        fakes[i].b = barrier_create(n, i, &ops);
        barrier_set_members(fakes[i].b, members, 0);
    }
}

static void stop(void)
{
    for (int i = 0; i < n_nodes; i++)
        barrier_destroy(fakes[i].b);
}

/* All messages of one step are delivered before those they cause. Returns the number of steps. */
static int deliver(void)
{
    for (; head < tail; head++) {
        now_step = queue[head].step;
        if (!gone[queue[head].to] && !gone[queue[head].from])
            barrier_receive(fakes[queue[head].to].b, queue[head].from, queue[head].data, queue[head].len, 0);
    }
    return now_step;
}

static int steps_for(int n)
{
    int k = 0;
    while (1 << k < n)
        k++;
    return k;
}

static void test_barrier_without_failure_takes_log2_steps(void **state)
{
    (void)state;
    for (int n = 1; n <= N_MAX; n++) {
        start(n);
        for (int i = 0; i < n; i++)
            barrier_enter(fakes[i].b, 0);
        assert_true(deliver() <= steps_for(n));
        for (int i = 0; i < n; i++)
            assert_int_equal(fakes[i].completed, 1);
        stop();
    }
}

/* The members have gaps (dead nodes) in any pattern: still log2 of the id space, without any timer. */
static void test_barrier_with_any_corners_missing_takes_log2_steps(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 9);
    for (int round = 0; round < 2000; round++) {
        int n = 2 + (int)rng_below(&r, N_MAX - 1);
        start(n);
        for (int i = 0; i < n; i++)
            if (rng_below(&r, 3) == 0) {
                gone[i] = true;
                bitset_del(members, i);
            }
        for (int i = 0; i < n; i++)
            barrier_set_members(fakes[i].b, members, 0);
        for (int i = 0; i < n; i++)
            if (!gone[i])
                barrier_enter(fakes[i].b, 0);
        assert_true(deliver() <= steps_for(n));
        for (int i = 0; i < n; i++)
            if (!gone[i])
                assert_int_equal(fakes[i].completed, 1);
        stop();
    }
}

static void test_barrier_one_missing_opens_for_nobody(void **state)
{
    (void)state;
    start(13);
    for (int i = 0; i < 12; i++)
        barrier_enter(fakes[i].b, 0);
    deliver();
    for (int round = 1; round < 50; round++) {
        for (int i = 0; i < 12; i++)
            barrier_tick(fakes[i].b, (uint64_t)round * 1000 * MS);
        deliver();
    }
    for (int i = 0; i < 12; i++)
        assert_int_equal(fakes[i].completed, 0);
    barrier_enter(fakes[12].b, 0);
    deliver();
    for (int i = 0; i < 13; i++)
        assert_int_equal(fakes[i].completed, 1);
    stop();
}

static void test_barrier_member_dies_inside_others_go_on_after_the_view(void **state)
{
    (void)state;
    start(8);
    for (int i = 0; i < 8; i++)
        if (i != 5)
            barrier_enter(fakes[i].b, 0);
    deliver();
    gone[5] = true;
    bitset_del(members, 5);
    for (int i = 0; i < 8; i++)
        if (i != 5) {
            barrier_freeze(fakes[i].b);
            barrier_set_members(fakes[i].b, members, 0);
            assert_int_equal(fakes[i].completed, 0);
        }
    for (int i = 0; i < 8; i++)
        if (i != 5)
            barrier_thaw(fakes[i].b, 0);
    deliver();
    for (int i = 0; i < 8; i++)
        if (i != 5)
            assert_int_equal(fakes[i].completed, 1);
    stop();
}

static void test_barrier_joiner_is_waited_for_and_late_ones_learn_of_the_past(void **state)
{
    (void)state;
    start(4);
    bitset_del(members, 3); /* node 3 is a spare */
    for (int i = 0; i < 4; i++)
        barrier_set_members(fakes[i].b, members, 0);
    for (int i = 0; i < 3; i++)
        barrier_enter(fakes[i].b, 0);
    gone[2] = true; /* cut: 0 and 1 may complete the first barrier, 2 not yet */
    deliver();
    gone[2] = false;
    uint64_t most = 0;
    for (int i = 0; i < 3; i++) {
        barrier_freeze(fakes[i].b);
        most = barrier_completed(fakes[i].b) > most ? barrier_completed(fakes[i].b) : most;
    }
    bitset_add(members, 3);
    for (int i = 0; i < 4; i++) {
        if (i == 3)
            barrier_join(fakes[3].b, most);
        barrier_set_members(fakes[i].b, members, 0);
        barrier_thaw(fakes[i].b, 0);
    }
    deliver();
    for (int round = 1; round < 10; round++) {
        for (int i = 0; i < 4; i++)
            barrier_tick(fakes[i].b, (uint64_t)round * 1000 * MS);
        deliver();
    }
    if (most == 1)
        for (int i = 0; i < 3; i++)
            assert_int_equal(barrier_completed(fakes[i].b), 1);
    for (int i = 0; i < 3; i++)
        if (!barrier_waiting(fakes[i].b))
            barrier_enter(fakes[i].b, 0);
    deliver();
    for (int i = 0; i < 3; i++)
        assert_int_equal(barrier_completed(fakes[i].b), most); /* not without the joiner */
    fakes[3].completed = most;
    barrier_enter(fakes[3].b, 0);
    deliver();
    for (int i = 0; i < 4; i++)
        assert_int_equal(barrier_completed(fakes[i].b), most + 1);
    stop();
}

static void test_barrier_lost_messages_are_made_good_by_the_timer(void **state)
{
    (void)state;
    start(9);
    for (int i = 0; i < 9; i++)
        barrier_enter(fakes[i].b, 0);
    head = tail; /* everything is lost */
    for (int round = 1; round < 40; round++) {
        for (int i = 0; i < 9; i++)
            barrier_tick(fakes[i].b, (uint64_t)round * 1000 * MS);
        deliver();
    }
    for (int i = 0; i < 9; i++)
        assert_int_equal(fakes[i].completed, 1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier_without_failure_takes_log2_steps),
        cmocka_unit_test(test_barrier_with_any_corners_missing_takes_log2_steps),
        cmocka_unit_test(test_barrier_one_missing_opens_for_nobody),
        cmocka_unit_test(test_barrier_member_dies_inside_others_go_on_after_the_view),
        cmocka_unit_test(test_barrier_joiner_is_waited_for_and_late_ones_learn_of_the_past),
        cmocka_unit_test(test_barrier_lost_messages_are_made_good_by_the_timer),
    };
    return cmocka_run_group_tests_name("barrier", tests, NULL, NULL);
}
