/* Fault points: who dies, and when. Each case in a child process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/fault.h"

/* How often a child with this KEEL_FAULT passes point "a" of 5 times, "b" in between. */
static int passes(const char *specification, int node, int rank, unsigned life)
{
    int out[2];
    char c;
    int n = 0;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("KEEL_FAULT", specification, 1);
        fault_init(node, rank, life);
        for (int i = 0; i < 5; i++) {
            FAULT_POINT("b");
            FAULT_POINT("a");
            if (write(out[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    close(out[1]);
    while (read(out[0], &c, 1) == 1)
        n++;
    close(out[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(n == 5 ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                       : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return n;
}

static void test_fault_kills_at_the_nth_passing(void **state)
{
    (void)state;
    assert_int_equal(passes("a:1:kill", 0, -1, 0), 0);
    assert_int_equal(passes("a:4:kill", 0, -1, 0), 3);
    assert_int_equal(passes("a:6:kill", 0, -1, 0), 5);
    assert_int_equal(passes("c:1:kill,b:3:kill", 0, -1, 0), 2);
}

static void test_fault_of_another_process_is_not_ours(void **state)
{
    (void)state;
    assert_int_equal(passes("a:1:kill:node=2", 1, -1, 0), 5);
    assert_int_equal(passes("a:1:kill:node=2", 2, -1, 0), 0);
    assert_int_equal(passes("a:1:kill:rank=3", 2, -1, 0), 5);
    assert_int_equal(passes("a:1:kill:rank=3:node=2", 2, 3, 0), 0);
    assert_int_equal(passes("a:1:kill", 2, 3, 1), 5); /* took over from one that died there */
    assert_int_equal(passes("a:1:kill:life=1", 2, 3, 1), 0);
}

static void test_fault_malformed_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(passes("a:1", 0, -1, 0), 5);
    assert_int_equal(passes("a:x:kill,a:1:hop,a:0:kill,:::", 0, -1, 0), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fault_kills_at_the_nth_passing),
        cmocka_unit_test(test_fault_of_another_process_is_not_ours),
        cmocka_unit_test(test_fault_malformed_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
