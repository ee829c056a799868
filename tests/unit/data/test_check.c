/* What a replica remembers of its operations (client/replica/check.h), against a model that remembers them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/rng.h"
#include "runtime/client/replica/check.h"
#include "runtime/wire/digest.h"
#include "seed.h"

enum { RING = 64, OPS_MAX = 4096 };

struct replica {
    struct check check;
    struct check_entry ring[RING];
};

static struct check_op put(uint64_t bytes)
{
    return (struct check_op){.call = 1, .target = 3, .segment = 2, .place = 4096, .len = 64, .bytes = bytes};
}

static void do_puts(struct replica *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct check_op op = put(r->check.now.count);
        check_add(&r->check, &op);
    }
}

static void test_check_hash_of_other_bytes_is_another(void **state)
{
    (void)state;
    uint8_t bytes[300] = {0};
    for (size_t len = 1; len <= sizeof bytes; len++) {
        uint64_t before = digest(bytes, len, 0);
        for (size_t bit = 0; bit < 8 * len; bit += 7) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_not_equal(digest(bytes, len, 0), before);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_int_not_equal(digest(bytes, len, 1), before);
    }
}

static void test_check_each_member_of_an_operation_counts(void **state)
{
    (void)state;
    const struct check_op as = put(7), other[] = {
                                           {.call = 2, .target = 3, .segment = 2, .place = 4096, .len = 64, .bytes = 7},
                                           {.call = 1, .target = 4, .segment = 2, .place = 4096, .len = 64, .bytes = 7},
                                           {.call = 1, .target = 3, .segment = 3, .place = 4096, .len = 64, .bytes = 7},
                                           {.call = 1, .target = 3, .segment = 2, .place = 4104, .len = 64, .bytes = 7},
                                           {.call = 1, .target = 3, .segment = 2, .place = 4096, .len = 65, .bytes = 7},
                                           {.call = 1, .target = 3, .segment = 2, .place = 4096, .len = 64, .bytes = 8},
                                       };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        struct replica a, b;
        check_init(&a.check, a.ring, RING);
        check_init(&b.check, b.ring, RING);
        check_add(&a.check, &as);
        check_add(&b.check, &other[i]);
        struct check_first f = check_first(&a.check, &b.check);
        assert_int_equal(f.found, CHECK_KNOWN);
        assert_int_equal(f.number, 1);
    }
}

static void test_check_the_order_of_operations_counts(void **state)
{
    (void)state;
    struct replica a, b;
    struct check_op x = put(1), y = put(2);
    check_init(&a.check, a.ring, RING);
    check_init(&b.check, b.ring, RING);
    check_add(&a.check, &x);
    check_add(&a.check, &y);
    check_add(&b.check, &y);
    check_add(&b.check, &x);
    assert_int_not_equal(a.check.now.after, b.check.now.after);
}

static struct check_outcome compared(const uint64_t *after, const bool *there)
{
    struct check_sum sums[CHECK_REPLICAS_MAX] = {{9, after[0]}, {9, after[1]}, {9, after[2]}};
    return check_compare(sums, there);
}

static void test_check_compare_says_who_differs(void **state)
{
    (void)state;
    static const bool all[] = {true, true, true};
    for (uint64_t code = 0; code < 27; code++) {
        uint64_t after[] = {code % 3, code / 3 % 3, code / 9};
        struct check_outcome o = compared(after, all);
        bool eq01 = after[0] == after[1], eq02 = after[0] == after[2], eq12 = after[1] == after[2];
        assert_int_equal(o.verdict, eq01 && eq02           ? CHECK_EQUAL
                                    : eq01 || eq02 || eq12 ? CHECK_ONE_DIFFERS
                                                           : CHECK_NO_MAJORITY);
        if (o.verdict == CHECK_ONE_DIFFERS)
            assert_int_equal(o.odd, eq01 ? 2 : eq02 ? 1 : 0);
        if (o.verdict != CHECK_EQUAL)
            assert_int_not_equal(after[o.a], after[o.b]);
    }
}

static void test_check_compare_leaves_out_who_is_not_there(void **state)
{
    (void)state;
    for (int gone = 0; gone < 3; gone++) {
        uint64_t same[] = {5, 5, 5}, other[] = {5, 5, 5};
        bool there[] = {true, true, true};
        there[gone] = false;
        same[gone] = 6;
        assert_int_equal(compared(same, there).verdict, CHECK_EQUAL);
        other[(gone + 1) % 3] = 6;
        assert_int_equal(compared(other, there).verdict, CHECK_NO_MAJORITY);
    }
    struct check_sum sums[3] = {{9, 5}, {8, 5}, {9, 5}};
    static const bool all[] = {true, true, true}, one[] = {false, true, false};
    assert_int_equal(check_compare(sums, all).odd, 1); /* the count alone differs */
    assert_int_equal(check_compare(sums, one).verdict, CHECK_EQUAL);
}

