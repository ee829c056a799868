/* A job's nodes on their grid: who has which number when some do not come, and what the event log says. */
#ifndef KEEL_PM_JOB_GRID_H
#define KEEL_PM_JOB_GRID_H

#include <jansson.h>

#include "runtime/base/job_settings.h"

/* The nodes with lost[number] have not come: their places are dead from the start, and the others have the numbers that
 * follow from that: order[i] is the number of before of the one that is i now. lost and order are of nodes and spares.
 * False: a slot has no node then, and nothing has changed. */
bool job_grid_close_up(struct job_settings *s, const bool *lost, int *order);
/* [places] the number of each place's node; -1: it is not there at the start. The caller frees it. */
int *job_grid_numbers(const struct job_settings *s);
/* Into the event of the start: the grid, and the place of each node. */
void job_grid_tell(const struct job_settings *s, json_t *event);
#endif
