/* The pure parts of libkeel-world.so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/world/pace.h"
#include "runtime/world/shadow.h"
#include "runtime/world/stream.h"

/* RFC 8439, A.1, number 1: the key, the nonce and the counter are 0. */
static void test_stream_is_chacha20(void **state)
{
    static const uint8_t first[] = {0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90};
    static const uint8_t second[] = {0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a};
    uint8_t key[STREAM_KEY] = {0}, got[STREAM_BLOCK + 8], again[8];
    (void)state;
    stream_fill(key, 0, 0, got, sizeof got);
    assert_memory_equal(got, first, sizeof first);
    assert_memory_equal(got + STREAM_BLOCK, second, sizeof second);
    stream_fill(key, 0, 1, again, sizeof again);
    assert_memory_equal(again, second, sizeof second);
    stream_fill(key, 1, 1, again, sizeof again);
    assert_memory_not_equal(again, second, sizeof second);
}

static int readings_until_due(struct pace *p)
{
    int n = 1;
    while (!pace_is_due(p))
        n++;
    return n;
}

static void test_pace_is_rare_where_readings_are_close(void **state)
{
    struct pace p = {0};
    uint64_t now = 1;
    (void)state;
    assert_int_equal(readings_until_due(&p), 1);
    pace_agreed(&p, now);
    for (int expected = 1; expected <= PACE_STRIDE_MAX; expected *= 2) {
        assert_int_equal(readings_until_due(&p), expected);
        pace_agreed(&p, now += PACE_CLOSE_NS - 1);
    }
    assert_int_equal(readings_until_due(&p), PACE_STRIDE_MAX);
    pace_agreed(&p, now += PACE_CLOSE_NS);
    assert_int_equal(readings_until_due(&p), 1);
}

static void test_pace_begins_anew_after_a_meeting(void **state)
{
    struct pace p = {0};
    (void)state;
    for (uint64_t now = 1; now < 6; now++)
        pace_agreed(&p, now);
    assert_false(pace_is_due(&p));
    pace_begin(&p);
    assert_true(pace_is_due(&p));
}

static void test_shadow_lies_beside_the_file(void **state)
{
    char name[SHADOW_PATH], long_name[400] = "/tmp/";
    (void)state;
    assert_true(shadow_name(SHADOW_OWN, 0xab, 1, 7, "/tmp/x.db", name));
    assert_string_equal(name, "/tmp/.keel-00000000000000ab-w1-x.db");
    assert_true(shadow_name(SHADOW_BEFORE, 0xab, 2, 7, "x.db", name));
    assert_string_equal(name, ".keel-00000000000000ab-b-x.db");
    assert_true(shadow_name(SHADOW_MAKING, 0xab, 2, 7, "a/x", name));
    assert_string_equal(name, "a/.keel-00000000000000ab-m2.7-x");
    assert_false(shadow_name(SHADOW_OWN, 0xab, 1, 7, "/tmp/", name));
    assert_false(shadow_name(SHADOW_OWN, 0xab, 1, 7, "..", name));
    assert_false(shadow_name(SHADOW_OWN, 0xab, 1, 7, "/tmp/.keel-00000000000000ab-w1-x.db", name));
    memset(long_name + 5, 'x', 240);
    assert_false(shadow_name(SHADOW_OWN, 0xab, 1, 7, long_name, name));
    assert_true(shadow_is_system("/dev/null"));
    assert_false(shadow_is_system("/tmp/dev/null"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_is_chacha20),
        cmocka_unit_test(test_pace_is_rare_where_readings_are_close),
        cmocka_unit_test(test_pace_begins_anew_after_a_meeting),
        cmocka_unit_test(test_shadow_lies_beside_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
