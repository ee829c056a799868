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

/* More nodes have died than there were spares: each rank has one of its own. */
static bool lacks_nodes(const struct bed *b)
{
    int alive = 0;
    for (int m = 0; m < RANKS * b->sets + SPARES; m++)
        alive += b->view.alive[m];
    return alive < RANKS * b->sets;
}

static void expect_right(const struct bed *b)
{
    int ended = 0;
    assert_int_equal(b->view.code, 0);
    for (int s = 0; s < b->sets; s++)
        assert_true(view_set_is_whole(&b->view, s) || b->view.renewal[s].in_vain == VIEW_MAX_RESTARTS || hangs(b, s) ||
                    lacks_nodes(b) || b->changed[s] + SOON > STEPS);
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

/* A host that was not the lowest tells its guest when it is, and nobody tells twice; and nobody when it is over. */
static void test_renew_host_tells_once_when_it_is_the_lowest(void **state)
{
    (void)state;
    struct renew_set sets[] = {{.whole = true}, {.whole = true}, {.coming = true, .attempt = 2}};
    struct renew_host lower, higher;
    bool tells;
    renew_host_init(&lower, 2, 2);
    renew_host_init(&higher, 2, 2);
    assert_int_equal(renew_host_looks(&lower, sets, 3, 0, &tells), RENEW_WAITS);
    assert_true(tells);
    assert_int_equal(renew_host_looks(&lower, sets, 3, 0, &tells), RENEW_WAITS);
    assert_false(tells);
    assert_int_equal(renew_host_looks(&higher, sets, 3, 1, &tells), RENEW_WAITS);
    assert_false(tells);
    sets[0].whole = false;
    assert_int_equal(renew_host_looks(&higher, sets, 3, 1, &tells), RENEW_WAITS);
    assert_true(tells);
    renew_host_init(&higher, 2, 2);
    sets[2].coming = false;
    assert_int_equal(renew_host_looks(&higher, sets, 3, 1, &tells), RENEW_GONE);
    assert_false(tells);
}

static void test_renew_guest_says_that_it_waits_once_to_each_life_of_a_host(void **state)
{
    (void)state;
    struct renew_set whole = {.whole = true}, coming = {.coming = true, .attempt = 1};
    struct renew_guest g;
    uint32_t life = 7;
    renew_guest_init(&g, 1);
    assert_false(renew_guest_says(&g, 0, &coming));
    assert_true(renew_guest_says(&g, 0, &whole));
    assert_false(renew_guest_hears(&g, 0, &life));
    renew_guest_said(&g, 0, 0);
    assert_false(renew_guest_says(&g, 0, &whole));
    assert_true(renew_guest_hears(&g, 0, &life));
    assert_int_equal(life, 0);
    whole.attempt = 3;
    assert_true(renew_guest_says(&g, 0, &whole)); /* it has begun anew meanwhile */
    assert_false(renew_guest_told(&g, 0, 2, 9));  /* another attempt than this one */
    assert_true(renew_guest_told(&g, 0, 1, 9));
}

static void test_renew_guest_is_late_when_its_attempt_has_lasted(void **state)
{
    (void)state;
    struct renew_late l = {0};
    struct renew_set set = {.coming = true, .attempt = 1};
    assert_false(renew_is_late(&l, &set, 0, 1000, 50));
    assert_false(renew_is_late(&l, &set, 0, 1050, 50));
    assert_true(renew_is_late(&l, &set, 0, 1051, 50));
    assert_false(renew_is_late(&l, &set, 1, 1051, 50)); /* it waits */
    set.attempt = 2;
    assert_false(renew_is_late(&l, &set, 1, 1060, 50)); /* another one does not yet */
    assert_true(renew_is_late(&l, &set, 1, 1111, 50));
    set.coming = false;
    assert_false(renew_is_late(&l, &set, 1, 1111, 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renew_fate_is_that_of_the_attempt),
        cmocka_unit_test(test_renew_set_is_waited_for_when_its_memory_is_at_home),
        cmocka_unit_test(test_renew_host_tells_once_when_it_is_the_lowest),
        cmocka_unit_test(test_renew_guest_says_that_it_waits_once_to_each_life_of_a_host),
        cmocka_unit_test(test_renew_guest_is_late_when_its_attempt_has_lasted),
        cmocka_unit_test(test_renew_two_sets_results_are_right),
        cmocka_unit_test(test_renew_three_sets_results_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
