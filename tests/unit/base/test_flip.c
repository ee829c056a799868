#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/flip.h"

static struct flip_rule rule(const char *text)
{
    struct flip_rule r;
    char why[128];
    if (!flip_rule_parse(text, &r, why, sizeof why))
        fail_msg("%s: %s", text, why);
    return r;
}

static void test_rule_all_words_read(void **state)
{
    (void)state;
    struct flip_rule r = rule("rate=1e-6,where=flight,set=0,rank=3,step=10..20,count=1,seed=7");
    assert_true(r.rate > 0.99e-6 && r.rate < 1.01e-6 && r.where == FLIP_FLIGHT);
    assert_true(r.set == 0 && r.rank == 3 && r.from == 10 && r.to == 20 && r.count == 1 && r.seed == 7);
}

static void test_rule_missing_words_are_wide(void **state)
{
    (void)state;
    struct flip_rule r = rule("count=2");
    assert_true(r.rate >= 1 && r.where == FLIP_SEND && r.set == FLIP_ANY && r.rank == FLIP_ANY && r.from == 0);
    assert_true(r.to == FLIP_NO_END && r.count == 2);
    assert_true(rule("rate=0.5").count == FLIP_NO_END);
    r = rule("count=1,step=4");
    assert_true(r.from == 4 && r.to == 4);
    r = rule("count=1,step=4..");
    assert_true(r.from == 4 && r.to == FLIP_NO_END);
}

static void test_rule_wrong_words_are_named(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"rate=2", "from 0 to 1"},
                                         {"rate=-0.1", "from 0 to 1"},
                                         {"rate=nan", "from 0 to 1"},
                                         {"rate=", "from 0 to 1"},
                                         {"rate=0.1x", "from 0 to 1"},
                                         {"rate=0x1", "from 0 to 1"},
                                         {"where=there", "there"},
                                         {"rank=-1", "rank=-1"},
                                         {"set=a", "set=a"},
                                         {"step=9..3", "ends"},
                                         {"step=a..3", "step=a"},
                                         {"count=0", "count=0"},
                                         {"colour=red", "colour"},
                                         {"rate", "KEY=VALUE"},
                                         {"", "KEY=VALUE"},
                                         {"rate=1,", "KEY=VALUE"},
                                         {"seed=-4", "seed=-4"},
                                         {"rank=3", "neither"},
                                         {"step=3..x", "step=x"},
                                         {"count=1e3", "count=1e3"},
                                         {"count=1,count=2", "twice"},
                                         {"rate=1,seed=1,seed=1", "twice"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct flip_rule r;
        char why[128] = "";
        assert_false(flip_rule_parse(bad[i][0], &r, why, sizeof why));
        if (!strstr(why, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], why);
    }
}

static void test_rule_text_reads_back(void **state)
{
    (void)state;
    static const char *const texts[] = {"rate=0.1", "count=3,rank=2147483647,set=2,seed=9223372036854775807",
                                        "rate=1e-300,step=7..9223372036854775807,where=rest"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[FLIP_TEXT_MAX];
        struct flip_rule a = rule(texts[i]), b = rule(flip_rule_text(&a, text));
        assert_true(a.rate == b.rate && a.where == b.where && a.set == b.set && a.rank == b.rank);
        assert_true(a.from == b.from && a.to == b.to && a.count == b.count && a.seed == b.seed);
    }
}

static uint64_t hits(const char *text, int number, int set, int rank, uint64_t operations, uint64_t first_step,
                     uint64_t *sum)
{
    struct flip f;
    struct flip_rule r = rule(text);
    uint64_t n = 0, bit;
    *sum = 0;
    if (!flip_init(&f, &r, number, set, rank))
        return 0;
    for (uint64_t i = 0; i < operations; i++)
        if (flip_hits(&f, first_step + i, 64, &bit)) {
            n++;
            *sum = *sum * 31 + i * 64 + bit;
        }
    return n;
}

