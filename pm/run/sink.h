/* Writes to keelrun's own standard output and error without ever blocking the event loop, and without changing the
 * flags of a descriptor that is shared with the shell. Event-loop thread only. */
#ifndef KEEL_PM_SINK_H
#define KEEL_PM_SINK_H

#include "pm/wire/bytes.h"

#include <stdbool.h>
#include <uv.h>

struct sink {
    int fd;
    struct bytes queue;
    size_t sent;
    uv_poll_t writable;
    bool pollable, waiting, broken;
    void (*drained)(struct sink *s);           /* optional: the queue became short */
    void (*failed)(struct sink *s, int error); /* optional: nothing can be written any more; once */
    void *user;
};

void sink_init(struct sink *s, uv_loop_t *loop, int fd);
void sink_write(struct sink *s, const void *data, size_t len);
size_t sink_queued(const struct sink *s);
/* Write what is queued, for at most timeout_ms. */
void sink_flush(struct sink *s, int timeout_ms);
#endif
