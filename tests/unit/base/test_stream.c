/* Copies of all lengths about the sizes that matter, to and from all places in a line: the same bytes, and none
 * beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "runtime/base/stream.h"

enum { LINE = 64, MOST = STREAM_MIN + 3 * LINE, ROOM = MOST + 4 * LINE, UNTOUCHED = 0xee };

static uint8_t from[ROOM], to[ROOM];

static void check(size_t source, size_t target, size_t len)
{
    memset(to, UNTOUCHED, sizeof to);
    stream_copy(to + target, from + source, len);
    for (size_t i = 0; i < ROOM; i++) {
        bool inside = i >= target && i < target + len;
        if (to[i] != (inside ? from[source + i - target] : UNTOUCHED))
            fail_msg("byte %zu of %zu from %zu to %zu is %d", i, len, source, target, to[i]);
    }
}

static void stream_copy_moves_these_bytes_and_no_others(void **state)
{
    (void)state;
    static const size_t lens[] = {
        0, 1, 63, 64, 65, STREAM_MIN - 1, STREAM_MIN, STREAM_MIN + 1, STREAM_MIN + 63, STREAM_MIN + 64, MOST};
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t target = 0; target < 2 * LINE; target++)
        for (size_t source = 0; source < LINE; source += 1 + target % 5)
            for (size_t l = 0; l < sizeof lens / sizeof lens[0]; l++)
                check(source, target, lens[l]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stream_copy_moves_these_bytes_and_no_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
