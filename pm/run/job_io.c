/* What keelrun shows and writes: output of ranks, its own lines, the event log. */
#include "pm/run/job.h"

#include "pm/wire/quit.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    AHEAD_MAX = 128 << 20, /* of output, of all agents together, where their number allows it */
    EVENTS_MAX = 64 << 20, /* of the event log, while its reader stands still */
    PATIENCE_MS = 2000,    /* with a reader that stands still, where it is not waited for */
};

/* ---- the event log ---- */

static void events_lost(struct job *j, const char *why)
{
    if (!j->io.events_failed)
        job_say(j, "cannot write the event log: %s; the rest of it is lost", why);
    j->io.events_failed = j->io.failed = true;
}

void job_event_line(struct job *j, const char *line, size_t len)
{
    if (!j->io.has_events || j->io.events_failed)
        return;
    if (sink_queued(&j->io.events) > EVENTS_MAX) {
        events_lost(j, "its reader stands still");
        return;
    }
    char *whole = pm_printf("%.*s\n", (int)len, line);
    sink_write(&j->io.events, whole, strlen(whole));
    free(whole);
}

void job_io_flush_events(struct job *j)
{
    if (j->io.has_events && !j->io.events_failed && !sink_flush(&j->io.events, PATIENCE_MS))
        events_lost(j, "its reader stands still");
}

void job_event(struct job *j, const char *event, json_t *members)
{
    json_t *line = json_pack("{s:I, s:i, s:s}", "t_ns", (json_int_t)clock_now_ns(), "node", -1, "event", event);
    if (members) {
        json_object_update_missing(line, members);
        json_decref(members);
    }
    char *text = j->io.has_events ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text)
        job_event_line(j, text, strlen(text));
    free(text);
    json_decref(line);
}

/* ---- output ---- */

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
    sink_write(j->io.err, line, (size_t)n);
}

/* A label begins each line. A line that another rank has left open ends first. */
static void write_labelled(struct job_io *io, int stream, int rank, int node, const uint8_t *p, size_t len)
{
    struct sink *s = stream ? io->err : io->out;
    struct job_line *at = &io->at[stream];
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

/* What was taken from a node is said to it in large parts: the window is four of them. */
static void give_back(struct job *j, int node, int stream)
{
    uint8_t body[8];
    struct job_node *n = &j->nodes[node];
    if (n->owed[stream] < (size_t)j->io.window / 4)
        return;
    put_u32(body, (uint32_t)stream);
    put_u32(body + 4, (uint32_t)n->owed[stream]);
    n->owed[stream] = 0;
    job_send(j, node, MSG_TAKEN, body, sizeof body);
}

static void sink_drained(struct sink *s)
{
    struct job *j = s->user;
    for (int i = 0; j->nodes && i < j->total; i++)
        for (int stream = 0; stream < 2; stream++)
            if (s == (stream ? j->io.err : j->io.out))
                give_back(j, i, stream);
}

static void sink_failed(struct sink *s, int error)
{
    struct job *j = s->user;
    char why[160];
    if (error == EPIPE) {
        job_reader_gone(j);
        return;
    }
    j->io.failed = true;
    snprintf(why, sizeof why, "cannot write standard %s: %s; the rest of it is lost",
             s == j->io.out ? "output" : "error", strerror(error));
    if (error == EIO)
        job_say(j, "%s", why); /* a terminal that is gone: whether the job ends with it is SIGHUP's matter */
    else
        job_output_lost(j, why);
}

static void events_failed(struct sink *s, int error)
{
    events_lost(s->user, strerror(error));
}

static void log_line(void *user, const char *line, size_t len)
{
    const struct job *j = user;
    sink_write(j->io.err, line, len);
}

static bool is_one_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           (fcntl(a, F_GETFL) & O_ACCMODE) == (fcntl(b, F_GETFL) & O_ACCMODE);
}

void job_io_open(struct job *j, const char *event_log)
{
    j->io.has_events = event_log != NULL;
    j->io.events.fd = -1;
    if (!event_log)
        return;
    /* a fifo that nobody reads is waited for elsewhere */
    j->io.events.fd = open(event_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (j->io.events.fd >= 0)
        fcntl(j->io.events.fd, F_SETFL, fcntl(j->io.events.fd, F_GETFL) & ~O_NONBLOCK);
    else if (errno != ENXIO)
        pm_quit(2, "cannot write %s: %s", event_log, strerror(errno));
}

void job_io_init(struct job *j)
{
    int events = j->io.events.fd, total = j->options->job.nodes + j->options->job.spares, most = AHEAD_MAX / 2 / total;
    j->io.window = most > OUTPUT_WINDOW_MAX ? OUTPUT_WINDOW_MAX : most < OUTPUT_WINDOW ? OUTPUT_WINDOW : most;
    j->io.out = j->io.err = &j->io.sinks[0];
    sink_init(j->io.out, &j->loop, STDOUT_FILENO);
    if (!is_one_file(STDOUT_FILENO, STDERR_FILENO)) {
        j->io.err = &j->io.sinks[1];
        sink_init(j->io.err, &j->loop, STDERR_FILENO);
    }
    j->io.out->user = j->io.err->user = j;
    j->io.out->drained = j->io.err->drained = sink_drained;
    j->io.out->failed = j->io.err->failed = sink_failed;
    if (j->io.has_events && events >= 0)
        sink_init(&j->io.events, &j->loop, events);
    else if (j->io.has_events)
        sink_init_fifo(&j->io.events, &j->loop, j->options->event_log);
    j->io.events.user = j;
    j->io.events.failed = events_failed;
    log_to(log_line, j);
}

void job_show(struct job *j, int node, int rank, int stream, const uint8_t *data, size_t len)
{
    if (j->options->label)
        write_labelled(&j->io, stream, rank, node, data, len);
    else
        sink_write(stream ? j->io.err : j->io.out, data, len);
}

void job_output(struct job *j, int node, const uint8_t *body, size_t len)
{
    if (len < OUTPUT_HEADER)
        return;
    int from = (int)get_u32(body), rank = (int)get_u32(body + 4), stream = get_u32(body + 8) == 2;
    struct sink *s = stream ? j->io.err : j->io.out;
    len -= OUTPUT_HEADER;
    if (j->replicas.output && rank >= 0 && rank < j->options->job.ranks)
        replica_output_take(j->replicas.output, rank, stream, body + OUTPUT_HEADER, len);
    else
        job_show(j, from, rank, stream, body + OUTPUT_HEADER, len);
    if (node < 0)
        return;
    j->nodes[node].owed[stream] += len;
    if (sink_queued(s) < SINK_SHORT)
        give_back(j, node, stream);
}

int job_io_finish(struct job *j)
{
    int patience = j->signals_seen ? PATIENCE_MS : -1; /* as any program waits for its reader */
    sink_flush(j->io.out, patience);
    sink_flush(j->io.err, patience);
    log_to(NULL, NULL);
    return j->verdict.code == 0 && j->io.failed ? 1 : j->verdict.code;
}
