/* Our armci.h and Debian's agree in all that compiled code knows of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "layout.h"

static void test_layout_is_that_of_debians_header(void **state)
{
    (void)state;
    int i = 0;
    for (; layout_ours[i].name; i++) {
        assert_string_equal(layout_ours[i].name, layout_debian[i].name);
        if (layout_ours[i].a != layout_debian[i].a || layout_ours[i].b != layout_debian[i].b)
            fail_msg("%s: %ld, %ld; Debian has %ld, %ld", layout_ours[i].name, layout_ours[i].a, layout_ours[i].b,
                     layout_debian[i].a, layout_debian[i].b);
    }
    assert_int_equal(i, 31);
    assert_null(layout_debian[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout_is_that_of_debians_header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
