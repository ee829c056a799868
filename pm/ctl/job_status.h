/* What all agents of a job here say of themselves, as one JSON object, which is the description of a job for whoever
 * shows it: `list` and `status` print that object, or text made of it. */
#ifndef KEEL_PM_JOB_STATUS_H
#define KEEL_PM_JOB_STATUS_H

#include "pm/ctl/finder.h"

#include <jansson.h>

struct job_agents {
    uint64_t id;
    struct found_agent *agents; /* in the order of their nodes */
    int count;
};

/* {"job", "nodes": [...]}: what each agent says of itself; a node that does not answer has only what is known of it.
 * The caller drops it. */
json_t *job_status(const struct job_agents *job);

/* Of an answer: 0 or "?" where it lacks the member. The text is the object's. */
long long int_of(const json_t *object, const char *key);
double real_of(const json_t *object, const char *key);
const char *text_of(const json_t *object, const char *key);
/* One line on standard output. */
void show_json(const json_t *value);

/* counters.c: what all nodes have counted, as plane_counters_json of each (pm/plane.h). */
json_t *counters_of_job(const json_t *nodes);
void counters_show(const json_t *said);
#endif
