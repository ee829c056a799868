#include "pm/keeld/process.h"

#include "pm/wire/message.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"
#include "runtime/base/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long output of a process that has ended is waited for if somebody still holds its pipe (a child it left behind).
 */
enum { DRAIN_MS = 300, SILENCE_MS = 100 /* then the beginning of a line is passed on */ };

struct child_fds {
    int in[2], out[2][2], pmi[2], keel[2], error[2];
};

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void close_all(struct child_fds *f)
{
    close_pair(f->in);
    close_pair(f->out[0]);
    close_pair(f->out[1]);
    close_pair(f->pmi);
    close_pair(f->keel);
    close_pair(f->error);
}

static bool open_all(struct child_fds *f, bool with_stdin)
{
    memset(f, -1, sizeof *f);
    if (with_stdin) {
        if (pipe2(f->in, O_CLOEXEC) < 0)
            return false;
    } else if ((f->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
        return false;
    }
    return pipe2(f->out[0], O_CLOEXEC) == 0 && pipe2(f->out[1], O_CLOEXEC) == 0 && pipe2(f->error, O_CLOEXEC) == 0 &&
           socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->pmi) == 0 &&
           socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->keel) == 0;
}

/* In the child, between fork and exec: async-signal-safe calls only. */
static _Noreturn void child_run(const struct process_spec *spec, const struct child_fds *f, char **env, pid_t agent)
{
    sigset_t none;
    int failed = 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s <= SIGRTMAX; s++)
        signal(s, SIG_DFL);
    prompt_forget();
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != agent)
        _exit(127);
    /* nothing of ours goes on in the program, or in what it leaves behind: not the listeners, not the sockets to other
     * nodes, which would keep us alive for them when we are dead */
    if (dup2(f->in[0], 0) < 0 || dup2(f->out[0][1], 1) < 0 || dup2(f->out[1][1], 2) < 0 ||
        !kernel_close_from(3, true) || fcntl(f->pmi[1], F_SETFD, 0) < 0 || fcntl(f->keel[1], F_SETFD, 0) < 0 ||
        setrlimit(RLIMIT_NOFILE, &spec->descriptors) < 0)
        failed = errno;
    if (!failed && spec->cwd && chdir(spec->cwd) < 0)
        failed = -errno;
    if (!failed) {
        environ = env;
        execvp(spec->argv[0], spec->argv);
        failed = errno;
    }
    ssize_t rc = write(f->error[1], &failed, sizeof failed);
    (void)rc;
    _exit(127);
}

/* The caller frees the list; the strings are others'. */
static char **env_with_fds(char *const *env, char *keel_fd, char *pmi_fd)
{
    size_t n = 0;
    while (env[n])
        n++;
    char **all = pm_alloc((n + 5) * sizeof *all);
    memcpy(all, env, n * sizeof *all);
    all[n] = (char *)NO_BACKTRACE_IPATH;
    all[n + 1] = (char *)NO_BACKTRACE_HFI;
    all[n + 2] = keel_fd;
    all[n + 3] = pmi_fd;
    return all;
}

