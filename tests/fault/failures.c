/* failures: what <keel/failure.h> says, asked for line by line. Rank 0 reads commands and answers each with one line;
 * the other ranks wait until it is done, and do what it tells them. Its callback prints lines of its own.
 *   node N MS, rank R MS   the verdict
 *   failures EPOCH         EPOCH:RANK@NODE/SIGNAL*DEATHS for each since then
 *   links                  A-B for each
 *   poll MS                is the descriptor readable within that time?
 *   callback, quiet        from here on, and no more
 *   stick R                rank R waits for its child, which no signal ends, until "free"
 *   free R, end R          it goes on; it ends
 *   quit                   all end */
#include <keel/keel.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAILURES_MAX = 64, QUIT = 1, STICK = 2, FREE = 3 };

static void expect(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    printf("%s: %s\n", what, keel_status_name(status));
    fflush(stdout);
    _exit(1);
}

static void told(const keel_failure *f, void *arg)
{
    printf("told %s %d@%d/%d*%d\n", (const char *)arg, f->rank, f->node, f->signal, f->deaths);
    fflush(stdout);
}

static long ms_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

static void verdict(bool node, int who, int ms)
{
    keel_verdict v = KEEL_UNDECIDED;
    keel_status status = node ? keel_node_status(who, ms, &v) : keel_rank_status(who, ms, &v);
    printf("%s\n", status == KEEL_OK ? keel_verdict_name(v) : keel_status_name(status));
}

static void failures(uint64_t since)
{
    keel_failure f[FAILURES_MAX];
    size_t n = 0, again = 0;
    uint64_t epoch = 0;
    keel_status status = keel_failures(since, f, FAILURES_MAX, &n, &epoch);
    printf("failures");
    for (size_t i = 0; status == KEEL_OK && i < n; i++)
        printf(" %d:%d@%d/%d*%d", (int)f[i].epoch, f[i].rank, f[i].node, f[i].signal, f[i].deaths);
    if (status == KEEL_OK && n > 0 && keel_failures(since, f, n - 1, &again, NULL) == KEEL_ERR_LIMIT && again == n)
        printf(" %s",
               keel_failures(epoch, f, FAILURES_MAX, &again, NULL) == KEEL_OK && again == 0 ? "complete" : "more");
    printf("\n");
}

static void links(void)
{
    keel_link l[64];
    size_t n = 0;
    keel_status status = keel_links(l, 64, &n);
    struct timespec zero = {0};
    printf("links");
    for (size_t i = 0; status == KEEL_OK && i < n; i++)
        printf(" %d-%d%s", l[i].a, l[i].b, l[i].since_ns / 1000000 <= (uint64_t)ms_since(&zero) ? "" : " tomorrow");
    printf("\n");
}

static void readable(int ms)
{
    struct pollfd p = {.fd = keel_failure_fd(), .events = POLLIN};
    printf("%s\n", p.fd < 0 ? "none" : poll(&p, 1, ms) > 0 ? "readable" : "not readable");
}

static void command(keel_segment *words, const char *line)
{
    int a = 0, b = 0;
    int64_t word = line[0] == 's' ? STICK : line[0] == 'e' ? QUIT : FREE;
    if (sscanf(line, "node %d %d", &a, &b) == 2) {
        verdict(true, a, b);
    } else if (sscanf(line, "rank %d %d", &a, &b) == 2) {
        verdict(false, a, b);
    } else if (sscanf(line, "failures %d", &a) == 1) {
        failures((uint64_t)a);
    } else if (strcmp(line, "links") == 0) {
        links();
    } else if (sscanf(line, "poll %d", &a) == 1) {
        readable(a);
    } else if (strncmp(line, "callback ", 9) == 0) {
        printf("%s\n", keel_status_name(keel_on_failure(told, strdup(line + 9))));
    } else if (strcmp(line, "quiet") == 0) {
        printf("%s\n", keel_status_name(keel_on_failure(NULL, NULL)));
    } else if (sscanf(line, "stick %d", &a) == 1 || sscanf(line, "free %d", &a) == 1 ||
               sscanf(line, "end %d", &a) == 1) {
        printf("%s\n", keel_status_name(keel_put(words, a, 0, &word, sizeof word)));
    } else {
        printf("what is %s?\n", line);
    }
    fflush(stdout);
}

/* The parent of vfork waits for its child where no signal reaches it. */
static void stick(keel_segment *words)
{
    /* NOLINTBEGIN(clang-analyzer-*ork): to be stuck is what is wanted */
    if (vfork() != 0)
        return;
    int64_t word = STICK;
    while (word == STICK) {
        struct timespec ms = {.tv_nsec = 1000000};
        nanosleep(&ms, NULL);
        if (keel_get(words, keel_rank(), 0, &word, sizeof word) != KEEL_OK)
            break;
    }
    /* NOLINTEND(clang-analyzer-*ork) */
    _exit(0);
}

static void obey(keel_segment *words)
{
    int64_t word = 0;
    while (word != QUIT) {
        usleep(2000);
        expect(keel_get(words, keel_rank(), 0, &word, sizeof word), "get");
        if (word == STICK)
            stick(words);
    }
}

int main(void)
{
    keel_segment *words;
    keel_verdict v;
    size_t n;
    bool early = keel_node_count() == 0 && keel_failure_fd() == -1 && keel_node_status(0, 0, &v) == KEEL_ERR_STATE &&
                 keel_rank_status(0, 0, &v) == KEEL_ERR_STATE &&
                 keel_failures(0, NULL, 0, &n, NULL) == KEEL_ERR_STATE &&
                 keel_on_failure(told, NULL) == KEEL_ERR_STATE && keel_links(NULL, 0, &n) == KEEL_ERR_STATE;
    expect(keel_init(), "init");
    expect(keel_segment_alloc(sizeof(int64_t), KEEL_REDUNDANCY_SHADOW, &words), "alloc");
    if (keel_restarted())
        expect(keel_resume(NULL), "resume");
    if (keel_rank() == 0) {
        char line[128];
        printf("%s %d\n", early ? "ready" : "a call before keel_init is not refused", keel_node_count());
        fflush(stdout);
        while (fgets(line, sizeof line, stdin) && (line[strcspn(line, "\n")] = '\0', strcmp(line, "quit") != 0))
            command(words, line);
        int64_t word = QUIT;
        for (int r = 1; r < keel_size(); r++)
            expect(keel_put(words, r, 0, &word, sizeof word), "put");
    } else {
        obey(words);
    }
    expect(keel_finalize(), "finalize");
    if (keel_rank() == 0) {
        printf("end %d\n", keel_failure_fd());
        fflush(stdout);
    }
    return 0;
}
