/* The public calls of simulated processes, as a table (client/api/calls.h). */
#ifndef KEEL_TESTS_SIM_DATA_BELOW_H
#define KEEL_TESTS_SIM_DATA_BELOW_H

#include "runtime/client/api/calls.h"

extern const struct api_calls below_calls;
#endif
