/* Sets begin anew: many runs of two and three sets, whose processes and nodes die at any moment, also those that have
 * begun anew, and those from which they begin. Whoever comes to the end has computed what the program computes alone,
 * and nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/data/renew_bed.h"
#include "tests/unit/data/seed.h"

enum { DEATHS_MAX = 8, TICKS_MAX = 2000000, RUNS = 120, SOON = 40 /* steps, in which a set is whole again */ };

struct deaths {
    int n;
    uint64_t at[DEATHS_MAX];
};

/* Half of them in a row. */
static void draw_deaths(struct rng *rng, uint64_t ticks, struct deaths *d)
{
    d->n = (int)rng_below(rng, DEATHS_MAX + 1);
    for (int i = 0; i < d->n; i++)
        d->at[i] = i && rng_below(rng, 2) ? d->at[i - 1] + rng_below(rng, 3000) : rng_below(rng, ticks / 8);
}

static uint64_t run(struct bed *b, const struct deaths *deaths)
{
    uint64_t ticks = 0;
    for (; !b->view.stopped; ticks++) {
        for (int i = 0; i < deaths->n; i++)
            if (deaths->at[i] == ticks)
                bed_one_dies(b, rng_below(&b->rng, 3) == 0);
        bed_tick(b);
        if (ticks == TICKS_MAX)
            fail_msg("somebody waits for ever");
    }
    return ticks;
}

/* A set, one process of which never asks for what is kept. */
static bool hangs(const struct bed *b, int set)
{
    bool any = false;
    for (int r = 0; r < RANKS; r++) {
        const struct process *p = &b->process[replica_native(&b->map, r, set)];
        any = any || (!p->dead && p->phase == BEGINS && p->hangs);
    }
    return any;
}

static void expect_right(const struct bed *b)
{
    int ended = 0;
    assert_int_equal(b->view.code, 0);
    for (int s = 0; s < b->sets; s++)
        assert_true(view_set_is_whole(&b->view, s) || b->view.renewal[s].in_vain == VIEW_MAX_RESTARTS || hangs(b, s) ||
                    b->changed[s] + SOON > STEPS);
    for (int n = 0; n < RANKS * b->sets; n++) {
        const struct process *p = &b->process[n];
        if (p->dead || p->phase != DONE)
            continue;
        assert_int_equal(p->word[0], bed_expected(p->rank));
        ended++;
    }
    assert_true(ended >= RANKS);
}

static void run_many(int sets)
{
    static struct bed b;
    struct rng rng;
    int joined = 0, told_again = 0;
    seed_rng(&rng);
    for (int i = 0; i < RUNS; i++) {
        struct deaths deaths = {.n = 0};
        uint64_t seed = rng_u64(&rng);
        bed_open(&b, seed, sets);
        uint64_t ticks = run(&b, &deaths);
        expect_right(&b);
        bed_close(&b);
        draw_deaths(&rng, ticks, &deaths);
        bed_open(&b, seed, sets);
        run(&b, &deaths);
        expect_right(&b);
        joined += b.joined;
        told_again += b.told_again;
        bed_close(&b);
    }
    print_message("%d sets: %d processes have joined, %d were told by another host than that of set 0\n", sets, joined,
                  told_again);
    assert_true(joined > RUNS && told_again > RUNS / 2);
}

static void test_renew_two_sets_results_are_right(void **state)
{
    (void)state;
    run_many(2);
}

static void test_renew_three_sets_results_are_right(void **state)
{
    (void)state;
    run_many(3);
}

static void test_renew_fate_is_that_of_the_attempt(void **state)
{
    (void)state;
    assert_int_equal(renew_fate(&(struct renew_set){.attempt = 1}, 2),
                     RENEW_WAITS); /* its begin is not known here yet */
    assert_int_equal(renew_fate(&(struct renew_set){.whole = true, .attempt = 1}, 2), RENEW_WAITS);
    assert_int_equal(renew_fate(&(struct renew_set){.coming = true, .attempt = 2}, 2), RENEW_WAITS);
    assert_int_equal(renew_fate(&(struct renew_set){.whole = true, .attempt = 2}, 2), RENEW_JOINS);
    assert_int_equal(renew_fate(&(struct renew_set){.attempt = 2}, 2), RENEW_GONE);
    assert_int_equal(renew_fate(&(struct renew_set){.coming = true, .attempt = 3}, 2), RENEW_GONE);
    assert_int_equal(renew_fate(&(struct renew_set){.whole = true, .attempt = 3}, 2), RENEW_GONE);
}

static void test_renew_set_is_waited_for_when_its_memory_is_at_home(void **state)
{
    (void)state;
    struct renew_set sets[] = {{.whole = true}, {.coming = true, .attempt = 3}};
    const uint32_t waits[REPLICAS_MAX] = {0, 3};
    assert_int_equal(renew_answer(sets, 2, waits).attempt[1], 0);
    sets[1].at_home = true;
    assert_int_equal(renew_answer(sets, 2, waits).attempt[1], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renew_fate_is_that_of_the_attempt),
        cmocka_unit_test(test_renew_set_is_waited_for_when_its_memory_is_at_home),
        cmocka_unit_test(test_renew_two_sets_results_are_right),
        cmocka_unit_test(test_renew_three_sets_results_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
