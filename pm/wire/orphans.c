#include "pm/wire/orphans.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Against descendants that fork faster than we kill. */
enum { ROUNDS_MAX = 1000, CHILDREN_MAX = 4096 };

/* Our children by the main thread, which does all forking. Returns their number. */
static int list_children(pid_t *pids, int max)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    while (f && n < max && fscanf(f, "%d", &pids[n]) == 1)
        n++;
    if (f)
        fclose(f);
    return n;
}

void orphans_reap(bool (*keep)(void *user, pid_t pid), void *user)
{
    pid_t pids[CHILDREN_MAX];
    int n = list_children(pids, CHILDREN_MAX);
    for (int i = 0; i < n; i++)
        if (!keep || !keep(user, pids[i]))
            waitpid(pids[i], NULL, WNOHANG);
}

void orphans_kill(bool (*keep)(void *user, pid_t pid), void *user)
{
    pid_t pids[CHILDREN_MAX];
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int n = list_children(pids, CHILDREN_MAX), strangers = 0;
        for (int i = 0; i < n; i++)
            if (!keep || !keep(user, pids[i])) {
                strangers++;
                kill(pids[i], SIGKILL);
            }
        if (strangers == 0)
            return;
        for (int i = 0; i < n; i++)
            if (!keep || !keep(user, pids[i]))
                waitpid(pids[i], NULL, 0);
    }
}
