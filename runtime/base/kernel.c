#include "runtime/base/kernel.h"

#include "runtime/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The headers may be as old as the kernel. The numbers are the same on all machines. */
enum { CALL_PIDFD_SEND_SIGNAL = 424, CALL_PIDFD_OPEN = 434, CALL_CLOSE_RANGE = 436, CALL_EPOLL_PWAIT2 = 441 };
enum { CLOSED_BY_EXEC = 1 << 2 }; /* CLOSE_RANGE_CLOEXEC */

static bool is_missing(int error)
{
    return error == ENOSYS || error == EPERM;
}

/* ---- waiting ---- */

int kernel_epoll_wait(int epoll_fd, struct epoll_event *events, int max, uint64_t timeout_ns)
{
    static atomic_bool missing;
    struct timespec ts = {.tv_sec = (time_t)(timeout_ns / KEEL_NS_PER_S),
                          .tv_nsec = (long)(timeout_ns % KEEL_NS_PER_S)};
    if (!atomic_load_explicit(&missing, memory_order_relaxed)) {
        int n = (int)syscall(CALL_EPOLL_PWAIT2, epoll_fd, events, max, &ts, NULL, 0);
        if (n >= 0 || !is_missing(errno))
            return n;
        atomic_store_explicit(&missing, true, memory_order_relaxed);
    }
    struct pollfd any = {.fd = epoll_fd, .events = POLLIN};
    return ppoll(&any, 1, &ts, NULL) < 0 ? -1 : epoll_wait(epoll_fd, events, max, 0);
}

/* ---- descriptors ---- */

static void close_one(int fd, bool by_exec)
{
    if (by_exec)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    else
        close(fd);
}

struct entry { /* struct linux_dirent64, which no header has */
    uint64_t inode, offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* -1: it is no number. */
static int number(const char *text)
{
    int n = 0;
    for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
        n = n * 10 + (*text - '0');
    return *text ? -1 : n;
}

static bool close_listed(int first, bool by_exec)
{
    _Alignas(struct entry) char buffer[4096];
    long n = -1;
    int list = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (list >= 0 && (n = syscall(SYS_getdents64, list, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < n;) {
            const struct entry *e = (const struct entry *)(buffer + at);
            int fd = number(e->name);
            if (fd >= first && fd != list)
                close_one(fd, by_exec);
            at += e->bytes;
        }
    if (list >= 0)
        close(list);
    return n == 0;
}

static bool close_all_numbers(int first, bool by_exec)
{
    enum { MOST = 1 << 20 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    int most = limit.rlim_max < MOST ? (int)limit.rlim_max : MOST;
    for (int fd = first; fd < most; fd++)
        close_one(fd, by_exec);
    return true;
}

ssize_t kernel_read_now(int fd, void *buffer, size_t len)
{
    const struct iovec iov = {buffer, len};
    ssize_t n = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
    bool knows = n >= 0 || (!is_missing(errno) && errno != EOPNOTSUPP && errno != EINVAL);
    return knows ? n : read(fd, buffer, len);
}

bool kernel_close_from(int first, bool by_exec)
{
    if (syscall(CALL_CLOSE_RANGE, (unsigned)first, ~0u, by_exec ? CLOSED_BY_EXEC : 0) == 0)
        return true;
    /* EINVAL: 5.9 and 5.10 have the call, and not the flag */
    return (is_missing(errno) || errno == EINVAL) &&
           (close_listed(first, by_exec) || close_all_numbers(first, by_exec));
}

/* ---- processes ----
 *
 * Without pidfds the descriptor is the reading end of a pipe. A thread has the other one, and closes it when the
 * process has ended: it waits for a child, and looks at others from time to time. Whose process it is, is known from
 * the number and when it began. */

struct watched {
    struct watched *next;
    int fd, end; /* the caller's, the thread's */
    pid_t pid;
    unsigned long long began;
};

static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *all_watched; /* by fd; under watched_lock */

/* /proc/PID/stat. 0: there is no such process; -1: nobody can look (no descriptors, say), errno says why. */
static ssize_t read_stat(pid_t pid, char *text, size_t size)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    int why = errno;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    errno = why;
    return n < 0 && (why == ENOENT || why == ESRCH) ? 0 : n;
}

/* When it began, in the kernel's ticks; *ticks 0: it has ended. False: nobody can look. */
static bool began(pid_t pid, unsigned long long *ticks)
{
    char text[1024], state = 'X';
    *ticks = 0;
    if (read_stat(pid, text, sizeof text) < 0)
        return false;
    const char *behind = strrchr(text, ')'); /* of the command, which may have any */
    if (!behind ||
        sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
               ticks) != 2 || // NOLINT(cert-err34-c): what the kernel wrote
        state == 'Z' ||
        state == 'X')
        *ticks = 0;
    return true;
}

/* Where nobody can look it has not, as long as somebody has the number. */
static bool has_gone(const struct watched *w)
{
    unsigned long long now;
    return began(w->pid, &now) ? now != w->began : kill(w->pid, 0) < 0 && errno == ESRCH;
}

static void *watch(void *arg)
{
    enum { LOOK_MS = 10 };
    struct watched *w = arg;
    siginfo_t info;
    int rc;
    while ((rc = waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOWAIT)) < 0 && errno == EINTR)
        ;
    struct pollfd closed = {.fd = w->end}; /* POLLERR when nobody reads any more */
    while (rc < 0 && !has_gone(w) && poll(&closed, 1, LOOK_MS) == 0)
        ;
    close(w->end);
    free(w);
    return NULL;
}

static bool start_watching(const struct watched *what)
{
    struct watched *w = malloc(sizeof *w);
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    if (!w)
        return false;
    *w = *what;
    sigfillset(&all); /* they are for the others */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 128 * 1024);
    int rc = pthread_create(&thread, &attr, watch, w);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        free(w);
    errno = rc;
    return rc == 0;
}

