/* The helper thread where there is no memory for what another thread asks of it; its listener's descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
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
    static const uint8_t secret[32] = {1};
    struct helper_config config = {
        .job_id = 7, .host = "127.0.0.1", .provider = "tcp", .probe = PROBE_OFI, .secret = secret};
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

static bool listens(int fd)
{
    int yes = 0;
    socklen_t len = sizeof yes;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes;
}

/* The listener's, and the number of those that are open. */
struct descriptors {
    int listener, open;
};

static struct descriptors descriptors(void)
{
    struct descriptors d = {-1, 0};
    for (int fd = 0; fd < 1024; fd++) {
        int copy = dup(fd);
        if (copy < 0)
            continue;
        close(copy);
        d.open++;
        if (listens(fd))
            d.listener = fd;
    }
    return d;
}

static struct helper *made(void)
{
    static const uint8_t secret[32] = {1};
    struct helper_config config = {
        .job_id = 7, .host = "127.0.0.1", .provider = "tcp", .probe = PROBE_OFI, .secret = secret};
    struct helper_callbacks callbacks = {.halt = on_halt};
    struct helper_blob blob;
    struct helper *h = NULL;
    member_params_default(&config.params, 2, 0);
    assert_int_equal(helper_create(&config, &callbacks, &h, &blob), KEEL_OK);
    return h;
}

/* The kernel closes it first when the process ends: who sees a connection break is refused. */
static void test_what_comes_after_the_listener_has_lower_descriptors(void **state)
{
    (void)state;
    int before = descriptors().open;
    struct helper *h = made();
    int listener = descriptors().listener, more[100];
    assert_true(listener >= 0);
    for (int i = 0; i < 100; i++) {
        more[i] = dup(0);
        assert_in_range(more[i], 0, listener - 1);
    }
    for (int i = 0; i < 100; i++)
        close(more[i]);
    assert_true(descriptors().open - before < 40); /* what kept the low ones is closed again */
    helper_destroy(h);
}

/* Where few descriptors may be had it takes what there is. */
static void test_few_descriptors_are_enough_to_listen(void **state)
{
    (void)state;
    struct rlimit was, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = was;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct helper *h = made();
    assert_true(descriptors().listener >= 0);
    helper_destroy(h);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_helper_that_cannot_take_a_command_ends),
        cmocka_unit_test(test_what_comes_after_the_listener_has_lower_descriptors),
        cmocka_unit_test(test_few_descriptors_are_enough_to_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
