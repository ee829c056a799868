/* Who outlives keelrun to remove a bed, and what is left of beds whose guardian was killed. */
#include "pm/bed/guardian.h"

#include "pm/bed/bed.h"
#include "runtime/base/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { GUARDIAN_GRACE_MS = 1000 };

int bed_guard_name(uint64_t job_id)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "keel-bed/%08x", (unsigned)(job_id >> 32));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, len) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_mpiexec(int pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(name, sizeof name, f))
        name[0] = '\0';
    if (f)
        fclose(f);
    return strcmp(name, "mpiexec.hydra\n") == 0;
}

/* Opens pidfds of processes that live in one of the bed's namespaces, of mpiexec only if wanted. Returns how many
 * (at most max). */
static int find_inhabitants(const struct stat *spaces, int count, bool with_mpiexec, struct pollfd *fds, int max)
{
    DIR *proc = opendir("/proc");
    int found = 0;
    if (!proc)
        return 0;
    for (struct dirent *e; found < max && (e = readdir(proc));) {
        char path[300];
        struct stat st;
        int pid = atoi(e->d_name);
        snprintf(path, sizeof path, "/proc/%s/ns/net", e->d_name);
        if (pid <= 0 || stat(path, &st) < 0)
            continue;
        for (int i = 0; i < count; i++)
            if (spaces[i].st_ino == st.st_ino && spaces[i].st_dev == st.st_dev && (with_mpiexec || !is_mpiexec(pid))) {
                int fd = process_open(pid);
                if (fd >= 0)
                    fds[found++] = (struct pollfd){.fd = fd, .events = POLLIN};
                break;
            }
    }
    closedir(proc);
    return found;
}

/* Until nobody lives in these namespaces; false if somebody still does after the time (-1: no limit). */
static bool wait_until_empty(const struct stat *spaces, int count, bool of_mpiexec, int timeout_ms)
{
    enum { WATCHED = 64 };
    struct pollfd fds[WATCHED];
    int found;
    while ((found = find_inhabitants(spaces, count, of_mpiexec, fds, WATCHED)) > 0) {
        bool ended = true;
        for (int i = 0; i < found; i++) {
            int ready;
            while ((ready = poll(&fds[i], 1, timeout_ms)) < 0 && errno == EINTR)
                ;
            ended = ended && ready != 0;
            process_close(fds[i].fd);
        }
        if (!ended)
            return false;
    }
    return true;
}

static void kill_inhabitants(const struct stat *spaces, int count)
{
    enum { KILLED = 64 };
    struct pollfd fds[KILLED];
    int found = find_inhabitants(spaces, count, true, fds, KILLED);
    for (int i = 0; i < found; i++) {
        (void)process_signal(fds[i].fd, SIGKILL);
        process_close(fds[i].fd);
    }
}

/* Returns when no process lives in the bed. An mpiexec, on the hub or where an agent started it, never hears that its
 * node has ended if that was cut off before: they are not waited for. */
static void outlive_all(uint64_t job_id, int nodes)
{
    struct stat spaces[BED_NODES_MAX + 1];
    char path[64];
    int count = 0;
    for (int i = 0; i < nodes; i++) {
        bed_netns_path(job_id, i, path, sizeof path);
        if (stat(path, &spaces[count]) == 0)
            count++;
    }
    wait_until_empty(spaces, count, false, -1);
    bed_netns_path(job_id, -1, path, sizeof path);
    if (stat(path, &spaces[count]) == 0)
        count++;
    while (!wait_until_empty(spaces, count, true, GUARDIAN_GRACE_MS))
        kill_inhabitants(spaces, count);
}

/* Beds whose guardian was killed together with everything else: nobody holds the name, nobody lives there. */
void bed_sweep(void)
{
    DIR *dir = opendir(BED_NETNS_DIR);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        unsigned id;
        char tail;
        struct stat spaces[BED_NODES_MAX + 1];
        struct pollfd one;
        int count = 0;
        if (sscanf(e->d_name, "keel-%8x-hu%c", &id, &tail) != 2)
            continue;
        uint64_t job_id = (uint64_t)id << 32;
        int guard = bed_guard_name(job_id);
        if (guard < 0)
            continue;
        for (int i = -1; i < BED_NODES_MAX - 1; i++) {
            char path[64];
            bed_netns_path(job_id, i, path, sizeof path);
            if (stat(path, &spaces[count]) == 0)
                count++;
        }
        if (find_inhabitants(spaces, count, true, &one, 1) > 0)
            process_close(one.fd);
        else
            bed_demolish(job_id, BED_NODES_MAX - 1);
        close(guard);
    }
    if (dir)
        closedir(dir);
}

_Noreturn void bed_guardian_run(uint64_t job_id, int nodes, int pipe_fd, int guard_fd)
{
    char byte;
    setsid();
    prctl(PR_SET_NAME, "keel-guardian");
    for (int s = 1; s < 32; s++)
        signal(s, s == SIGCHLD ? SIG_DFL : SIG_IGN);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    /* to 3 and 4, whatever numbers they have now */
    int pipe_copy = fcntl(pipe_fd, F_DUPFD, 5), guard_copy = fcntl(guard_fd, F_DUPFD, 5);
    dup2(pipe_copy, 3);
    dup2(guard_copy, 4);
    kernel_close_from(5, false);
    if (chdir("/") < 0)
        _exit(1);
    while (read(3, &byte, 1) < 0 && errno == EINTR)
        ;
    outlive_all(job_id, nodes);
    bed_demolish(job_id, nodes);
    _exit(0);
}
