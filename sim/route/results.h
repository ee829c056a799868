/* What keel-route simulate prints, in the form that the options say. */
#ifndef KEEL_SIM_ROUTE_RESULTS_H
#define KEEL_SIM_ROUTE_RESULTS_H
#include "sim/route/options.h"

void results_print(const struct options *o, const struct batch *b);
#endif
