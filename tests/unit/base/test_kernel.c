/* Processes that are watched where calls of newer kernels are refused, and no descriptors are left to look at them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/kernel.h"

static struct rlimit limit;

/* From now on. */
static bool refuse(unsigned call)
{
    struct sock_filter line[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog all = {.len = sizeof line / sizeof line[0], .filter = line};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

/* So many more can be opened. */
static void leave_descriptors(int n)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit low = {.rlim_cur = (rlim_t)(next + n), .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
}

static void have_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A process that is not this one's child: its end is seen by looking. */
static pid_t stranger(void)
{
    int ends[2];
    pid_t pid = -1;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        pid = fork();
        if (pid == 0) {
            alarm(60); /* a test that fails leaves it */
            kernel_close_from(0, false);
            for (;;)
                pause();
        }
        _exit(write(ends[1], &pid, sizeof pid) != sizeof pid);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(read(ends[0], &pid, sizeof pid), sizeof pid);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static bool ends_within(int process, int ms)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    return poll(&ended, 1, ms) == 1;
}

static void test_kernel_signal_that_finds_no_number_says_why(void **state)
{
    (void)state;
    pid_t pid = stranger();
    int process = process_open(pid);
    if (!refuse(SYS_pidfd_send_signal))
        skip();
    leave_descriptors(0);
    errno = 0;
    int rc = process_signal(process, 0), why = errno;
    have_descriptors();
    assert_true(rc == -1 && why == EMFILE);
    assert_int_equal(process_signal(process, SIGKILL), 0);
    assert_true(ends_within(process, 10000));
    assert_int_equal(process_signal(process, 0), -1);
    assert_int_equal(errno, ESRCH);
    process_close(process);
}

static void test_kernel_process_that_nobody_can_look_at_lives(void **state)
{
    (void)state;
    if (!refuse(SYS_pidfd_open))
        skip();
    pid_t pid = stranger();
    leave_descriptors(2);
    errno = 0;
    int process = process_open(pid), why = errno;
    have_descriptors();
    assert_true(process == -1 && why == EMFILE);
    process = process_open(pid);
    assert_true(process >= 0);
    leave_descriptors(0);
    bool ended = ends_within(process, 200) || process_has_ended(process);
    int rc = process_signal(process, 0);
    have_descriptors();
    assert_false(ended);
    assert_int_equal(rc, 0);
    leave_descriptors(0);
    rc = process_signal(process, SIGKILL);
    ended = ends_within(process, 10000);
    have_descriptors();
    assert_true(rc == 0 && ended);
    process_close(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_signal_that_finds_no_number_says_why),
        cmocka_unit_test(test_kernel_process_that_nobody_can_look_at_lives),
    };
    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
