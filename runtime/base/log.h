/* Diagnostics for people, on standard error. Level from KEEL_LOG (error, warn, info, debug, trace; default warn).
 * Who decides that something is an error logs it, once. Any thread; one write(2) per line, so lines stay whole.
 * Machine-readable events are a different thing: keelrun --event-log. */
#ifndef KEEL_BASE_LOG_H
#define KEEL_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* Who speaks, for example "keeld node 2" or "rank 3"; at most 47 bytes are kept. */
void log_init(const char *who);
/* One line if KEEL_LOG is set and is no level (it counts as warn then): for the one process of a job that says it
 * for all. */
void log_check_level(void);
/* From now on lines do not say when: what several processes write alike is compared. */
void log_without_time(void);
/* Where lines go instead: for a program whose standard error may stand still while it must not. NULL: to standard error
 * again. From then on log from one thread only. */
void log_to(void (*write_line)(void *user, const char *line, size_t len), void *user);
/* From now on an error is not written: the first one's text goes to `first`, others nowhere. For what is going to tell
 * somebody that it failed, and why, in one line of its own. NULL: they are written again. One thread only, as long
 * as that lasts. */
void log_keep_errors(char *first, size_t size);
extern int log_threshold;
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define LOG_AT(level, ...)                                                                                             \
    do {                                                                                                               \
        if ((int)(level) <= log_threshold)                                                                             \
            log_write((level), __VA_ARGS__);                                                                           \
    } while (0)
/* A warning that somebody else can cause as often as he likes: a few at once, then one in LOG_SOME_S seconds, which
 * says how many were left out. One struct per place. */
enum { LOG_SOME_AT_ONCE = 3, LOG_SOME_S = 10 };
struct log_some {
    _Atomic uint64_t window; /* number of the period of LOG_SOME_S seconds, from 1 */
    atomic_uint said, left_out;
};
/* True if it may be said now; *left_out is then how many were not since the last time. now_ns: of a monotonic clock. */
bool log_some_may(struct log_some *s, uint64_t now_ns, unsigned *left_out);
void log_write_some(struct log_some *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_warn_some(...)                                                                                             \
    do {                                                                                                               \
        static struct log_some log_some_here;                                                                          \
        if ((int)LOG_WARN <= log_threshold)                                                                            \
            log_write_some(&log_some_here, __VA_ARGS__);                                                               \
    } while (0)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#define log_trace(...) LOG_AT(LOG_TRACE, __VA_ARGS__)
#endif
