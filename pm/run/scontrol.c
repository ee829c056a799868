#include "pm/run/scontrol.h"

#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MS = 10000, ANSWER_BYTES = 1 << 24 };

static _Noreturn void become(const char *what, int out)
{
    char why[256];
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execlp("scontrol", "scontrol", "show", what, (char *)NULL);
    pm_cannot_run("scontrol", errno, why, sizeof why);
    (void)dprintf(STDERR_FILENO, "%s\n", why);
    _exit(127);
}

/* False: its time is over. */
static bool read_all(int fd, struct bytes *all)
{
    uint64_t end = clock_now_ns() + ANSWER_MS * KEEL_NS_PER_MS;
    ssize_t n = 1;
    while (n > 0 && all->len < ANSWER_BYTES) {
        uint64_t now = clock_now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= end || poll(&p, 1, (int)((end - now) / KEEL_NS_PER_MS) + 1) == 0)
            return false;
        n = read(fd, bytes_reserve(all, 4096), 4096);
        if (n < 0 && errno == EINTR)
            n = 1;
        else
            all->len += n > 0 ? (size_t)n : 0;
    }
    return true;
}

char *scontrol_show(const char *what)
{
    struct bytes all = {0};
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        pm_quit(1, "no pipe for scontrol: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        pm_quit(1, "no process for scontrol: %s", strerror(errno));
    if (pid == 0)
        become(what, pipes[1]);
    close(pipes[1]);
    bool whole = read_all(pipes[0], &all);
    close(pipes[0]);
    if (!whole) {
        kill(pid, SIGKILL);
        static const char late[] = "scontrol has not answered within 10 s";
        bytes_append(&all, late, sizeof late - 1);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *bytes_reserve(&all, 1) = '\0';
    return (char *)all.data;
}
