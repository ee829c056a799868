/* Failures in the first three seconds of a job: who may only be starting is one that was never heard of, and no other.
 * Who was heard of is missed at once; and as soon as one view is settled everybody was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "tests/unit/detect/cores.h"

enum { NODES = 12, LEFT = 7 }; /* those from LEFT on fail */

static bool all_are_declared(int from)
{
    for (int i = 0; i < from; i++)
        for (int k = from; k < NODES; k++)
            if (look_alive(cores.c[i].m, k))
                return false;
    return true;
}

/* From the failure until all know, in milliseconds. */
static int known_after(int from)
{
    uint64_t failed = cores.now;
    while (!all_are_declared(from) && cores.now < failed + 8000 * MS)
        cores_pass(10 * MS);
    assert_true(all_are_declared(from));
    for (int i = 0; i < from; i++)
        assert_true(cores_is_well(&cores.c[i]));
    return (int)((cores.now - failed) / MS);
}

static void test_young_job_misses_whom_it_has_heard_of_at_once(void **state)
{
    (void)state;
    for (int killed = 0; killed < 2; killed++) {
        assert_true(cores_start(NODES, NULL));
        cores_pass(500 * MS);
        (killed ? cores_kill : cores_off)(NODES - 1);
        assert_in_range(known_after(NODES - 1), 0, killed ? 20 : 300);
        cores_end();
    }
}

static int cut_off(bool settled)
{
    assert_true(cores_start(NODES, NULL));
    cores_pass(200 * MS);
    if (settled)
        (void)cores_submit(1);
    cores_pass(100 * MS);
    for (int i = 0; i < LEFT; i++)
        for (int k = LEFT; k < NODES; k++) {
            cores.lost[i][k] = cores.lost[k][i] = true;
            cores.c[k].may_go = true;
        }
    int ms = known_after(LEFT);
    cores_end();
    return ms;
}

static void test_young_job_waits_for_those_never_heard_of_until_a_view_is_settled(void **state)
{
    (void)state;
    int unsettled = cut_off(false), settled = cut_off(true);
    printf(
        "five of twelve cut off 0.3 s after the start: known after %d ms, and %d where one event was ordered before\n",
        unsettled, settled);
    assert_in_range(unsettled, 2700, 4000);
    assert_in_range(settled, 190, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_young_job_misses_whom_it_has_heard_of_at_once),
        cmocka_unit_test(test_young_job_waits_for_those_never_heard_of_until_a_view_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
