/* What a node tells the others before the start: comes as it was, and nothing else is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/rng.h"
#include "runtime/plane/blob.h"

static struct blob of_rails(int n, uint32_t helper)
{
    struct blob b = {.addrs.n = (uint32_t)n, .incarnation = 0x123456789abcdefull, .helper.len = helper};
    for (int i = 0; i < n; i++)
        b.addrs.of[i] = (struct tp_addr){.len = 16, .rail = (uint16_t)i, .bytes = {2, 0, (uint8_t)i}};
    memset(b.helper.bytes, 0x5a, helper);
    return b;
}

static void test_blob_comes_as_it_was(void **state)
{
    (void)state;
    for (int n = 1; n <= TP_RAILS_MAX; n++)
        for (uint32_t helper = 0; helper <= HELPER_BLOB_MAX; helper += 96) {
            struct blob b = of_rails(n, helper), got;
            struct plane_blob bytes;
            if (n == 2)
                b.device_addr = (struct tp_addr){.len = 28, .bytes = {9}};
            blob_write(&b, &bytes);
            assert_true(blob_read(&bytes, &got));
            assert_memory_equal(&b, &got, sizeof b);
            assert_int_equal(bytes.len, 80 + 64 * (size_t)n + helper); /* no gaps: all are told those of all */
        }
}

static void test_blob_that_is_cut_or_has_more_is_none(void **state)
{
    (void)state;
    struct blob b = of_rails(2, 100), got;
    struct plane_blob bytes;
    blob_write(&b, &bytes);
    uint32_t whole = bytes.len;
    for (bytes.len = 0; bytes.len <= sizeof bytes.bytes + 1; bytes.len++)
        assert_int_equal(blob_read(&bytes, &got), bytes.len == whole);
    bytes.len = UINT32_MAX;
    assert_false(blob_read(&bytes, &got));
}

static void test_blob_any_bytes(void **state)
{
    (void)state;
    const char *given = getenv("KEEL_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : clock_now_ns();
    struct rng rng;
    int good = 0;
    rng_seed(&rng, seed);
    print_message("KEEL_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < 100000; i++) {
        struct blob b = of_rails(1 + (int)rng_below(&rng, TP_RAILS_MAX), (uint32_t)rng_below(&rng, HELPER_BLOB_MAX)),
                    got;
        struct plane_blob bytes;
        blob_write(&b, &bytes);
        for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
            bytes.bytes[rng_below(&rng, 150)] = (uint8_t)rng_u64(&rng);
        if (!blob_read(&bytes, &got))
            continue;
        good++;
        assert_true(addrs_good(&got.addrs));
        assert_true(got.helper.len <= HELPER_BLOB_MAX && got.device_addr.len <= sizeof got.device_addr.bytes);
    }
    assert_in_range(good, 1000, 99000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blob_comes_as_it_was),
        cmocka_unit_test(test_blob_that_is_cut_or_has_more_is_none),
        cmocka_unit_test(test_blob_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
