/* What a benchmark calls of Keel succeeds, or it ends with a line that says where. */
#ifndef KEEL_BENCH_CHECK_H
#define KEEL_BENCH_CHECK_H

#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(expression)                                                                                              \
    do {                                                                                                               \
        keel_status status_ = (expression);                                                                            \
        if (status_ != KEEL_OK) {                                                                                      \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #expression, keel_status_text(status_));                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#endif
