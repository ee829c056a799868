/* What the user reads: a heading, a line for each iteration, the result. Written by the lowest live rank, which notes
 * on the board how far it came, so that the next lowest goes on from there if it dies. A line may come twice if a rank
 * dies between writing and noting; none is left out. */
#ifndef KEEL_SCF_REPORT_H
#define KEEL_SCF_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "apps/scf/board.h"
#include "apps/scf/scf.h"

struct report {
    FILE *out;
    const struct scf_input *input;
};

/* Lines up to this iteration, if this rank is the lowest live one. Each line is also an event "scf_iteration". */
keel_status report_iterations(const struct report *report, const struct board *board, int iteration);
/* The same, and the result; then the report is closed, with the number of collectives completed. */
keel_status report_close(const struct report *report, const struct board *board, struct decision final,
                         uint64_t collectives);

#endif
