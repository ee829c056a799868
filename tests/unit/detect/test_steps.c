/* The agreement message by message: at each message that is sent its sender ends instead, killed or without power, or
 * the message is lost, or two of this happen. What two members have committed is never different, and those who are
 * left, if they are a quorum, are one view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/detect/cores.h"

enum story { EVENTS, KILLED, SILENT, STORIES };

/* Could those who are left decide by all rules, however the deaths fell? */
static bool are_enough(int n)
{
    int left = 0;
    bool certain = true;
    for (int i = 0; i < n; i++) {
        left += cores_is_well(&cores.c[i]);
        certain &= !cores.c[i].off;
    }
    return left > 0 && (2 * left > n || certain);
}

struct blow {
    long kill[2], lose;
    bool off;
};

/* Returns the number of messages. */
static long run(int n, enum story story, struct blow blow)
{
    assert_true(cores_start(n, NULL));
    cores_pass(300 * MS);
    cores.kill_at[0] = blow.kill[0];
    cores.kill_at[1] = blow.kill[1];
    cores.lose = blow.lose;
    cores.kill_off = blow.off;
    cores.counts = true;
    (void)cores_submit(1);
    (void)cores_submit(n - 2);
    if (story != EVENTS)
        (story == KILLED ? cores_kill : cores_off)(n - 1);
    cores_pass(400 * MS);
    long sent = cores.sent;
    cores_pass(2000 * MS);
    bool enough = are_enough(n);
    for (int i = 0; i < n; i++)
        enough &= !cores.c[i].halted;
    if (are_enough(n) && !enough)
        fail_msg("%d nodes, story %d, blows %ld %ld %ld: one that is well has ended", n, (int)story, blow.kill[0],
                 blow.kill[1], blow.lose);
    if (enough)
        cores_expect_one_view();
    cores_end();
    return sent;
}

static long runs;

static void one_blow(int n, enum story story)
{
    for (int off = 0; off < 2; off++) {
        long all = run(n, story, (struct blow){.off = off});
        for (long k = 1; k <= all; k++) {
            run(n, story, (struct blow){.kill = {k}, .off = off});
            if (!off)
                run(n, story, (struct blow){.lose = k});
            runs += 2 - off;
        }
    }
}

static void two_blows(int n, enum story story, bool off)
{
    long all = run(n, story, (struct blow){.off = off});
    for (long k = 1; k <= all; k++) {
        long more = run(n, story, (struct blow){.kill = {k}, .off = off});
        for (long l = 1; l <= more; l++) {
            if (l > k)
                run(n, story, (struct blow){.kill = {k, l}, .off = off});
            if (l != k)
                run(n, story, (struct blow){.kill = {k}, .lose = l, .off = off});
            runs += (l > k) + (l != k);
        }
    }
}

static void test_steps_one_death_or_loss_anywhere(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++)
        for (enum story s = EVENTS; s < STORIES; s++)
            one_blow(n, s);
}

static void test_steps_two_deaths_or_a_loss_too_anywhere(void **state)
{
    (void)state;
    const char *nodes = getenv("KEEL_STEPS_NODES");
    int most = nodes ? atoi(nodes) : 4; // NOLINT(cert-err34-c)
    for (int n = 3; n <= most; n++)
        for (enum story s = EVENTS; s < STORIES; s++)
            for (int off = 0; off < 2; off++)
                two_blows(n, s, off);
    printf("%ld runs\n", runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_one_death_or_loss_anywhere),
        cmocka_unit_test(test_steps_two_deaths_or_a_loss_too_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
