/* The ways to the agents of a job that runs: what is said to them, and what is done while one is out of reach. */
#ifndef KEEL_PM_JOB_LINK_H
#define KEEL_PM_JOB_LINK_H

#include <jansson.h>

#include "pm/wire/conn.h"

struct job;

struct cuts { /* job_dialogue.c alone touches it */
    int told; /* how many nodes are out of reach; 0: nothing was told */
    uint64_t told_ms;
    uv_timer_t looks;
};

void job_dialogue_begin(struct job *j);
/* The agent's first connection. */
void job_dialogue_open(struct job *j, int node, struct pm_conn *conn);
/* To a node's agent: over the connection that there is, or that will be. */
void job_send(struct job *j, int node, uint8_t type, const void *body, size_t len);
void job_send_json(struct job *j, int node, uint8_t type, json_t *body); /* takes body */
void job_send_all_json(struct job *j, uint8_t type, json_t *m);          /* takes m */
/* The connection broke while the job ran. */
void job_dialogue_cut(struct job *j, int node, const char *why);
/* The agent is there again, and has received that many frames. False: that cannot be. */
bool job_dialogue_resume(struct job *j, int node, struct pm_conn *conn, uint64_t received);
/* If no node is cut off any more: that is said, where it was said that some are, and nothing is looked at. */
void job_dialogue_settled(struct job *j);
/* What it has to say is on its way, or it is out of reach and not yet for too long. */
bool job_dialogue_waits(const struct job *j, int node);
#endif
