#include "pm/wire/hydra.h"

#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 200, /* between looks at what the mpiexec is waiting for */
    GONE_LOOKS = 5 /* without it: it will not come any more */
};

void hydra_init(struct hydra *h, uv_loop_t *loop, int node, const struct hydra_events *events, void *user)
{
    *h = (struct hydra){.loop = loop, .node = node, .events = *events, .user = user, .pidfd = -1};
}

static void keep_line(struct hydra *h)
{
    h->line[h->line_len] = '\0';
    h->line_len = 0;
    if (h->line[strspn(h->line, " =|\t")] == '\0')
        return;
    memcpy(h->last, h->line, sizeof h->last);
    log_debug("node %d: mpiexec says: %s", h->node, h->line);
}

static void take_output(struct hydra *h, const char *data, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        if (data[i] == '\n')
            keep_line(h);
        else if (h->line_len < HYDRA_LINE - 1)
            h->line[h->line_len++] = data[i];
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct hydra *h = handle->data;
    if (--h->handles > 0)
        return;
    process_close(h->pidfd);
    h->pidfd = -1;
    h->events.ended(h, h->wait_status);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, handle_closed);
}

static void output_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char buffer[4096];
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(buffer, sizeof buffer);
}

static void output_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct hydra *h = stream->data;
    take_output(h, buf->base, n);
    if (n < 0) {
        if (h->line_len)
            keep_line(h);
        close_handle((uv_handle_t *)stream);
    }
}

static void exit_ready(uv_poll_t *watch, int status, int events)
{
    struct hydra *h = watch->data;
    (void)status;
    (void)events;
    if (waitpid(h->pid, &h->wait_status, WNOHANG) == 0)
        return;
    /* what it said last may still be in the pipe, which something that it has left behind may hold open */
    char rest[1024];
    uv_os_fd_t fd;
    if (!uv_is_closing((uv_handle_t *)&h->output) && uv_fileno((uv_handle_t *)&h->output, &fd) == 0)
        take_output(h, rest, read(fd, rest, sizeof rest));
    if (h->line_len)
        keep_line(h);
    h->running = false;
    close_handle((uv_handle_t *)&h->look);
    close_handle((uv_handle_t *)&h->output);
    close_handle((uv_handle_t *)watch);
}

/* Children that have not ended. */
static bool has_child(pid_t pid)
{
    char path[64], state = '?';
    int child;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *children = fopen(path, "re");
    while (!found && children && fscanf(children, "%d", &child) == 1) {
        snprintf(path, sizeof path, "/proc/%d/stat", child);
        FILE *stat = fopen(path, "re");
        found = stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && state != 'Z';
        if (stat)
            fclose(stat);
    }
    if (children)
        fclose(children);
    return found;
}

/* An mpiexec waits for ever when its ssh has given up. */
static void look_passed(uv_timer_t *timer)
{
    struct hydra *h = timer->data;
    bool child = has_child(h->pid);
    h->had_child |= child || h->last[0]; /* or it was gone so soon that only its complaint is left */
    h->childless = child || !h->had_child ? 0 : h->childless + 1;
    if (h->childless < GONE_LOOKS)
        return;
    hydra_settled(h);
    h->events.idle(h);
}

void hydra_settled(struct hydra *h)
{
    if (h->running)
        uv_timer_stop(&h->look);
}

void hydra_signal(struct hydra *h, int signal)
{
    if (h->running)
        (void)process_signal(h->pidfd, signal);
}

/* In the child, between fork and exec: async-signal-safe calls only. A session of its own: a Ctrl-C at the terminal is for keelrun,
 * which ends the job in order. */
static _Noreturn void child_run(const struct hydra_command *command, int output, int error)
{
    sigset_t none;
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0 && kernel_close_from(3, true) &&
        (!command->descriptors || setrlimit(RLIMIT_NOFILE, command->descriptors) >= 0))
        execvpe(command->argv[0], (char *const *)command->argv, command->env);
    int failed = errno;
    ssize_t rc = write(error, &failed, sizeof failed);
    (void)rc;
    _exit(127);
}

/* Returns 0 or an errno. */
static int spawn(struct hydra *h, const struct hydra_command *command, int output)
{
    int error[2], failed = 0;
    sigset_t all, before;
    if (pipe2(error, O_CLOEXEC) < 0)
        return errno;
    sigfillset(&all); /* the child never runs one of our handlers */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    h->pid = fork();
    if (h->pid == 0)
        child_run(command, output, error[1]);
    failed = h->pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(error[1]);
    ssize_t n = 0;
    while (!failed && (n = read(error[0], &failed, sizeof failed)) < 0 && errno == EINTR)
        ;
    close(error[0]);
    if (h->pid > 0 && n == sizeof failed)
        waitpid(h->pid, NULL, 0);
    return failed;
}

void hydra_start(struct hydra *h, const struct hydra_command *command)
{
    int fds[2], rc = 0;
    h->line_len = 0;
    h->last[0] = '\0'; /* what an earlier one said is no sign that this one has started anything */
    h->had_child = false;
    h->childless = 0;
    h->wait_status = -1;
    if (pipe2(fds, O_CLOEXEC) < 0) {
        pm_cannot_run(command->argv[0], errno, h->last, sizeof h->last);
        h->events.ended(h, -1);
        return;
    }
    rc = spawn(h, command, fds[1]);
    close(fds[1]);
    if (rc == 0 && (h->pidfd = process_open(h->pid)) < 0)
        rc = errno;
    if (rc != 0) {
        close(fds[0]);
        pm_cannot_run(command->argv[0], rc, h->last, sizeof h->last);
        h->events.ended(h, -1);
        return;
    }
    h->running = true;
    h->handles = 3;
    uv_pipe_init(h->loop, &h->output, 0);
    uv_pipe_open(&h->output, fds[0]);
    uv_poll_init(h->loop, &h->exit_watch, h->pidfd);
    uv_timer_init(h->loop, &h->look);
    h->output.data = h->exit_watch.data = h->look.data = h;
    uv_read_start((uv_stream_t *)&h->output, output_alloc, output_ready);
    uv_poll_start(&h->exit_watch, UV_READABLE, exit_ready);
    uv_timer_start(&h->look, look_passed, LOOK_MS, LOOK_MS);
}
