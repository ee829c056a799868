/* The file of keelrun --replica-map: each mistake has its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/run/replica_file.h"

static void test_replica_file_is_read(void **state)
{
    (void)state;
    static const int expected[] = {0, 2, 1, 3};
    int native[4];
    bool racks = true;
    char why[200];
    assert_true(replica_file_parse("# rank native replica\n0 0 0\n1\t2 0 # near\n\n0 1 1\r\n 1 3 1", 2, 2, native,
                                   &racks, why, sizeof why));
    assert_memory_equal(native, expected, sizeof expected);
    assert_false(racks);
    assert_true(replica_file_parse("0 0 0\n0 1 1\nracks\n", 1, 2, native, &racks, why, sizeof why));
    assert_true(racks);
}

static void test_replica_file_that_is_wrong_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "replica 0 of rank 0 is in no line"},
        {"0 0 0\n1 1 0\n0 2 1\n", "replica 1 of rank 1 is in no line"},
        {"0 0\n", "line 1: is not \"RANK NATIVE REPLICA\", three numbers, and not \"racks\""},
        {"0 0 0 0\n", "line 1: is not \"RANK NATIVE REPLICA\", three numbers, and not \"racks\""},
        {"rack\n", "line 1: is not \"RANK NATIVE REPLICA\", three numbers, and not \"racks\""},
        {"2 0 0\n", "line 1: 2 is no rank from 0 to 1"},
        {"-1 0 0\n", "line 1: -1 is no rank from 0 to 1"},
        {"0 4 0\n", "line 1: 4 is no native rank from 0 to 3"},
        {"0 0x 0\n", "line 1: 0x is no native rank from 0 to 3"},
        {"#\n0 0 2\n", "line 2: 2 is no replica from 0 to 1"},
        {"0 0 0\n1 0 0\n", "line 2: native rank 0 is in a line before"},
        {"0 0 0\n0 1 0\n", "line 2: replica 0 of rank 0 is native rank 0 already"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int native[4];
        bool racks;
        char why[200] = "";
        assert_false(replica_file_parse(bad[i].text, 2, 2, native, &racks, why, sizeof why));
        assert_string_equal(why, bad[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replica_file_is_read),
        cmocka_unit_test(test_replica_file_that_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
