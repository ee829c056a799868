/* keelrun's side of a program that runs several times side by side: what it shows of it, what it tells of sets, and who
 * gets its standard input. */
#ifndef KEEL_PM_JOB_REPLICAS_H
#define KEEL_PM_JOB_REPLICAS_H

#include <jansson.h>

#include "pm/run/replica_output.h"

struct job;

struct job_replicas {
    struct replica_output *output; /* NULL: the program runs once */
    struct replica_loss loss[REPLICAS_MAX];
    long long lost_at[REPLICAS_MAX]; /* epoch in which it was lost last */
    bool in_vain[REPLICAS_MAX];      /* it was told that it does not begin anew any more */
    int failed;  /* 1 + the last set whose output was shown until it ended by an error of the program's; 0: none has */
    bool differ; /* on standard output */
    bool *lost;  /* [natives] its replicas do its part */
    unsigned long long taken[REPLICAS_MAX],
        given;                       /* of standard input: by rank 0 of each set, and said to its reader */
    int fed[REPLICAS_MAX];           /* 1 + the node of a process of rank 0 that began later; 0: none has */
    uint32_t fed_life[REPLICAS_MAX]; /* and its incarnation */
};

void job_replicas_begin(struct job *j);
void job_replicas_end(struct job *j);
/* Of a view that is new: which sets are not whole any more, which of them do not begin anew, whose part replicas do. */
void job_replicas_view(struct job *j, const json_t *view);
/* What a process of a set that has begun anew writes has its place: MSG_PLACE. */
void job_replicas_place(struct job *j, const json_t *m);
/* A process of rank 0 has begun in a set that begins anew. It gets what is read from here on, but nothing where
 * something was: the program may have read that, and the agents end the set. */
void job_replicas_begun(struct job *j, int node, int native, uint32_t life);
/* Standard input of the program; len 0: its end. */
void job_replicas_feed(struct job *j, const uint8_t *data, size_t len);
/* That process of a node's rank 0 has taken so much of it; returns how much more all have. */
size_t job_replicas_taken(struct job *j, int node, uint32_t life, size_t len);
/* The job has come to its end. */
void job_replicas_over(struct job *j);
#endif
