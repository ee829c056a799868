/* The helper thread where there is no memory for what another thread asks of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "detect/helper.h"
#include "runtime/base/clock.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

static _Thread_local bool poor;

void *__wrap_realloc(void *p, size_t n)
{
    return poor ? NULL : __real_realloc(p, n);
}
// NOLINTEND(bugprone-reserved-identifier)

static _Atomic(const char *) ended;

static void on_halt(void *user, const char *reason)
{
    (void)user;
    ended = reason;
}

static void test_helper_that_cannot_take_a_command_ends(void **state)
{
    (void)state;
    struct helper_config config = {.job_id = 7, .host = "127.0.0.1", .provider = "tcp", .probe = PROBE_OFI};
    struct helper_callbacks callbacks = {.halt = on_halt};
    struct helper_blob blob;
    struct helper *h;
    int bad = -1;
    member_params_default(&config.params, 1, 0);
    assert_int_equal(helper_create(&config, &callbacks, &h, &blob), KEEL_OK);
    assert_int_equal(helper_start(h, &blob, &bad), KEEL_OK);
    poor = true;
    helper_prepared(h, 1, 2);
    poor = false;
    for (uint64_t end = clock_now_ns() + 10 * KEEL_NS_PER_S; !ended && clock_now_ns() < end;)
        nanosleep(&(struct timespec){.tv_nsec = KEEL_NS_PER_MS}, NULL);
    assert_non_null(ended);
    assert_string_equal(ended, "out of memory");
    helper_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_helper_that_cannot_take_a_command_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
