/* notify soon: keel_finalize right after the thread that tells of failures was made, which may not have run yet.
 * notify inside: keel_finalize in the callback; afterwards no descriptor of it is left. Two ranks, of which the second dies.
 * Exit 0 if all is right. */
#include <keel/keel.h>

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d, line %d: " #condition "\n", keel_rank(), __LINE__);                              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static atomic_bool finalized;

static void leave(const keel_failure *failure, void *arg)
{
    (void)failure;
    (void)arg;
    EXPECT(keel_finalize() == KEEL_OK);
    EXPECT(keel_failure_fd() == -1);
    finalized = true;
}

/* What is in a folder of /proc/self; of links only those to where. */
static int entries(const char *path, const char *where)
{
    DIR *dir = opendir(path);
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char target[256];
        ssize_t len = where ? readlinkat(dirfd(dir), e->d_name, target, sizeof target - 1) : 0;
        target[len > 0 ? len : 0] = '\0';
        n += !where || strcmp(target, where) == 0;
    }
    if (dir)
        closedir(dir);
    return n;
}

static int eventfds(void)
{
    return entries("/proc/self/fd", "anon_inode:[eventfd]");
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
        EXPECT(keel_barrier() == KEEL_OK);
        if (keel_rank() == 1)
            raise(SIGKILL);
        while (!finalized || entries("/proc/self/task", NULL) > 3) /* ".", "..", and us: the thread has ended */
            usleep(1000);
    }
    int after = eventfds();
    if (after != before)
        fprintf(stderr, "%d eventfds before keel_init, %d after keel_finalize\n", before, after);
    return after != before;
}
