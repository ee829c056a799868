#include "runtime/base/limited.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* The kernel sends it to the thread that writes, where it is pending while it is blocked. One that was pending before
 * is the program's. */
ssize_t limited_write(int fd, const void *data, size_t len)
{
    static const struct timespec at_once = {0};
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (pthread_sigmask(SIG_BLOCK, &limit, &before) != 0)
        return write(fd, data, len);
    const bool programs = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    ssize_t n = write(fd, data, len);
    const int error = errno;
    while (n < 0 && error == EFBIG && !programs && sigtimedwait(&limit, NULL, &at_once) < 0 && errno == EINTR)
        ;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}
