/* What was written since a look, and nothing else, counts as written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/data/pages.h"

enum { BLOCKS = 4, BYTES = BLOCKS * PAGES_BLOCK - 100 };

static unsigned written(const struct pages *p, const uint8_t *base, uint64_t n)
{
    unsigned which = 0;
    for (unsigned i = 0; i < BLOCKS; i++)
        which |= (unsigned)pages_written(p, base + i * PAGES_BLOCK, 1, n) << i;
    return which;
}

static void test_pages_new_memory_counts_as_written(void **state)
{
    (void)state;
    uint8_t *base;
    struct pages *p = pages_alloc(BYTES, &base);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(base[i], 0);
    assert_int_equal(written(p, base, 0), 0xf);
    pages_looked(1);
    assert_int_equal(written(p, base, 1), 0);
    pages_free_all();
}

static void test_pages_each_store_after_a_look_is_seen(void **state)
{
    (void)state;
    uint8_t *base;
    struct pages *p = pages_alloc(BYTES, &base);
    pages_looked(1);
    base[0] = 1;
    base[0] = 2;
    memset(base + 3 * PAGES_BLOCK - 1, 3, 2);
    assert_int_equal(written(p, base, 1), 0xd);
    assert_true(pages_written(p, base + PAGES_BLOCK, 2 * PAGES_BLOCK, 1));
    assert_false(pages_written(p, base + PAGES_BLOCK, PAGES_BLOCK, 1));
    pages_looked(2);
    assert_int_equal(written(p, base, 2), 0);
    assert_int_equal(written(p, base, 1), 0xd); /* who missed a look has to look again */
    base[PAGES_BLOCK]++;
    assert_int_equal(written(p, base, 2), 0x2);
    pages_free_all();
}

static void test_pages_several_are_told_apart(void **state)
{
    (void)state;
    uint8_t *one, *other;
    struct pages *p = pages_alloc(BYTES, &one), *q = pages_alloc(BYTES, &other);
    pages_looked(1);
    other[5]++;
    assert_int_equal(written(p, one, 1), 0);
    assert_int_equal(written(q, other, 1), 1);
    pages_free_all();
}

static void test_pages_used_again_are_zero_and_written(void **state)
{
    (void)state;
    uint8_t *base;
    struct pages *p = pages_alloc(BYTES, &base);
    memset(base, 7, BYTES);
    pages_looked(1);
    pages_free(p);
    p = pages_alloc(BYTES, &base);
    assert_int_equal(written(p, base, 1), 0xf);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(base[i], 0);
    pages_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_new_memory_counts_as_written),
        cmocka_unit_test(test_pages_each_store_after_a_look_is_seen),
        cmocka_unit_test(test_pages_several_are_told_apart),
        cmocka_unit_test(test_pages_used_again_are_zero_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
