/* A thread with real-time priority that does not sleep. */
#include "runtime/base/prompt.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum { NEVER_S = 60, ALONE_CPU_MAX_MS = 5 * PROMPT_ALONE_MS };

static int lines;
static char last[256];

static void note(void *user, const char *line, size_t len)
{
    (void)user;
    lines++;
    snprintf(last, sizeof last, "%.*s", (int)len, line);
}

static uint64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Runs until it has that policy; how much of the processor that took. */
static uint64_t run_until(int policy)
{
    uint64_t begin = cpu_ms(), end = clock_now_ns() + NEVER_S * KEEL_NS_PER_S;
    while (sched_getscheduler(0) != policy && clock_now_ns() < end)
        ;
    assert_int_equal(sched_getscheduler(0), policy);
    return cpu_ms() - begin;
}

static void sleep_until_raised(void)
{
    uint64_t end = clock_now_ns() + NEVER_S * KEEL_NS_PER_S;
    while (sched_getscheduler(0) != SCHED_RR && clock_now_ns() < end) {
        prompt_keep();
        usleep(1000);
    }
    assert_int_equal(sched_getscheduler(0), SCHED_RR);
}

static void *falls_and_rises(void *arg)
{
    *(bool *)arg = prompt_begin();
    for (int i = 0; i < 2 && *(bool *)arg; i++) {
        assert_true(run_until(SCHED_OTHER) <= ALONE_CPU_MAX_MS);
        prompt_keep();
        assert_int_equal(lines, 1 + i);
        assert_non_null(strstr(last, "normal priority"));
        sleep_until_raised();
    }
    return NULL;
}

static void *is_asked_by_a_user(void *arg)
{
    *(bool *)arg = prompt_begin();
    pthread_kill(pthread_self(), SIGXCPU);
    prompt_keep();
    if (*(bool *)arg)
        assert_int_equal(sched_getscheduler(0), SCHED_RR);
    assert_int_equal(lines, 0);
    return NULL;
}

/* Each in a thread of its own. */
static void in_thread(void *(*run)(void *))
{
    bool may = false;
    pthread_t thread;
    lines = 0;
    log_to(note, NULL);
    assert_int_equal(pthread_create(&thread, NULL, run, &may), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    log_to(NULL, NULL);
    if (!may)
        skip(); /* no right to such a priority */
}

static void test_prompt_thread_that_does_not_sleep_falls_with_a_line_and_rises_again(void **state)
{
    (void)state;
    in_thread(falls_and_rises);
}

static void test_prompt_signal_of_a_user_changes_nothing(void **state)
{
    (void)state;
    in_thread(is_asked_by_a_user);
}

static void test_prompt_another_program_has_the_limit_of_before(void **state)
{
    struct rlimit first, here, there;
    int status;
    (void)state;
    pid_t pid = fork(); /* a process in which nobody has been raised */
    if (pid == 0) {
        getrlimit(RLIMIT_RTTIME, &first);
        (void)prompt_begin();
        getrlimit(RLIMIT_RTTIME, &here);
        prompt_forget();
        getrlimit(RLIMIT_RTTIME, &there);
        _exit(here.rlim_cur <= PROMPT_ALONE_MS * 1000 && memcmp(&first, &there, sizeof first) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompt_another_program_has_the_limit_of_before),
        cmocka_unit_test(test_prompt_signal_of_a_user_changes_nothing),
        cmocka_unit_test(test_prompt_thread_that_does_not_sleep_falls_with_a_line_and_rises_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
