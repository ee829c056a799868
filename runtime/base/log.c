#include "runtime/base/log.h"

#include "runtime/base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int log_threshold = LOG_WARN;
static char log_who[48] = "keel";

static const char *const level_name[] = {"error", "warn", "info", "debug", "trace"};

void log_init(const char *who)
{
    snprintf(log_who, sizeof log_who, "%s", who);
    const char *wanted = getenv("KEEL_LOG");
    for (int i = 0; wanted && i <= LOG_TRACE; i++)
        if (strcmp(wanted, level_name[i]) == 0)
            log_threshold = i;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    int saved = errno;
    char line[1024];
    uint64_t now = clock_now_ns();
    int n = snprintf(line, sizeof line - 1, "%s: %s: [%llu.%06llu] ", log_who, level_name[level],
                     (unsigned long long)(now / KEEL_NS_PER_S), (unsigned long long)(now % KEEL_NS_PER_S / 1000));
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - 1 - (size_t)n, fmt, ap);
    va_end(ap);
    size_t len = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (len > sizeof line - 2)
        len = sizeof line - 2;
    line[len++] = '\n';
    ssize_t rc = write(STDERR_FILENO, line, len);
    (void)rc; /* there is nobody left to tell */
    errno = saved;
}
