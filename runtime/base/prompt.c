#include "runtime/base/prompt.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

enum { LIMIT_US = PROMPT_ALONE_MS * 1000 };
enum state { UP, FELL, DOWN };

static struct rlimit before;
static volatile sig_atomic_t limited;             /* `before` was another limit */
static _Thread_local volatile sig_atomic_t state; /* enum state, of a thread that was raised */
static _Thread_local uint64_t fell_at;

static void time_over(int number, siginfo_t *info, void *context)
{
    static const struct sched_param normal;
    int error = errno;
    (void)number;
    (void)context;
    if (info->si_code == SI_KERNEL && sched_getscheduler(0) == SCHED_RR &&
        sched_setscheduler(0, SCHED_OTHER, &normal) == 0)
        state = FELL;
    errno = error;
}

/* The kernel asks the thread that it is about, if that does not block the signal. */
static bool listen_to_kernel(void)
{
    struct sigaction action = {.sa_sigaction = time_over, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct rlimit now;
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGXCPU);
    if (getrlimit(RLIMIT_RTTIME, &now) != 0 || sigaction(SIGXCPU, &action, NULL) != 0 ||
        pthread_sigmask(SIG_UNBLOCK, &own, NULL) != 0)
        return false;
    if (!limited)
        before = now;
    limited = 1;
    /* again each time: the kernel adds a second when it has said it */
    struct rlimit ours = {before.rlim_cur < LIMIT_US ? before.rlim_cur : LIMIT_US, before.rlim_max};
    return setrlimit(RLIMIT_RTTIME, &ours) == 0;
}

static bool raise_thread(void)
{
    struct sched_param param = {.sched_priority = 1};
    int error = pthread_setschedparam(pthread_self(), SCHED_RR, &param);
    errno = error;
    return error == 0;
}

bool prompt_begin(void)
{
    state = UP;
    return listen_to_kernel() && raise_thread();
}

void prompt_keep(void)
{
    if (__builtin_expect(state == UP, 1))
        return;
    uint64_t now = clock_now_ns();
    if (state == FELL) {
        fell_at = now;
        state = DOWN;
        log_warn_some("a thread ran for %d ms without a pause at real-time priority and fell to normal priority",
                      PROMPT_ALONE_MS);
    } else if (now - fell_at >= PROMPT_AGAIN_MS * KEEL_NS_PER_MS) {
        state = UP;
        (void)(listen_to_kernel() && raise_thread());
    }
}

void prompt_forget(void)
{
    if (limited)
        (void)setrlimit(RLIMIT_RTTIME, &before);
}
