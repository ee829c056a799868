/* Networks as the user names them, and this host's addresses in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/rails.h"
#include "runtime/base/rng.h"

static void test_rails_interfaces_and_subnets_are_read(void **state)
{
    (void)state;
    struct rail_list r;
    char why[200];
    assert_true(rails_parse("eth0,10.1.0.0/16,ib0.8001,fd00:1::/64", &r, why, sizeof why));
    assert_int_equal(r.n, 4);
    assert_string_equal(r.name[0], "eth0");
    assert_string_equal(r.name[1], "10.1.0.0/16");
    assert_string_equal(r.name[3], "fd00:1::/64");
    assert_true(rails_parse("lo", &r, why, sizeof why));
    assert_int_equal(r.n, 1);
}

static void test_rails_what_makes_no_sense_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "\"\" is no interface"},
        {"eth0,", "\"\" is no interface"},
        {",eth0", "\"\" is no interface"},
        {"eth0,,eth1", "\"\" is no interface"},
        {"eth0,eth0", "eth0 is there twice"},
        {"a,b,c,d,e", "more than 4 networks"},
        {"a name", "\"a name\" is no interface"},
        {"aninterfacewhosenameistoolong", "\"aninterfacewhosenameistoolong\" is no"},
        {"10.1.0.0/33", "\"10.1.0.0/33\" is no"},
        {"10.1.0.0/", "\"10.1.0.0/\" is no"},
        {"10.1.0.0/0", "\"10.1.0.0/0\" is no"},
        {"10.1.0.0/-1", "\"10.1.0.0/-1\" is no"},
        {"10.1.0.0/16x", "\"10.1.0.0/16x\" is no"},
        {"10.1.0.1/16", "\"10.1.0.1/16\" is no"}, /* a host's address */
        {"10.1/16", "\"10.1/16\" is no"},
        {"fd00::1/64", "\"fd00::1/64\" is no"},
        {"fd00::/129", "\"fd00::/129\" is no"},
        {"/16", "\"/16\" is no"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rail_list r;
        char why[200] = "";
        assert_false(rails_parse(bad[i][0], &r, why, sizeof why));
        if (!strstr(why, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], why);
    }
}

/* Whatever the text is: what is taken are names that are good, each once, and the text in order. */
static void test_rails_any_text(void **state)
{
    (void)state;
    static const char letters[] = "eth01,,//..:ab 9%";
    const char *given = getenv("KEEL_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now_ns();
    struct rng rng;
    int good = 0;
    rng_seed(&rng, seed);
    print_message("KEEL_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < 200000; i++) {
        char text[64] = "", again[64] = "", why[40];
        size_t len = rng_below(&rng, i % 2 ? 8 : sizeof text - 1);
        for (size_t k = 0; k < len; k++)
            text[k] = letters[rng_below(&rng, sizeof letters - 1)];
        struct rail_list r;
        if (!rails_parse(text, &r, why, sizeof why)) {
            assert_true(strlen(why) > 0);
            continue;
        }
        good++;
        assert_in_range(r.n, 1, RAILS_MAX);
        for (int k = 0; k < r.n; k++) {
            assert_true(rails_name_good(r.name[k]));
            strcat(again, k ? "," : "");
            strcat(again, r.name[k]);
        }
        assert_string_equal(again, text);
    }
    assert_in_range(good, 1000, 199000);
}

static void test_rails_this_host_is_found_in_them(void **state)
{
    (void)state;
    struct rail_list r;
    struct rail_hosts hosts;
    char why[200];
    assert_true(rails_parse("lo,127.0.0.0/8", &r, why, sizeof why));
    assert_true(rails_find(&r, &hosts, why, sizeof why));
    assert_int_equal(hosts.n, 2);
    assert_string_equal(hosts.of[0], "127.0.0.1");
    assert_string_equal(hosts.of[1], "127.0.0.1");
    assert_true(rails_parse("lo,nowhere0", &r, why, sizeof why));
    assert_false(rails_find(&r, &hosts, why, sizeof why));
    assert_string_equal(why, "this host has no IPv4 address on an interface nowhere0 (--rails)");
    assert_true(rails_parse("240.1.0.0/16", &r, why, sizeof why));
    assert_false(rails_find(&r, &hosts, why, sizeof why));
    assert_string_equal(why, "this host has no address in 240.1.0.0/16 (--rails)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rails_interfaces_and_subnets_are_read),
        cmocka_unit_test(test_rails_what_makes_no_sense_is_refused_with_a_reason),
        cmocka_unit_test(test_rails_any_text),
        cmocka_unit_test(test_rails_this_host_is_found_in_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
