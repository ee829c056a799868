#include "runtime/base/refusal.h"

#include "runtime/base/room.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static atomic_int last;

struct limit {
    int error;
    __rlimit_resource_t resource;
    char letter; /* of ulimit */
    unsigned long long unit;
    const char *unit_name;
    const char *unlimited; /* what else it may be */
};

static const struct limit limits[] = {
    {EAGAIN, RLIMIT_NPROC, 'u', 1, " processes and threads",
     "too many processes or threads; see pids.max of the container"},
    {EFBIG, RLIMIT_FSIZE, 'f', 1024, " KiB", NULL},
    {EMFILE, RLIMIT_NOFILE, 'n', 1, " descriptors", NULL},
    {EAGAIN, RLIMIT_AS, 'v', 1024, " KiB", NULL}, /* a thread's memory */
    {EAGAIN, RLIMIT_DATA, 'd', 1024, " KiB", NULL},
    {ENOMEM, RLIMIT_AS, 'v', 1024, " KiB", NULL},
    {ENOMEM, RLIMIT_DATA, 'd', 1024, " KiB", NULL},
};

void refusal_keep(int error)
{
    atomic_store(&last, error);
}

/* The kernel asks nobody whom root starts processes for. */
static bool binds(const struct limit *l)
{
    return l->resource != RLIMIT_NPROC || geteuid() != 0;
}

const char *refusal_error(int error, char out[REFUSAL_MAX])
{
    int n = snprintf(out, REFUSAL_MAX, "%s", strerror(error));
    uint64_t allowed;
    if (error == EAGAIN && room_processes("", &allowed) == 0) {
        snprintf(out, REFUSAL_MAX, "%s (pids.max of its cgroup is %llu processes and threads)", strerror(error),
                 (unsigned long long)allowed);
        return out;
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0] && n > 0 && n < REFUSAL_MAX; i++) {
        const struct limit *l = &limits[i];
        struct rlimit now;
        if (l->error != error || getrlimit(l->resource, &now) != 0)
            continue;
        if (now.rlim_cur != RLIM_INFINITY && binds(l))
            n += snprintf(out + n, REFUSAL_MAX - (size_t)n, " (ulimit -%c is %llu%s)", l->letter,
                          (unsigned long long)now.rlim_cur / l->unit, l->unit_name);
        else if (l->unlimited)
            n += snprintf(out + n, REFUSAL_MAX - (size_t)n, " (%s)", l->unlimited);
    }
    return out;
}

const char *refusal_locking(int error, char out[REFUSAL_MAX])
{
    struct rlimit locked;
    if (error != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &locked) != 0 || locked.rlim_cur == RLIM_INFINITY)
        return refusal_error(error, out);
    snprintf(out, REFUSAL_MAX, "%s (ulimit -l is %llu KiB of locked memory)", strerror(error),
             (unsigned long long)locked.rlim_cur / 1024);
    return out;
}

const char *refusal_text(keel_status status, char out[REFUSAL_MAX])
{
    char error[REFUSAL_MAX];
    int kept = atomic_load(&last);
    if (status == KEEL_ERR_SYSTEM && kept)
        snprintf(out, REFUSAL_MAX, "%.60s: %.190s", keel_status_text(status), refusal_error(kept, error));
    else
        snprintf(out, REFUSAL_MAX, "%s", keel_status_text(status));
    return out;
}
