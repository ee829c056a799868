#include "runtime/base/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"

/* All under the lock. */
static struct {
    pthread_mutex_t lock;
    int wanted, n;
    int fd[RESERVE_MAX];
} reserve = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void close_all(void)
{
    while (reserve.n > 0)
        close(reserve.fd[--reserve.n]);
}

static void open_all(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (; fd >= 0 && reserve.n < reserve.wanted; fd = fcntl(reserve.fd[0], F_DUPFD_CLOEXEC, 0))
        reserve.fd[reserve.n++] = fd;
    if (fd >= 0)
        close(fd);
}

void reserve_hold(int n)
{
    pthread_mutex_lock(&reserve.lock);
    reserve.wanted = n < RESERVE_MAX ? n : RESERVE_MAX;
    open_all();
    reserve.wanted = reserve.n;
    pthread_mutex_unlock(&reserve.lock);
}

bool reserve_give(int error)
{
    char why[REFUSAL_MAX];
    if (error != EMFILE && error != ENFILE)
        return false;
    pthread_mutex_lock(&reserve.lock);
    int given = reserve.n;
    close_all();
    pthread_mutex_unlock(&reserve.lock);
    if (given)
        log_warn_some("no descriptors are left: %s: %d that were kept back are given up for connections; no process "
                      "begins here, and no further copy, while that lasts",
                      refusal_error(error, why), given);
    return given > 0;
}

bool reserve_is_whole(void)
{
    pthread_mutex_lock(&reserve.lock);
    if (reserve.n < reserve.wanted)
        open_all();
    bool whole = reserve.n == reserve.wanted;
    if (!whole)
        close_all();
    pthread_mutex_unlock(&reserve.lock);
    return whole;
}
