/* What goes to keelrun for the user to see: output of ranks, and what we say ourselves. Each of the two streams has a
 * window (OUTPUT_WINDOW): when it is used up the pipes of that stream are not read until keelrun gives some back,
 * however long it is out of reach, until it is given up (dialogue.c). */
#include "pm/keeld/keeld.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void log_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void log_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

void keeld_output_init(struct keeld *a)
{
    a->output.window[0] = a->output.window[1] = OUTPUT_WINDOW;
}

/* Read what may be sent, and nothing else. */
static void apply(struct keeld *a, int stream)
{
    bool closed = keeld_output_closed(a, stream);
    keeld_ranks_pause(a, stream, closed);
    if (stream == 0 || !a->output.log_pipe.loop)
        return;
    if (closed)
        uv_read_stop((uv_stream_t *)&a->output.log_pipe);
    else
        uv_read_start((uv_stream_t *)&a->output.log_pipe, log_alloc, log_ready);
}

static void give(struct keeld *a, int stream, long long count)
{
    bool was_closed = keeld_output_closed(a, stream);
    a->output.window[stream] += count;
    if (was_closed && !keeld_output_closed(a, stream))
        apply(a, stream);
}

bool keeld_output_closed(const struct keeld *a, int stream)
{
    return !a->dialogue.gone && !a->dialogue.given_up && a->output.window[stream] <= 0;
}

void keeld_output_widen(struct keeld *a, int window)
{
    for (int stream = 0; stream < 2; stream++)
        give(a, stream, window - OUTPUT_WINDOW);
}

void keeld_output_taken(struct keeld *a, const uint8_t *body, size_t len)
{
    if (len == 8 && get_u32(body) < 2)
        give(a, (int)get_u32(body), get_u32(body + 4));
}

void keeld_output_free(struct keeld *a)
{
    for (int stream = 0; stream < 2; stream++)
        apply(a, stream);
}

void keeld_output(struct keeld *a, int rank, int stream, const uint8_t *lines, size_t len)
{
    struct bytes frame = {0};
    uint8_t *p = bytes_reserve(&frame, OUTPUT_HEADER + len);
    put_u32(p, (uint32_t)a->launch.node);
    put_u32(p + 4, (uint32_t)rank);
    put_u32(p + 8, (uint32_t)stream);
    memcpy(p + OUTPUT_HEADER, lines, len);
    frame.len = OUTPUT_HEADER + len;
    backlog_add(&a->output.backlog, frame.data, frame.len);
    keeld_console_output(a, frame.data, frame.len);
    if (a->dialogue.given_up) {
        a->dialogue.output_lost += len;
    } else if (!a->dialogue.gone) {
        bool was_closed = keeld_output_closed(a, stream == 2);
        keeld_dialogue_send(a, MSG_OUTPUT, frame.data, frame.len);
        a->output.window[stream == 2] -= (long long)len;
        if (!was_closed && keeld_output_closed(a, stream == 2))
            apply(a, stream == 2);
    }
    bytes_free(&frame);
}

static void log_emit(void *user, const uint8_t *lines, size_t len)
{
    keeld_output(user, -1, 2, lines, len);
}

static void log_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(pm_alloc(suggested), (unsigned)suggested);
}

static void log_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct keeld *a = stream->data;
    if (n > 0)
        lines_feed(&a->output.log_lines, buf->base, (size_t)n, log_emit, a);
    free(buf->base);
}

/* What we have said and not read back yet. */
void keeld_log_drain(struct keeld *a)
{
    char buffer[4096];
    uv_os_fd_t fd;
    ssize_t n;
    if (!a->output.log_pipe.loop || uv_fileno((uv_handle_t *)&a->output.log_pipe, &fd) != 0)
        return;
    while ((n = read(fd, buffer, sizeof buffer)) > 0) /* libuv has made it non-blocking */
        lines_feed(&a->output.log_lines, buffer, (size_t)n, log_emit, a);
}

static int said, outside; /* the pipe of our log, and what has started us */

/* SIGABRT: why we end was said, and nobody will read it any more. */
static void say_last_words(int number)
{
    char buffer[1024];
    ssize_t n;
    (void)number;
    while ((n = read(said, buffer, sizeof buffer)) > 0 && write(outside, buffer, (size_t)n) > 0)
        ;
}

/* From now on our standard error goes where the ranks' output goes, no more to the stub under Hydra's proxy. */
void keeld_log_capture(struct keeld *a)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return;
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    dup2(fds[1], STDERR_FILENO);
    dup2(fds[1], STDOUT_FILENO);
    close(fds[1]);
    uv_pipe_init(&a->loop, &a->output.log_pipe, 0);
    a->output.log_pipe.data = a;
    uv_pipe_open(&a->output.log_pipe, fds[0]);
    uv_read_start((uv_stream_t *)&a->output.log_pipe, log_alloc, log_ready);
    uv_unref((uv_handle_t *)&a->output.log_pipe);
    said = fds[0];
    outside = a->dialogue.outside;
    if (outside >= 0)
        sigaction(SIGABRT, &(struct sigaction){.sa_handler = say_last_words, .sa_flags = (int)SA_RESETHAND}, NULL);
}
