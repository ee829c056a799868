#include "pm/run/stdin_feed.h"

#include "pm/wire/message.h"

#include <errno.h>
#include <unistd.h>

static void pump(struct stdin_feed *f);

static void readable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    struct stdin_feed *f = handle->data;
    f->waiting = false;
    uv_poll_stop(handle);
    pump(f);
}

/* A job in the background must not read the terminal: it would be stopped. */
static bool in_background(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) != getpgrp();
}

/* Reads once (when it was told that there is something), then waits for more if the window allows it. */
static void pump(struct stdin_feed *f)
{
    static uint8_t buffer[32 * 1024];
    if (f->ended || in_background())
        return;
    do {
        ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            f->ended = true;
            f->send(f->user, NULL, 0);
            return;
        }
        if (f->deserted) {
            f->ended = true;
            f->lost(f->user, f->sent);
            return;
        }
        f->sent += (size_t)n;
        f->in_flight += (size_t)n;
        f->send(f->user, buffer, (size_t)n);
    } while (!f->pollable && f->in_flight < STDIN_WINDOW);
    if (f->pollable && !f->waiting && f->in_flight < STDIN_WINDOW) {
        f->waiting = true;
        uv_poll_start(&f->readable, UV_READABLE, readable);
    }
}

void stdin_feed_start(struct stdin_feed *f, uv_loop_t *loop, void (*send)(void *user, const uint8_t *data, size_t len),
                      void (*lost)(void *user, uint64_t sent), void *user)
{
    *f = (struct stdin_feed){.started = true, .send = send, .lost = lost, .user = user};
    int fd = dup(STDIN_FILENO);
    f->pollable = fd >= 0 && uv_poll_init(loop, &f->readable, fd) == 0;
    f->readable.data = f;
    if (f->pollable && !in_background()) {
        f->waiting = true;
        uv_poll_start(&f->readable, UV_READABLE, readable);
    } else if (!f->pollable) {
        pump(f);
    }
}

void stdin_feed_taken(struct stdin_feed *f, size_t len)
{
    f->in_flight -= len < f->in_flight ? len : f->in_flight;
    if (!f->started || f->ended || f->in_flight >= STDIN_WINDOW || f->waiting)
        return;
    if (!f->pollable) {
        pump(f);
    } else if (!in_background()) {
        f->waiting = true;
        uv_poll_start(&f->readable, UV_READABLE, readable);
    }
}

void stdin_feed_desert(struct stdin_feed *f)
{
    if (!f->started || f->deserted)
        return;
    f->deserted = true;
    if (!f->sent)
        return; /* if something comes it is said then */
    stdin_feed_stop(f);
    f->lost(f->user, f->sent);
}

void stdin_feed_stop(struct stdin_feed *f)
{
    if (f->started && f->waiting)
        uv_poll_stop(&f->readable);
    f->ended = true;
}
