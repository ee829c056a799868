/* The hello of a data connection: what opens it, and what does not. */
#include "runtime/net/hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SELF = 3 };
static const uint64_t JOB = 77, INCARNATION = 88;
static const uint8_t secret[32] = {1, 2, 3};

static struct hello signed_hello(uint64_t attempt)
{
    struct hello hello = {.job = JOB,
                          .incarnation = 5,
                          .node = 1,
                          .rank = 2,
                          .to_node = SELF,
                          .to_incarnation = INCARNATION,
                          .attempt = attempt};
    hello_sign(&hello, secret);
    return hello;
}

static bool opens(const void *data, size_t len)
{
    struct hello out;
    return hello_open(data, len, secret, JOB, SELF, INCARNATION, &out);
}

static void test_hello_of_the_job_opens(void **state)
{
    (void)state;
    struct hello hello = signed_hello(1), out;
    assert_true(hello_open(&hello, sizeof hello, secret, JOB, SELF, INCARNATION, &out));
    assert_int_equal(out.rank, 2);
    assert_int_equal(out.attempt, 1);
}

static void test_hello_altered_or_cut_does_not_open(void **state)
{
    (void)state;
    struct hello hello = signed_hello(1);
    uint8_t bytes[sizeof hello];
    for (size_t i = 0; i < sizeof hello; i++) {
        memcpy(bytes, &hello, sizeof hello);
        bytes[i] ^= 1;
        assert_false(opens(bytes, sizeof bytes));
        assert_false(opens(&hello, i));
    }
}

static void test_hello_of_another_job_node_or_incarnation_does_not_open(void **state)
{
    (void)state;
    const uint8_t other[32] = {3, 2, 1};
    struct hello hello = signed_hello(1), out;
    assert_false(hello_open(&hello, sizeof hello, other, JOB, SELF, INCARNATION, &out));
    assert_false(hello_open(&hello, sizeof hello, secret, JOB + 1, SELF, INCARNATION, &out));
    assert_false(hello_open(&hello, sizeof hello, secret, JOB, SELF + 1, INCARNATION, &out));
    assert_false(hello_open(&hello, sizeof hello, secret, JOB, SELF, INCARNATION + 1, &out));
}

static void test_hello_repeated_or_older_is_not_new(void **state)
{
    (void)state;
    uint64_t last = 0;
    struct hello first = signed_hello(1), second = signed_hello(2), ninth = signed_hello(9);
    assert_true(hello_is_new(&first, &last));
    assert_false(hello_is_new(&first, &last));
    assert_true(hello_is_new(&ninth, &last)); /* attempts between were lost */
    assert_false(hello_is_new(&second, &last));
    assert_false(hello_is_new(&ninth, &last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello_of_the_job_opens),
        cmocka_unit_test(test_hello_altered_or_cut_does_not_open),
        cmocka_unit_test(test_hello_of_another_job_node_or_incarnation_does_not_open),
        cmocka_unit_test(test_hello_repeated_or_older_is_not_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
