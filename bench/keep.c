/* keep [MIB [ROUNDS]]: what keel_keep_commit takes for MIB of each rank, when all pages have changed, one of a hundred,
 * and none; beside memcpy of the same memory, and beside the faults that finding out the same pages by write protection
 * would take (mprotect, a handler of SIGSEGV that lets a page be written and notes it; nothing is sent). Milliseconds,
 * medians, of rank 0. */
#include <keel/keel.h>

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

enum { PAGE = 4096, MIB = 1024 * 1024, ROUNDS_MAX = 101 };

static uint8_t *memory, *copy, *caught;
static size_t bytes;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *ms, int n)
{
    qsort(ms, (size_t)n, sizeof *ms, by_size);
    return ms[n / 2];
}

/* A word of each every-th page gets a value that it never had; every 0: of none. */
static void change(size_t every)
{
    static uint64_t by = UINT64_MAX / 2;
    by++;
    for (size_t at = 0; every && at < bytes; at += every * PAGE)
        memcpy(memory + at + by % 500 * 8, &by, sizeof by);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
    caught[(page - (uintptr_t)memory) / PAGE] = 1;
    mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static double protected_ms(size_t every, int rounds)
{
    double ms[ROUNDS_MAX];
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGSEGV, &action, &before);
    for (int i = 0; i < rounds; i++) {
        double begin = now();
        change(every);
        double without = now() - begin;
        begin = now();
        mprotect(memory, bytes, PROT_READ);
        change(every);
        mprotect(memory, bytes, PROT_READ | PROT_WRITE);
        ms[i] = now() - begin - without;
    }
    sigaction(SIGSEGV, &before, NULL);
    return median(ms, rounds);
}

static double committed_ms(size_t every, int rounds, uint64_t *version)
{
    double ms[ROUNDS_MAX];
    for (int i = -2; i < rounds; i++) { /* the first two bring both slots to what is there */
        change(every);
        CHECK(keel_barrier());
        double begin = now();
        CHECK(keel_keep_commit(++*version));
        if (i >= 0)
            ms[i] = now() - begin;
    }
    return median(ms, rounds);
}

static double copied_ms(int rounds)
{
    double ms[ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        change(1);
        CHECK(keel_barrier());
        double begin = now();
        memcpy(copy, memory, bytes);
        ms[i] = now() - begin;
    }
    return median(ms, rounds);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t every;
    } kinds[] = {{"all pages", 1}, {"1 % of pages", 100}, {"none", 0}};
    size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 64;
    int rounds = argc > 2 ? atoi(argv[2]) : 21;
    uint64_t version = 0;
    if (rounds < 1 || rounds > ROUNDS_MAX || !mib) {
        fprintf(stderr, "usage: keep [MIB [ROUNDS]], 1 to %d rounds\n", ROUNDS_MAX);
        return 2;
    }
    bytes = mib * MIB;
    CHECK(keel_init());
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    copy = malloc(bytes);
    caught = calloc(bytes / PAGE, 1);
    if (memory == MAP_FAILED || !copy || !caught)
        return 1;
    memset(memory, 1, bytes);
    memset(copy, 1, bytes);
    CHECK(keel_keep_room(bytes));
    CHECK(keel_keep("memory", memory, bytes));
    CHECK(keel_keep_restore(&version, NULL));
    double plain = copied_ms(rounds);
    if (keel_rank() == 0)
        printf("%zu MiB a rank, %d ranks; memcpy: %.2f ms\n%14s%12s%12s%12s\n", mib, keel_size(), plain, "changed",
               "commit", "of memcpy", "faults");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double commit = committed_ms(kinds[i].every, rounds, &version), faults = protected_ms(kinds[i].every, rounds);
        if (keel_rank() == 0)
            printf("%14s%9.2f ms%12.2f%9.2f ms\n", kinds[i].name, commit, commit / plain, faults);
    }
    fflush(stdout);
    CHECK(keel_finalize());
    munmap(memory, bytes);
    free(copy);
    free(caught);
    return 0;
}
