/* notify soon: keel_finalize right after the thread that tells of failures was made, which may not have run yet.
 * notify inside: keel_finalize in the callback; afterwards no descriptor of it is left. Two ranks of one machine, of
 * which the second is killed. Exit 0 if all is right. */
#include <keel/keel.h>

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/expect.h"

static atomic_bool finalized;

static void leave(const keel_failure *failure, void *arg)
{
    (void)failure;
    (void)arg;
    EXPECT(keel_finalize() == KEEL_OK);
    EXPECT(keel_failure_fd() == -1);
    finalized = true;
}

static int eventfds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char target[256];
        ssize_t len = readlinkat(dirfd(dir), e->d_name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        n += strcmp(target, "anon_inode:[eventfd]") == 0;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* The thread that tells of failures. */
static bool teller_lives(void)
{
    DIR *dir = opendir("/proc/self/task");
    bool found = false;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (f && fgets(name, sizeof name, f))
            found = found || strcmp(name, "keel-failures\n") == 0;
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return found;
}

int main(int argc, char **argv)
{
    bool inside = argc > 1 && strcmp(argv[1], "inside") == 0;
    int before = eventfds(), fd;
    EXPECT(keel_init() == KEEL_OK);
    if (!inside) {
        EXPECT((fd = keel_failure_fd()) >= 0 && keel_failure_fd() == fd);
        EXPECT(keel_on_failure(leave, NULL) == KEEL_OK);
        EXPECT(keel_finalize() == KEEL_OK);
        EXPECT(keel_failure_fd() == -1);
    } else {
        EXPECT(keel_on_failure(leave, NULL) == KEEL_OK);
        keel_segment *pids;
        int64_t pid = getpid();
        EXPECT(keel_segment_alloc(sizeof pid, KEEL_REDUNDANCY_NONE, &pids) == KEEL_OK);
        if (keel_rank() == 1)
            EXPECT(keel_put(pids, 0, 0, &pid, sizeof pid) == KEEL_OK);
        EXPECT(keel_barrier() == KEEL_OK);
        if (keel_rank() == 1)
            for (;;)
                pause();
        EXPECT(keel_get(pids, 0, 0, &pid, sizeof pid) == KEEL_OK);
        kill((pid_t)pid, SIGKILL); /* by then no call of ours is under way: the callback ends Keel */
        while (!finalized || teller_lives())
            usleep(1000);
    }
    int after = eventfds();
    if (after != before)
        fprintf(stderr, "%d eventfds before keel_init, %d after keel_finalize\n", before, after);
    return after != before;
}
