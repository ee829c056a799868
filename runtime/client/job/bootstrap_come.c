/* Who has come to keel_init, where no keelrun knows it. Each process that waits for the others shows its rank by a name
 * in the kernel's list of unix sockets; after a while the lowest of a host says which ranks of it are here, and that
 * the others are not. A name that a stranger takes makes that line wrong and nothing else. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/client/job/bootstrap.h"

enum { NAME = 100, LINE = 400, RANKS_SHOWN = 6 };
static const unsigned due_s[] = {5, 60, 600, 3600};

struct bootstrap_coming {
    int rank, size, fd;
    char name[NAME]; /* of all of them, without the rank */
    uint64_t begun_ns;
    bool told;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool end; /* lock */
};

/* ---- who is here ---- */

static int show(const char *name, int rank)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s%d", name, rank);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, len) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Sets here[rank] of those that wait on this host. */
static void look(const struct bootstrap_coming *c, bool *here)
{
    char line[512], at_name[NAME + 1];
    FILE *f = fopen("/proc/net/unix", "re");
    snprintf(at_name, sizeof at_name, "@%s", c->name);
    here[c->rank] = true;
    while (f && fgets(line, sizeof line, f)) {
        const char *name = strstr(line, at_name);
        long rank = name ? strtol(name + strlen(at_name), NULL, 10) : -1;
        if (rank >= 0 && rank < c->size)
            here[rank] = true;
    }
    if (f)
        fclose(f);
}

/* ---- what is said ---- */

/* "rank 3", "ranks 0-3 and 8", "ranks 0, 2, 4, 6, 8, 10 and 60 more": those of which here[] is `which` */
static size_t list(char *out, size_t size, const bool *here, bool which, int ranks)
{
    int n = 0, shown = 0, runs = 0;
    for (int r = 0; r < ranks; r++)
        n += here[r] == which;
    size_t len = (size_t)snprintf(out, size, n == 1 ? "rank " : "ranks ");
    for (int r = 0, end; r < ranks && shown < n && len < size; r = end + 1) {
        for (end = r; end < ranks && here[end] == which; end++)
            ;
        if (end == r)
            continue;
        if (runs++ == RANKS_SHOWN)
            return len + (size_t)snprintf(out + len, size - len, " and %d more", n - shown);
        const char *comma = runs == 1 ? "" : shown + (end - r) == n ? " and " : ", ";
        len += (size_t)snprintf(out + len, size - len, end - r > 1 ? "%s%d-%d" : "%s%d", comma, r, end - 1);
        shown += end - r;
    }
    return len;
}

static bool is_lowest(const struct bootstrap_coming *c, const bool *here)
{
    for (int r = 0; r < c->rank; r++)
        if (here[r])
            return false;
    return true;
}

static void tell(struct bootstrap_coming *c, unsigned seconds)
{
    char missing[LINE / 2], come[LINE / 2];
    bool *here = calloc((size_t)c->size, sizeof *here);
    if (!here)
        return;
    look(c, here);
    if (is_lowest(c, here)) {
        list(come, sizeof come, here, true, c->size);
        list(missing, sizeof missing, here, false, c->size);
        fprintf(stderr,
                "keel_init: has waited %u s for all %d processes to call it: on this host %s did; not here: %s\n",
                seconds, c->size, come, missing);
        c->told = true;
    }
    free(here);
}

static void *watch(void *arg)
{
    struct bootstrap_coming *c = arg;
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < sizeof due_s / sizeof due_s[0] && !c->end; i++) {
        uint64_t at = c->begun_ns + due_s[i] * KEEL_NS_PER_S;
        struct timespec until = {.tv_sec = (time_t)(at / KEEL_NS_PER_S), .tv_nsec = (long)(at % KEEL_NS_PER_S)};
        while (!c->end && pthread_cond_timedwait(&c->ended, &c->lock, &until) != ETIMEDOUT)
            ;
        if (!c->end)
            tell(c, due_s[i]);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- begin and end ---- */

struct bootstrap_coming *bootstrap_coming_begin(const struct keel_exchange *e)
{
    struct bootstrap_coming *c = calloc(1, sizeof *c);
    const char *space = pmi_exchange_space();
    sigset_t all, old;
    if (!c || e->size < 2) {
        free(c);
        return NULL;
    }
    c->rank = e->rank;
    c->size = e->size;
    c->begun_ns = clock_now_ns();
    if (*space)
        snprintf(c->name, sizeof c->name, "keel-init-%u-%.60s-", (unsigned)geteuid(), space);
    else /* processes of a host have one parent, if nothing stands between */
        snprintf(c->name, sizeof c->name, "keel-init-%u-%d-", (unsigned)geteuid(), (int)getppid());
    c->fd = show(c->name, c->rank);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->ended, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&c->lock, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int failed = pthread_create(&c->thread, NULL, watch, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed)
        return c;
    if (c->fd >= 0)
        close(c->fd);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL; /* nobody tells */
}

void bootstrap_coming_end(struct bootstrap_coming *c, bool good)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->end = true;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    if (c->told && good)
        fprintf(stderr, "keel_init: all %d processes have called it after %llu s\n", c->size,
                (unsigned long long)((clock_now_ns() - c->begun_ns) / KEEL_NS_PER_S));
    if (c->fd >= 0)
        close(c->fd);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
