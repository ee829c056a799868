/* keelrun's standard input on its way to rank 0, with a window so that a rank that reads slowly holds us back, and kept
 * for the process in which rank 0 may begin again (ADR 0012). Does not change the flags of the descriptor, which others
 * share: the shell, and whoever reads or writes there beside. Event-loop thread only.
 *
 *   read from the descriptor ──► kept, if all of it is no more than the limit ──► sent to the process
 *                                      ▲── again: another process gets it from its beginning, what is kept first
 *   more than the limit: nothing is kept any more, another process gets the end of file, and nobody anything more */
#ifndef KEEL_PM_STDIN_FEED_H
#define KEEL_PM_STDIN_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "pm/wire/bytes.h"

struct stdin_feed_ops {
    void (*send)(void *user, const uint8_t *data, size_t len); /* len 0: end of file */
    void (*came)(void *user);                                  /* the first of it was read; sent is nothing yet */
    void (*lost)(void *user, uint64_t read); /* another process reads, and so much was read, which is not there */
    void (*failed)(void *user, uint64_t read, int error); /* errno: there may be more, which cannot be read */
    void *user;
};

struct stdin_feed {
    uv_poll_t readable;    /* of a poll set that has the descriptor: libuv changes the flags of what it polls */
    uv_timer_t foreground; /* when to look whether we have the terminal by now: nobody tells who was not stopped */
    bool started, pollable, waiting, stopped;
    bool ended;        /* its end has been read, or nothing more is read */
    bool end_told;     /* to the process that reads now */
    size_t in_flight;  /* of what was sent to it */
    uint64_t read;     /* bytes, of all */
    uint64_t sent;     /* to the process that reads now */
    struct bytes kept; /* all that was read, as long as that is no more than limit */
    size_t limit;
    struct stdin_feed_ops ops;
};

void stdin_feed_start(struct stdin_feed *f, uv_loop_t *loop, size_t limit, const struct stdin_feed_ops *ops);
/* The process that reads now has taken so many bytes more. */
void stdin_feed_taken(struct stdin_feed *f, size_t len);
/* Another process reads from now on: send goes to it. */
void stdin_feed_again(struct stdin_feed *f);
void stdin_feed_stop(struct stdin_feed *f);
#endif
