/* Descriptors kept back, under a limit of this process's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/reserve.h"

enum { LIMIT = 40, KEPT = 8 };

static int taken[LIMIT], n;

static void take_all(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        taken[n++] = fd;
    assert_int_equal(errno, EMFILE);
}

static void give_back(int count)
{
    for (int i = 0; i < count; i++)
        close(taken[--n]);
}

static int limited(void **state)
{
    struct rlimit limit;
    (void)state;
    n = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return -1;
    limit.rlim_cur = LIMIT;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

static void test_reserve_of_who_holds_none_gives_none_and_refuses_nothing(void **state)
{
    (void)state;
    take_all();
    assert_false(reserve_give(EMFILE));
    assert_true(reserve_is_whole());
    give_back(n);
}

static void test_reserve_is_given_once_for_want_of_descriptors_only(void **state)
{
    (void)state;
    reserve_hold(KEPT);
    take_all();
    assert_false(reserve_give(ECONNREFUSED));
    assert_true(reserve_give(EMFILE));
    assert_false(reserve_give(EMFILE));
    int before = n;
    take_all();
    assert_int_equal(n - before, KEPT);
    give_back(n);
    assert_true(reserve_is_whole());
}

static void test_reserve_that_cannot_be_whole_again_is_left_to_connections(void **state)
{
    (void)state;
    reserve_hold(KEPT);
    take_all();
    assert_true(reserve_is_whole());
    assert_true(reserve_give(ENFILE));
    take_all();
    give_back(KEPT - 1);
    assert_false(reserve_is_whole());
    int before = n;
    take_all();
    assert_int_equal(n - before, KEPT - 1);
    give_back(KEPT);
    assert_true(reserve_is_whole());
    assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), -1);
    give_back(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reserve_of_who_holds_none_gives_none_and_refuses_nothing, limited),
        cmocka_unit_test_setup(test_reserve_is_given_once_for_want_of_descriptors_only, limited),
        cmocka_unit_test_setup(test_reserve_that_cannot_be_whole_again_is_left_to_connections, limited),
    };
    return cmocka_run_group_tests_name("reserve", tests, NULL, NULL);
}
