#include "runtime/base/log.h"

#include "runtime/base/clock.h"
#include "runtime/base/limited.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int log_threshold = LOG_WARN;
static char log_who[48] = "keel";
static void (*log_line)(void *user, const char *line, size_t len);
static void *log_user;
static bool log_has_no_time;
static char *log_kept;
static size_t log_kept_size;

static const char *const level_name[] = {"error", "warn", "info", "debug", "trace"};

/* -1: KEEL_LOG is not set, or is none. */
static int level_wanted(void)
{
    const char *wanted = getenv("KEEL_LOG");
    for (int i = 0; wanted && i <= LOG_TRACE; i++)
        if (strcmp(wanted, level_name[i]) == 0)
            return i;
    return -1;
}

void log_init(const char *who)
{
    snprintf(log_who, sizeof log_who, "%s", who);
    int wanted = level_wanted();
    if (wanted >= 0)
        log_threshold = wanted;
}

void log_check_level(void)
{
    const char *text = getenv("KEEL_LOG");
    if (text && level_wanted() < 0)
        log_warn("KEEL_LOG='%s' is none of error, warn, info, debug, trace; using warn", text);
}

void log_without_time(void)
{
    log_has_no_time = true;
}

void log_to(void (*write_line)(void *user, const char *line, size_t len), void *user)
{
    log_line = write_line;
    log_user = user;
}

void log_keep_errors(char *first, size_t size)
{
    log_kept = first;
    log_kept_size = size;
    if (first)
        first[0] = 0;
}

static bool keep(enum log_level level, const char *fmt, va_list ap)
{
    if (level != LOG_ERROR || !log_kept)
        return false;
    if (!log_kept[0])
        vsnprintf(log_kept, log_kept_size, fmt, ap);
    return true;
}

bool log_some_may(struct log_some *s, uint64_t now_ns, unsigned *left_out)
{
    uint64_t window = 1 + now_ns / (LOG_SOME_S * KEEL_NS_PER_S), before = atomic_load(&s->window);
    if (window != before && atomic_compare_exchange_strong(&s->window, &before, window))
        atomic_store(&s->said, before ? LOG_SOME_AT_ONCE - 1 : 0);
    if (atomic_fetch_add(&s->said, 1) >= LOG_SOME_AT_ONCE) {
        atomic_fetch_add(&s->left_out, 1);
        return false;
    }
    *left_out = atomic_exchange(&s->left_out, 0);
    return true;
}

void log_write_some(struct log_some *s, const char *fmt, ...)
{
    char text[768];
    unsigned left_out;
    va_list ap;
    if (!log_some_may(s, clock_now_ns(), &left_out))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (left_out)
        log_write(LOG_WARN, "%s (and %u more like it)", text, left_out);
    else
        log_write(LOG_WARN, "%s", text);
}

static int time_of_line(char *out, size_t room)
{
    uint64_t now = clock_now_ns();
    return snprintf(out, room, "[%llu.%06llu] ", (unsigned long long)(now / KEEL_NS_PER_S),
                    (unsigned long long)(now % KEEL_NS_PER_S / 1000));
}

void log_write(enum log_level level, const char *fmt, ...)
{
    int saved = errno;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    if (keep(level, fmt, ap)) {
        va_end(ap);
        errno = saved;
        return;
    }
    int n = snprintf(line, sizeof line - 1, "%s: %s: ", log_who, level_name[level]);
    if (!log_has_no_time)
        n += time_of_line(line + n, sizeof line - 1 - (size_t)n);
    int m = vsnprintf(line + n, sizeof line - 1 - (size_t)n, fmt, ap);
    va_end(ap);
    size_t len = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len++] = '\n';
    if (log_line) {
        log_line(log_user, line, len);
    } else {
        ssize_t rc = limited_write(STDERR_FILENO, line, len);
        (void)rc; /* there is nobody left to tell */
    }
    errno = saved;
}
