#include "pm/run/sink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor that polls writable takes PIPE_BUF bytes without blocking, also in blocking mode. */
enum { CHUNK = PIPE_BUF, SHORT_QUEUE = 64 * 1024 };

static void drop(struct sink *s)
{
    s->sent = 0;
    s->queue.len = 0;
}

/* One chunk. False: nothing more can be written now. */
static bool push(struct sink *s)
{
    size_t left = s->queue.len - s->sent;
    if (left == 0)
        return false;
    size_t want = s->pollable && left > CHUNK ? CHUNK : left;
    ssize_t n = write(s->fd, s->queue.data + s->sent, want);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR;
    if (n < 0) {
        int error = errno;
        s->broken = true;
        drop(s);
        if (s->failed)
            s->failed(s, error);
        return false;
    }
    s->sent += (size_t)n;
    if (s->sent == s->queue.len)
        drop(s);
    return true;
}

static bool is_writable(const struct sink *s, int timeout_ms)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    return !s->pollable || poll(&p, 1, timeout_ms) > 0;
}

static void pump(struct sink *s);

static void writable(uv_poll_t *handle, int status, int events)
{
    struct sink *s = handle->data;
    (void)events;
    if (status < 0 && status != UV_EAGAIN)
        push(s); /* meets the error */
    pump(s);
    if (s->drained && sink_queued(s) < SHORT_QUEUE)
        s->drained(s);
}

static void pump(struct sink *s)
{
    while (sink_queued(s) && is_writable(s, 0) && push(s))
        ;
    if (s->sent > SHORT_QUEUE) {
        bytes_drop(&s->queue, s->sent);
        s->sent = 0;
    }
    bool wait = sink_queued(s) > 0 && s->pollable;
    if (wait && !s->waiting)
        uv_poll_start(&s->writable, UV_WRITABLE, writable);
    else if (!wait && s->waiting)
        uv_poll_stop(&s->writable);
    s->waiting = wait;
}

void sink_init(struct sink *s, uv_loop_t *loop, int fd)
{
    struct stat st;
    *s = (struct sink){.fd = fd};
    if (fstat(fd, &st) < 0) {
        s->broken = true;
        return;
    }
    /* a second descriptor: libuv wants one handle per descriptor, and output and error are often the same one */
    int own = dup(fd);
    s->pollable = !S_ISREG(st.st_mode) && own >= 0 && uv_poll_init(loop, &s->writable, own) == 0;
    s->writable.data = s;
    if (!s->pollable && own >= 0)
        close(own);
}

void sink_write(struct sink *s, const void *data, size_t len)
{
    if (s->broken)
        return;
    bytes_append(&s->queue, data, len);
    pump(s);
}

size_t sink_queued(const struct sink *s)
{
    return s->queue.len - s->sent;
}

void sink_flush(struct sink *s, int timeout_ms)
{
    while (sink_queued(s) && is_writable(s, timeout_ms) && push(s))
        ;
}
