/* The end of a job: what is decided and heard of it, and how it comes about. */
#ifndef KEEL_PM_JOB_END_H
#define KEEL_PM_JOB_END_H

#include <stdbool.h>

struct job;

/* The result. What keelrun decides itself is final and told at once; of what the nodes say the best is told at the end:
 * a code other than 0, and a reason that one of them alone knows. */
struct verdict {
    bool decided, final;
    int code;
    char *why;    /* not told yet; freed with the job */
    bool why_own; /* that node alone knows it */
};

/* What a node says of the end: all say the same, but for what one of them alone knows. */
void verdict_hear(struct verdict *v, int code, const char *why, bool own);

/* Our own decision. The first one counts. why is told at once; NULL: there is none. */
void job_decide(struct job *j, int code, const char *why);
/* Its agent has more to say, as far as is known. */
bool job_is_left(const struct job *j, int node);
/* A decision, and what follows from it. */
void job_stop(struct job *j, int code, const char *why);
/* From now on the nodes' ends are waited for; by force: not for long. */
void job_begin_end(struct job *j);
void job_use_force(struct job *j);
void job_end_if_all_gone(struct job *j);
/* A signal that ends the job; the second is harder. */
void job_interrupted(struct job *j, int signal_number);
/* Of our standard output or error: ends the job, as SIGPIPE ends a program. */
void job_reader_gone(struct job *j);
/* Our standard output or error cannot be written: ends the job, whose output would be lost. */
void job_output_lost(struct job *j, const char *why);
#endif
