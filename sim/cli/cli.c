#include "sim/cli/cli.h"

#include "runtime/base/number.h"
#include "runtime/base/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

atomic_bool cli_stop;
static const char *program = "keel";

void cli_name(const char *name)
{
    program = name;
}

void cli_die(const char *format, ...)
{
    char line[1024], out[SHOWN_A_BYTE * sizeof line];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    fprintf(stderr, "%s: %s\n", program, shown_text(line, out, sizeof out));
    exit(2);
}

enum { SECOND_AFTER_MS = 1000 }; /* a second signal within that belongs to the first */

static int64_t signal_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* may be called in a handler */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Some who end a program send two signals at once: timeout(1) to the process and to its group, a terminal and its
 * user. */
static void on_signal(int number)
{
    static _Atomic int64_t first = -1;
    int64_t none = -1, now = signal_ms();
    atomic_store(&cli_stop, true);
    if (atomic_compare_exchange_strong(&first, &none, now) || now - none < SECOND_AFTER_MS)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

void cli_catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}

bool cli_pipe_begin(struct cli_pipe *p, const char *command)
{
    char *argv[] = {(char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int fd[2], error;
    if (pipe2(fd, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd[0], STDIN_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    error = posix_spawnp(&p->pid, command, &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    close(fd[0]);
    p->in = error ? NULL : fdopen(fd[1], "w");
    if (!p->in)
        close(fd[1]);
    return p->in;
}

bool cli_pipe_end(struct cli_pipe *p)
{
    int status = -1;
    fclose(p->in);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

double cli_number(const char *text, const char *what, double low, double high)
{
    double v;
    if (!number_real(text, low, high, &v))
        cli_die("%s must be a number from %g to %g, not '%.60s'", what, low, high, text);
    return v;
}

int64_t cli_whole(const char *text, const char *what, int64_t low, int64_t high)
{
    int64_t v;
    if (!number_whole(text, low, high, &v))
        cli_die("%s must be a whole number from %lld to %lld, not '%.60s'", what, (long long)low, (long long)high,
                text);
    return v;
}

int cli_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}
