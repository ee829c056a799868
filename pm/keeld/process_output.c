/* The output of a node's process, line by line, and its end. */
#include "pm/keeld/process_parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SILENCE_MS = 100 /* then the beginning of a line is passed on */ };

/* The beginning of a line that stands for a while may be a prompt. Only who has an input prompts; of the others it is
 * half a buffer, and other ranks' lines would get between. */
static void await_silence(struct process *p);

void process_finish_if_drained(struct process *p)
{
    if (p->exited && p->open_outputs == 0 && !p->drained) {
        p->drained = true;
        uv_timer_stop(&p->drain);
        uv_timer_stop(&p->silence);
        p->events.drained(p);
    }
}

void process_handle_closed(uv_handle_t *handle)
{
    struct process *p = handle->data;
    if (--p->open_handles == 0)
        free(p);
}

static void emit_out(void *user, const uint8_t *data, size_t len)
{
    struct process *p = user;
    p->events.output(p, 1, data, len);
}

static void emit_err(void *user, const uint8_t *data, size_t len)
{
    struct process *p = user;
    p->events.output(p, 2, data, len);
}

static bool output_is_open(const struct process *p, int i)
{
    return p->lifeline < 0 && !uv_is_closing((const uv_handle_t *)&p->out[i]);
}

static void output_end(struct process *p, int i)
{
    if (!output_is_open(p, i))
        return;
    lines_finish(&p->lines[i], i == 0 ? emit_out : emit_err, p);
    uv_close((uv_handle_t *)&p->out[i], process_handle_closed);
    p->open_outputs--;
}

static bool has_more(const struct process *p, int i)
{
    uv_os_fd_t fd;
    int bytes = 0;
    return output_is_open(p, i) && uv_fileno((uv_handle_t *)&p->out[i], &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 &&
           bytes > 0;
}

static void silence_passed(uv_timer_t *timer)
{
    struct process *p = timer->data;
    if (p->paused[0] || p->paused[1] || p->hold_output || has_more(p, 0) || has_more(p, 1)) {
        await_silence(p); /* it is us who are late */
        return;
    }
    lines_flush(&p->lines[0], emit_out, p);
    lines_flush(&p->lines[1], emit_err, p);
}

static void await_silence(struct process *p)
{
    if (p->in_open && (p->lines[0].held.len || p->lines[1].held.len))
        uv_timer_start(&p->silence, silence_passed, SILENCE_MS, 0);
}

static void take_in(struct process *p, int i, const void *data, size_t len)
{
    p->came[i] += len;
    lines_feed(&p->lines[i], data, len, i == 0 ? emit_out : emit_err, p);
}

static void output_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct process *p = stream->data;
    int i = stream == (uv_stream_t *)&p->out[1];
    if (n > 0)
        take_in(p, i, buf->base, (size_t)n);
    await_silence(p);
    free(buf->base);
    if (n < 0) {
        output_end(p, i);
        process_finish_if_drained(p);
    }
}

void process_read_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(pm_alloc(suggested), (unsigned)suggested);
}

void process_read_outputs(struct process *p)
{
    for (int i = 0; i < 2; i++)
        if (!p->paused[i] && output_is_open(p, i))
            uv_read_start((uv_stream_t *)&p->out[i], process_read_alloc, output_ready);
}

/* What the pipe holds now, also while it is paused: no more than it can hold at a time, whoever still writes. */
void process_take_rest(struct process *p, int i)
{
    uint8_t buffer[16 * 1024];
    uv_os_fd_t fd;
    ssize_t n = -1;
    if (!output_is_open(p, i) || uv_fileno((uv_handle_t *)&p->out[i], &fd) != 0)
        return;
    for (long left = fcntl(fd, F_GETPIPE_SZ); left > 0; left -= n) {
        n = read(fd, buffer, sizeof buffer); /* libuv has made it non-blocking */
        if (n <= 0)
            break;
        take_in(p, i, buffer, (size_t)n);
    }
    if (n == 0)
        output_end(p, i);
}

void process_output_came(struct process *p, uint64_t at[2])
{
    for (int i = 0; i < 2; i++) {
        process_take_rest(p, i);
        lines_flush(&p->lines[i], i == 0 ? emit_out : emit_err, p); /* who asks may die, and others go on behind it */
        at[i] = p->came[i];
    }
}

void process_output_begins(struct process *p, const uint64_t at[2])
{
    for (int i = 0; i < 2; i++) {
        process_take_rest(p, i);
        lines_flush(&p->lines[i], i == 0 ? emit_out : emit_err, p);
        p->came[i] = at[i];
    }
}

void process_drain_passed(uv_timer_t *timer)
{
    struct process *p = timer->data;
    for (int i = 0; i < 2; i++) {
        process_take_rest(p, i);
        output_end(p, i);
    }
    process_finish_if_drained(p);
}

void process_release_output(struct process *p)
{
    p->hold_output = false;
    process_read_outputs(p);
}

void process_pause_output(struct process *p, int stream, bool pause)
{
    if (p->paused[stream] == pause || !output_is_open(p, stream))
        return;
    p->paused[stream] = pause;
    if (pause)
        uv_read_stop((uv_stream_t *)&p->out[stream]);
    else if (!p->hold_output)
        process_read_outputs(p);
}
