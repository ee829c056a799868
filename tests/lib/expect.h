/* What programs of several processes check with. What is not so is told with the rank and the line, and ends the
 * process with 1. */
#ifndef KEEL_TESTS_EXPECT_H
#define KEEL_TESTS_EXPECT_H

#include <keel/keel.h>

#include <stdio.h>
#include <unistd.h>

/* Who says it; a program defines its own before it includes this. */
#ifndef EXPECT_WHO
#define EXPECT_WHO keel_rank()
#endif

static inline _Noreturn void expect_failed(int who, int line, const char *what, const char *how)
{
    fprintf(stderr, "rank %d line %d: %s: %s\n", who, line, what, how);
    _exit(1); /* whatever other threads do meanwhile */
}

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            expect_failed(EXPECT_WHO, __LINE__, #condition, "false");                                                  \
    } while (0)
#define EXPECT_STATUS(expression, expected)                                                                            \
    do {                                                                                                               \
        keel_status status_ = (expression);                                                                            \
        if (status_ != (expected))                                                                                     \
            expect_failed(EXPECT_WHO, __LINE__, #expression, keel_status_name(status_));                               \
    } while (0)
#define CHECK(expression) EXPECT_STATUS(expression, KEEL_OK)
#endif
