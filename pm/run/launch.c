#include "pm/run/launch.h"

#include "pm/wire/bytes.h"
#include "pm/wire/message.h"
#include "runtime/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FAN_OUT = 32,
    LAST_LINE = 256,
    LOOK_MS = 200,  /* between looks at what the mpiexec instances are waiting for */
    STARTS_MAX = 3, /* of a node's mpiexec: it ends when somebody says nonsense to its listener */
    GONE_LOOKS = 5  /* without it: it will not come any more */
};

struct instance {
    struct launch *launch;
    int node;
    pid_t pid;
    int pidfd;
    bool joined, running;
    bool had_child; /* mpiexec's launcher: ssh, srun, ... */
    int childless;  /* looks since it is gone */
    int starts, handles;
    uv_poll_t exit_watch;
    uv_pipe_t output;
    char last[LAST_LINE]; /* last line that says something */
    char line[LAST_LINE];
    size_t line_len;
};

struct launch {
    uv_loop_t *loop;
    struct launch_plan plan;
    struct launch_events events;
    void *user;
    int total, next, waiting, running;
    bool stopped; /* nothing more is started */
    uv_timer_t look;
    struct instance *instances;
};

struct launch *launch_create(uv_loop_t *loop, const struct launch_plan *plan, const struct launch_events *events,
                             void *user)
{
    struct launch *l = pm_alloc(sizeof *l);
    l->loop = loop;
    l->plan = *plan;
    l->events = *events;
    l->user = user;
    l->total = plan->options->nodes + plan->options->spares;
    l->instances = pm_alloc((size_t)l->total * sizeof *l->instances);
    for (int i = 0; i < l->total; i++)
        l->instances[i] = (struct instance){.launch = l, .node = i, .pidfd = -1};
    uv_timer_init(loop, &l->look);
    l->look.data = l;
    return l;
}

static void keep_line(struct instance *in)
{
    in->line[in->line_len] = '\0';
    in->line_len = 0;
    if (in->line[strspn(in->line, " =|\t")] == '\0')
        return;
    memcpy(in->last, in->line, sizeof in->last);
    log_debug("node %d: mpiexec says: %s", in->node, in->line);
}

static void start_instance(struct instance *in);

/* Once an instance has ended that nobody has heard of, and nothing of it is left here: another one. */
static void handle_closed(uv_handle_t *handle)
{
    struct instance *in = handle->data;
    if (--in->handles > 0 || in->joined || in->running || in->launch->stopped)
        return;
    log_info("node %d: mpiexec ended during the start (%s); it is started again", in->node, in->last);
    close(in->pidfd);
    start_instance(in);
}

static bool may_start_again(const struct instance *in)
{
    return !in->joined && !in->launch->stopped && in->starts < STARTS_MAX;
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
    struct instance *in = stream->data;
    for (ssize_t i = 0; i < n; i++) {
        if (buf->base[i] == '\n')
            keep_line(in);
        else if (in->line_len < LAST_LINE - 1)
            in->line[in->line_len++] = buf->base[i];
    }
    if (n < 0) {
        if (in->line_len)
            keep_line(in);
        uv_close((uv_handle_t *)stream, handle_closed);
    }
}

static void exit_ready(uv_poll_t *watch, int status, int events)
{
    struct instance *in = watch->data;
    int wait_status = 0;
    (void)status;
    (void)events;
    if (waitpid(in->pid, &wait_status, WNOHANG) == 0)
        return;
    /* what it said last may still be in the pipe */
    char rest[1024];
    uv_os_fd_t fd;
    ssize_t n;
    if (!uv_is_closing((uv_handle_t *)&in->output) && uv_fileno((uv_handle_t *)&in->output, &fd) == 0 &&
        (n = read(fd, rest, sizeof rest)) > 0) {
        uv_buf_t buf = uv_buf_init(rest, sizeof rest);
        output_ready((uv_stream_t *)&in->output, n, &buf);
    }
    if (in->line_len)
        keep_line(in);
    in->running = false;
    in->launch->running--;
    if (may_start_again(in)) {
        in->launch->waiting--;
        if (!uv_is_closing((uv_handle_t *)&in->output))
            uv_close((uv_handle_t *)&in->output, handle_closed); /* what it has left behind may still hold it */
    } else {
        launch_joined(in->launch, in->node);
        in->launch->events.ended(in->launch->user, in->node, wait_status, in->last);
    }
    uv_close((uv_handle_t *)watch, handle_closed);
}

/* Hydra's settings of the user's environment are for the user's clusters, not for a bed on this machine. */
static bool wanted_in_env(const struct launch *l, const char *variable)
{
    static const char *const hydra[] = {"HYDRA_", "MPIEXEC_", "PMI_", "HYDI_", "MPI_LOCAL", "SLURM_", "PBS_", "LSB_"};
    if (strncmp(variable, LAUNCH_ENV "=", strlen(LAUNCH_ENV) + 1) == 0)
        return false;
    size_t count = l->plan.options->bed == BED_NONE ? 0 : sizeof hydra / sizeof hydra[0];
    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, hydra[i], strlen(hydra[i])) == 0)
            return false;
    return true;
}

static char *launch_variable(const struct launch *l, int node)
{
    char ticket[65], from[32] = "-";
    sodium_bin2hex(ticket, sizeof ticket, l->plan.ticket, 32);
    if (l->plan.options->bed == BED_LOOPBACK)
        snprintf(from, sizeof from, "127.0.0.%d", node + 2);
    else if (l->plan.options->bed == BED_NETNS)
        bed_netns_address(node, from, sizeof from);
    char *text = pm_printf(LAUNCH_ENV "=%016llx,%s,%s,%d,%d,%s", (unsigned long long)l->plan.job_id, ticket,
                           l->plan.host, l->plan.port, node, from);
    sodium_memzero(ticket, sizeof ticket);
    return text;
}

