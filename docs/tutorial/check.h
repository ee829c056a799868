/* Ends the rank with a line that says what failed. */
#ifndef TUTORIAL_CHECK_H
#define TUTORIAL_CHECK_H

#include <keel/keel.h>

#include <stdio.h>
#include <stdlib.h>

static inline void check(keel_status status, const char *what)
{
    if (status != KEEL_OK) {
        fprintf(stderr, "rank %d: %s: %s\n", keel_rank(), what, keel_status_text(status));
        exit(1);
    }
}
#endif
