#include "pm/run/scontrol.h"

#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/clock.h"
#include "runtime/base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MS = 10000, ANSWER_BYTES = 1 << 24 };

static _Noreturn void become(const char *what, int out)
{
    char why[256];
    int null = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no longer of the group that a terminal interrupts */
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execlp("scontrol", "scontrol", "show", what, (char *)NULL);
    pm_cannot_run("scontrol", errno, why, sizeof why);
    (void)dprintf(STDERR_FILENO, "%s\n", why);
    _exit(127);
}

static int left_ms(uint64_t end)
{
    uint64_t now = clock_now_ns();
    return now < end ? (int)((end - now) / KEEL_NS_PER_MS) + 1 : 0;
}

/* False: its time is over. */
static bool read_all(int fd, uint64_t end, struct bytes *all)
{
    ssize_t n = 1;
    while (n > 0 && all->len < ANSWER_BYTES) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int left = left_ms(end);
        if (left == 0 || poll(&p, 1, left) == 0)
            return false;
        n = read(fd, bytes_reserve(all, 4096), 4096);
        if (n < 0 && errno == EINTR)
            n = 1;
        else
            all->len += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* How it ended. late: it had not, and is killed with all that it has started. */
static int reap(pid_t pid, uint64_t end, bool *late)
{
    struct pollfd p = {.fd = process_open(pid), .events = POLLIN};
    int status = 0;
    *late = p.fd < 0 || poll(&p, 1, left_ms(end)) <= 0;
    if (p.fd >= 0)
        close(p.fd);
    kill(-pid, SIGKILL); /* not reaped yet: the group is still its own */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

char *scontrol_show(const char *what, char *why, size_t size)
{
    struct bytes all = {0};
    int pipes[2];
    bool late;
    if (pipe2(pipes, O_CLOEXEC) < 0)
        pm_quit(1, "no pipe for scontrol: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        pm_quit(1, "no process for scontrol: %s", strerror(errno));
    if (pid == 0)
        become(what, pipes[1]);
    setpgid(pid, pid); /* as it does itself: whoever is first */
    close(pipes[1]);
    uint64_t end = clock_now_ns() + ANSWER_MS * KEEL_NS_PER_MS;
    bool whole = read_all(pipes[0], end, &all);
    close(pipes[0]);
    int status = reap(pid, end, &late);
    *bytes_reserve(&all, 1) = '\0';
    if (!late && WIFSIGNALED(status))
        snprintf(why, size, "scontrol show %s was ended by signal %d", what, WTERMSIG(status));
    else if (late || !whole)
        snprintf(why, size, "scontrol show %s has not answered within %d s", what, ANSWER_MS / 1000);
    else
        return (char *)all.data;
    bytes_free(&all);
    return NULL;
}
