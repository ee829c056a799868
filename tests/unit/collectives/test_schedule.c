/* Schedules as such: all places' steps fit together, end whatever the order, and have the length that their algorithm
 * promises. What comes out of them is checked where they are executed, tests/sim/coll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "collectives/schedule.h"

enum { N_MAX = 33, LETTERS = 1 << 14 };

static struct letter {
    int from, to;
    uint32_t tag;
    size_t len;
    int time;
    bool read;
    int next; /* of the same pair, + 1 */
} letters[LETTERS];
static int n_letters, first_of[N_MAX][N_MAX];

static struct schedule_block blocks[N_MAX];
static int nodes[N_MAX];

static struct schedule_shape shape_of(enum schedule_kind kind, int n, size_t units, bool uniform)
{
    struct schedule_shape s = {.kind = kind, .places = n, .root = n / 3, .unit = 8, .uniform = uniform, .node = nodes};
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        blocks[i] = (struct schedule_block){at, (uniform ? units : ((size_t)i * 5 + units) % 7) * 8};
        at += blocks[i].len;
        nodes[i] = i / 3;
    }
    s.len = kind == SCHEDULE_REDUCE_SCATTER ? at : units * 8;
    s.in = s.out = blocks;
    return s;
}

static struct letter *find_letter(int from, int to, uint32_t tag)
{
    for (int i = first_of[from][to]; i; i = letters[i - 1].next)
        if (letters[i - 1].tag == tag)
            return &letters[i - 1];
    return NULL;
}

static void post(int from, const struct schedule_step *step, int time)
{
    assert_null(find_letter(from, step->peer, step->tag)); /* a name is used once */
    assert_true(n_letters < LETTERS);
    letters[n_letters++] =
        (struct letter){from, step->peer, step->tag, step->len, time, false, first_of[from][step->peer]};
    first_of[from][step->peer] = n_letters;
}

/* Executes all places' steps without data. Returns the steps of time to the end; *most: messages sent by one place. */
static int execute(enum schedule_algorithm a, struct schedule_shape shape, int *most)
{
    struct schedule s[N_MAX];
    size_t at[N_MAX] = {0};
    int time[N_MAX] = {0}, sent[N_MAX] = {0}, last = 0;
    n_letters = *most = 0;
    memset(first_of, 0, sizeof first_of);
    for (int i = 0; i < shape.places; i++) {
        shape.me = i;
        shape.mine = blocks[i].len;
        if (shape.kind == SCHEDULE_ALLTOALL) /* the block from i to k is as long on both sides */
            shape.in = shape.out = blocks;
        assert_true(schedule_build(&s[i], a, &shape));
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = shape.places - 1; i >= 0; i--)
            for (; at[i] < s[i].n; at[i]++, moved = true) {
                const struct schedule_step *step = &s[i].step[at[i]];
                struct letter *l;
                bool passes = step->op == SCHEDULE_SEND || step->op == SCHEDULE_RECV;
                assert_true(step->len > 0 || (passes && !shape.uniform));
                if (step->op == SCHEDULE_SEND) {
                    assert_true(step->peer >= 0 && step->peer < shape.places && step->peer != i);
                    post(i, step, time[i] + 1);
                    sent[i]++;
                } else if (step->op == SCHEDULE_RECV) {
                    if (!(l = find_letter(step->peer, i, step->tag)))
                        break;
                    assert_int_equal(l->len, step->len);
                    assert_false(l->read);
                    l->read = true;
                    time[i] = l->time > time[i] ? l->time : time[i];
                }
            }
    }
    for (int i = 0; i < shape.places; i++) {
        assert_int_equal(at[i], s[i].n);
        last = time[i] > last ? time[i] : last;
        *most = sent[i] > *most ? sent[i] : *most;
        schedule_fini(&s[i]);
    }
    for (int i = 0; i < n_letters; i++)
        assert_true(letters[i].read);
    return last;
}

static void test_schedule_all_fit_together_at_any_size(void **state)
{
    (void)state;
    int done = 0, most;
    for (int kind = 0; kind < SCHEDULE_KINDS; kind++)
        for (int a = 0; a < SCHEDULE_ALGORITHMS; a++)
            for (int n = 1; n <= N_MAX; n++)
                for (int v = 0; v < 4; v++) {
                    bool uniform = kind == SCHEDULE_ALLTOALL || v < 3;
                    struct schedule_shape shape =
                        shape_of((enum schedule_kind)kind, n, (size_t[]){0, 1, 100, 3}[v], uniform);
                    if (!schedule_fits((enum schedule_algorithm)a, &shape))
                        continue;
                    execute((enum schedule_algorithm)a, shape, &most);
                    done++;
                }
    assert_true(done > 2000);
}

static int log2_up(int n)
{
    int k = 0;
    while (1 << k < n)
        k++;
    return k;
}

