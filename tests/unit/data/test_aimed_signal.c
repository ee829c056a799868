/* Aimed schedules of signals: who waits, and what happens beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "runtime/client/op/signal.h"

enum { WORD_AT = 64 };

static int sleeps; /* until rank 1 is gone */
static bool signals_before;

static void sleep_until_it_is_gone(void *u, int ms)
{
    (void)u, (void)ms;
    int64_t five = 5;
    if (--sleeps == 0) {
        for (int node = 3; signals_before && node < 5; node++)
            memcpy(bytes_at(node % 4, SEG_SHADOW, 3) + WORD_AT, &five, sizeof five);
        c.coll.life[1].life = 0;
    }
    world_turn();
}

/* a rank signals and dies, and both are seen in the same moment: what it had added is there. */
static void test_aimed_signal_of_a_rank_that_is_gone_counts(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        int64_t got = -1;
        client_open();
        assert_int_not_equal(c.coll.life[1].life, 0);
        sleeps = 5;
        signals_before = before;
        c.env.sleep = sleep_until_it_is_gone;
        assert_int_equal(signal_wait(&c, shadow, WORD_AT, KEEL_GE, 5, 1, &got), before ? KEEL_OK : KEEL_ERR_RANK_DEAD);
        assert_true(sleeps <= 0);
        assert_int_equal(got, before ? 5 : 0);
        client_close(state);
        setup(state);
    }
    client_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_signal_of_a_rank_that_is_gone_counts, setup, client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
