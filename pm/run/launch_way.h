/* How a node is reached, for launch.c. */
#ifndef KEEL_PM_LAUNCH_WAY_H
#define KEEL_PM_LAUNCH_WAY_H

#include "pm/run/launch.h"

/* The plan holds the ticket: the caller wipes it. */
void launch_way(const struct launch_plan *p, int node, const struct ticket *ticket, struct start_plan *plan);
/* Of a launcher that we run: the list, and the one string in it that is its own, are the caller's to free. */
char **launch_env(const struct launch_plan *p, char **marker);
#endif
