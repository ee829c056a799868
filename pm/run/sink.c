#include "pm/run/sink.h"

#include "pm/wire/quit.h"
#include "runtime/base/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 64 * 1024 }; /* written at a time: what a flush sees moving */

/* ---- the thread ---- */

static int open_fifo(const char *path)
{
    int fd;
    do
        fd = open(path, O_WRONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Returns 0 or an errno. A descriptor that somebody else has made non-blocking is waited for. */
static int write_piece(int fd, const uint8_t *data, size_t len, size_t *written)
{
    ssize_t n = write(fd, data, len);
    *written = n > 0 ? (size_t)n : 0;
    if (n >= 0 || errno == EINTR)
        return 0;
    if (errno != EAGAIN)
        return errno;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    poll(&p, 1, -1);
    return 0;
}

/* Writes what it has taken, without the lock. Returns 0 or an errno. */
static int write_all(struct sink *s, int fd, const struct bytes *taken)
{
    size_t done = 0, n;
    while (done < taken->len) {
        size_t left = taken->len - done;
        int error = write_piece(fd, taken->data + done, left < PIECE ? left : PIECE, &n);
        if (error)
            return error;
        done += n;
        pthread_mutex_lock(&s->lock);
        s->writing -= n;
        pthread_cond_signal(&s->less);
        pthread_mutex_unlock(&s->lock);
    }
    return 0;
}

static void give_up(struct sink *s, int error)
{
    s->error = error;
    s->queue.len = s->writing = 0;
}

static void *writer(void *argument)
{
    struct sink *s = argument;
    struct bytes taken = {0};
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->queue.len == 0)
            pthread_cond_wait(&s->more, &s->lock);
        struct bytes emptied = taken;
        taken = s->queue;
        s->queue = emptied;
        s->queue.len = 0;
        s->writing = taken.len;
        int fd = s->fd, error = 0;
        pthread_mutex_unlock(&s->lock);
        if (fd < 0)
            fd = open_fifo(s->path);
        error = fd < 0 ? errno : write_all(s, fd, &taken);
        if (taken.cap > 2 * SINK_SHORT)
            bytes_free(&taken); /* of a time when nobody read */
        pthread_mutex_lock(&s->lock);
        s->fd = fd;
        if (error)
            give_up(s, error);
        pthread_cond_signal(&s->less);
        uv_async_send(&s->moved);
    }
    return NULL;
}

/* ---- the event loop ---- */

static void tell(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    int error = s->error;
    bool is_short = s->queue.len + s->writing < SINK_SHORT;
    pthread_mutex_unlock(&s->lock);
    if (error && !s->told) {
        s->told = true;
        if (s->failed)
            s->failed(s, error);
    }
    if (is_short && s->drained)
        s->drained(s);
}

static void moved(uv_async_t *handle)
{
    tell(handle->data);
}

static void begin(struct sink *s, uv_loop_t *loop)
{
    pthread_t thread;
    pthread_condattr_t monotonic;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->more, NULL);
    pthread_cond_init(&s->less, &monotonic);
    pthread_condattr_destroy(&monotonic);
    uv_async_init(loop, &s->moved, moved);
    s->moved.data = s;
    char why[REFUSAL_MAX];
    int rc = pthread_create(&thread, NULL, writer, s);
    if (rc != 0)
        pm_quit(1, "no thread to write with: %s", refusal_error(rc, why));
    pthread_detach(thread); /* it may be in a write for ever; it ends with the process */
}

void sink_init(struct sink *s, uv_loop_t *loop, int fd)
{
    *s = (struct sink){.fd = fd};
    begin(s, loop);
}

void sink_init_fifo(struct sink *s, uv_loop_t *loop, const char *path)
{
    *s = (struct sink){.fd = -1, .path = path};
    begin(s, loop);
}

void sink_write(struct sink *s, const void *data, size_t len)
{
    pthread_mutex_lock(&s->lock);
    if (!s->error)
        bytes_append(&s->queue, data, len);
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
}

size_t sink_queued(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    size_t queued = s->queue.len + s->writing;
    pthread_mutex_unlock(&s->lock);
    return queued;
}

static struct timespec from_now(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

/* The lock is held. False: nothing was written for that long. */
static bool await_less(struct sink *s, int silence_ms)
{
    size_t before = s->queue.len + s->writing;
    struct timespec end = from_now(silence_ms < 0 ? 0 : silence_ms);
    while (s->queue.len + s->writing == before) {
        int rc =
            silence_ms < 0 ? pthread_cond_wait(&s->less, &s->lock) : pthread_cond_timedwait(&s->less, &s->lock, &end);
        if (rc == ETIMEDOUT)
            return false;
    }
    return true;
}

bool sink_flush(struct sink *s, int silence_ms)
{
    bool moves = true;
    pthread_mutex_lock(&s->lock);
    while (moves && s->queue.len + s->writing > 0)
        moves = await_less(s, silence_ms);
    pthread_mutex_unlock(&s->lock);
    tell(s); /* the loop may not run any more */
    return moves;
}
