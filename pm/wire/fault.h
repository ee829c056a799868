/* What a program does to itself, as opposed to what is done to it. Where nobody knows it may be the former: such a job
 * is no success. */
#ifndef KEEL_PM_FAULT_H
#define KEEL_PM_FAULT_H

#include "runtime/base/signals.h"

#include <signal.h>
#include <stdbool.h>

static inline bool fault_is_own(int signal_number)
{
    return signal_number == SIGNAL_HIDDEN || signal_number == SIGSEGV || signal_number == SIGBUS ||
           signal_number == SIGFPE || signal_number == SIGILL || signal_number == SIGABRT || signal_number == SIGTRAP ||
           signal_number == SIGSYS;
}

/* A rank that crashed and is not started again. */
struct fault {
    int rank, signal; /* signal 0: none */
    bool again;       /* it had been started again before */
};
#endif
