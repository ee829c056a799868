/* digest() is XXH3 with 64 bits, whatever the processor computes it with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/wire/digest.h"

enum { SHORT = 2048, LONG = 300001, SHIFTS = 33 };

static void test_every_length(void **state)
{
    (void)state;
    uint8_t bytes[SHORT + SHIFTS];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i + i / 7);
    for (size_t len = 1; len <= SHORT; len++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            const uint8_t *at = bytes + len % SHIFTS;
            assert_true(digest(at, len, seed * UINT64_MAX) == XXH3_64bits_withSeed(at, len, seed * UINT64_MAX));
        }
}

static void test_long(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(LONG);
    assert_non_null(bytes);
    for (size_t i = 0; i < LONG; i++)
        bytes[i] = (uint8_t)(i % 251 + i / 4096);
    uint64_t whole = digest(bytes, LONG, 5);
    assert_true(whole == XXH3_64bits_withSeed(bytes, LONG, 5));
    bytes[LONG / 2] ^= 16;
    assert_true(digest(bytes, LONG, 5) != whole);
    free(bytes);
}

static void test_nothing_is_the_seed(void **state)
{
    (void)state;
    assert_true(digest(NULL, 0, 7) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_nothing_is_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
