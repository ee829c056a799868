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
    bool started, pollable, waiting, ended;
    size_t in_flight;
    void (*send)(void *user, const uint8_t *data, size_t len); /* len 0: end of file */
    void *user;
};

void stdin_feed_start(struct stdin_feed *f, uv_loop_t *loop, void (*send)(void *user, const uint8_t *data, size_t len),
                      void *user);
void stdin_feed_taken(struct stdin_feed *f, size_t len);
void stdin_feed_stop(struct stdin_feed *f);
#endif
