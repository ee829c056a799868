#include "pm/run/launch.h"

#include "pm/wire/bytes.h"
#include "pm/wire/hydra.h"
#include "pm/wire/message.h"
#include "pm/wire/ticket.h"
#include "runtime/base/log.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OURS_AT_A_TIME = 32,  /* mpiexec that we run and whose agents have not joined */
    THEIRS_AT_A_TIME = 8, /* the same of an agent */
    STARTS_MAX = 3,       /* of a node's mpiexec: it ends when somebody says nonsense to its listener */
    ARGS_MAX = 20,
    OURS = -1
};

struct start { /* of a node */
    struct launch *launch;
    struct hydra hydra; /* if it is ours */
    int by;             /* OURS, or whose agent's */
    int times;
    bool waiting; /* started, and not joined */
    bool joined, given_up;
    pid_t pid;
    /* once it has joined, as one that starts others */
    int room, asked;
};

struct launch {
    uv_loop_t *loop;
    struct launch_plan plan;
    struct launch_events events;
    void *user;
    int total, direct;     /* nodes; those that we start ourselves */
    int next, next_handed; /* not begun yet, of the two kinds */
    int waiting, running;  /* ours */
    int asked;             /* of agents, and not joined */
    int turn;              /* whose turn it is among the agents */
    bool stopped;          /* nothing more is started */
    struct start *starts;
};

struct launch *launch_create(uv_loop_t *loop, const struct launch_plan *plan, const struct launch_events *events,
                             void *user)
{
    struct launch *l = pm_alloc(sizeof *l);
    const struct options *o = plan->options;
    l->loop = loop;
    l->plan = *plan;
    l->events = *events;
    l->user = user;
    l->total = o->job.nodes + o->job.spares;
    l->direct = l->total < o->fan_out ? l->total : o->fan_out;
    l->next_handed = l->direct;
    l->starts = pm_alloc((size_t)l->total * sizeof *l->starts);
    for (int i = 0; i < l->total; i++)
        l->starts[i] = (struct start){.launch = l, .by = OURS};
    return l;
}

/* ---- what is run ---- */

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

/* The address on this machine that a node of a bed has; "-" elsewhere. */
static void node_address(const struct launch *l, int node, char *out, size_t size)
{
    if (l->plan.options->bed == BED_LOOPBACK)
        bed_loopback_address(node, out, size);
    else if (l->plan.options->bed == BED_NETNS)
        bed_netns_address(node, out, size);
    else
        snprintf(out, size, "-");
}

