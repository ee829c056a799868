/* What a program sees of the world is the same in all replicas: it prints and sends it, and writes files in the folder
 * of its first argument; with "_exit" as the second one a replica of rank 0 ends so. KEEL_TEST_DIE=SET: that of
 * this set is killed while it writes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include <keel/keel.h>

#include "runtime/base/world_page.h"

static keel_segment *segment;
static int rank, size;

static void need(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "rank %d: %s: %s\n", rank, what, strerror(errno));
        keel_abort(1, what);
    }
}

/* It differs in no replica, or the next fence tells. */
static void send_it(const char *what, const void *bytes, size_t len)
{
    static size_t at;
    need(keel_put(segment, (rank + 1) % size, at, bytes, len) == KEEL_OK, what);
    at = (at + 64) % 2048;
    need(keel_fence_all() == KEEL_OK, what);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    need(clock_gettime(clock, &t) == 0, "clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void clocks(void)
{
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < 2000; i++) {
        uint64_t now = now_ns(CLOCK_MONOTONIC);
        need(now >= before, "the clock went back");
        before = now;
        if (i % 100 == 0)
            send_it("a clock", &now, sizeof now);
    }
    struct timeval day;
    need(gettimeofday(&day, NULL) == 0, "gettimeofday");
    send_it("the time of day", &day, sizeof day);
    int64_t seconds = time(NULL), cpu = clock();
    send_it("the seconds", &seconds, sizeof seconds);
    send_it("processor time", &cpu, sizeof cpu);
    need(llabs(seconds - day.tv_sec) <= 1, "two clocks differ");
    printf("rank %d: %" PRIu64 " %ld.%06ld\n", rank, before, (long)day.tv_sec, (long)day.tv_usec);
}

static void sleeps(void)
{
    const struct timespec nap = {0, 50000000};
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    need(nanosleep(&nap, NULL) == 0, "nanosleep");
    uint64_t after = now_ns(CLOCK_MONOTONIC);
    need(after - before >= 50000000, "a nap took no time");
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t from = (uint64_t)until.tv_sec * 1000000000 + (uint64_t)until.tv_nsec;
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    need(pthread_cond_timedwait(&never, &lock, &until) == ETIMEDOUT, "a wait with a limit");
    pthread_mutex_unlock(&lock);
    need(now_ns(CLOCK_REALTIME) - from >= 50000000, "a wait took no time");
}

static void names(void)
{
    char host[65] = "", random[32];
    struct utsname system;
    need(gethostname(host, sizeof host) == 0 && uname(&system) == 0, "a name");
    need(strcmp(host, system.nodename) == 0, "two names");
    need(getrandom(random, sizeof random, 0) == sizeof random, "getrandom");
    send_it("random bytes", random, sizeof random);
    FILE *f = fopen("/dev/urandom", "r");
    need(f && fread(random, 1, sizeof random, f) == sizeof random, "/dev/urandom");
    fclose(f);
    send_it("random bytes of a file", random, sizeof random);
    need(kill(getpid(), 0) == 0 && getpid() != 1, "its own number");
    printf("rank %d: %s %d %d %02x%02x\n", rank, host, (int)getpid(), (int)getppid(), random[0] & 255, random[1] & 255);
}

static const char *in(const char *folder, const char *name)
{
    static char path[2][600];
    static int next;
    next ^= 1;
    snprintf(path[next], sizeof path[next], "%s/%s.%d", folder, name, rank);
    return path[next];
}

/* As nothing that a program asks says. */
static int own_set(void)
{
    int32_t set = -1;
    need(pread(WORLD_FD, &set, sizeof set, offsetof(struct world_page, set)) == sizeof set, "its set");
    return set;
}

static void files(const char *folder, const char *deadly)
{
    char text[32] = "";
    /* what was there: "old", which is read, then overwritten in the middle, and read back */
    int fd = open(in(folder, "both"), O_RDWR);
    need(fd >= 0 && read(fd, text, 3) == 3 && strcmp(text, "old") == 0, "what was there");
    need(pwrite(fd, "new", 3, 0) == 3 && pread(fd, text, 3, 0) == 3 && strcmp(text, "new") == 0, "what was written");
    FILE *log = fopen(in(folder, "log"), "a");
    need(log != NULL, "a file to append to");
    for (int i = 0; i < 200; i++) {
        fprintf(log, "line %d\n", i);
        fflush(log);
        if (i % 20 == 0)
            send_it("a line", &i, sizeof i);
        if (i == 100 && rank == 0 && deadly && atoi(deadly) == own_set())
            kill(getpid(), SIGKILL);
    }
    fclose(log);
    close(fd);
    fd = open(in(folder, "made"), O_WRONLY | O_CREAT | O_EXCL, 0644);
    need(fd >= 0 && write(fd, "made\n", 5) == 5, "a new file");
    close(fd);
    need(open(in(folder, "made"), O_WRONLY | O_CREAT | O_EXCL, 0644) < 0 && errno == EEXIST, "a file twice");
    need(rename(in(folder, "made"), in(folder, "renamed")) == 0, "rename");
    need(access(in(folder, "made"), F_OK) != 0 && access(in(folder, "renamed"), R_OK) == 0, "what was renamed");
    need(unlink(in(folder, "away")) == 0 && access(in(folder, "away"), F_OK) != 0, "unlink");
    struct stat s;
    need(stat(in(folder, "log"), &s) == 0, "stat");
    int64_t bytes = s.st_size;
    send_it("a size", &bytes, sizeof bytes);
    char folder_of[640];
    snprintf(folder_of, sizeof folder_of, "%s/folder.%d", folder, rank);
    need(mkdir(folder_of, 0755) == 0, "mkdir");
    need(mkdir(folder_of, 0755) != 0 && errno == EEXIST, "mkdir twice");
}

/* Ways to a file that are no write by its path. */
static void ways(const char *folder)
{
    const char *path = in(folder, "ways");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644), other = dup(fd);
    need(fd >= 0 && other >= 0 && write(other, "0123456789", 10) == 10 && close(other) == 0, "a descriptor twice");
    need(truncate(path, 8) == 0 && lseek(fd, 0, SEEK_END) == 8, "truncate");
    char *mapped = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(mapped != MAP_FAILED, "mmap");
    memcpy(mapped, "abc", 3);
    need(munmap(mapped, 8) == 0, "munmap");
    int from = open(path, O_RDONLY);
    off_t at = 0;
    need(sendfile(fd, from, &at, 4) == 4 && lseek(fd, 0, SEEK_CUR) == 12, "sendfile");
    off64_t in_at = 0;
    need(copy_file_range(from, &in_at, fd, NULL, 2, 0) == 2, "copy_file_range");
    close(from);
    close(fd);
    int at_folder = open(folder, O_RDONLY | O_DIRECTORY);
    char name[64], spare[64], moved[64];
    snprintf(name, sizeof name, "ways.%d", rank);
    snprintf(spare, sizeof spare, "spare.%d", rank);
    snprintf(moved, sizeof moved, "moved.%d", rank);
    fd = openat(at_folder, spare, O_WRONLY | O_CREAT, 0644);
    need(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0, "openat");
    need(renameat(at_folder, spare, at_folder, moved) == 0 && unlinkat(at_folder, moved, 0) == 0, "renameat");
    fd = openat(at_folder, ".", O_TMPFILE | O_RDWR, 0600);
    need(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0, "a file without a name");
    struct utimbuf times = {12345, 12345};
    struct stat s;
    need(utime(path, &times) == 0 && stat(path, &s) == 0 && s.st_mtime == 12345, "utime");
    need(fstatat(at_folder, name, &s, 0) == 0 && s.st_size == 14, "fstatat");
    close(at_folder);
}

