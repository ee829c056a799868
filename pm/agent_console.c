/* The node's console: a unix socket in the abstract namespace for keelctl, open to processes of the same user only. */
#include "pm/agent.h"

#include "pm/codec.h"
#include "runtime/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WATCHER_QUEUE_MAX = 8 << 20 };

static const char *process_state(const struct process *p)
{
    return p->exited ? (p->signal ? "killed" : "ended") : p->rank < 0 ? "standby" : "running";
}

static json_t *status_json(const struct agent *a)
{
    static const char *const states[] = {"joining", "configured", "running", "ending", "over"};
    int total = a->job.nodes + a->job.spares;
    json_t *ranks = json_array(), *alive = json_array();
    for (int i = 0; i < a->process_count; i++) {
        const struct process *p = a->processes[i].p;
        json_array_append_new(ranks, json_pack("{s:i, s:i, s:i, s:s}", "rank", p->rank, "pid", (int)p->pid,
                                               "incarnation", (int)p->incarnation, "state", process_state(p)));
    }
    for (int i = 0; a->view_alive && i < total; i++)
        json_array_append_new(alive, json_boolean(a->view_alive[i]));
    char job[17];
    snprintf(job, sizeof job, "%016llx", (unsigned long long)a->launch.job_id);
    return json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:b, s:b, s:I, s:o, s:o, s:o, s:i, s:i, s:i, s:s}", "job",
                     job, "node", a->launch.node, "host", a->self_host, "state", states[a->state], "agent_pid",
                     (int)getpid(), "stub_pid", (int)a->stub_pid, "mpiexec_pid", a->job.mpiexec_pid, "spare",
                     (int)(a->launch.node >= a->job.nodes && a->job.nodes > 0), "keelrun", (int)(a->run != NULL),
                     "epoch", (json_int_t)a->epoch, "alive", alive, "rank_node",
                     a->view_rank_node ? codec_ints(a->view_rank_node, a->job.ranks) : json_array(), "ranks", ranks,
                     "nodes", a->job.nodes, "spares", a->job.spares, "size", a->job.ranks, "program",
                     a->job.argv ? a->job.argv[0] : "");
}

static int watcher_index(const struct agent *a, const struct conn *c)
{
    for (int i = 0; i < AGENT_WATCHERS; i++)
        if (a->watchers[i] == c)
            return i;
    return -1;
}

static void resend(void *user, const uint8_t *frame, size_t len)
{
    conn_send(user, MSG_OUTPUT, frame, len);
}

static void watcher_open(struct conn *c)
{
    (void)c;
}

static void watcher_frame(struct conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct agent *a = c->user;
    int i = watcher_index(a, c);
    if (type == MSG_ASK_STATUS) {
        conn_send_json(c, MSG_STATUS, status_json(a));
    } else if (type == MSG_ATTACH && i >= 0) {
        a->watcher_attached[i] = true;
        backlog_each(&a->backlog, resend, c);
    } else if (type == MSG_STOP) {
        json_t *m = codec_object(body, len);
        if (m)
            agent_stop(a, m);
        json_decref(m);
    }
}

static void watcher_lost(struct conn *c, const char *why)
{
    struct agent *a = c->user;
    int i = watcher_index(a, c);
    (void)why;
    if (i >= 0) {
        a->watchers[i] = NULL;
        a->watcher_attached[i] = false;
    }
}

static void console_ready(uv_poll_t *handle, int status, int events)
{
    static const struct conn_events watcher_events = {watcher_open, watcher_frame, watcher_lost, NULL};
    struct agent *a = handle->data;
    struct ucred peer;
    socklen_t len = sizeof peer;
    char name[48];
    (void)status;
    (void)events;
    int fd = accept4(a->console_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    int free_index = watcher_index(a, NULL);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || (peer.uid != geteuid() && peer.uid != 0) ||
        free_index < 0) {
        log_warn("console: refused process %d of user %d", (int)peer.pid, (int)peer.uid);
        close(fd);
        return;
    }
    snprintf(name, sizeof name, "process %d", (int)peer.pid);
    a->watchers[free_index] = conn_adopt(&a->loop, fd, name, &watcher_events, a);
    a->watcher_attached[free_index] = false;
}

bool agent_console_open(struct agent *a)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, CONSOLE_PREFIX "%016llx/%d",
                     (unsigned long long)a->launch.job_id, a->launch.node);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd < 0)
        return false;
    if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 16) < 0) {
        close(fd);
        return false;
    }
    a->console_fd = fd;
    uv_poll_init(&a->loop, &a->console_watch, fd);
    a->console_watch.data = a;
    uv_poll_start(&a->console_watch, UV_READABLE, console_ready);
    uv_unref((uv_handle_t *)&a->console_watch);
    return true;
}

void agent_console_output(struct agent *a, const void *frame, size_t len)
{
    for (int i = 0; i < AGENT_WATCHERS; i++) {
        if (!a->watchers[i] || !a->watcher_attached[i])
            continue;
        conn_send(a->watchers[i], MSG_OUTPUT, frame, len);
        if (conn_queued(a->watchers[i]) > WATCHER_QUEUE_MAX) {
            conn_close(a->watchers[i]);
            a->watchers[i] = NULL;
        }
    }
}

void agent_console_over(struct agent *a)
{
    for (int i = 0; i < AGENT_WATCHERS; i++)
        if (a->watchers[i] && a->watcher_attached[i])
            conn_send_json(a->watchers[i], MSG_OVER,
                           json_pack("{s:i, s:s}", "code", a->over_code, "why", a->over_why ? a->over_why : ""));
}

void agent_console_close(struct agent *a)
{
    if (a->console_fd >= 0)
        close(a->console_fd);
    a->console_fd = -1;
}
