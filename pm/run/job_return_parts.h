/* Between job_return.c, which has who asks and waits, and job_return_turn.c, which has who has its turn. */
#ifndef KEEL_PM_RUN_JOB_RETURN_PARTS_H
#define KEEL_PM_RUN_JOB_RETURN_PARTS_H

#include "pm/run/job.h"

struct returner {
    struct returner *next;
    enum { WAITS, BEGINS, MEETS, STARTS } step;
    struct pm_conn *conn; /* in WAITS; later the node's */
    int was, node;        /* node: from BEGINS on */
    int by;            /* of a node that is new: whose agent starts it, and sees to all between number and birth; -1 */
    char *host;        /* and where */
    uint64_t since_ms; /* of the step */
    bool told;         /* that it waits for others */
};

/* job_return.c */
const char *returner_name(const struct job *j, int node, char *out, size_t size);
void returner_enter(struct job *j, struct returner *r, int step);
/* It is freed. */
void returner_forget(struct job *j, struct returner *r);
/* Who has a number, and is no member yet. */
struct returner *returner_under_way(const struct job *j);
/* That one, if its number is this. */
struct returner *returner_by_node(const struct job *j, int node);
/* Of those that wait; why: NULL, nobody is to read it. It is freed. */
void returner_send_away(struct job *j, struct returner *r, const char *why);

/* job_return_turn.c: the next one begins, if nobody is under way. */
void returners_take_turns(struct job *j);
/* Who is to hear of it, and has not said so; -1: nobody. */
int returner_first_deaf(const struct job *j);
void returner_start_when_met(struct job *j);
#endif
