/* Partners do the part of replicas that have died: many runs of two and three sets, whose processes die at any moment,
 * alone and one soon after the other, as long as one replica of each rank lives. What each computes must be what the
 * program computes alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/data/partner_process.h"
#include "tests/unit/data/seed.h"

enum { DEATHS_MAX = RANKS * (SETS - 1), TICKS_MAX = 4000000 };

struct deaths {
    int n;
    uint64_t at[DEATHS_MAX];
};

static struct process *any(struct sim *s)
{
    int set = (int)rng_below(&s->rng, (uint64_t)s->sets);
    return &s->process[set][rng_below(&s->rng, RANKS)];
}

/* One that is not the last of its rank. */
static void one_dies(struct sim *s)
{
    struct process *p = any(s);
    int others = 0;
    for (int set = 0; set < s->sets; set++)
        others += set != p->set && !s->process[set][p->rank].dead;
    if (!p->dead && others)
        process_dies(p);
}

static void tick(struct sim *s)
{
    struct process *p = any(s);
    switch (rng_below(&s->rng, 4)) {
    case 0:
        if (!p->dead)
            process_step(p);
        break;
    case 1:
        for (int t = 0; t < RANKS; t++)
            process_delivers(p, (int)rng_below(&s->rng, WAYS), (int)rng_below(&s->rng, (uint64_t)s->sets), t);
        break;
    case 2:
        process_delivers_word(p, (int)rng_below(&s->rng, (uint64_t)s->sets));
        break;
    default:
        if (!p->dead && rng_below(&s->rng, 4) == 0)
            process_is_told(p, any(s));
    }
}

static bool is_over(const struct sim *s)
{
    for (int set = 0; set < s->sets; set++)
        for (int r = 0; r < RANKS; r++)
            if (!s->process[set][r].dead && s->process[set][r].state != DONE)
                return false;
    return true;
}

static void run(struct sim *s, const struct deaths *deaths)
{
    for (s->ticks = 0; !is_over(s); s->ticks++) {
        for (int i = 0; deaths && i < deaths->n; i++)
            if (deaths->at[i] == s->ticks)
                one_dies(s);
        tick(s);
        if (s->ticks == TICKS_MAX)
            fail_msg("somebody waits for ever");
    }
}

static void expect_same(const struct sim *s, const struct sim *alone)
{
    for (int set = 0; set < s->sets; set++)
        for (int r = 0; r < RANKS; r++) {
            const struct process *p = &s->process[set][r], *is = &alone->process[0][r];
            if (p->dead)
                continue;
            assert_int_equal(p->hash, is->hash);
            assert_memory_equal(p->word, is->word, sizeof p->word);
        }
}

/* Half of them in a row. */
static void draw_deaths(struct rng *rng, uint64_t ticks, struct deaths *d)
{
    d->n = (int)rng_below(rng, DEATHS_MAX + 1);
    for (int i = 0; i < d->n; i++)
        d->at[i] = i && rng_below(rng, 2) ? d->at[i - 1] + rng_below(rng, 200) : rng_below(rng, ticks);
}

static void run_many(int sets, int programs)
{
    static struct sim alone, s;
    struct rng rng;
    seed_rng(&rng);
    for (int i = 0; i < programs; i++) {
        uint64_t program = rng_u64(&rng);
        struct deaths deaths;
        sim_init(&alone, program, rng_u64(&rng), 1);
        run(&alone, NULL);
        sim_init(&s, program, rng_u64(&rng), sets);
        run(&s, NULL);
        expect_same(&s, &alone);
        sim_fini(&s);
        for (int again = 0; again < 8; again++) {
            draw_deaths(&rng, s.ticks, &deaths);
            sim_init(&s, program, rng_u64(&rng), sets);
            run(&s, &deaths);
            expect_same(&s, &alone);
            sim_fini(&s);
        }
        sim_fini(&alone);
    }
}

static void test_partner_two_sets_results_are_right(void **state)
{
    (void)state;
    run_many(2, 80);
}

static void test_partner_three_sets_results_are_right(void **state)
{
    (void)state;
    run_many(3, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partner_two_sets_results_are_right),
        cmocka_unit_test(test_partner_three_sets_results_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
