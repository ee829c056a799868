/* What a user may say of the addresses for segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/base/address_range.h"

static void test_address_range_of_numbers_is_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t base, bytes;
    } cases[] = {
        {"0x400000000,32G", 0x400000000, (uint64_t)32 << 30},
        {"0x200000000000,1T", 0x200000000000, (uint64_t)1 << 40},
        {"1048576,2M", 1 << 20, 2 << 20},
        {"0x100000,0x200000", 1 << 20, 2 << 20},
        {"0x100000,2048K", 1 << 20, 2 << 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address_range r;
        assert_true(address_range_parse(cases[i].text, &r));
        assert_int_equal(r.base, cases[i].base);
        assert_int_equal(r.bytes, cases[i].bytes);
    }
}

static void test_address_range_of_anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        "big",
                                        "small ",
                                        "0x400000000",
                                        "0x400000000,",
                                        "0x400000000,32",
                                        "0x400000000,32g",
                                        "0x400000001,32G",
                                        "0,32G",
                                        "0x400000000,0",
                                        "0x400000000,1M",
                                        "0x400000000,32Gi",
                                        "-1,32G",
                                        "0x400000000,-32G",
                                        "0x7fffffffff000000,32G",
                                        "0x400000000,9999999999T",
                                        " 0x400000000,32G"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address_range r;
        if (address_range_parse(cases[i], &r))
            fail_msg("%s was taken", cases[i]);
    }
}

static void test_address_range_of_valgrind_is_seen_in_the_command_line(void **state)
{
    (void)state;
    char *with[] = {"/usr/bin/valgrind", "./a", NULL}, *behind[] = {"timeout", "10", "valgrind", "-q", "./a", NULL},
         *without[] = {"./valgrinder", "a/valgrind/b", NULL};
    assert_true(address_range_will_be_watched(with));
    assert_true(address_range_will_be_watched(behind));
    assert_false(address_range_will_be_watched(without));
    struct address_range r = {0, 0};
    assert_true(address_range_parse("small", &r));
    assert_int_equal(r.base, address_range_small().base);
    assert_true(r.bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_range_of_numbers_is_what_they_say),
        cmocka_unit_test(test_address_range_of_anything_else_is_refused),
        cmocka_unit_test(test_address_range_of_valgrind_is_seen_in_the_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