static int build_argv(const struct launch *l, int node, const char **argv, char *host, size_t host_size)
{
    const struct options *o = l->plan.options;
    int n = 0;
    argv[n++] = "mpiexec.hydra";
    if (o->bed == BED_LOOPBACK) {
        argv[n++] = "-launcher", argv[n++] = "fork";
        argv[n++] = "-iface", argv[n++] = "lo";
    } else if (o->bed == BED_NETNS) {
        bed_netns_address(node, host, host_size);
        argv[n++] = "-launcher", argv[n++] = "rsh";
        argv[n++] = "-launcher-exec", argv[n++] = bed_netns_exec(l->plan.netns);
        argv[n++] = "-iface", argv[n++] = "br0";
        argv[n++] = "-hosts", argv[n++] = host;
    } else {
        if (o->launcher)
            argv[n++] = "-launcher", argv[n++] = o->launcher;
        if (o->launcher_exec)
            argv[n++] = "-launcher-exec", argv[n++] = o->launcher_exec;
        argv[n++] = "-hosts", argv[n++] = o->hosts.names[node];
    }
    argv[n++] = "-n", argv[n++] = "1";
    argv[n++] = l->plan.keeld;
    argv[n] = NULL;
    return n;
}

static int spawn(struct instance *in, int output)
{
    struct launch *l = in->launch;
    const char *argv[20];
    char host[64];
    build_argv(l, in->node, argv, host, sizeof host);
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **env = pm_alloc((count + 3) * sizeof *env);
    for (size_t i = 0; i < count; i++)
        if (wanted_in_env(l, environ[i]))
            env[kept++] = environ[i];
    char *variable = launch_variable(l, in->node);
    env[kept++] = variable;
    if (l->plan.netns)
        env[kept++] = (char *)bed_netns_variable(l->plan.netns);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t signals;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, 1);
    posix_spawn_file_actions_adddup2(&files, output, 2);
    posix_spawnattr_init(&attr);
    /* a session of its own: a Ctrl-C at the terminal is for keelrun, which ends the job in order */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attr, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attr, &signals);
    int rc = posix_spawnp(&in->pid, argv[0], &files, &attr, (char *const *)argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    sodium_memzero(variable, strlen(variable));
    free(variable);
    free(env);
    return rc;
}

static void start_instance(struct instance *in)
{
    struct launch *l = in->launch;
    int fds[2], rc = 0;
    in->starts++;
    in->line_len = 0;
    in->had_child = false;
    in->childless = 0;
    if (pipe2(fds, O_CLOEXEC) < 0) {
        l->events.ended(l->user, in->node, -1, strerror(errno));
        return;
    }
    rc = spawn(in, fds[1]);
    close(fds[1]);
    if (rc == 0 && (in->pidfd = (int)syscall(SYS_pidfd_open, in->pid, 0)) < 0)
        rc = errno;
    if (rc != 0) {
        close(fds[0]);
        snprintf(in->last, sizeof in->last, "cannot run mpiexec.hydra: %s", strerror(rc));
        l->events.ended(l->user, in->node, -1, in->last);
        return;
    }
    fcntl(in->pidfd, F_SETFD, FD_CLOEXEC);
    in->running = true;
    in->handles = 2;
    l->running++;
    l->waiting++;
    uv_pipe_init(l->loop, &in->output, 0);
    in->output.data = in;
    uv_pipe_open(&in->output, fds[0]);
    uv_read_start((uv_stream_t *)&in->output, output_alloc, output_ready);
    uv_poll_init(l->loop, &in->exit_watch, in->pidfd);
    in->exit_watch.data = in;
    uv_poll_start(&in->exit_watch, UV_READABLE, exit_ready);
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
    struct launch *l = timer->data;
    for (int i = 0; i < l->total; i++) {
        struct instance *in = &l->instances[i];
        if (!in->running || in->joined)
            continue;
        bool child = has_child(in->pid);
        in->had_child |= child || in->last[0]; /* or it was gone so soon that only its complaint is left */
        in->childless = child || !in->had_child ? 0 : in->childless + 1;
        if (in->childless == GONE_LOOKS) {
            launch_joined(l, i);
            l->events.ended(l->user, i, 0, in->last[0] ? in->last : "what mpiexec.hydra started there has ended");
        }
    }
    if (l->waiting == 0)
        uv_timer_stop(timer);
}

void launch_begin(struct launch *l)
{
    if (l->next < l->total && !uv_is_active((uv_handle_t *)&l->look))
        uv_timer_start(&l->look, look_passed, LOOK_MS, LOOK_MS);
    while (l->next < l->total && l->waiting < FAN_OUT)
        start_instance(&l->instances[l->next++]);
}

void launch_joined(struct launch *l, int node)
{
    struct instance *in = &l->instances[node];
    if (in->joined)
        return;
    in->joined = true;
    l->waiting--;
    launch_begin(l);
}

pid_t launch_mpiexec_pid(const struct launch *l, int node)
{
    return l->instances[node].pid;
}

int launch_running(const struct launch *l)
{
    return l->running;
}

int launch_starts(const struct launch *l, int node)
{
    return l->instances[node].starts;
}

void launch_signal(struct launch *l, int signal)
{
    l->next = l->total;
    l->stopped = true;
    for (int i = 0; i < l->total; i++)
        if (l->instances[i].running)
            syscall(SYS_pidfd_send_signal, l->instances[i].pidfd, signal, NULL, 0);
}

const char *launch_last_line(const struct launch *l, int node)
{
    return l->instances[node].last;
}
