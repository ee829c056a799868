/* How ranks pass on to each other what each has to say (runtime/client/replica/passing.h): any number of them, each as
 * fast as it likes, and each has the blocks of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/client/replica/passing.h"
#include "seed.h"

enum { RANKS_MAX = 33, COLLECTIVES = 6, ROOM = 8 };

struct rank {
    struct passing p;
    uint64_t number; /* of the collective that it has come to, from 1 */
    int round;
    uint64_t *word; /* its part */
};

static struct rank rank[RANKS_MAX];

static uint64_t says(uint64_t number, int origin)
{
    return number * 1000 + (uint64_t)origin;
}

static uint64_t *at(struct rank *r, size_t place)
{
    assert_true(place % ROOM == 0 && place < passing_bytes(&r->p));
    return &r->word[place / ROOM];
}

static void comes(struct rank *r)
{
    r->number++;
    r->round = -1;
    *at(r, passing_place(&r->p, r->number, r->p.rank)) = says(r->number, r->p.rank);
}

static void sends(struct rank *r)
{
    struct passing_round round = passing_round(&r->p, r->round);
    struct rank *to = &rank[round.to];
    assert_int_equal(passing_round(&to->p, r->round).from, r->p.rank);
    for (int i = 0; i < round.blocks; i++) {
        size_t place = passing_place(&r->p, r->number, passing_origin(&r->p, i));
        *at(to, place) = *at(r, place);
    }
    ++*at(to, round.word);
}

static bool may_go_on(struct rank *r)
{
    return r->round < 0 || *at(r, passing_round(&r->p, r->round).word) >= r->number;
}

static void has_all(struct rank *r)
{
    for (int o = 0; o < r->p.size; o++)
        assert_int_equal(*at(r, passing_place(&r->p, r->number, o)), says(r->number, o));
}

/* False: it waits, or has come to the end. */
static bool steps(struct rank *r)
{
    if (r->number > COLLECTIVES || !may_go_on(r))
        return false;
    if (++r->round < passing_rounds(r->p.size)) {
        sends(r);
        return true;
    }
    has_all(r);
    comes(r);
    return true;
}

static void run(struct rng *rng, int size)
{
    int left = size;
    for (int i = 0; i < size; i++) {
        rank[i] = (struct rank){.p = {i, size, ROOM}};
        rank[i].word = calloc(passing_bytes(&rank[i].p) / ROOM, ROOM);
        assert_non_null(rank[i].word);
        comes(&rank[i]);
    }
    for (uint64_t ticks = 0; left; ticks++) {
        assert_true(ticks < 10000000); /* somebody waits for ever */
        int fast = (int)rng_below(rng, (uint64_t)size);
        for (int n = (int)rng_below(rng, 20); n && steps(&rank[fast]); n--)
            ;
        left = 0;
        for (int i = 0; i < size; i++)
            left += rank[i].number <= COLLECTIVES;
    }
    for (int i = 0; i < size; i++)
        free(rank[i].word);
}

static void test_passing_whoever_is_fast_each_has_the_blocks_of_all(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int size = 1; size <= RANKS_MAX; size++)
        for (int again = 0; again < 6; again++)
            run(&rng, size);
}

static void test_passing_blocks_lie_apart_and_behind_the_words(void **state)
{
    (void)state;
    struct passing p = {0, 5, 24};
    assert_int_equal(passing_rounds(1), 0);
    assert_int_equal(passing_rounds(5), 3);
    assert_int_equal(passing_place(&p, 2, 0), 24);
    assert_int_equal(passing_place(&p, 2, 4), 24 + 4 * 24);
    assert_int_equal(passing_place(&p, 1, 0), 24 + 5 * 24);
    assert_int_equal(passing_place(&p, 3, 1), 24 + 6 * 24);
    assert_int_equal(passing_bytes(&p), 24 + 10 * 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passing_whoever_is_fast_each_has_the_blocks_of_all),
        cmocka_unit_test(test_passing_blocks_lie_apart_and_behind_the_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
