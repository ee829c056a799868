#include "detect/lateness.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "detect/witness.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"

#define STEP_NS KEEL_NS_PER_MS

struct measure {
    uint64_t ns, worst;
};

static void *measure(void *arg)
{
    struct measure *m = arg;
    const struct timespec step = {.tv_nsec = STEP_NS};
    witness_raise_priority();
    uint64_t begin = clock_now_ns(), at = begin;
    while (at - begin < m->ns) {
        FAULT_POINT("start.lateness");
        nanosleep(&step, NULL);
        uint64_t now = clock_now_ns(), took = now - at;
        if (took > m->worst + STEP_NS)
            m->worst = took - STEP_NS;
        at = now;
    }
    return NULL;
}

uint64_t lateness_measure(uint64_t ns)
{
    struct measure m = {.ns = ns};
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    bool begun = pthread_create(&thread, NULL, measure, &m) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (begun)
        pthread_join(thread, NULL);
    return m.worst;
}
