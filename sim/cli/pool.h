/* A pool of threads for tasks 0 .. tasks-1 that do not depend on each other. Tasks are handed out in their order; the
 * caller's thread sleeps, and wakes to show progress or save what there is.
 *
 * Fill the first part and call pool_run; hooks that are NULL are left out. Hooks marked "locked" run under the pool's
 * lock, so results may be added up there, and next, finished and at[] be read. The others run side by side, each worker
 * in its own thread. */
#ifndef KEEL_SIM_CLI_POOL_H
#define KEEL_SIM_CLI_POOL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pool {
    int threads;
    int64_t tasks;
    void *arg;               /* for the hooks */
    const atomic_bool *stop; /* NULL, or set from outside (a signal): no further task is begun */
    /* A worker begins, ends. open returns NULL or what is wrong, as run does: a constant text that ends the whole run.
     * close is called after a failed open, too. */
    const char *(*open)(struct pool *p, int worker);
    void (*close)(struct pool *p, int worker);
    const char *(*run)(struct pool *p, int worker, int64_t task); /* may look at quit and return early */
    void (*done)(struct pool *p, int worker, int64_t task);       /* locked, after run */
    void (*watch)(struct pool *p, double seconds); /* locked, in the caller's thread, now and then, and last */
    /* state */
    int64_t next;     /* first task nobody has taken; under lock */
    int64_t finished; /* tasks whose done hook was called; under lock */
    int64_t *at;      /* [threads] the task each worker is at, -1 none; under lock */
    atomic_bool quit; /* no more tasks: stop was set, or something went wrong */
    const char *wrong;
    int live;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double seconds; /* that the whole run took, when it has ended */
};

/* Runs the tasks that there are; returns when every worker has ended: NULL, or what went wrong (constant text). */
const char *pool_run(struct pool *p);
#endif
