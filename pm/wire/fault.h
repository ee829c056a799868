/* What a program does to itself, as opposed to what is done to it. */
#ifndef KEEL_PM_FAULT_H
#define KEEL_PM_FAULT_H

#include <signal.h>
#include <stdbool.h>

static inline bool fault_is_own(int signal_number)
{
    return signal_number == SIGSEGV || signal_number == SIGBUS || signal_number == SIGFPE || signal_number == SIGILL ||
           signal_number == SIGABRT || signal_number == SIGTRAP || signal_number == SIGSYS;
}

/* A rank that crashed and is not started again. */
struct fault {
    int rank, signal; /* signal 0: none */
    bool again;       /* it had been started again before */
};
#endif
