/* Writes to keelrun's own standard output and error and to the event log. Each sink has a thread that does nothing but
 * write(2), which may stand still for as long as the reader does: the event loop never does, whatever is at the other
 * end and whoever else writes there. What is queued is bounded by those who give it (credits, pm/wire/message.h).
 * Event-loop thread only; the thread keeps to sink.c. */
#ifndef KEEL_PM_SINK_H
#define KEEL_PM_SINK_H

#include "pm/wire/bytes.h"

#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

enum { SINK_SHORT = 256 * 1024 }; /* a queue below that is short: more may come */

struct sink {
    void (*drained)(struct sink *s);           /* optional: the queue is short, or nothing is written any more */
    void (*failed)(struct sink *s, int error); /* optional: nothing can be written any more; once */
    void *user;
    /* internal */
    uv_async_t moved;
    bool told; /* failed() was called */
    pthread_mutex_t lock;
    pthread_cond_t more, less; /* something was queued; something was written */
    /* under lock */
    int fd;             /* -1: nobody has opened path for reading yet */
    const char *path;   /* of a fifo, for that */
    struct bytes queue; /* not taken by the thread yet */
    size_t writing;     /* taken and not written */
    int error;          /* errno; from then on everything is dropped */
};

/* fd stays the caller's. */
void sink_init(struct sink *s, uv_loop_t *loop, int fd);
/* A fifo that nobody reads: the thread waits for a reader. path is kept. */
void sink_init_fifo(struct sink *s, uv_loop_t *loop, const char *path);
void sink_write(struct sink *s, const void *data, size_t len);
size_t sink_queued(struct sink *s);
/* Wait until all is written or cannot be.
 * silence_ms  give up when nothing moved for that long; -1: never.
 * returns     false if something is left. */
bool sink_flush(struct sink *s, int silence_ms);
#endif
