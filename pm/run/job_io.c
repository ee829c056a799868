/* What keelrun shows and writes: output of ranks, its own lines, the event log. */
#include "pm/run/job.h"

#include "runtime/base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SINK_HIGH = 4 << 20 };

void job_event_line(struct job *j, const char *line, size_t len)
{
    if (!j->events || j->events_failed)
        return;
    if (fprintf(j->events, "%.*s\n", (int)len, line) >= 0 && fflush(j->events) == 0)
        return;
    j->events_failed = j->output_failed = true;
    job_say(j, "cannot write the event log: %s; the rest of it is lost", strerror(errno));
}

void job_event(struct job *j, const char *event, json_t *members)
{
    json_t *line = json_pack("{s:I, s:i, s:s}", "t_ns", (json_int_t)clock_now_ns(), "node", -1, "event", event);
    if (members) {
        json_object_update_missing(line, members);
        json_decref(members);
    }
    char *text = j->events ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text)
        job_event_line(j, text, strlen(text));
    free(text);
    json_decref(line);
}

void job_say(struct job *j, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = snprintf(line, sizeof line, "keelrun: ");
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof line - 2)
        n = sizeof line - 2;
    line[n++] = '\n';
    sink_write(&j->err, line, (size_t)n);
}

/* A label begins each line. A line that another rank has left open ends first. */
static void write_labelled(struct job *j, int stream, int rank, int node, const uint8_t *p, size_t len)
{
    struct sink *s = stream == 2 ? &j->err : &j->out;
    struct job_line *at = &j->at[stream == 2];
    struct bytes out = {0};
    char label[32];
    int n =
        rank >= 0 ? snprintf(label, sizeof label, "[%d] ", rank) : snprintf(label, sizeof label, "[node %d] ", node);
    if (at->open && (at->rank != rank || at->node != node)) {
        bytes_append(&out, "\n", 1);
        at->open = false;
    }
    while (len > 0) {
        const uint8_t *newline = memchr(p, '\n', len);
        size_t line = newline ? (size_t)(newline - p) + 1 : len;
        if (!at->open)
            bytes_append(&out, label, (size_t)n);
        bytes_append(&out, p, line);
        *at = (struct job_line){!newline, node, rank};
        p += line;
        len -= line;
    }
    sink_write(s, out.data, out.len);
    bytes_free(&out);
}

static void pause_all(struct job *j, bool pause)
{
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].conn)
            conn_pause(j->nodes[i].conn, pause);
}

void job_io_resume(struct job *j)
{
    pause_all(j, false);
}

static void sink_drained(struct sink *s)
{
    pause_all(s->user, false);
}

static void sink_failed(struct sink *s, int error)
{
    struct job *j = s->user;
    if (error == EPIPE) {
        job_reader_gone(j);
        return;
    }
    j->output_failed = true;
    if (s == &j->out)
        job_say(j, "cannot write standard output: %s; the rest of it is lost", strerror(error));
}

void job_io_init(struct job *j)
{
    sink_init(&j->out, &j->loop, STDOUT_FILENO);
    sink_init(&j->err, &j->loop, STDERR_FILENO);
    j->out.user = j->err.user = j;
    j->out.drained = j->err.drained = sink_drained;
    j->out.failed = j->err.failed = sink_failed;
}

void job_output(struct job *j, const uint8_t *body, size_t len)
{
    if (len < OUTPUT_HEADER)
        return;
    int node = (int)get_u32(body), rank = (int)get_u32(body + 4);
    struct sink *s = get_u32(body + 8) == 2 ? &j->err : &j->out;
    if (j->options->label)
        write_labelled(j, s == &j->err ? 2 : 1, rank, node, body + OUTPUT_HEADER, len - OUTPUT_HEADER);
    else
        sink_write(s, body + OUTPUT_HEADER, len - OUTPUT_HEADER);
    if (sink_queued(s) > SINK_HIGH && j->phase < JOB_ENDING)
        pause_all(j, true);
}
