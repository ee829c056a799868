/* What keelrun shows and writes: output of ranks, its own lines, the event log. */
#include "pm/run/job.h"

#include "runtime/base/clock.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SINK_HIGH = 4 << 20 };

void job_event(struct job *j, const char *event, json_t *members)
{
    json_t *line = json_pack("{s:I, s:i, s:s}", "t_ns", (json_int_t)clock_now_ns(), "node", -1, "event", event);
    if (members) {
        json_object_update_missing(line, members);
        json_decref(members);
    }
    char *text = j->events ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text) {
        fprintf(j->events, "%s\n", text);
        fflush(j->events);
    }
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

static void write_labelled(struct sink *s, int rank, int node, const uint8_t *p, size_t len)
{
    struct bytes out = {0};
    char label[32];
    int n =
        rank >= 0 ? snprintf(label, sizeof label, "[%d] ", rank) : snprintf(label, sizeof label, "[node %d] ", node);
    while (len > 0) {
        const uint8_t *newline = memchr(p, '\n', len);
        size_t line = newline ? (size_t)(newline - p) + 1 : len;
        bytes_append(&out, label, (size_t)n);
        bytes_append(&out, p, line);
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

static void sink_drained(struct sink *s)
{
    pause_all(s->user, false);
}

void job_output(struct job *j, const uint8_t *body, size_t len)
{
    if (len < OUTPUT_HEADER)
        return;
    int node = (int)get_u32(body), rank = (int)get_u32(body + 4);
    struct sink *s = get_u32(body + 8) == 2 ? &j->err : &j->out;
    if (j->options->label)
        write_labelled(s, rank, node, body + OUTPUT_HEADER, len - OUTPUT_HEADER);
    else
        sink_write(s, body + OUTPUT_HEADER, len - OUTPUT_HEADER);
    if (sink_queued(s) > SINK_HIGH) {
        s->drained = sink_drained;
        s->user = j;
        pause_all(j, true);
    }
}