/* Forks and waits for the exec to happen or fail. Returns 0 or an errno (negative errno: of chdir). */
static int spawn(const struct process_spec *spec, struct child_fds *f, pid_t *pid)
{
    char *keel_fd = pm_printf("KEEL_FD=%d", f->keel[1]), *pmi_fd = pm_printf("PMI_FD=%d", f->pmi[1]);
    char **env = env_with_fds(spec->env, keel_fd, pmi_fd);
    pid_t agent = getpid();
    /* Signals stay blocked across the fork so that the child never runs one of our handlers. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = fork();
    if (*pid == 0)
        child_run(spec, f, env, agent);
    int failed = *pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(env);
    free(keel_fd);
    free(pmi_fd);
    if (failed)
        return failed;
    close(f->error[1]);
    f->error[1] = -1;
    ssize_t n;
    do
        n = read(f->error[0], &failed, sizeof failed);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    waitpid(*pid, NULL, 0);
    return n == sizeof failed ? failed : EIO;
}

static void finish_if_drained(struct process *p)
{
    if (p->exited && p->open_outputs == 0 && !p->drained) {
        p->drained = true;
        uv_timer_stop(&p->drain);
        uv_timer_stop(&p->silence);
        p->events.drained(p);
    }
}

static void handle_closed(uv_handle_t *handle)
{
    struct process *p = handle->data;
    if (--p->open_handles == 0)
        free(p);
}

static void emit_out(void *user, const uint8_t *data, size_t len)
{
    struct process *p = user;
    p->events.output(p, 1, data, len);
}

static void emit_err(void *user, const uint8_t *data, size_t len)
{
    struct process *p = user;
    p->events.output(p, 2, data, len);
}

static bool output_is_open(const struct process *p, int i)
{
    return p->lifeline < 0 && !uv_is_closing((const uv_handle_t *)&p->out[i]);
}

static void output_end(struct process *p, int i)
{
    if (!output_is_open(p, i))
        return;
    lines_end(&p->lines[i], i == 0 ? emit_out : emit_err, p);
    uv_close((uv_handle_t *)&p->out[i], handle_closed);
    p->open_outputs--;
}

static bool has_more(const struct process *p, int i)
{
    uv_os_fd_t fd;
    int bytes = 0;
    return output_is_open(p, i) && uv_fileno((uv_handle_t *)&p->out[i], &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 &&
           bytes > 0;
}

/* The beginning of a line that stands for a while may be a prompt. Only who has an input prompts; of the others it is
 * half a buffer, and other ranks' lines would get between. */
static void await_silence(struct process *p);

static void silence_passed(uv_timer_t *timer)
{
    struct process *p = timer->data;
    if (p->paused[0] || p->paused[1] || p->hold_output || has_more(p, 0) || has_more(p, 1)) {
        await_silence(p); /* it is us who are late */
        return;
    }
    lines_flush(&p->lines[0], emit_out, p);
    lines_flush(&p->lines[1], emit_err, p);
}

static void await_silence(struct process *p)
{
    if (p->in_open && (p->lines[0].held.len || p->lines[1].held.len))
        uv_timer_start(&p->silence, silence_passed, SILENCE_MS, 0);
}

static void output_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct process *p = stream->data;
    int i = stream == (uv_stream_t *)&p->out[1];
    if (n > 0)
        lines_feed(&p->lines[i], buf->base, (size_t)n, i == 0 ? emit_out : emit_err, p);
    await_silence(p);
    free(buf->base);
    if (n < 0) {
        output_end(p, i);
        finish_if_drained(p);
    }
}

static void pmi_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct process *p = stream->data;
    if (n > 0)
        p->events.pmi(p, (const uint8_t *)buf->base, (size_t)n);
    free(buf->base);
    if (n < 0)
        process_close_pmi(p);
}

static void read_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(pm_alloc(suggested), (unsigned)suggested);
}

static void read_outputs(struct process *p)
{
    for (int i = 0; i < 2; i++)
        if (!p->paused[i] && output_is_open(p, i))
            uv_read_start((uv_stream_t *)&p->out[i], read_alloc, output_ready);
}

/* What the pipe holds now, also while it is paused: no more than it can hold at a time, whoever still writes. */
static void take_rest(struct process *p, int i)
{
    uint8_t buffer[16 * 1024];
    uv_os_fd_t fd;
    ssize_t n = -1;
    if (!output_is_open(p, i) || uv_fileno((uv_handle_t *)&p->out[i], &fd) != 0)
        return;
    for (long left = fcntl(fd, F_GETPIPE_SZ); left > 0; left -= n) {
        n = read(fd, buffer, sizeof buffer); /* libuv has made it non-blocking */
        if (n <= 0)
            break;
        lines_feed(&p->lines[i], buffer, (size_t)n, i == 0 ? emit_out : emit_err, p);
    }
    if (n == 0)
        output_end(p, i);
}

static void drain_passed(uv_timer_t *timer)
{
    struct process *p = timer->data;
    for (int i = 0; i < 2; i++) {
        take_rest(p, i);
        output_end(p, i);
    }
    finish_if_drained(p);
}

