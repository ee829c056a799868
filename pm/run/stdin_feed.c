#include "pm/run/stdin_feed.h"

#include "pm/wire/message.h"
#include "runtime/base/kernel.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CHUNK = 32 * 1024, FOREGROUND_MS = 250 };

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

/* ---- what is kept ---- */

static bool is_whole(const struct stdin_feed *f)
{
    return f->read <= f->limit;
}

static void keep(struct stdin_feed *f, const uint8_t *data, size_t len)
{
    f->read += len;
    if (is_whole(f))
        bytes_append(&f->kept, data, len);
    else
        bytes_free(&f->kept);
}

/* ---- what is sent ---- */

static void send_some(struct stdin_feed *f, const uint8_t *data, size_t len)
{
    f->sent += len;
    f->in_flight += len;
    f->ops.send(f->ops.user, data, len);
}

/* What was read before the process that reads now did, and the end. */
static void catch_up(struct stdin_feed *f)
{
    while (f->sent < f->read && f->in_flight < STDIN_WINDOW) {
        uint64_t left = f->read - f->sent;
        send_some(f, f->kept.data + f->sent, left < CHUNK ? (size_t)left : CHUNK);
    }
    if (f->sent == f->read && f->ended && !f->end_told) {
        f->end_told = true;
        f->ops.send(f->ops.user, NULL, 0);
    }
}

/* A descriptor that is closed, or that nobody may read, is as empty as that of a daemon; a terminal that has hung up
 * has come to its end. */
static bool is_end(int error)
{
    return error == EBADF || (error == EIO && isatty(STDIN_FILENO));
}

static void take(struct stdin_feed *f, const uint8_t *data, ssize_t n)
{
    int error = n < 0 ? errno : 0;
    f->ended = n <= 0;
    if (error && !is_end(error)) {
        f->ops.failed(f->ops.user, f->read, error);
        return;
    }
    if (n > 0) {
        bool first = f->read == 0;
        keep(f, data, (size_t)n);
        if (first)
            f->ops.came(f->ops.user);
        send_some(f, data, (size_t)n);
    }
    catch_up(f);
}

static bool may_read(const struct stdin_feed *f)
{
    return f->started && !f->stopped && !f->ended && f->sent == f->read && f->in_flight < STDIN_WINDOW;
}

static void looks_again(uv_timer_t *timer);

static void go_on(struct stdin_feed *f)
{
    if (!may_read(f) || f->waiting)
        return;
    if (in_background()) {
        uv_timer_start(&f->foreground, looks_again, FOREGROUND_MS, 0);
    } else if (!f->pollable) {
        pump(f);
    } else {
        f->waiting = true;
        uv_poll_start(&f->readable, UV_READABLE, readable);
    }
}

static void looks_again(uv_timer_t *timer)
{
    go_on(timer->data);
}

/* Reads once (when it was told that there is something), then waits for more if the window allows it. */
static void pump(struct stdin_feed *f)
{
    static uint8_t buffer[CHUNK];
    if (in_background()) {
        go_on(f);
        return;
    }
    while (may_read(f)) {
        /* who shares the descriptor may have read meanwhile what we were told of */
        ssize_t n = f->pollable ? kernel_read_now(STDIN_FILENO, buffer, sizeof buffer)
                                : read(STDIN_FILENO, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n >= 0 || errno != EAGAIN)
            take(f, buffer, n);
        if (f->pollable) {
            go_on(f);
            return;
        }
    }
}

/* ---- calls ---- */

/* False: files, and what is no file at all, are read without. */
static bool poll_init(struct stdin_feed *f, uv_loop_t *loop)
{
    struct epoll_event all = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (set < 0)
        return false;
    if (epoll_ctl(set, EPOLL_CTL_ADD, STDIN_FILENO, &all) == 0 && uv_poll_init(loop, &f->readable, set) == 0)
        return true;
    close(set);
    return false;
}

void stdin_feed_start(struct stdin_feed *f, uv_loop_t *loop, size_t limit, const struct stdin_feed_ops *ops)
{
    *f = (struct stdin_feed){.started = true, .limit = limit, .ops = *ops};
    f->pollable = poll_init(f, loop);
    f->readable.data = f;
    uv_timer_init(loop, &f->foreground);
    f->foreground.data = f;
    go_on(f);
}

void stdin_feed_taken(struct stdin_feed *f, size_t len)
{
    f->in_flight -= len < f->in_flight ? len : f->in_flight;
    if (!f->started || f->stopped)
        return;
    catch_up(f);
    go_on(f);
}

void stdin_feed_again(struct stdin_feed *f)
{
    if (!f->started || f->stopped)
        return;
    f->in_flight = 0;
    f->end_told = false;
    if (!is_whole(f)) {
        f->ops.lost(f->ops.user, f->read);
        f->ended = true;
    }
    f->sent = is_whole(f) ? 0 : f->read;
    catch_up(f);
    go_on(f);
}

void stdin_feed_stop(struct stdin_feed *f)
{
    if (f->started && f->waiting)
        uv_poll_stop(&f->readable);
    if (f->started)
        uv_timer_stop(&f->foreground);
    f->waiting = false;
    f->stopped = true;
    bytes_free(&f->kept);
}
