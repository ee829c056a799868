/* The command line of keel-npb. */
#ifndef KEEL_NPB_OPTIONS_H
#define KEEL_NPB_OPTIONS_H

#include <stdbool.h>

#include <keel/segment.h>

#include "apps/npb/kernel.h"

struct npb_options {
    const struct npb_kernel *kernel;
    enum npb_class class;
    keel_redundancy redundancy;
};

/* False, with one line in why, if it is wrong; prints the text and exits after --help, --usage and --version. Says
 * nothing itself, so that one of many ranks can. */
bool npb_options_parse(int argc, char **argv, struct npb_options *out, struct npb_complaint *why);

#endif
