/* What keelrun shows and writes: output of ranks, its own lines, the event log. */
#ifndef KEEL_PM_JOB_IO_H
#define KEEL_PM_JOB_IO_H

#include <jansson.h>

#include "pm/run/sink.h"

struct job;

/* With --label: whose line it is that has begun and not ended. */
struct job_line {
    bool open;
    int node, rank;
};

struct job_io {                   /* job_io.c alone touches it, but for failed */
    struct sink sinks[2], events; /* one for both where standard output and error are the same file */
    struct sink *out, *err;
    int window;            /* how much output of each stream each agent may send ahead */
    struct job_line at[2]; /* standard output and error */
    bool failed;           /* some could not be written, or is lost */
    bool has_events, events_failed;
};

/* event_log: NULL: none. Ends the program if it cannot be written. Before any thread. */
void job_io_open(struct job *j, const char *event_log);
void job_io_init(struct job *j);
/* The event log is in its file, or is given up. */
void job_io_flush_events(struct job *j);
/* All is written, or cannot be, or its reader did not move for long after an end that was asked for. Returns the
 * exit code. */
int job_io_finish(struct job *j);
void job_event(struct job *j, const char *event, json_t *members);
void job_event_line(struct job *j, const char *line, size_t len);
/* node: who sent it, -1: not known. */
void job_output(struct job *j, int node, const uint8_t *body, size_t len);
/* To the user: the rank is the program's. */
void job_show(struct job *j, int node, int rank, int stream, const uint8_t *data, size_t len);
void job_say(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#endif
