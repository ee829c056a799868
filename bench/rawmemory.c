/* Plain memory, and one cache line between two processes. */
#include "bench/rawlib.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void store_call(uint64_t value)
{
    sink = value;
    __asm__ volatile("" ::: "memory");
}

double raw_store_call_ns(void)
{
    enum { CALLS = 1000000 };
    double ns[RAW_BATCHES];
    for (int i = 0; i < RAW_BATCHES; i++) {
        double start = raw_now_us();
        for (uint64_t k = 0; k < CALLS; k++)
            store_call(k);
        ns[i] = (raw_now_us() - start) * 1e3 / CALLS;
    }
    return raw_median(ns, RAW_BATCHES);
}

double raw_memcpy_ns(size_t size, bool cold)
{
    size_t span = cold ? 256u << 20 : size, step = (size + 63) & ~(size_t)63;
    uint8_t *from = malloc(span + step), *to = malloc(span + step);
    double ns[RAW_BATCHES];
    if (!from || !to) {
        free(from);
        free(to);
        return 0;
    }
    memset(from, 1, span + step);
    memset(to, 2, span + step);
    size_t at = 0;
    int copies = size < 4096 ? 20000 : (int)((128u << 20) / size);
    for (int i = 0; i < RAW_BATCHES; i++) {
        double start = raw_now_us();
        for (int k = 0; k < copies; k++) {
            memcpy(to + at, from + at, size);
            __asm__ volatile("" ::: "memory");
            at = cold && at + 2 * step <= span ? at + step : 0;
        }
        ns[i] = (raw_now_us() - start) * 1e3 / copies;
    }
    free(from);
    free(to);
    return raw_median(ns, RAW_BATCHES);
}

struct line {
    _Alignas(64) _Atomic uint64_t value;
};

double raw_pingpong_ns(void)
{
    enum { ROUNDS = 50000 };
    struct line *line = mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (line == MAP_FAILED)
        return 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint64_t next = 1;; next += 2) {
            while (atomic_load_explicit(&line->value, memory_order_acquire) != next)
                ;
            atomic_store_explicit(&line->value, next + 1, memory_order_release);
        }
    }
    double ns[RAW_BATCHES] = {0};
    uint64_t next = 0;
    for (int i = 0; pid > 0 && i < RAW_BATCHES; i++) {
        double start = raw_now_us();
        for (int k = 0; k < ROUNDS; k++, next += 2) {
            atomic_store_explicit(&line->value, next + 1, memory_order_release);
            while (atomic_load_explicit(&line->value, memory_order_acquire) != next + 2)
                ;
        }
        ns[i] = (raw_now_us() - start) * 1e3 / ROUNDS;
    }
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    munmap(line, sizeof(*line));
    return raw_median(ns, RAW_BATCHES);
}
