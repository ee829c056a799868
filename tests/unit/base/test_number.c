/* Numbers, counts and texts of users: what is taken, and how it is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/number.h"
#include "runtime/base/plural.h"
#include "runtime/base/shown.h"

static void test_number_whole_is_digits_and_nothing_else(void **state)
{
    (void)state;
    int64_t v = 77;
    static const char *const bad[] = {"",  " 4",  "4 ", "+4",  "\t4", "0x4", "4.0", "--4", "- 4",
                                      "-", "4e1", "4k", "\n4", "4\n", "11",  "-11", "inf", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(number_whole(bad[i], -10, 10, &v));
    assert_int_equal(v, 77);
    assert_true(number_whole("4", -10, 10, &v) && v == 4);
    assert_true(number_whole("-10", -10, 10, &v) && v == -10);
    assert_true(number_whole("007", -10, 10, &v) && v == 7);
    assert_true(number_whole("9223372036854775807", 0, INT64_MAX, &v) && v == INT64_MAX);
    assert_false(number_whole("9223372036854775808", 0, INT64_MAX, &v));
}

static void test_number_real_is_what_people_write(void **state)
{
    (void)state;
    double v = 77;
    static const char *const bad[] = {"",   " 4", "+4", "0x4",   "inf", "nan", "4 ",
                                      "e3", "E3", "1e", "1e999", "-",   ".",   "11"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(number_real(bad[i], -10, 10, &v));
    assert_true(v == 77);
    assert_true(number_real("0.5", -10, 10, &v) && v == 0.5);
    assert_true(number_real(".5", -10, 10, &v) && v == 0.5);
    assert_true(number_real("-2", -10, 10, &v) && v == -2);
    assert_true(number_real("5e-1", -10, 10, &v) && v == 0.5);
    assert_true(number_real("1e+1", -10, 10, &v) && v == 10);
}

static void test_number_in_another_form_has_no_blank(void **state)
{
    (void)state;
    assert_true(number_none_is_odd("3D(2,1):xz"));
    assert_false(number_none_is_odd("3D(2, 1)"));
    assert_false(number_none_is_odd("3D(+2,1)"));
    assert_false(number_none_is_odd("3D(2,1)\n"));
}

static void test_plural_one_is_one(void **state)
{
    (void)state;
    assert_string_equal(plural(1, "rank", "ranks"), "rank");
    assert_string_equal(plural(0, "rank", "ranks"), "ranks");
    assert_string_equal(plural(2, "rank", "ranks"), "ranks");
    assert_string_equal(plural(-1, "rank", "ranks"), "ranks");
}

static void test_shown_text_gives_no_terminal_orders(void **state)
{
    char out[80];
    (void)state;
    assert_string_equal(shown_text("a\xc2\x80\xc2\x9b"
                                   "2J\xc2\x9f",
                                   out, sizeof out),
                        "a\\u0080\\u009b2J\\u009f");
    assert_string_equal(shown_text("\x9b"
                                   "2J\x80\x9f",
                                   out, sizeof out),
                        "\\x9b2J\\x80\\x9f");
    static const char turned[] = {/* bytes: a compiler that looks for such marks in strings refuses them */
                                  (char)0xe2, (char)0x80, (char)0xaa, '|', (char)0xe2, (char)0x80, (char)0xae, '|',
                                  (char)0xe2, (char)0x81, (char)0xa6, '|', (char)0xe2, (char)0x81, (char)0xa9, 0};
    assert_string_equal(shown_text(turned, out, sizeof out), "\\u202a|\\u202e|\\u2066|\\u2069");
    assert_string_equal(shown_text("\xe2\x80\x8e|\xe2\x80\x8f|\xe2\x80\xa8|\xe2\x80\xa9", out, sizeof out),
                        "\\u200e|\\u200f|\\u2028|\\u2029");
    /* letters whose bytes are in the same range, and what is beside these */
    static const char plain[] =
        "\xc2\xa0\xc3\x9f\xd0\x9b\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xf0\x9f\x98\x80";
    assert_string_equal(shown_text(plain, out, sizeof out), plain);
    assert_string_equal(shown_text("\xe2\x80", out, sizeof out), "\xe2\\x80");
}

static void test_shown_text_is_one_line_in_which_nothing_hides(void **state)
{
    (void)state;
    char out[64], little[6];
    assert_string_equal(shown_text("a\nb\r\tc\x1b[0m\x7f", out, sizeof out), "a\\nb\\r\\tc\\x1b[0m\\x7f");
    assert_string_equal(shown_text("\xef\xbb\xbf"
                                   "5: \xc3\xa9",
                                   out, sizeof out),
                        "\\ufeff5: \xc3\xa9");
    assert_string_equal(shown_text("\xef", out, sizeof out), "\xef");
    assert_string_equal(shown_text("", out, sizeof out), "");
    assert_string_equal(shown_text("abc\n", little, sizeof little), "abc\\n");
    assert_string_equal(shown_text("abcd\n", little, sizeof little), "abcd");
    assert_string_equal(shown_text("\x01\x01", little, sizeof little), "\\x01");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_whole_is_digits_and_nothing_else),
        cmocka_unit_test(test_number_real_is_what_people_write),
        cmocka_unit_test(test_number_in_another_form_has_no_blank),
        cmocka_unit_test(test_plural_one_is_one),
        cmocka_unit_test(test_shown_text_gives_no_terminal_orders),
        cmocka_unit_test(test_shown_text_is_one_line_in_which_nothing_hides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
