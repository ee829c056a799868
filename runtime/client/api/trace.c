#include "runtime/client/api/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/limited.h"
#include "runtime/base/log.h"
#include "runtime/client/api/calls.h"

enum traced {
#define STATUS_CALL(name, parameters, arguments) TRACED_##name,
#define VALUE_CALL(result, name, parameters, arguments) TRACED_##name,
#define VOID_CALL(name, parameters, arguments) TRACED_##name,
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
    TRACED
};

/* Of all threads. */
static struct count {
    _Atomic uint64_t calls, errors, ns, longest_ns;
} counts[TRACED];

static const struct api_calls *below;
static char file[4096];
static int traced_rank;
static atomic_bool written;

/* One line for each call that was made, in one write: the ranks' lines do not mix. */
static void write_counts(void)
{
    enum { LINE = 160 };
    static char text[(TRACED + 1) * LINE];
    size_t len = 0;
    if (!file[0] || atomic_exchange(&written, true))
        return;
    for (int i = 0; i < TRACED; i++) {
        const struct count *c = &counts[i];
        if (c->calls)
            len += (size_t)snprintf(text + len, LINE, "%d\t%s\t%" PRIu64 "\t%" PRIu64 "\t%.9f\t%.9f\n", traced_rank,
                                    calls_names[i], c->calls, c->errors, (double)c->ns / (double)KEEL_NS_PER_S,
                                    (double)c->longest_ns / (double)KEEL_NS_PER_S);
    }
    errno = ENOSPC; /* of a write that ends early */
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666); /* it may be a fifo */
    if (fd < 0 || limited_write(fd, text, len) != (ssize_t)len)
        log_warn("KEEL_TRACE_CALLS: %s cannot be written: %s", file, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void made(enum traced which, uint64_t began, bool failed)
{
    uint64_t ns = clock_now_ns() - began,
             longest = atomic_load_explicit(&counts[which].longest_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[which].calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[which].ns, ns, memory_order_relaxed);
    if (failed)
        atomic_fetch_add_explicit(&counts[which].errors, 1, memory_order_relaxed);
    while (ns > longest && !atomic_compare_exchange_weak(&counts[which].longest_ns, &longest, ns))
        ;
    if (which == TRACED_finalize && !failed)
        write_counts();
}

// NOLINTBEGIN(bugprone-macro-parentheses) names, types and lists in parentheses
#define STATUS_CALL(name, parameters, arguments)                                                                       \
    static keel_status trace_##name parameters                                                                         \
    {                                                                                                                  \
        uint64_t began = clock_now_ns();                                                                               \
        keel_status status = below->name arguments;                                                                    \
        made(TRACED_##name, began, status != KEEL_OK && status != KEEL_IN_PROGRESS);                                   \
        return status;                                                                                                 \
    }
#define VALUE_CALL(result, name, parameters, arguments)                                                                \
    static result trace_##name parameters                                                                              \
    {                                                                                                                  \
        uint64_t began = clock_now_ns();                                                                               \
        result value = below->name arguments;                                                                          \
        made(TRACED_##name, began, false);                                                                             \
        return value;                                                                                                  \
    }
#define VOID_CALL(name, parameters, arguments)                                                                         \
    static void trace_##name parameters                                                                                \
    {                                                                                                                  \
        uint64_t began = clock_now_ns();                                                                               \
        below->name arguments;                                                                                         \
        made(TRACED_##name, began, false);                                                                             \
    }
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
// NOLINTEND(bugprone-macro-parentheses)

static const struct api_calls traced = {
#define STATUS_CALL(name, parameters, arguments) .name = trace_##name,
#define VALUE_CALL(result, name, parameters, arguments) .name = trace_##name,
#define VOID_CALL(name, parameters, arguments) .name = trace_##name,
#define NEAR_CALL STATUS_CALL
#include "runtime/client/api/calls.inc"
#undef STATUS_CALL
#undef NEAR_CALL
#undef VALUE_CALL
#undef VOID_CALL
};

void trace_begin(int rank)
{
    const char *name = getenv("KEEL_TRACE_CALLS");
    if (!name || !name[0])
        return;
    if (strlen(name) >= sizeof file) {
        log_warn("KEEL_TRACE_CALLS: %.64s... cannot be written: %s", name, strerror(ENAMETOOLONG));
        return;
    }
    strcpy(file, name); // NOLINT(clang-analyzer-security.insecureAPI.strcpy) it fits
    traced_rank = rank;
    (void)atexit(write_counts); /* a rank may end without keel_finalize */
    below = calls_wrap(&traced);
}

void trace_end(void)
{
    write_counts();
}

void trace_forget(void)
{
    file[0] = 0;
}
