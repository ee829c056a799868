/* keelrun's standard input on its way to rank 0, with a window so that a rank that reads slowly holds us back. Does not
 * change the flags of the descriptor, which is shared with the shell. Event-loop thread only. */
#ifndef KEEL_PM_STDIN_FEED_H
#define KEEL_PM_STDIN_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct stdin_feed {
    uv_poll_t readable;
    bool started, pollable, waiting, ended, deserted;
    size_t in_flight;
    uint64_t sent;
    void (*send)(void *user, const uint8_t *data, size_t len); /* len 0: end of file */
    void (*lost)(void *user, uint64_t sent); /* there is somebody's input, and nobody gets more than what was sent */
    void *user;
};

void stdin_feed_start(struct stdin_feed *f, uv_loop_t *loop, void (*send)(void *user, const uint8_t *data, size_t len),
                      void (*lost)(void *user, uint64_t sent), void *user);
void stdin_feed_taken(struct stdin_feed *f, size_t len);
/* The process that got it is no rank's any more. Where there is no input, now or later, nobody misses it. */
void stdin_feed_desert(struct stdin_feed *f);
void stdin_feed_stop(struct stdin_feed *f);
#endif
