/* Clocks. Each thread's goes on by a tick at each reading and by what it sleeps; that of a process's first thread
 * is the rank's, and what replicas agree on (where the program uses Keel) sets it on. It never goes back. */
#include "runtime/world/world.h"

#include "runtime/world/pace.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TICK_NS = 40,         /* what a reading takes: who looks at the clock until it is late waits as long as always */
    PROGRAM_NS = 1000000, /* what starting a program takes, likewise */
    HERTZ = 100
};

const struct world_hooks *_Atomic world_hooks;
static struct pace pace; /* of the thread that may agree */

static __thread uint64_t mine __attribute__((tls_model("initial-exec")));
static __thread int first __attribute__((tls_model("initial-exec"))); /* 0: not known, 1: of its process, 2: not */

WORLD_API world_join_fn keel_world_join;
WORLD_API world_met_fn keel_world_met;
WORLD_API world_clock_fn keel_world_clock;
WORLD_API world_place_fn keel_world_place;
WORLD_API world_go_on_fn keel_world_go_on;

void keel_world_join(const struct world_hooks *hooks)
{
    pace_begin(&pace);
    atomic_store(&world_hooks, hooks);
}

void keel_world_met(void)
{
    pace_begin(&pace);
}

int keel_world_clock(clockid_t clock, struct timespec *now)
{
    return NEXT(clock_gettime)(clock, now);
}

uint64_t world_host_clock(clockid_t clock)
{
    struct timespec t;
    (void)NEXT(clock_gettime)(clock, &t);
    return world_ns(&t);
}

void world_clock_forked(void)
{
    first = 1;
    atomic_store(&world_hooks, NULL); /* the child is no rank */
}

static uint64_t host_since(const struct world_page *page)
{
    return world_host_clock(CLOCK_MONOTONIC) - (uint64_t)page->true_ns;
}

void keel_world_place(struct world_place *out)
{
    struct world_page *page = world_page();
    *out = (struct world_place){.shared = page && page->files};
    if (!page)
        return;
    out->written = atomic_load(&page->written_len) != 0;
    out->elapsed_ns = atomic_load(&page->elapsed_ns);
    out->agreed_ns = pace.last_ns;
    out->stride = pace.stride;
    out->left = pace.left;
    out->true_ns = host_since(page);
    out->streams = atomic_load(&page->streams);
    out->block = world_random_block();
}

/* Also back: what this process has seen of its own is nobody's. */
void keel_world_go_on(const struct world_place *place)
{
    struct world_page *page = world_page();
    if (!page)
        return;
    mine = place->elapsed_ns;
    atomic_store(&page->elapsed_ns, place->elapsed_ns);
    page->true_ns = (int64_t)(world_host_clock(CLOCK_MONOTONIC) - place->true_ns);
    pace = (struct pace){.stride = place->stride, .left = place->left, .last_ns = place->agreed_ns};
    atomic_store(&page->streams, place->streams);
    world_random_go_on(place->block);
}

static bool is_first(void)
{
    if (!first)
        first = NEXT(syscall)(SYS_gettid) == NEXT(syscall)(SYS_getpid) ? 1 : 2;
    return first == 1;
}

static void to_at_least(_Atomic uint64_t *at, uint64_t ns)
{
    uint64_t now = atomic_load(at);
    while (now < ns && !atomic_compare_exchange_weak(at, &now, ns))
        ;
}

static uint64_t go_on(struct world_page *page, uint64_t by)
{
    uint64_t rank = atomic_load(&page->elapsed_ns);
    if (is_first()) {
        mine = (mine > rank ? mine : rank) + by;
        to_at_least(&page->elapsed_ns, mine);
    } else { /* it must not set on the rank's, as nobody knows which of them is first */
        mine = mine + by > rank ? mine + by : rank;
    }
    return mine;
}

static void agree(struct world_page *page)
{
    const struct world_hooks *hooks = atomic_load(&world_hooks);
    uint64_t agreed;
    if (!hooks || !hooks->may() || !pace_is_due(&pace))
        return;
    if (!hooks->agree(host_since(page), &agreed))
        return;
    pace_agreed(&pace, agreed);
    to_at_least(&page->elapsed_ns, agreed);
}

