#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/core/stripe.h"

enum { IN_FLIGHT_MAX = 3, CHUNKS_MAX = 64 };

/* What a copy holds of a chunk. */
enum { OLD, WRITING, NEW };

struct flight {
    struct stripe_piece piece[IN_FLIGHT_MAX];
    int n;
};

static int chunk_of(const struct stripe *s, const struct stripe_piece *p)
{
    assert_int_equal(p->offset % s->chunk, 0);
    assert_true(p->offset / s->chunk < CHUNKS_MAX);
    return (int)(p->offset / s->chunk);
}

static void take(struct stripe *s, int copy, struct flight *f, int state[2][CHUNKS_MAX])
{
    struct stripe_piece p;
    if (f->n == IN_FLIGHT_MAX || !stripe_take(s, copy, &p))
        return;
    int chunk = chunk_of(s, &p);
    assert_int_equal(state[copy][chunk], OLD);
    assert_int_equal(state[1 - copy][chunk], p.second ? NEW : OLD); /* G1 */
    state[copy][chunk] = WRITING;
    f->piece[f->n++] = p;
}

static void complete(struct stripe *s, int copy, struct flight *f, int state[2][CHUNKS_MAX])
{
    if (f->n == 0)
        return;
    struct stripe_piece p = f->piece[0];
    memmove(&f->piece[0], &f->piece[1], sizeof p * (size_t)--f->n);
    state[copy][chunk_of(s, &p)] = NEW;
    if (!p.second)
        stripe_first_done(s, copy);
}

/* Random order of the two connections: every chunk gets to both copies, and one copy of it is whole at any moment. */
static void write_striped(uint64_t len, uint32_t *seed)
{
    struct stripe s;
    struct flight flight[2] = {0};
    int state[2][CHUNKS_MAX] = {0};
    uint64_t done[2] = {0};
    stripe_init(&s, len);
    assert_true(s.chunk > 0 && s.chunk <= STRIPE_CHUNK_MAX);
    for (int step = 0; (done[0] < len || done[1] < len) && step < 100000; step++) {
        int copy = (rand_r((unsigned *)seed) >> 8) & 1;
        if ((rand_r((unsigned *)seed) >> 8) & 1) {
            take(&s, copy, &flight[copy], state);
        } else if (flight[copy].n) {
            done[copy] += flight[copy].piece[0].len;
            complete(&s, copy, &flight[copy], state);
        }
        int open = 0; /* announced and not in both copies, as seen by one copy's node */
        for (int c = 0; c < CHUNKS_MAX; c++)
            open += state[0][c] != OLD && state[1][c] != NEW;
        assert_true(open <= STRIPE_AHEAD + IN_FLIGHT_MAX);
    }
    assert_int_equal(done[0], len);
    assert_int_equal(done[1], len);
    struct stripe_piece p;
    assert_false(stripe_take(&s, 0, &p) || stripe_take(&s, 1, &p));
}

static void test_stripe_any_order_keeps_one_copy_whole(void **state)
{
    (void)state;
    const char *text = getenv("KEEL_TEST_SEED");
    uint32_t seed = text ? (uint32_t)strtoul(text, NULL, 10) : (uint32_t)time(NULL);
    print_message("KEEL_TEST_SEED=%u\n", seed);
    for (int i = 0; i < 300; i++)
        write_striped(1 + (uint64_t)rand_r(&seed) % (16u << 20), &seed);
}

static void test_stripe_edges_cover_the_write(void **state)
{
    (void)state;
    uint32_t seed = 1;
    const uint64_t len[] = {1, 63, 64, 65, 127, 128, 129, 16385, 1 << 20, (1 << 20) + 1, (1 << 20) - 1};
    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++)
        write_striped(len[i], &seed);
}

static void test_stripe_two_chunks_go_to_both_copies_at_once(void **state)
{
    (void)state;
    struct stripe s;
    struct stripe_piece a = {0}, b = {0};
    stripe_init(&s, 1 << 20);
    assert_true(stripe_take(&s, 0, &a) && stripe_take(&s, 1, &b));
    assert_int_equal(a.offset, 0);
    assert_int_equal(b.offset, 512 * 1024);
    assert_false(stripe_take(&s, 0, &a));
    stripe_first_done(&s, 1);
    assert_true(stripe_take(&s, 0, &a) && a.second);
    assert_int_equal(a.offset, 512 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stripe_any_order_keeps_one_copy_whole),
        cmocka_unit_test(test_stripe_edges_cover_the_write),
        cmocka_unit_test(test_stripe_two_chunks_go_to_both_copies_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
