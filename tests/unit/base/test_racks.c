#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/base/racks.h"

static void find(const char *text, const char *host, const char *rack)
{
    struct rack_names names;
    char why[200] = "";
    assert_true(racks_find(text, host, &names, why, sizeof why));
    assert_string_equal(names.name[0], rack);
}

static void find_none(const char *text, const char *host, const char *problem)
{
    struct rack_names names;
    char why[200] = "";
    assert_false(racks_find(text, host, &names, why, sizeof why));
    assert_string_equal(why, problem);
}

static void test_racks_file_names_hosts_one_by_one_and_in_lists(void **state)
{
    static const char text[] = "# the machine room\na r1 s1\n\n  b\tr1  s1 # by the door\r\n"
                               "n[01-09,20],m[1-3]x,login r2 s2\n10.0.0.7 /dc/r3 s2";
    (void)state;
    find(text, "a", "r1");
    find(text, "b", "r1");
    find(text, "n01", "r2");
    find(text, "n20", "r2");
    find(text, "m3x", "r2");
    find(text, "login", "r2");
    find(text, "10.0.0.7", "/dc/r3");
    find_none(text, "n1", "host n1 is in no line"); /* two digits are said */
    find_none(text, "n10", "host n10 is in no line");
    find_none(text, "m03x", "host m03x is in no line");
    find_none(text, "m3", "host m3 is in no line");
    find_none(text, "10.0.0.8", "host 10.0.0.8 is in no line");
}

static void test_racks_host_is_known_by_its_short_name(void **state)
{
    (void)state;
    find("a r1", "a.example.org", "r1");
    find("a.example.org r1", "a", "r1");
    find_none("a.example.org r1", "a.example.com", "host a.example.com is in no line");
}

static void test_racks_wrong_file_is_named_with_its_line(void **state)
{
    (void)state;
    find_none("", "a", "host a is in no line");
    find_none("a r1\n\nb\n", "a", "line 3 is not \"HOSTS RACK [SWITCH ...]\"");
    find_none("a r1\nb,a r2\n", "a", "line 2: host a is in rack r1, and in rack r2");
    find_none("n[1-4 r1\n", "n1", "line 1: n[1-4 is no list of hosts");
    find_none("n[a-c] r1\n", "n1", "line 1: n[a-c] is no list of hosts");
    find_none("a r1 s1 s2 s3 s4\n", "a", "line 1: more than 3 switches");
    find_none("a a-name-of-more-than-thirty-one-characters\n", "a",
              "line 1: a-name-of-more-than-thirty-one-characters is longer than 31 characters");
    find("a r1\na r1\n", "a", "r1");
}

static void match(const char *expression, const char *host, const char *rack)
{
    struct rack_names names;
    char why[200] = "";
    assert_true(racks_match(expression, host, &names, why, sizeof why));
    assert_string_equal(names.name[0], rack);
}

static void match_none(const char *expression, const char *host, const char *problem)
{
    struct rack_names names;
    char why[200] = "";
    assert_false(racks_match(expression, host, &names, why, sizeof why));
    assert_string_equal(why, problem);
}

static void test_racks_expression_takes_its_group_or_all(void **state)
{
    (void)state;
    match("^r[0-9]+", "r12-n3", "r12");
    match("^n([0-9]+)-[0-9]+$", "n07-3", "07");
    match_none("^r([0-9]*)", "rack", "^r([0-9]*) finds no rack in host rack");
    match_none("^r[0-9]", "a", "^r[0-9] finds no rack in host a");
    match_none("(a", "a", "(a is no regular expression: Unmatched ( or \\(");
}

/* ---- numbers ---- */

static const char *const hosts[] = {"a", "b", "c", "d"};

static void test_racks_levels_that_tell_nobody_apart_are_left_out(void **state)
{
    const struct rack_names racks[] = {
        {3, {"r1", "s1", "core"}}, {3, {"r2", "s1", "core"}}, {3, {"r3", "s2", "core"}}, {3, {"r1", "s1", "core"}}};
    const char *const together[] = {"a", "a", "b", "a"}, *const one[] = {"a", "a", "a", "a"};
    struct copy_rule rule = {0};
    int domain[4 * DOMAIN_LEVELS_MAX];
    char why[200];
    (void)state;
    assert_true(racks_number(&rule, domain, hosts, racks, 4, why, sizeof why));
    assert_int_equal(rule.levels, 2);
    assert_memory_equal(domain, ((int[]){0, 1, 2, 0, 0, 0, 1, 0}), 8 * sizeof(int));
    assert_string_equal(racks_level_name(&rule, 1), "rack");
    assert_string_equal(racks_level_name(&rule, 2), "switch");
    assert_true(racks_number(&rule, domain, hosts, NULL, 4, why, sizeof why));
    assert_int_equal(rule.levels, 0); /* each its own host */
    assert_true(racks_number(&rule, domain, one, NULL, 4, why, sizeof why));
    assert_int_equal(rule.levels, 0); /* one host for all: nothing can be kept apart */
    assert_true(racks_number(&rule, domain, together, NULL, 4, why, sizeof why));
    assert_int_equal(rule.levels, 1);
    assert_string_equal(racks_level_name(&rule, 1), "host");
    assert_true(racks_number(&rule, domain, together, racks, 4, why, sizeof why));
    assert_int_equal(rule.levels, 3);
    assert_string_equal(racks_level_name(&rule, 2), "rack");
}

static void test_racks_that_contradict_each_other_are_refused(void **state)
{
    const struct rack_names two[] = {{2, {"r1", "s1"}}, {2, {"r1", "s2"}}}, some[] = {{2, {"r1", "s1"}}, {1, {"r2"}}},
                            all[] = {{1, {"r1"}}, {1, {"r1"}}};
    struct copy_rule rule = {0};
    int domain[2 * DOMAIN_LEVELS_MAX];
    char why[200];
    (void)state;
    assert_false(racks_number(&rule, domain, hosts, two, 2, why, sizeof why));
    assert_string_equal(why, "r1 is behind switch s1, and behind switch s2");
    assert_false(racks_number(&rule, domain, hosts, some, 2, why, sizeof why));
    assert_string_equal(why, "host a has 1 switches, host b 0");
    assert_false(racks_number(&rule, domain, hosts, all, 2, why, sizeof why));
    assert_string_equal(why, "rack r1 holds all 2 nodes: no copy would be in another one");
    assert_true(racks_number(&rule, domain, hosts, all, 1, why, sizeof why)); /* one node has no other copies */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_racks_file_names_hosts_one_by_one_and_in_lists),
        cmocka_unit_test(test_racks_host_is_known_by_its_short_name),
        cmocka_unit_test(test_racks_wrong_file_is_named_with_its_line),
        cmocka_unit_test(test_racks_expression_takes_its_group_or_all),
        cmocka_unit_test(test_racks_levels_that_tell_nobody_apart_are_left_out),
        cmocka_unit_test(test_racks_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
