/* What a thread asks of the kernel's scheduler. */
#include "runtime/base/slice.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

enum { SLICE = 300000, NICE = 7, PRIORITY = 1 };

/* What this thread asks for; 0: the kernel does not say. As sched_getattr(2) has it, which the C library may not. */
static uint64_t slice_of_this(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } a = {.size = sizeof a};
    bool known = syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) == 0;
    return known && (a.policy == SCHED_OTHER || a.policy == SCHED_BATCH) ? a.runtime : 0;
}

/* Each in a thread of its own: what it asked for ends with it. */
static void in_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

struct seen {
    int policy, nice;
    uint64_t before, after;
};

static void *asks(void *arg)
{
    struct seen *s = arg;
    struct sched_param p = {.sched_priority = s->policy == SCHED_FIFO ? PRIORITY : 0};
    setpriority(PRIO_PROCESS, 0, NICE); /* of this thread: on Linux */
    if (sched_setscheduler(0, s->policy, &p) != 0)
        s->policy = sched_getscheduler(0);
    s->before = slice_of_this();
    slice_set(SLICE);
    s->after = slice_of_this();
    s->policy = sched_getscheduler(0);
    s->nice = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static void test_slice_is_what_was_asked_for(void **state)
{
    (void)state;
    struct seen s = {.policy = SCHED_OTHER};
    in_thread(asks, &s);
    assert_int_equal(s.after, s.before ? SLICE : 0); /* 0: a kernel that has no such thing */
}

static void test_slice_changes_neither_policy_nor_priority(void **state)
{
    (void)state;
    const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        struct seen s = {.policy = policies[i]};
        in_thread(asks, &s);
        assert_true(s.policy == policies[i] || policies[i] == SCHED_FIFO); /* that one is not for everybody */
        assert_int_equal(s.nice, NICE);
    }
}

static void *looks(void *arg)
{
    *(uint64_t *)arg = slice_of_this();
    return NULL;
}

static void test_slice_of_other_threads_stays(void **state)
{
    (void)state;
    uint64_t before, after;
    struct seen s = {.policy = SCHED_OTHER};
    in_thread(looks, &before);
    in_thread(asks, &s);
    in_thread(looks, &after);
    assert_int_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slice_is_what_was_asked_for),
                                       cmocka_unit_test(test_slice_changes_neither_policy_nor_priority),
                                       cmocka_unit_test(test_slice_of_other_threads_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
