/* What is left of ranges that were put, some of them over others: against bytes that were really written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/client/replica/sent.h"
#include "runtime/wire/digest.h"
#include "seed.h"

enum { BYTES = 200, TARGETS = 2, ROUNDS = 400 };

static uint8_t memory[TARGETS][BYTES];

static void put(struct sent *s, struct rng *rng, size_t most)
{
    int target = (int)rng_below(rng, TARGETS);
    uint64_t place = rng_below(rng, BYTES - most), len = 1 + rng_below(rng, most);
    for (uint64_t i = 0; i < len; i++)
        memory[target][place + i] = (uint8_t)rng_u64(rng);
    struct sent_range r = {.segment = 1, .target = target, .place = place, .len = (uint32_t)len};
    r.changed = rng_below(rng, 5) == 0; /* nobody knows what it has left */
    r.hash = r.changed ? 0 : digest(memory[target] + place, len, 0);
    assert_true(sent_add(s, &r));
}

static void test_sent_random_ranges_lie_where_they_are_said_to(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    struct sent s = {.n = 0};
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = rng_below(&rng, 30), most = 1 + rng_below(&rng, 60);
        sent_forget(&s);
        for (size_t i = 0; i < n; i++)
            put(&s, &rng, most);
        sent_settle(&s);
        for (size_t i = 0; i < s.n; i++) {
            const struct sent_range *r = &s.range[i], *before = i ? r - 1 : NULL;
            assert_int_equal(digest(memory[r->target] + r->place, r->len, 0), r->hash);
            assert_true(!before || before->target < r->target ||
                        (before->target == r->target && before->place + before->len <= r->place));
        }
    }
    free(s.range);
}

/* Whatever nobody writes over stays, and of equal places the latest. */
static void test_sent_what_is_apart_stays(void **state)
{
    (void)state;
    struct sent s = {.n = 0};
    for (uint64_t i = 0; i < 300; i++)
        assert_true(
            sent_add(&s, &(struct sent_range){.segment = 1 + i % 3, .place = 8 * (i % 100), .len = 8, .hash = i}));
    for (uint64_t i = 0; i < 300; i++)
        assert_true(sent_add(
            &s, &(struct sent_range){.segment = 1 + i % 3, .place = 8 * (i % 100), .len = 8, .hash = 1000 + i}));
    sent_settle(&s);
    assert_int_equal(s.n, 300);
    for (size_t i = 0; i < s.n; i++)
        assert_true(s.range[i].hash >= 1000);
    assert_int_equal(sent_alike(&s, 0), 100);
    assert_int_equal(sent_alike(&s, 250), 50);
    free(s.range);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sent_random_ranges_lie_where_they_are_said_to),
        cmocka_unit_test(test_sent_what_is_apart_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
