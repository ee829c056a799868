/* The verbs of keelctl. keelctl.c has the table: name, arguments and help of each, and its function, which is in the
 * file of its name. */
#ifndef KEEL_PM_VERB_H
#define KEEL_PM_VERB_H

#include "pm/ctl/job_status.h"

enum { ARGS_MAX = 6, TIME_MAX_S = 10000000 };

struct request {
    bool json, detect, counters, aimed; /* aimed: --signal was given */
    int signal;
    int time_s; /* --time, 0: it was not given */
    const char *host, *position;
    char *words[ARGS_MAX]; /* the verb first */
    int count;
};

/* Each takes the agents of the job that it is for (verb_list: of all jobs), and returns the exit code, or ends the
 * program with a line that says what it could not do. */
typedef int verb_function(const struct job_agents *job, const struct request *r);
verb_function verb_list, verb_status, verb_attach, verb_stop, verb_verify, verb_add_node, verb_rebalance;
verb_function verb_kill_node, verb_bed;

/* Could it be the beginning of a job's id? */
bool may_be_job(const char *text);
/* Ends the program if it is none. */
int node_number(const char *text);

/* keelctl on the host of the request does it, by ssh. */
_Noreturn void run_elsewhere(const struct request *r);
#endif