/* by: where it is run. */
static void build_argv(const struct launch *l, int by, int node, const char **argv, const char *address)
{
    const struct options *o = l->plan.options;
    int n = 0;
    argv[n++] = "mpiexec.hydra";
    if (o->bed == BED_LOOPBACK) {
        argv[n++] = "-launcher", argv[n++] = "fork";
        argv[n++] = "-iface", argv[n++] = "lo";
    } else if (o->bed == BED_NETNS) {
        argv[n++] = "-launcher", argv[n++] = "rsh";
        argv[n++] = "-launcher-exec", argv[n++] = bed_netns_exec(l->plan.netns);
        argv[n++] = "-iface", argv[n++] = by == OURS ? "br0" : "veth0";
        argv[n++] = "-hosts", argv[n++] = address;
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
}

static void start_here(struct launch *l, int node)
{
    struct start *s = &l->starts[node];
    const char *argv[ARGS_MAX];
    char address[32];
    size_t count = 0, kept = 0;
    node_address(l, node, address, sizeof address);
    build_argv(l, OURS, node, argv, address);
    while (environ[count])
        count++;
    char **env = pm_alloc((count + 5) * sizeof *env);
    for (size_t i = 0; i < count; i++)
        if (wanted_in_env(l, environ[i]))
            env[kept++] = environ[i];
    char *variable = ticket_variable(l->plan.job_id, l->plan.ticket, l->plan.host, l->plan.port, node, address);
    env[kept++] = variable;
    env[kept++] = (char *)NO_BACKTRACE_IPATH;
    env[kept++] = (char *)NO_BACKTRACE_HFI;
    if (l->plan.netns)
        env[kept++] = (char *)bed_netns_variable(l->plan.netns);
    s->times++;
    if (!s->waiting)
        l->waiting++;
    s->waiting = true;
    l->running++;
    hydra_start(&s->hydra, &(struct hydra_command){.argv = argv, .env = env});
    s->pid = s->hydra.pid;
    sodium_memzero(variable, strlen(variable));
    free(variable);
    free(env);
}

/* It has joined, or will not. */
static void settle(struct launch *l, struct start *s)
{
    if (!s->waiting)
        return;
    s->waiting = false;
    if (s->by == OURS) {
        l->waiting--;
    } else {
        l->starts[s->by].asked--;
        l->asked--;
    }
}

static void ended(struct hydra *h, int wait_status)
{
    struct start *s = h->user;
    struct launch *l = s->launch;
    l->running--;
    if (wait_status != -1 && !s->joined && !s->given_up && !l->stopped && s->times < STARTS_MAX) {
        log_info("node %d: mpiexec ended during the start (%s); it is started again", h->node, h->last);
        start_here(l, h->node);
        return;
    }
    settle(l, s);
    s->given_up = true;
    l->events.ended(l->user, h->node, wait_status, h->last);
}

static void idle(struct hydra *h)
{
    struct start *s = h->user;
    struct launch *l = s->launch;
    settle(l, s);
    s->given_up = true;
    l->events.ended(l->user, h->node, 0, h->last[0] ? h->last : "what mpiexec.hydra started there has ended");
}

static void start_ours(struct launch *l, int node)
{
    static const struct hydra_events events = {ended, idle};
    struct start *s = &l->starts[node];
    s->by = OURS;
    hydra_init(&s->hydra, l->loop, node, &events, s);
    start_here(l, node);
}

/* ---- who starts what ---- */

/* An agent that has room for another one, by turns, or OURS. */
static int next_starter(struct launch *l)
{
    for (int i = 0; i < l->total; i++) {
        int at = (l->turn + i) % l->total;
        if (l->starts[at].joined && l->starts[at].room > 0 && l->starts[at].asked < THEIRS_AT_A_TIME) {
            l->turn = at + 1;
            return at;
        }
    }
    return OURS;
}

static void hand_over(struct launch *l, int by, int node)
{
    const char *argv[ARGS_MAX];
    char address[32];
    struct start *s = &l->starts[node];
    node_address(l, node, address, sizeof address);
    build_argv(l, by, node, argv, address);
    s->by = by;
    s->times++;
    s->waiting = true;
    l->starts[by].room--;
    l->starts[by].asked++;
    l->asked++;
    l->events.hand_over(l->user, by, node, argv, address);
}

/* The nodes of a bed have this machine's processors: with more at a time each is late for everything. */
static bool may_hand_over(const struct launch *l)
{
    return l->plan.options->bed == BED_NONE || l->waiting + l->asked < OURS_AT_A_TIME;
}

void launch_begin(struct launch *l)
{
    int by;
    while (!l->stopped && l->next < l->direct && l->waiting < OURS_AT_A_TIME)
        start_ours(l, l->next++);
    while (!l->stopped && l->next_handed < l->total && may_hand_over(l) && (by = next_starter(l)) != OURS)
        hand_over(l, by, l->next_handed++);
}

void launch_joined(struct launch *l, int node)
{
    struct start *s = &l->starts[node];
    if (s->joined)
        return;
    settle(l, s);
    s->joined = true;
    s->room = launch_handed_most(l);
    if (s->by == OURS)
        hydra_settled(&s->hydra);
    launch_begin(l);
}

void launch_handed_started(struct launch *l, int by, int node, pid_t pid)
{
    if (l->starts[node].by == by)
        l->starts[node].pid = pid;
}

/* Its host may not be allowed to reach the others: it gets no more. */
void launch_handed_ended(struct launch *l, int by, int node, const char *text)
{
    struct start *s = &l->starts[node];
    if (s->by != by || !s->waiting || l->stopped)
        return;
    log_info("node %d could not be started from node %d (%s); it is started from here", node, by, text);
    settle(l, s);
    l->starts[by].room = 0;
    start_ours(l, node);
    launch_begin(l);
}

int launch_handed_most(const struct launch *l)
{
    int others = l->total - l->direct;
    return others < l->plan.options->fan_out ? others : l->plan.options->fan_out;
}

pid_t launch_mpiexec_pid(const struct launch *l, int node)
{
    return l->starts[node].pid;
}

int launch_by(const struct launch *l, int node)
{
    return l->starts[node].by;
}

int launch_running(const struct launch *l)
{
    return l->running;
}

int launch_starts(const struct launch *l, int node)
{
    return l->starts[node].times;
}

void launch_signal(struct launch *l, int signal)
{
    l->stopped = true;
    for (int i = 0; i < l->total; i++)
        hydra_signal(&l->starts[i].hydra, signal);
}

const char *launch_last_line(const struct launch *l, int node)
{
    return l->starts[node].hydra.last;
}