static int open_without_pidfd(pid_t pid)
{
    int ends[2];
    siginfo_t info = {0};
    struct watched *w = calloc(1, sizeof *w);
    if (!w || pipe2(ends, O_CLOEXEC) < 0) {
        free(w);
        return -1;
    }
    *w = (struct watched){.fd = ends[0], .end = ends[1], .pid = pid};
    bool looked = began(pid, &w->began);
    bool ended_child = looked && w->began == 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0;
    if (looked)
        errno = ESRCH;
    if (!looked || (w->began == 0 && !ended_child) || !start_watching(w)) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        free(w);
        errno = error;
        return -1;
    }
    pthread_mutex_lock(&watched_lock);
    w->next = all_watched;
    all_watched = w;
    pthread_mutex_unlock(&watched_lock);
    return ends[0];
}

int process_open(pid_t pid)
{
    int fd = (int)syscall(CALL_PIDFD_OPEN, pid, 0);
    return fd < 0 && is_missing(errno) ? open_without_pidfd(pid) : fd;
}

/* Whose pidfd it is. -1: errno says why; ESRCH: it has ended. */
static pid_t pid_of(int pidfd)
{
    char path[48], line[128];
    int pid = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    errno = ESRCH;
    while (pid < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "Pid: %d", &pid) != 1) // NOLINT(cert-err34-c): what the kernel wrote
            pid = -1;
    fclose(f);
    return pid;
}

bool process_has_ended(int process)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    if (poll(&ended, 1, 0) == 1)
        return true;
    pthread_mutex_lock(&watched_lock);
    const struct watched *w = all_watched;
    while (w && w->fd != process)
        w = w->next;
    bool gone = w && has_gone(w);
    pthread_mutex_unlock(&watched_lock);
    return gone;
}

/* linux/pidfd.h of 6.15 */
struct pidfd_end {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t status;
};
enum { PIDFD_END = 1 << 3 };
#define PIDFD_END_GET _IOWR(0xFF, 11, struct pidfd_end)

/* The text behind the command's name in /proc/PID/stat, from the process's state on; NULL: there is no such process, or
 * nobody can look. */
static const char *stat_of(pid_t pid, char *text, size_t size)
{
    if (read_stat(pid, text, size) < 0)
        return NULL;
    const char *behind = strrchr(text, ')');
    return behind && behind[1] ? behind + 2 : NULL;
}

/* Who has started it has not taken its exit code yet, so that the number is still its own. */
static bool zombies_end(pid_t pid, int *status)
{
    enum { FIELDS_BETWEEN = 49 }; /* the state and the exit code are the 3rd and the 52nd field */
    char text[1024];
    const char *at = stat_of(pid, text, sizeof text);
    if (!at || *at != 'Z')
        return false;
    for (int i = 0; i < FIELDS_BETWEEN && at; i++)
        at = strchr(at + 1, ' ');
    char *end;
    long value = at ? strtol(at, &end, 10) : 0;
    if (!at || end == at)
        return false;
    *status = (int)value;
    return true;
}

bool process_end(int process, pid_t pid, int *status)
{
    for (int i = 0; i < 2; i++) { /* it may be taken in between */
        struct pidfd_end end = {.mask = PIDFD_END};
        if (process >= 0 && ioctl(process, PIDFD_END_GET, &end) == 0 && (end.mask & PIDFD_END)) {
            *status = end.status;
            return true;
        }
        if (zombies_end(pid, status))
            return true;
    }
    return false;
}

bool process_ending(pid_t pid)
{
    enum { EXITING = 4 }; /* PF_EXITING, since Linux 2.4 */
    char text[1024];
    unsigned long flags = 0;
    const char *at = stat_of(pid, text, sizeof text);
    return !at || *at == 'Z' || *at == 'X' ||
           (sscanf(at, "%*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && (flags & EXITING)); // NOLINT(cert-err34-c)
}

bool process_maps(pid_t pid, uint64_t inode)
{
    char path[32], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !found && getline(&line, &room, f) > 0) {
        unsigned long long here;
        found = sscanf(line, "%*s %*s %*s %*s %llu", &here) == 1 && here == inode && // NOLINT(cert-err34-c)
                strstr(line, " /memfd:");
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}

int process_signal(int process, int signal_number)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    if (syscall(CALL_PIDFD_SEND_SIGNAL, process, signal_number, NULL, 0) == 0)
        return 0;
    if (!is_missing(errno) && errno != EBADF)
        return -1;
    pthread_mutex_lock(&watched_lock);
    const struct watched *w = all_watched;
    while (w && w->fd != process)
        w = w->next;
    pid_t pid = w ? w->pid : -1;
    bool gone = w && has_gone(w);
    pthread_mutex_unlock(&watched_lock);
    if (!w && (pid = pid_of(process)) < 0)
        return -1;
    if (gone || poll(&ended, 1, 0) != 0) { /* its number may be another's by now */
        errno = ESRCH;
        return -1;
    }
    return kill(pid, signal_number);
}

void process_close(int process)
{
    if (process < 0)
        return;
    pthread_mutex_lock(&watched_lock);
    for (struct watched **w = &all_watched; *w; w = &(*w)->next)
        if ((*w)->fd == process) {
            struct watched *gone = *w;
            *w = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&watched_lock);
    close(process);
}
