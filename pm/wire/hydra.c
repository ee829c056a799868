#include "pm/wire/hydra.h"

#include "pm/wire/hydra_spawn.h"
#include "pm/wire/bytes.h"
#include "pm/wire/orphans.h"
#include "pm/wire/quit.h"
#include "runtime/base/fault.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"
#include "runtime/base/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOK_MS = 200,   /* between looks at the launcher, until its agent has come */
    GONE_LOOKS = 5,  /* it has ended well without its agent: that will not come any more */
    STUCK_LOOKS = 5, /* somebody has stopped or killed it, and nothing else would end the wait */
    IDLE_LOOKS = 25, /* mpiexec.hydra runs nothing */
};

void hydra_init(struct hydra *h, uv_loop_t *loop, int node, const struct hydra_events *events, void *user)
{
    *h = (struct hydra){
        .loop = loop, .node = node, .events = *events, .user = user, .report = -1, .mpiexec_fd = -1, .launcher_fd = -1};
}

static void keep_line(struct hydra *h)
{
    h->line[h->line_len] = '\0';
    h->line_len = 0;
    if (h->line[strspn(h->line, " =|\t")] == '\0')
        return;
    memcpy(h->last, h->line, sizeof h->last);
    if (h->settled && strncmp(h->line, "keeld node ", 11) == 0 && strstr(h->line, ": error: ["))
        log_error("node %d: %s", h->node, strstr(h->line, "] ") ? strstr(h->line, "] ") + 2 : h->line);
    log_debug("node %d: its start says: %s", h->node, h->line);
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

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void handle_closed(uv_handle_t *handle)
{
    struct hydra *h = handle->data;
    if (--h->handles > 0)
        return;
    close_fd(&h->report);
    process_close(h->mpiexec_fd);
    process_close(h->launcher_fd);
    h->mpiexec_fd = h->launcher_fd = -1;
    h->phase = HYDRA_IDLE;
    h->launcher = h->mpiexec = 0;
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

/* What was said last may still be in the pipe, which something that is left behind may hold open. */
static void drain_output(struct hydra *h)
{
    char rest[1024];
    uv_os_fd_t fd;
    if (!uv_is_closing((uv_handle_t *)&h->output) && uv_fileno((uv_handle_t *)&h->output, &fd) == 0)
        take_output(h, rest, read(fd, rest, sizeof rest));
    if (h->line_len)
        keep_line(h);
}

static void finish(struct hydra *h)
{
    drain_output(h);
    close_handle((uv_handle_t *)&h->look);
    close_handle((uv_handle_t *)&h->output);
    close_handle((uv_handle_t *)&h->report_watch);
    close_handle((uv_handle_t *)&h->mpiexec_watch);
    if (h->phase == HYDRA_LAUNCHED)
        close_handle((uv_handle_t *)&h->launcher_watch);
}

/* ---- from mpiexec.hydra to the launcher ---- */

/* Who reports is a child of the mpiexec that we have started: nobody else has the other end, and the kernel says who it
 * is. */
static void take_report(struct hydra *h)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct ucred who = {0};
    char byte;
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (h->phase != HYDRA_FINDING || recvmsg(h->report, &msg, MSG_DONTWAIT) != 1)
        return;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
        memcpy(&who, CMSG_DATA(c), sizeof who);
    h->launcher_fd = who.pid > 0 ? process_open(who.pid) : -1;
    if (h->launcher_fd < 0)
        return; /* it has ended already; mpiexec sees no more of it than we */
    h->launcher = who.pid;
    h->phase = HYDRA_HANDING;
    (void)process_signal(h->mpiexec_fd, SIGKILL);
}

static void report_ready(uv_poll_t *watch, int status, int events)
{
    (void)status;
    (void)events;
    take_report(watch->data);
    uv_poll_stop(watch);
}

static void launcher_ended(uv_poll_t *watch, int status, int events)
{
    struct hydra *h = watch->data;
    (void)status;
    (void)events;
    if (waitpid(h->launcher, &h->wait_status, WNOHANG) == 0)
        return;
    uv_poll_stop(watch);
    if (!h->settled && WIFEXITED(h->wait_status) && WEXITSTATUS(h->wait_status) == 0)
        h->gone = true; /* its agent may be on its way */
    else
        finish(h);
}

static void let_launch(struct hydra *h)
{
    h->phase = HYDRA_LAUNCHED;
    uv_poll_init(h->loop, &h->launcher_watch, h->launcher_fd);
    h->launcher_watch.data = h;
    h->handles++;
    uv_poll_start(&h->launcher_watch, UV_READABLE, launcher_ended);
    if (h->stopped) {
        (void)process_signal(h->launcher_fd, SIGKILL);
    } else {
        FAULT_POINT("launch.telling");
        h->events.launched(h); /* first: its agent may come before this process runs again */
        (void)send(h->report, "", 1, MSG_NOSIGNAL);
    }
    close_handle((uv_handle_t *)&h->report_watch);
    close_handle((uv_handle_t *)&h->mpiexec_watch);
    close_fd(&h->report);
    close_fd(&h->mpiexec_fd);
}

static void mpiexec_ended(uv_poll_t *watch, int status, int events)
{
    struct hydra *h = watch->data;
    pid_t parent = 0;
    (void)status;
    (void)events;
    if (waitpid(h->mpiexec, &h->wait_status, WNOHANG) == 0)
        return;
    uv_poll_stop(watch);
    uv_poll_stop(&h->report_watch);
    take_report(h); /* it may have been just about to be read */
    h->mpiexec = 0;
    if (h->phase == HYDRA_HANDING && process_state(h->launcher, &parent) && parent == getpid())
        let_launch(h);
    else
        finish(h);
}

/* Of the processes that are to bring the agent one stands still; or mpiexec.hydra waits, and notices neither that its
 * child has ended nor that it has none because the system gave it no more processes. NULL: none of these. */
static const char *why_stuck(const struct hydra *h, int *patience)
{
    static const char stopped[] = "what was to reach it was stopped by a signal";
    pid_t parent, child = 0;
    *patience = STUCK_LOOKS;
    if (h->phase == HYDRA_LAUNCHED)
        return !h->gone && process_state(h->launcher, &parent) == 'T' ? stopped : NULL;
    int children = process_children(h->mpiexec, &child, 1);
    char state = 0;
    if (children > 0)
        state = process_state(child, &parent);
    if (state == 'T' || process_state(h->mpiexec, &parent) == 'T')
        return stopped;
    if (state == 'Z')
        return "what mpiexec.hydra runs to reach it has ended";
    *patience = IDLE_LOOKS;
    return children == 0
               ? "mpiexec.hydra runs nothing to reach it: no more processes (ulimit -u, or pids.max of a cgroup)?"
               : NULL;
}

static void look_passed(uv_timer_t *timer)
{
    struct hydra *h = timer->data;
    int patience;
    if (h->gone && ++h->looks_gone >= GONE_LOOKS) {
        finish(h);
        return;
    }
    const char *why = why_stuck(h, &patience);
    h->looks_stuck = why ? h->looks_stuck + 1 : 0;
    if (!why || h->looks_stuck < patience)
        return;
    snprintf(h->last, sizeof h->last, "%s", why);
    h->looks_stuck = 0;
    (void)process_signal(h->phase == HYDRA_LAUNCHED ? h->launcher_fd : h->mpiexec_fd, SIGKILL);
}

/* ---- outside ---- */

static bool hydra_runs(const struct hydra *h)
{
    return h->phase != HYDRA_IDLE;
}

bool hydra_has(const struct hydra *h, pid_t pid)
{
    return hydra_runs(h) && (h->mpiexec == pid || (h->launcher == pid && !h->gone));
}

void hydra_settled(struct hydra *h)
{
    if (!hydra_runs(h) || h->settled)
        return;
    h->settled = true;
    if (uv_is_closing((uv_handle_t *)&h->look))
        return;
    uv_timer_stop(&h->look);
    if (h->gone)
        finish(h);
}

void hydra_signal(struct hydra *h, int signal)
{
    if (!hydra_runs(h))
        return;
    h->stopped = true;
    hydra_settled(h);
    if (h->phase == HYDRA_LAUNCHED)
        (void)process_signal(h->launcher_fd, signal);
    else
        (void)process_signal(h->mpiexec_fd, SIGKILL);
}

/* ---- the beginning ---- */

static void watch(struct hydra *h, int output)
{
    h->phase = HYDRA_FINDING;
    h->handles = 4;
    uv_pipe_init(h->loop, &h->output, 0);
    uv_pipe_open(&h->output, output);
    uv_poll_init(h->loop, &h->report_watch, h->report);
    uv_poll_init(h->loop, &h->mpiexec_watch, h->mpiexec_fd);
    uv_timer_init(h->loop, &h->look);
    h->output.data = h->report_watch.data = h->mpiexec_watch.data = h->look.data = h;
    uv_read_start((uv_stream_t *)&h->output, output_alloc, output_ready);
    uv_poll_start(&h->report_watch, UV_READABLE, report_ready);
    uv_poll_start(&h->mpiexec_watch, UV_READABLE, mpiexec_ended);
    uv_timer_start(&h->look, look_passed, LOOK_MS, LOOK_MS);
}

void hydra_start(struct hydra *h, const struct hydra_command *command)
{
    int output[2] = {-1, -1}, report[2] = {-1, -1}, on = 1, rc = 0;
    const struct hydra_events events = h->events;
    hydra_init(h, h->loop, h->node, &events, h->user); /* what an earlier one said is no sign of this one */
    h->wait_status = -1;
    int order = order_write(&command->order);
    if (order < 0 || pipe2(output, O_CLOEXEC) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0 ||
        setsockopt(report[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        rc = errno;
    else
        rc = hydra_spawn(h, command, order, report[1], output[1]);
    if (rc == 0 && (h->mpiexec_fd = process_open(h->mpiexec)) < 0) {
        rc = errno;
        kill(h->mpiexec, SIGKILL);
        waitpid(h->mpiexec, NULL, 0);
    }
    close_fd(&order);
    close_fd(&output[1]);
    close_fd(&report[1]);
    if (rc != 0) {
        close_fd(&output[0]);
        close_fd(&report[0]);
        h->mpiexec = 0;
        if (rc > 0)
            pm_cannot_run(command->argv[0], rc, h->last, sizeof h->last);
        else
            snprintf(h->last, sizeof h->last, "cannot give %s its descriptors, /dev/null among them: %s",
                     command->argv[0], strerror(-rc));
        h->events.ended(h, -1);
        return;
    }
    h->report = report[0];
    watch(h, output[0]);
}
