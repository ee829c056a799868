#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "collectives/meet.h"
#include "runtime/base/bitset.h"
#include "runtime/base/rng.h"
#include "tests/unit/collectives/made.h"

enum { N_MAX = 64 };

static struct roster *random_roster(struct rng *r, int n, int tenths_dead)
{
    uint64_t bits[1] = {0};
    for (int i = 0; i < n; i++)
        if ((int)rng_below(r, 10) >= tenths_dead)
            bitset_add(bits, i);
    if (!bits[0])
        bitset_add(bits, (int)rng_below(r, (uint64_t)n));
    return made_roster(n, bits, 1);
}

static int log2_up(int n)
{
    int k = 0;
    while (1 << k < n)
        k++;
    return k;
}

/* Everybody follows its plan; each message takes one unit of time. Returns when the last is through, asserts that all
 * know all. The messages are counted. */
static int follow_nodes(enum meet_shape shape, const struct roster *r, const int *node, int *messages)
{
    static struct meet_step plan[N_MAX][MEET_STEPS_MAX];
    static struct {
        bool sent;
        uint64_t known;
        int time;
    } letter[N_MAX][N_MAX][256];
    int steps[N_MAX] = {0}, at[N_MAX] = {0}, time[N_MAX] = {0}, n = roster_size(r), last = 0;
    uint64_t known[N_MAX];
    for (int i = 0; i < n; i++) {
        known[i] = 1ull << i;
        for (int k = 0; k < n; k++)
            for (int t = 0; t < 256; t++)
                letter[i][k][t].sent = false;
        if (roster_has(r, i))
            steps[i] = node ? meet_plan_nodes(r, node, i, plan[i]) : meet_plan(shape, r, i, plan[i]);
    }
    *messages = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n; i++)
            for (; at[i] < steps[i]; at[i]++, moved = true) {
                const struct meet_step *s = &plan[i][at[i]];
                assert_true(roster_has(r, s->member) && s->member != i);
                if (s->wait && !letter[s->member][i][s->tag].sent)
                    break;
                if (s->wait) {
                    known[i] |= letter[s->member][i][s->tag].known;
                    if (letter[s->member][i][s->tag].time > time[i])
                        time[i] = letter[s->member][i][s->tag].time;
                    continue;
                }
                assert_false(letter[i][s->member][s->tag].sent); /* a name is used once */
                letter[i][s->member][s->tag].sent = true;
                letter[i][s->member][s->tag].known = known[i];
                letter[i][s->member][s->tag].time = time[i] + 1;
                (*messages)++;
            }
    }
    for (int i = 0; i < n; i++) {
        assert_int_equal(at[i], steps[i]); /* nobody waits for what nobody sends */
        if (roster_has(r, i))
            assert_true(known[i] == roster_bits(r)[0]);
        last = time[i] > last ? time[i] : last;
    }
    return last;
}

static int follow(enum meet_shape shape, const struct roster *r, int *messages)
{
    return follow_nodes(shape, r, NULL, messages);
}

static void test_meet_nodes_sends_little_between_them_whoever_is_dead(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 6);
    for (int round = 0; round < 600; round++) {
        struct roster *roster = random_roster(&r, 1 + round % N_MAX, (int)rng_below(&r, 10));
        int node[N_MAX], live[N_MAX] = {0}, messages, nodes = 0, largest = 0, among = 1 + (int)rng_below(&r, 6);
        for (int i = 0; i < N_MAX; i++)
            node[i] = round % 2 ? i * among / N_MAX : (int)rng_below(&r, (uint64_t)among); /* in a row, or mixed */
        for (int i = 0; i < roster_size(roster); i++)
            live[node[i]] += roster_has(roster, i);
        for (int k = 0; k < among; k++) {
            nodes += live[k] > 0;
            largest = live[k] > largest ? live[k] : largest;
        }
        assert_true(follow_nodes(MEET_CUBE, roster, node, &messages) <= log2_up(nodes) + 2 * log2_up(largest));
        assert_int_equal(messages, 2 * (roster_live(roster) - nodes) + nodes * log2_up(nodes));
        roster_unref(roster);
    }
}

static void test_meet_has_nodes_where_some_are_together_and_some_not(void **state)
{
    (void)state;
    uint64_t all[1] = {0xf}, two[1] = {0x3};
    struct roster *four = made_roster(4, all, 1), *half = made_roster(4, two, 2);
    int apart[4] = {0, 1, 2, 3}, together[4] = {5, 5, 5, 5}, pairs[4] = {0, 0, 1, 1};
    assert_false(meet_has_nodes(four, apart) || meet_has_nodes(four, together) || meet_has_nodes(half, pairs));
    assert_true(meet_has_nodes(four, pairs));
    roster_unref(four);
    roster_unref(half);
}

static void test_meet_cube_takes_log2_steps_and_messages_whoever_is_dead(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 4);
    for (int round = 0; round < 600; round++) {
        struct roster *roster = random_roster(&r, 1 + round % N_MAX, (int)rng_below(&r, 10));
        int messages, live = roster_live(roster);
        assert_int_equal(follow(MEET_CUBE, roster, &messages), log2_up(live));
        assert_int_equal(messages, live * log2_up(live));
        roster_unref(roster);
    }
}

static void test_meet_tree_takes_two_messages_a_member_whoever_is_dead(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    for (int round = 0; round < 600; round++) {
        struct roster *roster = random_roster(&r, 1 + round % N_MAX, (int)rng_below(&r, 10));
        int messages;
        assert_true(follow(MEET_TREE, roster, &messages) <= 2 * log2_up(roster_size(roster)));
        assert_int_equal(messages, 2 * (roster_live(roster) - 1));
        roster_unref(roster);
    }
}

/* The tree of six with member 2 dead: member 3 has its duties, towards the root and towards nobody else. */
static void test_meet_tree_duties_go_to_the_next_live_member(void **state)
{
    (void)state;
    uint64_t bits[1] = {0x3b};
    struct meet_step plan[MEET_STEPS_MAX];
    struct roster *roster = made_roster(6, bits, 1);
    assert_int_equal(meet_plan(MEET_TREE, roster, 3, plan), 2);
    assert_true(plan[0].member == 0 && !plan[0].wait);
    assert_true(plan[1].member == 0 && plan[1].wait);
    assert_int_equal(meet_plan(MEET_TREE, roster, 4, plan), 4);
    assert_true(plan[0].member == 5 && plan[0].wait);
    roster_unref(roster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meet_nodes_sends_little_between_them_whoever_is_dead),
        cmocka_unit_test(test_meet_has_nodes_where_some_are_together_and_some_not),
        cmocka_unit_test(test_meet_cube_takes_log2_steps_and_messages_whoever_is_dead),
        cmocka_unit_test(test_meet_tree_takes_two_messages_a_member_whoever_is_dead),
        cmocka_unit_test(test_meet_tree_duties_go_to_the_next_live_member),
    };
    return cmocka_run_group_tests_name("meet", tests, NULL, NULL);
}
