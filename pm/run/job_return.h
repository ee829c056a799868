/* Nodes that were declared dead, live, and come back. */
#ifndef KEEL_PM_JOB_RETURN_H
#define KEEL_PM_JOB_RETURN_H

#include <jansson.h>

#include "pm/wire/conn.h"

struct job;

struct returners {          /* job_return.c and job_return_turn.c touch it */
    struct returner *first; /* has its turn */
    uv_timer_t timer;
};

void job_return_init(struct job *j);
/* MSG_RETURN. False: it is none of the job's. */
bool job_return_asked(struct job *j, struct pm_conn *c, const json_t *m);
/* MSG_ADDS of the agent of node `by`: it starts a new one. */
void job_return_adds(struct job *j, int by, const json_t *m);
/* Its connection broke; true: it was such a one, and has no number yet. */
bool job_return_lost(struct job *j, const struct pm_conn *c);
/* What agents say: the one that comes is ready; it is known where that is. */
void job_return_ready(struct job *j, int node, const json_t *m);
void job_return_met(struct job *j, int node, const json_t *m);
/* MSG_START was sent: its connection may break. */
bool job_return_started(const struct job *j, int node);
/* It cannot go on, or its agent has ended. */
void job_return_failed(struct job *j, int node, const char *why);
/* A view has come, or a node was lost. */
void job_return_look(struct job *j);
/* The job ends. */
void job_return_end(struct job *j);
/* A view has it. */
void job_take_birth(struct job *j, int node, uint64_t epoch);
/* The next number was taken back, and is nobody's since. */
bool job_return_may_come(const struct job *j);
/* And those whose number was taken back, as the agent that was to start them is lost, and who have found another
 * member. */
void job_take_late_births(struct job *j, uint64_t epoch);
#endif
