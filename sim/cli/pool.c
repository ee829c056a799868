#include "sim/cli/pool.h"

#include <stdlib.h>
#include <time.h>

#include "runtime/base/clock.h"

enum { WATCH_MS = 100 };

struct worker {
    struct pool *pool;
    int index;
    pthread_t thread;
};

/* Under the lock. */
static void end_for(struct pool *p, const char *wrong)
{
    if (!wrong)
        return;
    if (!p->wrong)
        p->wrong = wrong;
    atomic_store(&p->quit, true);
}

/* The next task, -1 when there is none. Under the lock. */
static int64_t take(struct pool *p)
{
    if (p->stop && atomic_load(p->stop))
        atomic_store(&p->quit, true);
    return atomic_load(&p->quit) || p->next == p->tasks ? -1 : p->next++;
}

static void *work(void *arg)
{
    const struct worker *w = arg;
    struct pool *p = w->pool;
    const char *wrong = p->open ? p->open(p, w->index) : NULL;
    pthread_mutex_lock(&p->lock);
    end_for(p, wrong);
    for (int64_t task; (task = take(p)) >= 0;) {
        p->at[w->index] = task;
        pthread_mutex_unlock(&p->lock);
        wrong = p->run(p, w->index, task);
        pthread_mutex_lock(&p->lock);
        p->at[w->index] = -1;
        end_for(p, wrong);
        if (wrong)
            break;
        if (p->done)
            p->done(p, w->index, task);
        p->finished++;
    }
    p->live--;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->close)
        p->close(p, w->index);
    return NULL;
}

static double since(uint64_t start)
{
    return (double)(clock_now_ns() - start) * 1e-9;
}

static void watch(struct pool *p, uint64_t start)
{
    pthread_mutex_lock(&p->lock);
    while (p->live) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)WATCH_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&p->changed, &p->lock, &until);
        if (p->stop && atomic_load(p->stop))
            atomic_store(&p->quit, true);
        if (p->watch && p->live)
            p->watch(p, since(start));
    }
    if (p->watch)
        p->watch(p, since(start));
    pthread_mutex_unlock(&p->lock);
}

const char *pool_run(struct pool *p)
{
    uint64_t start = clock_now_ns();
    struct worker *worker = calloc((size_t)p->threads, sizeof *worker);
    int started = 0;
    p->at = malloc((size_t)p->threads * sizeof *p->at);
    if (!worker || !p->at) {
        free(worker);
        free(p->at);
        p->at = NULL;
        return "out of memory";
    }
    p->next = p->finished = 0;
    p->wrong = NULL;
    atomic_store(&p->quit, false);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_lock(&p->lock);
    for (p->live = 0; started < p->threads; started++, p->live++) {
        worker[started] = (struct worker){.pool = p, .index = started};
        p->at[started] = -1;
        if (pthread_create(&worker[started].thread, NULL, work, &worker[started]) != 0) {
            for (int rest = started; rest < p->threads; rest++)
                p->at[rest] = -1;
            end_for(p, started ? NULL : "no thread can be started"); /* fewer do as well */
            break;
        }
    }
    pthread_mutex_unlock(&p->lock);
    watch(p, start);
    for (int i = 0; i < started; i++)
        pthread_join(worker[i].thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(worker);
    free(p->at);
    p->at = NULL;
    p->seconds = since(start);
    return p->wrong;
}
