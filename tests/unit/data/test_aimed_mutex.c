/* Aimed schedules of mutexes: what a rank makes of a word that another one has written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "aimed.h"
#include "runtime/client/mutex.h"

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
    keel_mutexes *m = mutexes_attach(&c, shadow, 1);
    assert_non_null(m);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aimed_mutex_of_a_process_that_is_not_in_the_view_yet, setup, client_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
