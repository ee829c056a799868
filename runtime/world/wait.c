/* Sleeping, and waiting with a limit. What a program waits it waits on the host; its own clock goes on by the time that
 * it asked for where that has passed. Limits that are a moment of its clock become one of the host's. */
#include "runtime/world/world.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

WORLD_API int nanosleep(const struct timespec *want, struct timespec *rest)
{
    struct world_page *page = WORLD_FOR_CALLER();
    int rc = NEXT(nanosleep)(want, rest);
    if (page && rc == 0)
        world_slept(world_ns(want));
    return rc;
}

WORLD_API int usleep(useconds_t us)
{
    struct world_page *page = WORLD_FOR_CALLER();
    int rc = NEXT(usleep)(us);
    if (page && rc == 0)
        world_slept((uint64_t)us * 1000);
    return rc;
}

WORLD_API unsigned sleep(unsigned s)
{
    struct world_page *page = WORLD_FOR_CALLER();
    unsigned rest = NEXT(sleep)(s);
    if (page)
        world_slept((uint64_t)(s - rest) * 1000000000);
    return rest;
}

/* A moment of the program's clock: since the start, and on the host. Those of both kinds of clocks are far apart. */
struct moment {
    uint64_t elapsed;
    struct timespec host;
};

static struct moment moment_of(const struct world_page *page, const struct timespec *limit)
{
    bool real = limit->tv_sec >= page->began_ns / 2000000000;
    uint64_t start = real ? (uint64_t)page->began_ns : WORLD_MONOTONIC_S * 1000000000UL, at = world_ns(limit);
    uint64_t elapsed = at > start ? at - start : 0, now = world_elapsed();
    uint64_t host = world_host_clock(real ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    return (struct moment){elapsed, world_timespec(elapsed > now ? host + (elapsed - now) : host)};
}

WORLD_API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *want, struct timespec *rest)
{
    struct world_page *page = WORLD_FOR_CALLER();
    if (!page || !(flags & TIMER_ABSTIME)) {
        int rc = NEXT(clock_nanosleep)(clock, flags, want, rest);
        if (page && rc == 0)
            world_slept(world_ns(want));
        return rc;
    }
    struct moment m = moment_of(page, want);
    int rc = NEXT(clock_nanosleep)(clock, flags, &m.host, rest);
    if (rc == 0)
        world_slept_until(m.elapsed);
    return rc;
}

#define LIMITED(version, name, parameters, before, limit, ...)                                                         \
    WORLD_API int name parameters                                                                                      \
    {                                                                                                                  \
        struct world_page *page = limit ? WORLD_FOR_CALLER() : NULL;                                                   \
        if (!page)                                                                                                     \
            return WORLD_NEXT_OF(name, version) before(limit) __VA_ARGS__;                                             \
        struct moment m = moment_of(page, limit);                                                                      \
        int rc = WORLD_NEXT_OF(name, version) before(&m.host) __VA_ARGS__;                                             \
        if (rc == ETIMEDOUT || (rc == -1 && errno == ETIMEDOUT))                                                       \
            world_slept_until(m.elapsed);                                                                              \
        return rc;                                                                                                     \
    }
#define COND(l) (cond, mutex, l)
#define COND_CLOCK(l) (cond, mutex, clock, l)
#define ONE(l) (of, l)
#define ONE_CLOCK(l) (of, clock, l)
#define JOIN(l) (thread, result, l)
LIMITED("GLIBC_2.3.2", pthread_cond_timedwait,
        (pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict limit), COND,
        limit)
LIMITED(NULL, pthread_cond_clockwait,
        (pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t clock,
         const struct timespec *restrict limit),
        COND_CLOCK, limit)
LIMITED(NULL, pthread_mutex_timedlock, (pthread_mutex_t *restrict of, const struct timespec *restrict limit), ONE,
        limit)
LIMITED(NULL, pthread_mutex_clocklock,
        (pthread_mutex_t *restrict of, clockid_t clock, const struct timespec *restrict limit), ONE_CLOCK, limit)
LIMITED(NULL, pthread_rwlock_timedrdlock, (pthread_rwlock_t *restrict of, const struct timespec *restrict limit), ONE,
        limit)
LIMITED(NULL, pthread_rwlock_timedwrlock, (pthread_rwlock_t *restrict of, const struct timespec *restrict limit), ONE,
        limit)
LIMITED(NULL, sem_timedwait, (sem_t *restrict of, const struct timespec *restrict limit), ONE, limit)
LIMITED(NULL, sem_clockwait, (sem_t *restrict of, clockid_t clock, const struct timespec *restrict limit), ONE_CLOCK,
        limit)
LIMITED(NULL, pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *limit), JOIN, limit)

/* ---- waiting for descriptors ---- */

static int waited(const struct world_page *page, int found, int64_t ns)
{
    if (page && found == 0 && ns > 0)
        world_slept((uint64_t)ns);
    return found;
}

WORLD_API int poll(struct pollfd *fds, nfds_t count, int ms)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return waited(page, NEXT(poll)(fds, count, ms), ms * 1000000L);
}

WORLD_API int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return waited(page, NEXT(ppoll)(fds, count, limit, mask), limit ? (int64_t)world_ns(limit) : 0);
}

WORLD_API int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                     struct timeval *restrict limit)
{
    struct world_page *page = WORLD_FOR_CALLER();
    int64_t ns = limit ? limit->tv_sec * 1000000000 + limit->tv_usec * 1000 : 0;
    return waited(page, NEXT(select)(count, in, out, other, limit), ns);
}

WORLD_API int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
                      const struct timespec *restrict limit, const sigset_t *restrict mask)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return waited(page, NEXT(pselect)(count, in, out, other, limit, mask), limit ? (int64_t)world_ns(limit) : 0);
}

WORLD_API int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return waited(page, NEXT(epoll_wait)(fd, events, max, ms), ms * 1000000L);
}

WORLD_API int epoll_pwait(int fd, struct epoll_event *events, int max, int ms, const sigset_t *mask)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return waited(page, NEXT(epoll_pwait)(fd, events, max, ms, mask), ms * 1000000L);
}
