/* A node joins, message by message: at each message that is sent its sender ends instead, killed or without power, or
 * the message is lost, or two of this happen; or somebody stands still. Whoever is left, the one that joined among
 * them, is one view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/detect/cores.h"

static int sponsor;

static void join_as(struct member *m, uint32_t incarnation, uint64_t now)
{
    const struct datagram msg = {
        .type = DATAGRAM_JOIN, .src = 3, .dst = m->p.self, .value = incarnation, .epoch = look_epoch(m)};
    uint8_t bytes[MEMBER_DATAGRAM_MAX];
    member_receive(m, 3, bytes, datagram_encode(&msg, bytes), now);
}

static void last_one_joins(struct member_params *p)
{
    p->n_born = p->n - 1;
    p->incarnation = 70 + (uint32_t)p->self;
    p->sponsor = sponsor;
    p->was = 1;
}

static void hide(int node, bool hidden)
{
    for (int i = 0; i < cores.n; i++)
        cores.lost[i][node] = cores.lost[node][i] = hidden;
}

/* n - 1 members that have known each other for a while, and one that has not been heard yet. */
static void start(int n, int events)
{
    assert_true(cores_start(n, last_one_joins));
    hide(n - 1, true);
    cores_pass(200 * MS);
    for (int i = 0; i < events; i++)
        (void)cores_submit(i % (n - 1));
    cores_pass(100 * MS);
    hide(n - 1, false);
}

static bool is_born(int n)
{
    bool born = false;
    for (int i = 0; i < n; i++)
        born |= cores_is_well(&cores.c[i]) && member_next_id(cores.c[i].m) == n;
    return born;
}

/* Could those who are left decide by all rules, however the deaths fell? */
static bool are_enough(int n)
{
    int total = is_born(n) ? n : n - 1, left = 0;
    bool certain = true;
    for (int i = 0; i < total; i++) {
        left += cores_is_well(&cores.c[i]);
        certain &= !cores.c[i].off;
    }
    return left > 0 && (2 * left > total || certain);
}

struct blow {
    long kill[2], lose;
    bool off;
};

static long runs;

/* Returns the number of messages. */
static long run(int n, int asked, struct blow blow)
{
    runs++;
    sponsor = asked;
    start(n, 6);
    cores.kill_at[0] = blow.kill[0];
    cores.kill_at[1] = blow.kill[1];
    cores.lose = blow.lose;
    cores.kill_off = blow.off;
    cores.counts = true;
    cores_pass(150 * MS);
    (void)cores_submit(n - 2);
    cores_pass(250 * MS);
    long sent = cores.sent;
    cores_pass(2000 * MS);
    bool enough = are_enough(n), all_well = true;
    for (int i = 0; i < n; i++)
        all_well &= !cores.c[i].halted;
    if (enough && !all_well)
        fail_msg("%d nodes, %d asked, blows %ld %ld %ld: one that is well has ended", n, asked, blow.kill[0],
                 blow.kill[1], blow.lose);
    if (enough && cores_is_well(&cores.c[n - 1]) && !is_born(n))
        fail_msg("%d nodes, %d asked, blows %ld %ld %ld: it is not born", n, asked, blow.kill[0], blow.kill[1],
                 blow.lose);
    if (enough && all_well)
        cores_expect_one_view();
    cores_end();
    return sent;
}

static void test_join_one_death_or_loss_anywhere(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++)
        for (int asked = 0; asked < n - 1; asked++)
            for (int off = 0; off < 2; off++) {
                long all = run(n, asked, (struct blow){.off = off});
                for (long k = 1; k <= all; k++) {
                    run(n, asked, (struct blow){.kill = {k}, .off = off});
                    if (!off)
                        run(n, asked, (struct blow){.lose = k});
                }
            }
    printf("%ld runs\n", runs);
}

static void test_join_two_deaths_or_a_loss_too_anywhere(void **state)
{
    (void)state;
    const int n = 4;
    for (int asked = 0; asked < 2; asked++)
        for (int off = 0; off < 2; off++) {
            long all = run(n, asked, (struct blow){.off = off});
            for (long k = 1; k <= all; k++) {
                long more = run(n, asked, (struct blow){.kill = {k}, .off = off});
                for (long l = 1; l <= more; l++) {
                    if (l > k)
                        run(n, asked, (struct blow){.kill = {k, l}, .off = off});
                    if (l != k)
                        run(n, asked, (struct blow){.kill = {k}, .lose = l, .off = off});
                }
            }
        }
    printf("%ld runs\n", runs);
}

/* It takes the log of those who are there, whoever of them stands still for three seconds (but limits are longer). */
static void with_long_limits(struct member_params *p)
{
    last_one_joins(p);
    member_params_silence(p, 10000, 30000);
}

static void test_join_while_one_stands_still_for_three_seconds(void **state)
{
    (void)state;
    for (int still = 0; still < 4; still++)
        for (int at = 0; at < 12; at++) {
            sponsor = 0;
            assert_true(cores_start(4, with_long_limits));
            hide(3, true);
            cores_pass(200 * MS);
            (void)cores_submit(1);
            cores_pass(100 * MS);
            hide(3, false);
            cores_pass((uint64_t)at * MS / 10);
            hide(still, true);
            cores_pass(3000 * MS);
            hide(still, false);
            cores_pass(3000 * MS);
            assert_true(is_born(4));
            cores_expect_one_view();
            cores_end();
        }
}