static void test_check_first_is_within_a_range_when_the_rings_have_lost_it(void **state)
{
    (void)state;
    struct replica a, b;
    check_init(&a.check, a.ring, RING);
    check_init(&b.check, b.ring, RING);
    do_puts(&a, 99);
    do_puts(&b, 99);
    struct check_op wrong = put(0xbad);
    check_add(&b.check, &wrong);
    do_puts(&a, 901);
    do_puts(&b, 900);
    struct check_first f = check_first(&a.check, &b.check);
    assert_int_equal(f.found, CHECK_WITHIN);
    assert_int_equal(f.number, RING + 1);
    assert_int_equal(f.until, 2 * RING);
}

/* ---- random histories ---- */

static struct check_op made[2][OPS_MAX];

static uint64_t true_first(uint64_t n_a, uint64_t n_b)
{
    uint64_t both = n_a < n_b ? n_a : n_b;
    for (uint64_t i = 0; i < both; i++)
        if (memcmp(&made[0][i], &made[1][i], sizeof made[0][i]) != 0)
            return i + 1;
    return n_a == n_b ? 0 : both + 1;
}

static void look(struct replica *r, uint64_t first)
{
    struct check *a = &r[0].check, *b = &r[1].check;
    struct check_first f = check_first(a, b), back = check_first(b, a);
    assert_true(f.found == back.found && f.number == back.number && f.until == back.until);
    uint64_t oldest = check_oldest(a) > check_oldest(b) ? check_oldest(a) : check_oldest(b);
    if (first == 0) {
        assert_int_equal(f.found, CHECK_SAME);
        return;
    }
    assert_int_not_equal(f.found, CHECK_SAME);
    assert_true(f.number <= first && first <= f.until);
    assert_true(f.number > a->equal.count && oldest > a->equal.count);
    if (first > oldest || first == a->equal.count + 1) { /* what is right before it is known to be equal */
        bool undone = first > a->now.count || first > b->now.count;
        bool reach = undone || (check_find(a, first) && check_find(b, first));
        assert_int_equal(f.found, reach ? CHECK_KNOWN : CHECK_WITHIN);
    }
    if (f.found == CHECK_KNOWN)
        assert_int_equal(f.number, f.until);
    else if (a->now.count == b->now.count)
        assert_true(f.until - f.number < a->stride);
}

/* What is found is what was done. */
static void look_back(struct replica *r, int k, struct rng *rng)
{
    uint64_t count = r->check.now.count, n = 1 + rng_below(rng, count + 2);
    const struct check_entry *e = check_find(&r->check, n);
    assert_true((e != NULL) == (n <= count && n + r->check.places > count));
    if (e)
        assert_memory_equal(&e->op, &made[k][n - 1], sizeof e->op);
}

static void one_history(struct rng *rng)
{
    static struct replica r[2];
    size_t places = (size_t)1 << rng_below(rng, 7);
    uint64_t n = rng_below(rng, 2) ? rng_below(rng, 200) : rng_below(rng, OPS_MAX - 10), first = 0;
    uint64_t spoilt = rng_below(rng, 4) ? rng_below(rng, n + 1) : UINT64_MAX;
    uint64_t stops_a = rng_below(rng, 5) ? n : rng_below(rng, n + 1);
    uint64_t stops_b = rng_below(rng, 5) ? n : rng_below(rng, n + 1);
    for (int i = 0; i < 2; i++)
        check_init(&r[i].check, r[i].ring, places);
    for (uint64_t i = 0; i < n; i++) {
        struct check_op op = put(rng_below(rng, 3));
        for (int k = 0; k < 2; k++) {
            made[k][i] = op;
            if (k == 1 && (i == spoilt || (i > spoilt && rng_below(rng, 10) == 0)))
                made[k][i].bytes ^= 1ull << rng_below(rng, 64);
            if (i < (k ? stops_b : stops_a))
                check_add(&r[k].check, &made[k][i]);
        }
        first = true_first(r[0].check.now.count, r[1].check.now.count);
        if (rng_below(rng, 50) == 0)
            look(r, first);
        if (first == 0 && rng_below(rng, 100) == 0)
            for (int k = 0; k < 2; k++) {
                check_was_equal(&r[k].check);
                assert_int_equal(r[k].check.stride, places);
            }
        look_back(&r[i % 2], (int)(i % 2), rng);
    }
    look(r, true_first(r[0].check.now.count, r[1].check.now.count));
    struct check_sum sums[3] = {r[0].check.now, r[1].check.now, r[0].check.now};
    static const bool two[] = {true, true, false};
    assert_int_equal(check_compare(sums, two).verdict == CHECK_EQUAL, first == 0);
}

static void test_check_random_histories_the_first_difference_is_found(void **state)
{
    (void)state;
    struct rng rng;
    seed_rng(&rng);
    for (int i = 0; i < 300; i++)
        one_history(&rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_hash_of_other_bytes_is_another),
        cmocka_unit_test(test_check_each_member_of_an_operation_counts),
        cmocka_unit_test(test_check_the_order_of_operations_counts),
        cmocka_unit_test(test_check_compare_says_who_differs),
        cmocka_unit_test(test_check_compare_leaves_out_who_is_not_there),
        cmocka_unit_test(test_check_first_is_within_a_range_when_the_rings_have_lost_it),
        cmocka_unit_test(test_check_random_histories_the_first_difference_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
