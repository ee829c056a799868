#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/wire/stripe.h"
#include "seed.h"

enum { IN_FLIGHT_MAX = 3, CHUNKS_MAX = 64 };

/* What a copy holds of a chunk. */
enum holds { OLD, WRITING, NEW };

/* A striped write as its copies see it. */
struct write {
    struct stripe stripe;
    enum holds state[LEGS_MAX][CHUNKS_MAX];
    struct stripe_piece flight[LEGS_MAX][IN_FLIGHT_MAX]; /* oldest first */
    int flying[LEGS_MAX];
    uint64_t done[LEGS_MAX]; /* bytes */
};

static int chunk_of(const struct stripe *s, const struct stripe_piece *p)
{
    uint64_t at = p->offset ? p->offset + s->skew : 0; /* inner ends are ends of words in memory */
    assert_int_equal(at % s->chunk, 0);
    assert_true(at / s->chunk < CHUNKS_MAX);
    assert_true(p->len > 0 && p->len <= s->chunk && p->offset + p->len <= s->len);
    return (int)(at / s->chunk);
}

static bool take(struct write *w, int copy)
{
    struct stripe_piece p;
    if (w->flying[copy] == IN_FLIGHT_MAX || !stripe_take(&w->stripe, copy, &p))
        return false;
    int chunk = chunk_of(&w->stripe, &p), whole = 0, old = 0;
    assert_int_equal(w->state[copy][chunk], OLD); /* once to each copy */
    for (int other = 0; other < w->stripe.copies; other++)
        if (other != copy)
            whole += w->state[other][chunk] == NEW, old += w->state[other][chunk] == OLD;
    assert_int_equal(whole, p.level); /* those before have it all, those behind nothing */
    assert_int_equal(old, w->stripe.copies - 1 - p.level);
    w->state[copy][chunk] = WRITING;
    w->flight[copy][w->flying[copy]++] = p;
    return true;
}

static void complete(struct write *w, int copy)
{
    struct stripe_piece p = w->flight[copy][0];
    memmove(&w->flight[copy][0], &w->flight[copy][1], sizeof p * (size_t)--w->flying[copy]);
    w->state[copy][chunk_of(&w->stripe, &p)] = NEW;
    w->done[copy] += p.len;
    stripe_done(&w->stripe, copy, p.level);
}

/* Guarantee G1: of each chunk one copy at most is torn. */
static void check(const struct write *w)
{
    int open = 0;
    for (int c = 0; c < CHUNKS_MAX; c++) {
        int writing = 0, new = 0;
        for (int copy = 0; copy < w->stripe.copies; copy++) {
            writing += w->state[copy][c] == WRITING;
            new += w->state[copy][c] == NEW;
        }
        assert_true(writing <= 1);
        open += writing + new > 0 && new < w->stripe.copies;
    }
    assert_true(open <= w->stripe.copies * (STRIPE_AHEAD + IN_FLIGHT_MAX)); /* what agents must remember */
}

static bool is_complete(const struct write *w)
{
    for (int copy = 0; copy < w->stripe.copies; copy++)
        if (w->done[copy] < w->stripe.len)
            return false;
    return true;
}

/* The connections go on in a random order: every chunk gets to all copies, and nothing is waited for in a circle. */
static void write_striped(uint64_t len, int copies, struct rng *rng)
{
    static struct write w;
    memset(&w, 0, sizeof w);
    stripe_init(&w.stripe, rng_below(rng, 4096), len, copies);
    assert_true(w.stripe.chunk > 0 && w.stripe.chunk <= STRIPE_CHUNK_MAX);
    while (!is_complete(&w)) {
        int flying = 0;
        int copy = (int)rng_below(rng, (uint64_t)copies);
        if (rng_below(rng, 2))
            take(&w, copy);
        else if (w.flying[copy])
            complete(&w, copy);
        check(&w);
        for (copy = 0; copy < copies; copy++)
            flying += w.flying[copy];
        for (copy = 0; copy < copies && !flying; copy++)
            flying += take(&w, copy);
        assert_true(flying || is_complete(&w)); /* with nothing on its way, somebody can go on */
    }
    for (int copy = 0; copy < copies; copy++) {
        struct stripe_piece p;
        assert_int_equal(w.done[copy], len);
        assert_false(stripe_take(&w.stripe, copy, &p));
    }
}

static void test_stripe_any_order_keeps_one_copy_whole(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int i = 0; i < 600; i++)
        write_striped(1 + rng_below(&rng, 16u << 20), 2 + i % 2, &rng);
}

static void test_stripe_edges_cover_the_write(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    const uint64_t len[] = {1,
                            63,
                            64,
                            65,
                            127,
                            128,
                            129,
                            191,
                            192,
                            193,
                            16385,
                            1 << 20,
                            (1 << 20) + 1,
                            (1 << 20) - 1,
                            3 * STRIPE_CHUNK_MAX,
                            3 << 20,
                            (3 << 20) + 1,
                            (3 << 20) - 1,
                            2 * STRIPE_CHUNK_MAX};
    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++)
        for (int copies = 2; copies <= LEGS_MAX; copies++)
            write_striped(len[i], copies, &rng);
}

static void test_stripe_first_chunks_go_to_all_copies_at_once(void **state)
{
    (void)state;
    for (int copies = 2; copies <= LEGS_MAX; copies++) {
        struct stripe s;
        struct stripe_piece p;
        stripe_init(&s, 0, (uint64_t)copies << 19, copies);
        for (int copy = 0; copy < copies; copy++) {
            assert_true(stripe_take(&s, copy, &p));
            assert_int_equal(p.level, 0);
            assert_int_equal(p.offset, copy << 19);
        }
        assert_false(stripe_take(&s, 0, &p)); /* no other one is whole yet */
        for (int level = 0; level < copies - 1; level++) {
            stripe_done(&s, (1 + level) % copies, level);
            for (int copy = 0; copy < copies; copy++) { /* the next copy takes it, and no other one anything */
                assert_int_equal(stripe_take(&s, copy, &p), copy == (2 + level) % copies);
                if (copy == (2 + level) % copies) {
                    assert_int_equal(p.level, level + 1);
                    assert_int_equal(p.offset, 1 << 19);
                }
            }
        }
    }
}

/* A copy that stands still holds the others up after a bounded number of chunks. */
static void test_stripe_a_slow_copy_is_not_left_far_behind(void **state)
{
    (void)state;
    for (int copies = 2; copies <= LEGS_MAX; copies++) {
        struct stripe s;
        struct stripe_piece p;
        int taken = 0;
        stripe_init(&s, 0, 64u << 20, copies);
        while (stripe_take(&s, 0, &p)) { /* nobody takes for the last copy */
            stripe_done(&s, 0, 0);
            taken++;
        }
        assert_int_equal(taken, STRIPE_AHEAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stripe_any_order_keeps_one_copy_whole),
        cmocka_unit_test(test_stripe_edges_cover_the_write),
        cmocka_unit_test(test_stripe_first_chunks_go_to_all_copies_at_once),
        cmocka_unit_test(test_stripe_a_slow_copy_is_not_left_far_behind),
    };
    return cmocka_run_group_tests_name("stripe", tests, NULL, NULL);
}