static void adopted_ended(struct process *p)
{
    int32_t code;
    p->exited = true;
    p->signal = SIGKILL;
    while (recv(p->lifeline, &code, sizeof code, MSG_DONTWAIT) == sizeof code) {
        p->code = code;
        p->signal = 0;
    }
    uv_close((uv_handle_t *)&p->exit_watch, handle_closed);
    p->events.exited(p);
    finish_if_drained(p);
}

static void exit_ready(uv_poll_t *watch, int status, int events)
{
    struct process *p = watch->data;
    int wait_status;
    (void)status;
    (void)events;
    if (p->lifeline >= 0) {
        adopted_ended(p);
        return;
    }
    pid_t got = waitpid(p->pid, &wait_status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    p->exited = true;
    p->code = got == p->pid && WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    p->signal = got == p->pid && WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    uv_close((uv_handle_t *)&p->exit_watch, handle_closed);
    p->hold_output = false;
    for (int i = 0; i < 2; i++)
        take_rest(p, i);
    read_outputs(p);
    if (p->open_outputs)
        uv_timer_start(&p->drain, drain_passed, DRAIN_MS, 0);
    p->events.exited(p);
    finish_if_drained(p);
}

static void attach_pipe(struct process *p, uv_loop_t *loop, uv_pipe_t *pipe, int fd)
{
    uv_pipe_init(loop, pipe, 0);
    pipe->data = p;
    p->open_handles++;
    uv_pipe_open(pipe, fd);
}

struct process *process_start(uv_loop_t *loop, const struct process_spec *spec, const struct process_events *events,
                              void *user, int *keel_fd, int *error, const char **what)
{
    struct child_fds f;
    pid_t pid;
    *what = "no descriptors for a process";
    if (!open_all(&f, spec->with_stdin)) {
        *error = errno;
        close_all(&f);
        return NULL;
    }
    *error = spawn(spec, &f, &pid);
    if (*error) {
        *what = *error < 0 ? "cannot enter the working directory" : "";
        *error = abs(*error);
        close_all(&f);
        return NULL;
    }
    struct process *p = pm_alloc(sizeof *p);
    p->pid = pid;
    p->lifeline = -1;
    p->rank = -1;
    p->user = user;
    p->events = *events;
    p->hold_output = spec->hold_output;
    p->pidfd = process_open(pid);
    if (p->pidfd < 0) {
        *error = errno;
        *what = "cannot watch the process";
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close_all(&f);
        free(p);
        return NULL;
    }
    uv_poll_init(loop, &p->exit_watch, p->pidfd);
    p->exit_watch.data = p;
    uv_timer_init(loop, &p->drain);
    uv_timer_init(loop, &p->silence);
    p->drain.data = p->silence.data = p;
    p->open_handles = 3;
    uv_poll_start(&p->exit_watch, UV_READABLE, exit_ready);
    attach_pipe(p, loop, &p->out[0], f.out[0][0]);
    attach_pipe(p, loop, &p->out[1], f.out[1][0]);
    p->open_outputs = 2;
    attach_pipe(p, loop, &p->pmi, f.pmi[0]);
    p->pmi_open = true;
    uv_read_start((uv_stream_t *)&p->pmi, read_alloc, pmi_ready);
    if (spec->with_stdin) {
        attach_pipe(p, loop, &p->in, f.in[1]);
        p->in_open = true;
    }
    if (!p->hold_output)
        read_outputs(p);
    *keel_fd = f.keel[0];
    f.out[0][0] = f.out[1][0] = f.pmi[0] = f.in[1] = f.keel[0] = -1;
    close_all(&f);
    return p;
}

struct process *process_adopt(uv_loop_t *loop, pid_t pid, int lifeline, const struct process_events *events, void *user)
{
    int pidfd = process_open(pid);
    if (pidfd < 0)
        return NULL;
    struct process *p = pm_alloc(sizeof *p);
    p->pid = pid;
    p->pidfd = pidfd;
    p->lifeline = lifeline;
    p->user = user;
    p->events = *events;
    uv_poll_init(loop, &p->exit_watch, pidfd);
    p->exit_watch.data = p;
    uv_timer_init(loop, &p->drain);
    uv_timer_init(loop, &p->silence);
    p->drain.data = p->silence.data = p;
    p->open_handles = 3;
    uv_poll_start(&p->exit_watch, UV_READABLE, exit_ready);
    return p;
}

void process_release_output(struct process *p)
{
    p->hold_output = false;
    read_outputs(p);
}

void process_pause_output(struct process *p, int stream, bool pause)
{
    if (p->paused[stream] == pause || !output_is_open(p, stream))
        return;
    p->paused[stream] = pause;
    if (pause)
        uv_read_stop((uv_stream_t *)&p->out[stream]);
    else if (!p->hold_output)
        read_outputs(p);
}

struct stdin_write {
    uv_write_t req;
    struct process *p;
    size_t len;
    uint8_t data[];
};

static void stdin_close(struct process *p)
{
    if (p->in_open) {
        p->in_open = false;
        uv_close((uv_handle_t *)&p->in, handle_closed);
    }
}

static void stdin_written(uv_write_t *req, int status)
{
    struct stdin_write *w = (struct stdin_write *)req;
    if (status < 0)
        stdin_close(w->p);
    if (status != UV_ECANCELED)
        w->p->events.stdin_taken(w->p, w->len);
    free(w);
}

static void stdin_shut(uv_shutdown_t *req, int status)
{
    struct process *p = req->data;
    free(req);
    if (status != UV_ECANCELED)
        stdin_close(p);
}

void process_write_stdin(struct process *p, const uint8_t *data, size_t len)
{
    if (!p->in_open) {
        if (len)
            p->events.stdin_taken(p, len);
        return;
    }
    if (len == 0) {
        uv_shutdown_t *req = pm_alloc(sizeof *req);
        req->data = p;
        if (uv_shutdown(req, (uv_stream_t *)&p->in, stdin_shut) < 0)
            free(req);
        return;
    }
    struct stdin_write *w = pm_alloc(sizeof *w + len);
    w->p = p;
    w->len = len;
    memcpy(w->data, data, len);
    uv_buf_t buf = uv_buf_init((char *)w->data, (unsigned)len);
    if (uv_write(&w->req, (uv_stream_t *)&p->in, &buf, 1, stdin_written) < 0) {
        free(w);
        stdin_close(p);
        p->events.stdin_taken(p, len);
    }
}

static void pmi_written(uv_write_t *req, int status)
{
    struct stdin_write *w = (struct stdin_write *)req;
    if (status < 0 && status != UV_ECANCELED)
        process_close_pmi(w->p);
    free(w);
}

void process_write_pmi(struct process *p, const uint8_t *data, size_t len)
{
    if (!p->pmi_open || len == 0)
        return;
    struct stdin_write *w = pm_alloc(sizeof *w + len);
    w->p = p;
    memcpy(w->data, data, len);
    uv_buf_t buf = uv_buf_init((char *)w->data, (unsigned)len);
    if (uv_write(&w->req, (uv_stream_t *)&p->pmi, &buf, 1, pmi_written) < 0)
        free(w);
}

void process_close_pmi(struct process *p)
{
    if (p->pmi_open) {
        p->pmi_open = false;
        uv_close((uv_handle_t *)&p->pmi, handle_closed);
    }
}

void process_kill(struct process *p, int signal_number)
{
    if (p->exited)
        return;
    if (p->lifeline >= 0) { /* its group may be its launcher's */
        (void)process_signal(p->pidfd, signal_number);
        return;
    }
    kill(-p->pid, signal_number);
    kill(p->pid, signal_number);
}

void process_pass(struct process *p, int signal_number)
{
    if (p->exited)
        return;
    if (p->lifeline >= 0)
        (void)process_signal(p->pidfd, signal_number);
    else if (kill(-p->pid, signal_number) < 0)
        kill(p->pid, signal_number);
}

void process_free(struct process *p)
{
    stdin_close(p);
    process_close_pmi(p);
    uv_close((uv_handle_t *)&p->drain, handle_closed);
    uv_close((uv_handle_t *)&p->silence, handle_closed);
    process_close(p->pidfd);
    p->pidfd = -1;
    if (p->lifeline >= 0)
        close(p->lifeline);
}