static void test_hits_rate_is_kept(void **state)
{
    (void)state;
    uint64_t sum;
    assert_in_range(hits("rate=0.01", 0, 0, 0, 100000, 0, &sum), 850, 1150);
    assert_int_equal(hits("rate=0", 0, 0, 0, 100000, 0, &sum), 0);
    assert_int_equal(hits("rate=1", 0, 0, 0, 1000, 0, &sum), 1000);
}

static void test_hits_count_is_the_most(void **state)
{
    (void)state;
    uint64_t sum;
    assert_int_equal(hits("count=3", 0, 0, 0, 1000, 0, &sum), 3);
    assert_int_equal(hits("count=3,rate=0.5", 0, 0, 0, 1000, 0, &sum), 3);
}

static void test_hits_only_at_its_steps_and_places(void **state)
{
    (void)state;
    uint64_t sum;
    assert_int_equal(hits("rate=1,step=10..19", 0, 0, 0, 1000, 0, &sum), 10);
    assert_int_equal(hits("rate=1,step=10", 0, 0, 0, 1000, 0, &sum), 1);
    assert_int_equal(hits("rate=1,step=10..", 0, 0, 0, 1000, 0, &sum), 990);
    assert_int_equal(hits("rate=1,rank=3", 0, 0, 2, 10, 0, &sum), 0);
    assert_int_equal(hits("rate=1,rank=3", 0, 0, 3, 10, 0, &sum), 10);
    assert_int_equal(hits("rate=1,set=1,rank=3", 0, 0, 3, 10, 0, &sum), 0);
    assert_int_equal(hits("rate=1,set=1", 0, 1, 3, 10, 0, &sum), 10);
}

static void test_hits_follow_from_the_seed(void **state)
{
    (void)state;
    uint64_t a, b;
    hits("rate=0.01,seed=7", 0, 0, 0, 10000, 0, &a);
    hits("rate=0.01,seed=7", 0, 0, 0, 10000, 0, &b);
    assert_true(a == b);
    hits("rate=0.01,seed=8", 0, 0, 0, 10000, 0, &b);
    assert_true(a != b);
    hits("rate=0.01,seed=7", 1, 0, 0, 10000, 0, &b);
    assert_true(a != b);
    hits("rate=0.01,seed=7", 0, 1, 0, 10000, 0, &b);
    assert_true(a != b);
    hits("rate=0.01,seed=7", 0, 0, 1, 10000, 0, &b);
    assert_true(a != b);
}

static void test_hits_all_bits_alike(void **state)
{
    (void)state;
    struct flip f;
    struct flip_rule r = rule("rate=1");
    uint64_t bit, count[64] = {0};
    assert_true(flip_init(&f, &r, 0, 0, 0));
    for (int i = 0; i < 64000; i++) {
        assert_true(flip_hits(&f, 0, 64, &bit) && bit < 64);
        count[bit]++;
    }
    for (int i = 0; i < 64; i++)
        assert_in_range(count[i], 850, 1150);
}

static void test_hits_nothing_without_bits(void **state)
{
    (void)state;
    struct flip f;
    struct flip_rule r = rule("count=1,step=5");
    uint64_t bit;
    assert_true(flip_init(&f, &r, 0, 0, 0));
    assert_false(flip_hits(&f, 4, 64, &bit));
    assert_false(f.was_there);
    assert_false(flip_hits(&f, 5, 0, &bit));
    assert_true(f.was_there && f.flips == 0 && f.operations == 2);
    assert_true(flip_hits(&f, 5, 1, &bit) && bit == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule_all_words_read),
        cmocka_unit_test(test_rule_missing_words_are_wide),
        cmocka_unit_test(test_rule_wrong_words_are_named),
        cmocka_unit_test(test_rule_text_reads_back),
        cmocka_unit_test(test_hits_rate_is_kept),
        cmocka_unit_test(test_hits_count_is_the_most),
        cmocka_unit_test(test_hits_only_at_its_steps_and_places),
        cmocka_unit_test(test_hits_follow_from_the_seed),
        cmocka_unit_test(test_hits_all_bits_alike),
        cmocka_unit_test(test_hits_nothing_without_bits),
    };
    return cmocka_run_group_tests_name("flip", tests, NULL, NULL);
}
