/* Files that say who reads whose heartbeat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pm/run/watchers.h"

static void test_watchers_good_file_is_taken_in_its_order(void **state)
{
    struct watchers w;
    char why[200];
    (void)state;
    assert_null(watchers_parse(&w, "# a ring\n0 1\n\n 1\t2 # and so on\r\n2 0", 3, why, sizeof why));
    assert_int_equal(w.count, 3);
    assert_memory_equal(w.edges, ((int[]){0, 1, 1, 2, 2, 0}), 6 * sizeof(int));
    free(w.edges);
    assert_null(watchers_parse(&w, "", 1, why, sizeof why));
    free(w.edges);
}

static void expect(const char *text, int nodes, const char *problem)
{
    struct watchers w;
    char why[200];
    assert_non_null(watchers_parse(&w, text, nodes, why, sizeof why));
    assert_string_equal(why, problem);
    free(w.edges);
}

static void test_watchers_bad_file_is_named_with_its_line(void **state)
{
    (void)state;
    expect("", 2, "nobody reads node 0");
    expect("0 1\n1 2\n", 3, "nobody reads node 0");
    expect("0 1\n\n# x\n0 3\n", 3, "line 4 names a node that the job does not have");
    expect("99999999999999999999 1\n", 3, "line 1 names a node that the job does not have");
    expect("1 1\n", 3, "line 1 lets a node watch itself");
    expect("0 1\n0 1\n", 2, "line 2 was there before");
    expect("0\n", 2, "line 1 is not \"READER WATCHED\", two node numbers");
    expect("0 1 2\n", 3, "line 1 is not \"READER WATCHED\", two node numbers");
    expect("-1 1\n", 3, "line 1 is not \"READER WATCHED\", two node numbers");
    expect("a b\n", 3, "line 1 is not \"READER WATCHED\", two node numbers");
}

static void test_watchers_too_many_for_one_are_refused(void **state)
{
    char text[400] = "", line[20];
    (void)state;
    for (int i = 1; i <= WATCHERS_MAX + 1; i++) {
        snprintf(line, sizeof line, "0 %d\n", i);
        strcat(text, line);
    }
    expect(text, 20, "line 17 lets a node read more than 16 others");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watchers_good_file_is_taken_in_its_order),
        cmocka_unit_test(test_watchers_bad_file_is_named_with_its_line),
        cmocka_unit_test(test_watchers_too_many_for_one_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
