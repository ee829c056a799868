/* Diagnostics for people, on standard error. Level from KEEL_LOG (error, warn, info, debug, trace; default warn).
 * Who decides that something is an error logs it, once. Any thread; one write(2) per line, so lines stay whole.
 * Machine-readable events are a different thing: see pm/eventlog.h. */
#ifndef KEEL_BASE_LOG_H
#define KEEL_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_TRACE };

/* Who speaks, for example "keeld node 2" or "rank 3"; at most 47 bytes are kept. */
void log_init(const char *who);
extern int log_threshold;
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define LOG_AT(level, ...)                                                                                             \
    do {                                                                                                               \
        if ((int)(level) <= log_threshold)                                                                             \
            log_write((level), __VA_ARGS__);                                                                           \
    } while (0)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#define log_trace(...) LOG_AT(LOG_TRACE, __VA_ARGS__)
#endif
