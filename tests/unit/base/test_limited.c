/* A file that may become no larger is an error of the write, and no signal. */
#include "runtime/base/limited.h"
#include "runtime/base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 10 };
static volatile sig_atomic_t came;

static void on_limit(int number)
{
    (void)number;
    came++;
}

/* Its descriptor; nothing of it is left. */
static int make_file(void)
{
    char name[] = "/tmp/keel-limited-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0 && unlink(name) == 0);
    return fd;
}

static int limit_all(void **state)
{
    (void)state;
    struct rlimit limit;
    struct sigaction act = {.sa_handler = on_limit};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = MOST;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    came = 0;
    return sigaction(SIGXFSZ, &act, NULL);
}

static int unlimit(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_FSIZE, &limit) + (signal(SIGXFSZ, SIG_DFL) == SIG_ERR);
}

static void block(int how)
{
    sigset_t limit;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    assert_int_equal(sigprocmask(how, &limit, NULL), 0);
}

static bool is_pending(void)
{
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    return sigismember(&pending, SIGXFSZ) == 1;
}

/* What fits is written, and the rest is refused. */
static void fill(int fd)
{
    assert_int_equal(limited_write(fd, "twelve bytes", 12), MOST);
    errno = 0;
    assert_int_equal(limited_write(fd, "es", 2), -1);
    assert_int_equal(errno, EFBIG);
}

static void test_limited_write_is_refused_without_a_signal(void **state)
{
    (void)state;
    int fd = make_file();
    fill(fd);
    assert_int_equal(came, 0);
    assert_int_equal(write(fd, "es", 2), -1); /* the program's own */
    assert_int_equal(came, 1);
    block(SIG_BLOCK);
    errno = 0;
    assert_int_equal(limited_write(fd, "es", 2), -1);
    assert_false(is_pending());
    block(SIG_UNBLOCK);
    assert_int_equal(came, 1);
    close(fd);
}

static void test_limited_write_leaves_a_signal_that_was_pending(void **state)
{
    (void)state;
    int fd = make_file();
    block(SIG_BLOCK);
    assert_int_equal(raise(SIGXFSZ), 0);
    fill(fd);
    assert_true(is_pending());
    block(SIG_UNBLOCK);
    assert_int_equal(came, 1);
    close(fd);
}

static void test_log_to_a_file_that_is_full_sends_no_signal(void **state)
{
    (void)state;
    int fd = make_file(), before = dup(STDERR_FILENO);
    assert_true(before >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    log_error("more than may be written");
    log_error("and more");
    (void)dup2(before, STDERR_FILENO);
    assert_int_equal(lseek(fd, 0, SEEK_END), MOST);
    assert_int_equal(came, 0);
    close(before);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_limited_write_is_refused_without_a_signal, limit_all, unlimit),
        cmocka_unit_test_setup_teardown(test_limited_write_leaves_a_signal_that_was_pending, limit_all, unlimit),
        cmocka_unit_test_setup_teardown(test_log_to_a_file_that_is_full_sends_no_signal, limit_all, unlimit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
