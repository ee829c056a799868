/* The command line of keel-stencil. */
#ifndef APPS_STENCIL_OPTIONS_H
#define APPS_STENCIL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <keel/keel.h>

#include "apps/stencil/sweep.h"

struct stencil_options {
    enum stencil stencil;
    int cells[STENCIL_DIMS]; /* 1 in the third dimension of a flat field */
    bool periodic;
    int64_t sweeps;   /* at most */
    int64_t look;     /* after so many all look whether the field has settled */
    int pause_ms;     /* before each sweep */
    double tolerance; /* root of the mean square of a sweep's changes; 0: never settled */
    keel_redundancy redundancy;
    const char *png; /* file, or NULL */
    bool show;
};

/* False: why says it in one line. */
bool stencil_options_parse(int argc, char **argv, struct stencil_options *out, char why[200]);
#endif