uint64_t world_elapsed(void)
{
    struct world_page *page = world_page();
    agree(page);
    return go_on(page, TICK_NS);
}

void world_slept(uint64_t ns)
{
    (void)go_on(world_page(), ns);
}

void world_slept_until(uint64_t elapsed_ns)
{
    if (elapsed_ns > mine)
        (void)go_on(world_page(), elapsed_ns - mine);
}

__attribute__((constructor)) static void program_begins(void)
{
    struct world_page *page = world_of_clocks();
    if (page)
        (void)go_on(page, PROGRAM_NS);
}

/* ---- what a program calls ---- */

static uint64_t reading(const struct world_page *page, clockid_t clock)
{
    uint64_t elapsed = world_elapsed();
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI:
        return (uint64_t)page->began_ns + elapsed;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        return WORLD_MONOTONIC_S * 1000000000UL + elapsed;
    default:
        return elapsed; /* of a process or a thread */
    }
}

WORLD_API int clock_gettime(clockid_t clock, struct timespec *now)
{
    struct world_page *page = CLOCK_FOR_CALLER();
    if (!page)
        return NEXT(clock_gettime)(clock, now);
    *now = world_timespec(reading(page, clock));
    return 0;
}

WORLD_API int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct world_page *page = CLOCK_FOR_CALLER();
    if (!page)
        return NEXT(gettimeofday)(now, zone);
    if (zone)
        memset(zone, 0, sizeof(struct timezone));
    struct timespec t = world_timespec(reading(page, CLOCK_REALTIME));
    *now = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

WORLD_API time_t time(time_t *out)
{
    struct world_page *page = CLOCK_FOR_CALLER();
    time_t now = page ? (time_t)(reading(page, CLOCK_REALTIME) / 1000000000) : NEXT(time)(NULL);
    if (out)
        *out = now;
    return now;
}

WORLD_API int timespec_get(struct timespec *now, int base)
{
    struct world_page *page = CLOCK_FOR_CALLER();
    if (!page || base != TIME_UTC)
        return NEXT(timespec_get)(now, base);
    *now = world_timespec(reading(page, CLOCK_REALTIME));
    return base;
}

WORLD_API clock_t clock(void)
{
    struct world_page *page = WORLD_FOR_CALLER();
    return page ? (clock_t)(reading(page, CLOCK_PROCESS_CPUTIME_ID) / (1000000000 / CLOCKS_PER_SEC)) : NEXT(clock)();
}

WORLD_API clock_t times(struct tms *out)
{
    struct world_page *page = WORLD_FOR_CALLER();
    if (!page)
        return NEXT(times)(out);
    uint64_t now = reading(page, CLOCK_MONOTONIC);
    if (out)
        *out = (struct tms){.tms_utime = (clock_t)((now - WORLD_MONOTONIC_S * 1000000000UL) / (1000000000 / HERTZ))};
    return (clock_t)(now / (1000000000 / HERTZ));
}

WORLD_API int getrusage(__rusage_who_t who, struct rusage *out)
{
    struct world_page *page = WORLD_FOR_CALLER();
    int rc = NEXT(getrusage)(who, out);
    if (!page || rc != 0)
        return rc;
    struct timespec t = world_timespec(reading(page, CLOCK_PROCESS_CPUTIME_ID));
    memset(out, 0, sizeof *out);
    out->ru_utime = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

WORLD_API int sysinfo(struct sysinfo *out)
{
    struct world_page *page = WORLD_FOR_CALLER();
    int rc = NEXT(sysinfo)(out);
    if (!page || rc != 0)
        return rc;
    *out = (struct sysinfo){.uptime = (long)(reading(page, CLOCK_MONOTONIC) / 1000000000),
                            .totalram = out->totalram,
                            .freeram = out->totalram / 2,
                            .totalswap = out->totalswap,
                            .freeswap = out->totalswap,
                            .procs = 1,
                            .totalhigh = out->totalhigh,
                            .freehigh = out->totalhigh,
                            .mem_unit = out->mem_unit};
    return 0;
}

WORLD_API int getloadavg(double *out, int count)
{
    if (!WORLD_FOR_CALLER())
        return NEXT(getloadavg)(out, count);
    count = count > 3 ? 3 : count;
    for (int i = 0; i < count; i++)
        out[i] = 0;
    return count;
}
