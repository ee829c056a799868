/* What ranks wait for, on the terminal; from JOB_RUNNING on. */
#ifndef KEEL_PM_JOB_WAITS_H
#define KEEL_PM_JOB_WAITS_H

#include <uv.h>

#include "pm/wire/waits.h"

struct job;

struct job_waits {
    struct waits table; /* from the start of the job on */
    uv_timer_t timer;
};

void job_waits_begin(struct job *j);
void job_waits_view(struct job *j, const int *rank_node, const bool *alive);
/* MSG_WAITS */
void job_waits_report(struct job *j, int node, const json_t *report);
/* How it is with a node that does not answer, and that it does again. */
void job_waits_patience(struct job *j, int node, const char *how, const char *why, double limit_ms, bool waited_for);
void job_waits_answers(struct job *j, int node);
void job_waits_end(struct job *j);
#endif
