/* Files about a grid: positions of hosts, plans for failures; each mistake has its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pm/run/grid_files.h"

static const char *const host[] = {"a", "b", "c"};
static const struct grid_names names = {.host = host, .hosts = 3, .places = 6};
static const int size[] = {3, 2};

static void test_grid_files_positions_are_read(void **state)
{
    (void)state;
    int place_of[3];
    char why[200];
    assert_true(grid_positions_parse(&names, 2, size, "# x y\nb 0 0\n\n a\t2 1 # the last\r\nc 1 0", place_of, why,
                                     sizeof why));
    assert_int_equal(place_of[0], 5);
    assert_int_equal(place_of[1], 0);
    assert_int_equal(place_of[2], 1);
}

static void test_grid_files_extents_are_of_the_smallest_grid(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "# a 0 0\n", "a\n", "a 0 0\nb 1\n", "a x\n", "a 0 0 0\n", "a 99 1\nb 1 99\n"};
    int dims, sides[2];
    char why[200];
    assert_true(grid_positions_extents("a 0 1\nb 3 0 # far\n", 2, 100, &dims, sides, why, sizeof why));
    assert_int_equal(dims, 2);
    assert_int_equal(sides[0], 4);
    assert_int_equal(sides[1], 2);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why[0] = '\0';
        assert_false(grid_positions_extents(bad[i], 2, 100, &dims, sides, why, sizeof why));
        assert_true(why[0]);
    }
}

static void test_grid_files_wrong_positions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "host a is in no line"},
        {"a 0 0\nb 1 0\n", "host c is in no line"},
        {"a 0 0\nd 1 0\n", "line 2: d is no host of the job"},
        {"a 0 0\n# a\na 1 0\n", "line 3: host a is named twice"},
        {"a 3 0\n", "line 1: 3 is no coordinate from 0 to 2"},
        {"a 0 -1\n", "line 1: -1 is no coordinate from 0 to 1"},
        {"a 0 y\n", "line 1: y is no coordinate from 0 to 1"},
        {"a 0\n", "line 1: host a has 1 coordinate, and the grid 2 dimensions"},
        {"a 0 1 1\n", "line 1: host a has 3 coordinates, and the grid 2 dimensions"},
        {"a 0 1\nb 0 1\n", "line 2: host b stands where another one does"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int place_of[3];
        char why[200] = "";
        assert_false(grid_positions_parse(&names, 2, size, bad[i].text, place_of, why, sizeof why));
        assert_string_equal(why, bad[i].why);
    }
}

static void test_grid_files_plans_are_read(void **state)
{
    (void)state;
    static const int expected[] = {1, 2, 2, 5, 1, 2, 0, 1, 0, 3}, place_of[] = {2, 3, 5};
    struct grid_names placed = names;
    int *words, count;
    char why[200];
    placed.place_of = place_of;
    assert_true(grid_plans_parse(&placed, "1: a>c 1>2 # c is free\n\n0: 0>b\n", &words, &count, why, sizeof why));
    assert_int_equal(count, 10);
    assert_memory_equal(words, expected, sizeof expected);
    free(words);
}

static void test_grid_files_wrong_plans_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"# nothing\n", "there is no plan in it"},
        {"1 1>2\n", "line 1: 1 is not PLACE: which node dies?"},
        {"x: 1>2\n", "line 1: x is neither a place from 0 to 5 nor a host"},
        {"6: 6>2\n", "line 1: 6 is neither a place from 0 to 5 nor a host"},
        {"1: 1>2\n\n1: 1>3\n", "line 3: 1 has a plan already"},
        {"1: 1-2\n", "line 1: 1-2 is not FROM>TO"},
        {"1: 1>6\n", "line 1: 6 is neither a place from 0 to 5 nor a host"},
        {"1: >2\n", "line 1:  is neither a place from 0 to 5 nor a host"},
        {"1: 1>1\n", "line 1: 1 moves to itself"},
        {"1: 1>2 1>3\n", "line 1: what is on 1 moves twice"},
        {"1: 1>2 3>2\n", "line 1: two move to 2"},
        {"1: 2>3\n", "line 1: no move takes what was on 1"},
        {"1:\n", "line 1: no move takes what was on 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int *words, count;
        char why[200] = "";
        assert_false(grid_plans_parse(&names, bad[i].text, &words, &count, why, sizeof why));
        assert_string_equal(why, bad[i].why);
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_files_positions_are_read),
        cmocka_unit_test(test_grid_files_extents_are_of_the_smallest_grid),
        cmocka_unit_test(test_grid_files_wrong_positions_are_refused),
        cmocka_unit_test(test_grid_files_plans_are_read),
        cmocka_unit_test(test_grid_files_wrong_plans_are_refused),
    };
    return cmocka_run_group_tests_name("grid_files", tests, NULL, NULL);
}