/* What was accepted by somebody who was born meanwhile has to be found: its promise was never asked for. */
static void test_join_a_leader_collects_before_it_proposes_to_who_was_born(void **state)
{
    (void)state;
    sponsor = 0;
    start(4, 1);
    cores_pass(50 * MS);
    assert_true(is_born(4));
    const uint64_t before = cores.c[3].m->agreement.promised;
    (void)cores_submit(1);
    cores_pass(50 * MS);
    assert_true(cores.c[0].m->agreement.leading);
    assert_true(cores.c[3].m->agreement.promised > before);
    assert_int_equal(cores.c[3].m->agreement.promised, cores.c[0].m->agreement.promised);
    const uint64_t promised = cores.c[3].m->agreement.promised; /* once is enough */
    (void)cores_submit(1);
    cores_pass(50 * MS);
    assert_int_equal(cores.c[3].m->agreement.promised, promised);
    cores_expect_one_view();
    cores_end();
}

/* Births that are not the next one's, or of somebody else under an id that is taken, come to nothing, and are
 * forgotten. */
static void test_join_a_birth_that_is_not_the_next_one_is_void(void **state)
{
    (void)state;
    sponsor = 0;
    assert_true(cores_start(4, last_one_joins));
    cores_kill(3); /* it never says anything */
    cores_pass(100 * MS);
    uint64_t now = cores.now;
    for (int i = 0; i < 3; i++)
        join_as(cores.c[i].m, 50 + (uint32_t)i, now);
    join_as(cores.c[1].m, 51, now); /* the same again */
    cores_pass(2000 * MS);          /* nobody is there, and its kernel says so: it is waited for till then */
    int births = 0;
    for (uint64_t e = 1; e <= look_epoch(cores.c[0].m); e++) {
        struct view_event event[MEMBER_EVENTS_MAX];
        int n = look_log(cores.c[0].m, e, event);
        for (int i = 0; i < n; i++)
            births += event[i].type == VIEW_NODE_BORN && event[i].a == 3;
    }
    assert_int_equal(births, 1);
    assert_int_equal(member_next_id(cores.c[0].m), 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cores.c[i].m->events.n_mine, 0);
    assert_false(look_alive(cores.c[0].m, 3));
    join_as(cores.c[0].m, 99, cores.now); /* never again */
    cores_pass(100 * MS);
    assert_false(look_alive(cores.c[0].m, 3));
    cores_expect_one_view();
    cores_end();
}

/* Another one was born under its id: it ends, and does not take itself for that one. */
static void test_join_who_is_not_meant_ends(void **state)
{
    (void)state;
    sponsor = 0;
    start(4, 0);
    hide(3, true);
    join_as(cores.c[1].m, 12345, cores.now);
    cores_pass(50 * MS);
    hide(3, false);
    cores_pass(100 * MS);
    assert_true(cores.c[3].halted);
    assert_string_equal(cores.c[3].reason, "its number was given to another node");
    assert_true(member_was_left_out(cores.c[3].reason));
    assert_int_equal(cores.c[3].commits, 0);
    cores_end();
}

static void test_join_without_an_answer_it_ends(void **state)
{
    (void)state;
    sponsor = 0;
    assert_true(cores_start(3, last_one_joins));
    hide(2, true);
    cores_pass(2000 * MS);
    assert_false(cores.c[2].halted);
    cores_pass(1000 * MS);
    assert_true(cores.c[2].halted);
    assert_string_equal(cores.c[2].reason, "no member answers");
    assert_false(member_was_left_out(cores.c[2].reason));
    cores_end();
}

/* Ids for which there is room only are no members: of two, one certainly dead, the other one goes on; of three the
 * larger side. */
static void two_of_many(struct member_params *p)
{
    p->n_born = 3;
}

static void test_join_unborn_nodes_are_in_no_majority(void **state)
{
    (void)state;
    assert_true(cores_start(9, two_of_many));
    for (int i = 3; i < 9; i++)
        cores_off(i);
    cores_pass(300 * MS);
    cores_off(0);
    cores_pass(5000 * MS);
    assert_true(cores_is_well(&cores.c[1]) && cores_is_well(&cores.c[2]));
    assert_int_equal(look_epoch(cores.c[1].m), 1);
    assert_false(look_alive(cores.c[1].m, 0));
    assert_int_equal(look_next(cores.c[1].m, 3), -1);
    cores_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_one_death_or_loss_anywhere),
        cmocka_unit_test(test_join_two_deaths_or_a_loss_too_anywhere),
        cmocka_unit_test(test_join_while_one_stands_still_for_three_seconds),
        cmocka_unit_test(test_join_a_leader_collects_before_it_proposes_to_who_was_born),
        cmocka_unit_test(test_join_a_birth_that_is_not_the_next_one_is_void),
        cmocka_unit_test(test_join_who_is_not_meant_ends),
        cmocka_unit_test(test_join_without_an_answer_it_ends),
        cmocka_unit_test(test_join_unborn_nodes_are_in_no_majority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
