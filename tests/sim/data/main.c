/* sim-data: the whole data half under virtual time. Each seed is a system, a program and a series of disasters of its
 * own.
 *
 *   --scenario NAME   (default: random) one of --list, or all of them
 *   --seed N          the first seed (default 1)
 *   --count N         so many seeds from there (default 1)
 *   --keep-going      do not stop at the first breach; say how many there were
 *   --fail-at N       in a scenario "each": only the N-th allocation fails
 *   --kill-on-nomem   there, too: a rank that gets no memory ends by a signal and is started again, not with the job
 *   --whole           each look compares all of every copy, not only what was written since the last one
 *   --points          say how often each fault point was passed
 *   --verbose         say what happens
 *   --trace           and every operation */
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "tests/sim/data/scenarios.h"

static sigjmp_buf crashed;
static volatile sig_atomic_t crash_signal;

static void on_crash(int sig)
{
    crash_signal = sig;
    siglongjmp(crashed, 1);
}

/* An assertion, or worse, is a breach like any other. The memory of that run is given up. */
static bool run_one(const struct setup *s, bool guarded)
{
    if (guarded && sigsetjmp(crashed, 1) != 0) {
        printf("seed %llu: signal %d\n  again: sim-data --scenario %s --seed %llu --verbose\n",
               (unsigned long long)s->seed, (int)crash_signal, s->scenario, (unsigned long long)s->seed);
        fiber_abandon();
        return false;
    }
    return world_run(s);
}

static void guard(void)
{
    static char stack[64 * 1024];
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction sa = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaltstack(&ss, NULL);
    sigaction(SIGABRT, &sa, NULL);
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGFPE, &sa, NULL);
}

struct options {
    const char *scenario;
    unsigned long long seed, count, fail_at;
    bool verbose, trace, keep_going, points, kills, whole;
};

static int usage(void)
{
    fprintf(stderr, "usage: sim-data [--scenario NAME|all] [--seed N] [--count N] [--fail-at N] [--kill-on-nomem] "
                    "[--whole] [--keep-going] "
                    "[--points] [--verbose] [--trace] "
                    "[--list]\n");
    return 2;
}

/* How many breaches; runs: 1, or as many as there are allocations to fail, and one in which none does. */
static unsigned long long run_seed(const struct setup *setup, const struct options *o, unsigned long long *runs)
{
    unsigned long long bad = 0;
    struct setup s = *setup;
    s.verbose = o->verbose;
    s.trace = o->trace;
    s.kills = o->kills;
    s.whole = o->whole;
    if (s.each)
        s.fail_at = o->fail_at ? o->fail_at : 1;
    for (bool more = true; more; s.fail_at++) {
        bool good = run_one(&s, o->keep_going);
        ++*runs;
        bad += !good;
        more = s.each && !o->fail_at && !(good && world_spared) && (good || o->keep_going);
        fflush(stdout);
    }
    return bad;
}

static unsigned long long run_scenario(const struct scenario *sc, const struct options *o)
{
    unsigned long long bad = 0, runs = 0;
    for (unsigned long long seed = o->seed; seed < o->seed + o->count && (!bad || o->keep_going); seed++) {
        struct setup s;
        scenario_setup(sc, seed, &s);
        bad += run_seed(&s, o, &runs);
    }
    if (runs != o->count)
        printf("%s: %llu runs\n", sc->name, runs);
    printf("%s: %llu seeds from %llu, %llu breaches\n", sc->name, o->count, o->seed, bad);
    return bad;
}

int main(int argc, char **argv)
{
    struct options o = {.scenario = "random", .seed = 1, .count = 1};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--scenario") == 0 && more)
            o.scenario = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0 && more)
            o.seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--count") == 0 && more)
            o.count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--fail-at") == 0 && more)
            o.fail_at = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--keep-going") == 0)
            o.keep_going = true;
        else if (strcmp(argv[i], "--kill-on-nomem") == 0)
            o.kills = true;
        else if (strcmp(argv[i], "--whole") == 0)
            o.whole = true;
        else if (strcmp(argv[i], "--points") == 0)
            o.points = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            o.verbose = true;
        else if (strcmp(argv[i], "--trace") == 0)
            o.verbose = o.trace = true;
        else if (strcmp(argv[i], "--list") == 0) {
            for (int k = 0; k < scenarios; k++)
                printf("%-18s %s\n", scenario[k].name, scenario[k].about);
            return 0;
        } else
            return usage();
    }
    mallopt(M_MMAP_THRESHOLD, 64 << 20); /* what one run has had the next one gets again */
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    log_threshold = o.verbose ? LOG_INFO : -1;
    if (o.keep_going)
        guard();
    unsigned long long bad = 0;
    bool any = false;
    for (int k = 0; k < scenarios; k++)
        if (strcmp(o.scenario, "all") == 0 || strcmp(o.scenario, scenario[k].name) == 0) {
            any = true;
            bad += run_scenario(&scenario[k], &o);
        }
    if (!any)
        return usage();
    for (int i = 0; o.points && i < sim_points; i++)
        printf("%-36s %10llu passed %8llu aimed at\n", sim_point[i].name, (unsigned long long)sim_point[i].passed,
               (unsigned long long)sim_point[i].acted);
    return bad > 0;
}
