/* What makes operations go on, and waiting for them: events of the transports, deadlines, views (progress.c), and a
 * thread that looks for them until what it waits for is there (wait.c). Lock held. */
#ifndef KEEL_CLIENT_PROGRESS_H
#define KEEL_CLIENT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/client/waits.h"
#include "runtime/net/transport.h"

struct client;

enum {
    PROGRESS_EVENTS = 32,
    LIVED_MAX_NS = 50000000, /* between two looks at the clock: what is more, this process did not run */
};

/* The first members are looked at in each turn of who waits: they share a cache line. */
struct progress {
    uint64_t looked_at; /* what the clock said, */
    uint64_t lived_ns;  /* and how long this process lived: a long time between two looks is its own, not its peers' */
    uint64_t came;      /* events of transports and the hall, so many so far */
    uint64_t epoch_seen;
    uint64_t retry_at; /* of the earliest operation that tries again later */
    uint64_t scan_at;
    unsigned polls;
    struct tp_event events[PROGRESS_EVENTS]; /* being handled: too many for a stack */
};

/* A look at the clock. */
static inline void progress_live(struct progress *p, uint64_t now)
{
    uint64_t gap = now - p->looked_at;
    p->lived_ns += gap < LIVED_MAX_NS ? gap : LIVED_MAX_NS;
    p->looked_at = now;
}

/* What a transport has, handled. */
void progress_poll(struct client *c, struct tp *tp, uint64_t now);
void client_progress(struct client *c);
/* Wait until done(arg), with the lock given back in between; false if the process has lost the job. wait: what it is
 * told to be, if it lasts. */
bool client_wait(struct client *c, bool (*done)(void *arg), void *arg, struct wait *wait);
#endif