/* Names that the C library makes. */
static void temporaries(const char *folder)
{
    char name[640], file[700];
    snprintf(name, sizeof name, "%s/t%d-XXXXXX", folder, rank);
    need(mkdtemp(name) != NULL, "mkdtemp");
    send_it("the name of a folder", name + strlen(name) - 6, 6);
    snprintf(file, sizeof file, "%s/x", name);
    int fd = open(file, O_WRONLY | O_CREAT, 0644);
    need(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0, "a file in it");
}

/* Processes that the rank starts write as it does. */
static void children(const char *folder)
{
    char command[700], text[16] = "";
    snprintf(command, sizeof command, "echo child >>'%s'; cat '%s'; exit 3", in(folder, "child"), in(folder, "child"));
    FILE *from = popen(command, "r");
    need(from && fgets(text, sizeof text, from) && strcmp(text, "child\n") == 0, "what a child says");
    int status = pclose(from);
    need(WIFEXITED(status) && WEXITSTATUS(status) == 3, "how a child ends");
    snprintf(command, sizeof command, "echo again >>'%s'", in(folder, "child"));
    need(system(command) == 0, "system");
    char *args[] = {"sh", "-c", command, NULL};
    pid_t child;
    need(posix_spawnp(&child, "sh", NULL, NULL, args, environ) == 0 && waitpid(child, &status, 0) == child,
         "posix_spawn");
    need(status == 0, "how it ends");
    child = fork();
    if (child == 0) {
        int fd = open(in(folder, "child"), O_WRONLY | O_APPEND);
        _exit(fd >= 0 && write(fd, "forked\n", 7) == 7 ? 0 : 1);
    }
    need(waitpid(child, &status, 0) == child && status == 0, "a fork");
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL, *end = argc > 2 ? argv[2] : "";
    if (keel_init() != KEEL_OK)
        return 2;
    rank = keel_rank();
    size = keel_size();
    need(keel_segment_alloc(4096, KEEL_REDUNDANCY_NONE, &segment) == KEEL_OK, "a segment");
    clocks();
    if (strcmp(end, "_exit") == 0 && rank == 0 && own_set() == 1)
        _exit(0);
    sleeps();
    names();
    if (folder && *folder) {
        files(folder, getenv("KEEL_TEST_DIE"));
        ways(folder);
        temporaries(folder);
        children(folder);
    }
    need(keel_finalize() == KEEL_OK, "the end");
    return 0;
}