static void test_schedule_trees_and_doubling_take_log2_steps(void **state)
{
    (void)state;
    int most;
    for (int n = 2; n <= N_MAX; n++) {
        int k = log2_up(n);
        assert_true(execute(SCHEDULE_BINOMIAL, shape_of(SCHEDULE_BCAST, n, 4, true), &most) <= k);
        assert_true(execute(SCHEDULE_BINOMIAL, shape_of(SCHEDULE_REDUCE, n, 4, true), &most) <= k);
        assert_true(execute(SCHEDULE_BINOMIAL, shape_of(SCHEDULE_GATHER, n, 4, true), &most) <= k);
        assert_true(execute(SCHEDULE_BINOMIAL, shape_of(SCHEDULE_SCATTER, n, 4, true), &most) <= k);
        assert_true(execute(SCHEDULE_BRUCK, shape_of(SCHEDULE_ALLGATHER, n, 4, true), &most) <= k);
        assert_int_equal(most, k);
        assert_true(execute(SCHEDULE_BRUCK, shape_of(SCHEDULE_ALLTOALL, n, 4, true), &most) <= k);
        assert_true(execute(SCHEDULE_DOUBLING, shape_of(SCHEDULE_SCAN, n, 4, true), &most) <= k);
        /* folding takes one step more on each side where n is no power of two */
        int fold = n & (n - 1) ? 1 : 0;
        assert_true(execute(SCHEDULE_DOUBLING, shape_of(SCHEDULE_ALLREDUCE, n, 4, true), &most) <= k - fold + 2 * fold);
        assert_true(execute(SCHEDULE_RABENSEIFNER, shape_of(SCHEDULE_ALLREDUCE, n, 100, true), &most) <= 2 * k);
    }
}

/* The bytes that a place sends: what large vectors are judged by. */
static size_t most_bytes(int n)
{
    size_t sent[N_MAX] = {0}, most = 0;
    for (int i = 0; i < n_letters; i++)
        sent[letters[i].from] += letters[i].len;
    for (int i = 0; i < n; i++)
        most = sent[i] > most ? sent[i] : most;
    return most;
}

static void test_schedule_long_vectors_pass_through_each_place_twice(void **state)
{
    (void)state;
    int most;
    for (int n = 2; n <= 32; n++) {
        size_t units = (size_t)n * 1000;
        execute(SCHEDULE_RING, shape_of(SCHEDULE_ALLREDUCE, n, units, true), &most);
        assert_true(most_bytes(n) <= 2 * units * 8);
        execute(SCHEDULE_PIPELINE, shape_of(SCHEDULE_BCAST, n, units, true), &most);
        assert_true(most_bytes(n) <= units * 8);
        if (!(n & (n - 1))) {
            execute(SCHEDULE_RABENSEIFNER, shape_of(SCHEDULE_ALLREDUCE, n, units, true), &most);
            assert_true(most_bytes(n) <= 2 * units * 8);
        }
    }
}

/* Three places on each node: between nodes only the leaders' messages. */
static void test_schedule_two_levels_send_between_nodes_only_among_leaders(void **state)
{
    (void)state;
    int most;
    static const enum schedule_kind kinds[] = {SCHEDULE_BCAST, SCHEDULE_REDUCE, SCHEDULE_ALLREDUCE};
    for (size_t k = 0; k < 3; k++)
        for (int n = 4; n <= N_MAX; n++) {
            struct schedule_shape shape = shape_of(kinds[k], n, 4, true);
            execute(SCHEDULE_TWO_LEVEL, shape, &most);
            int leaders[N_MAX] = {0}, between = 0;
            for (int i = 0; i < n_letters; i++) {
                if (nodes[letters[i].from] == nodes[letters[i].to])
                    continue;
                between++;
                int *leader = &leaders[nodes[letters[i].from]];
                assert_true(!*leader || *leader == letters[i].from + 1);
                *leader = letters[i].from + 1;
            }
            int count = nodes[n - 1] + 1;
            assert_true(kinds[k] == SCHEDULE_ALLREDUCE || between == count - 1);
        }
}

static void test_schedule_the_table_has_an_entry_for_everything(void **state)
{
    (void)state;
    int most;
    for (int kind = 0; kind < SCHEDULE_KINDS; kind++)
        for (int n = 1; n <= N_MAX; n += 3)
            for (size_t units = 1; units < 1 << 20; units *= 16)
                for (int v = 0; v < 4; v++) {
                    struct schedule_shape shape =
                        shape_of((enum schedule_kind)kind, n, units, v & 1 || kind == SCHEDULE_ALLTOALL);
                    shape.ordered = v & 2;
                    enum schedule_algorithm a = schedule_choose(&shape);
                    assert_true(schedule_fits(a, &shape));
                    if (units < 4096)
                        execute(a, shape, &most);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_all_fit_together_at_any_size),
        cmocka_unit_test(test_schedule_trees_and_doubling_take_log2_steps),
        cmocka_unit_test(test_schedule_long_vectors_pass_through_each_place_twice),
        cmocka_unit_test(test_schedule_two_levels_send_between_nodes_only_among_leaders),
        cmocka_unit_test(test_schedule_the_table_has_an_entry_for_everything),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
