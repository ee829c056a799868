#include "pm/wire/orphans.h"

#include "runtime/base/clock.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Against descendants that fork faster than we kill. */
enum { ROUNDS_MAX = 1000, CHILDREN_MAX = 4096, ENDS_WITHIN_MS = 1000 };

int process_children(pid_t pid, pid_t *pids, int max)
{
    char path[64];
    int n = 0;
    if (pid ==
        getpid()) /* not there where /proc is that of other processes' numbers, whose children are not ours to kill */
        snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)pid);
    else
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    while (n < max && fscanf(f, "%d", &pids[n]) == 1)
        n++;
    fclose(f);
    return n;
}

void orphans_reap(bool (*keep)(void *user, pid_t pid), void *user)
{
    pid_t pids[CHILDREN_MAX];
    int n = process_children(getpid(), pids, CHILDREN_MAX);
    for (int i = 0; i < n; i++)
        if (!keep || !keep(user, pids[i]))
            waitpid(pids[i], NULL, WNOHANG);
}

/* Whoever was killed ends soon, but perhaps not at once: in the middle of a system call, or in the hands of a
 * debugger. */
static void await_end(pid_t pid, uint64_t deadline_ns)
{
    int fd = process_open(pid);
    uint64_t now = clock_now_ns();
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    if (fd < 0)
        return;
    if (now < deadline_ns)
        (void)poll(&ended, 1, (int)((deadline_ns - now) / KEEL_NS_PER_MS) + 1);
    process_close(fd);
    waitpid(pid, NULL, WNOHANG);
}

void orphans_kill(bool (*keep)(void *user, pid_t pid), void *user)
{
    pid_t pids[CHILDREN_MAX];
    uint64_t deadline = clock_now_ns() + ENDS_WITHIN_MS * KEEL_NS_PER_MS;
    for (int round = 0; round < ROUNDS_MAX && clock_now_ns() < deadline; round++) {
        int n = process_children(getpid(), pids, CHILDREN_MAX), killed = 0;
        for (int i = 0; i < n; i++) {
            if (keep && keep(user, pids[i]))
                continue;
            if (kill(pids[i], SIGKILL) == 0)
                pids[killed++] = pids[i];
            else if (errno == EPERM)
                log_warn_some("process %d, left behind by a rank, belongs to another user and is not ended",
                              (int)pids[i]);
        }
        if (killed == 0)
            return;
        for (int i = 0; i < killed; i++)
            await_end(pids[i], deadline);
    }
}

char process_state(pid_t pid, pid_t *parent)
{
    char path[64], line[512], state = 0;
    int above = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    const char *after = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (!after || sscanf(after + 1, " %c %d", &state, &above) != 2)
        state = 0;
    if (f)
        fclose(f);
    *parent = state ? above : 0;
    return state;
}

int descendants_open(pid_t pid, pid_t through)
{
    enum { GENERATIONS = 10000 }; /* each node of a bed may be below another */
    int fd = process_open(pid);
    bool passed = false;
    pid_t at = pid;
    for (int i = 0; fd >= 0 && at > 1 && at != getpid() && i < GENERATIONS; i++) {
        (void)process_state(at, &at);
        passed = passed || at == through;
    }
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    /* if it lives now it had this number all the time */
    if (passed && through != getpid() && at == getpid() && poll(&ended, 1, 0) == 0)
        return fd;
    process_close(fd);
    return -1;
}
