#include "pm/keeld/process_parts.h"

#include "runtime/base/kernel.h"
#include "runtime/base/reserve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long output of a process that has ended is waited for if somebody still holds its pipe (a child it left behind).
 */
enum { DRAIN_MS = 300 };

static void pmi_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct process *p = stream->data;
    if (n > 0)
        p->events.pmi(p, (const uint8_t *)buf->base, (size_t)n);
    free(buf->base);
    if (n < 0)
        process_close_pmi(p);
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
    uv_close((uv_handle_t *)&p->exit_watch, process_handle_closed);
    p->events.exited(p);
    process_finish_if_drained(p);
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
    uv_close((uv_handle_t *)&p->exit_watch, process_handle_closed);
    p->hold_output = false;
    for (int i = 0; i < 2; i++)
        process_take_rest(p, i);
    process_read_outputs(p);
    if (p->open_outputs)
        uv_timer_start(&p->drain, process_drain_passed, DRAIN_MS, 0);
    p->events.exited(p);
    process_finish_if_drained(p);
}

static void watch_exit(struct process *p, uv_loop_t *loop)
{
    uv_poll_init(loop, &p->exit_watch, p->pidfd);
    p->exit_watch.data = p;
    uv_timer_init(loop, &p->drain);
    uv_timer_init(loop, &p->silence);
    p->drain.data = p->silence.data = p;
    p->open_handles = 3;
    uv_poll_start(&p->exit_watch, UV_READABLE, exit_ready);
}

static void attach_pipe(struct process *p, uv_loop_t *loop, uv_pipe_t *pipe, int fd)
{
    uv_pipe_init(loop, pipe, 0);
    pipe->data = p;
    p->open_handles++;
    uv_pipe_open(pipe, fd);
}

static void attach_pipes(struct process *p, uv_loop_t *loop, const struct child_fds *f, bool with_stdin)
{
    attach_pipe(p, loop, &p->out[0], f->out[0][0]);
    attach_pipe(p, loop, &p->out[1], f->out[1][0]);
    p->open_outputs = 2;
    attach_pipe(p, loop, &p->pmi, f->pmi[0]);
    p->pmi_open = true;
    uv_read_start((uv_stream_t *)&p->pmi, process_read_alloc, pmi_ready);
    if (with_stdin) {
        attach_pipe(p, loop, &p->in, f->in[1]);
        p->in_open = true;
    }
}

struct process *process_start(uv_loop_t *loop, const struct process_spec *spec, const struct process_events *events,
                              void *user, int *keel_fd, int *error, const char **what)
{
    struct child_fds f;
    pid_t pid;
    *what = "no descriptors for a process";
    if (!reserve_is_whole()) {
        *error = EMFILE;
        return NULL;
    }
    if (!child_fds_open(&f, spec->with_stdin)) {
        *error = errno;
        child_fds_close(&f);
        return NULL;
    }
    *error = process_spawn(spec, &f, &pid);
    if (*error) {
        *what = *error < 0 ? "cannot enter the working directory" : "";
        *error = abs(*error);
        child_fds_close(&f);
        return NULL;
    }
    struct process *p = pm_alloc(sizeof *p);
    p->pid = pid;
    p->lifeline = -1;
    p->life = LIFE_NONE;
    p->user = user;
    p->events = *events;
    p->hold_output = spec->hold_output;
    p->pidfd = process_open(pid);
    if (p->pidfd < 0) {
        *error = errno;
        *what = "cannot watch the process";
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        child_fds_close(&f);
        free(p);
        return NULL;
    }
    watch_exit(p, loop);
    attach_pipes(p, loop, &f, spec->with_stdin);
    if (!p->hold_output)
        process_read_outputs(p);
    *keel_fd = f.keel[0];
    f.out[0][0] = f.out[1][0] = f.pmi[0] = f.in[1] = f.keel[0] = -1;
    child_fds_close(&f);
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
    watch_exit(p, loop);
    return p;
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
        uv_close((uv_handle_t *)&p->in, process_handle_closed);
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
        uv_close((uv_handle_t *)&p->pmi, process_handle_closed);
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
