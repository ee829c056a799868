#include "pm/run/launch.h"

#include "pm/run/launch_way.h"
#include "pm/wire/bytes.h"
#include "pm/wire/quit.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"

#include <assert.h>
#include <sodium.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    OURS_AT_A_TIME = 32,  /* mpiexec that we run and whose agents have not joined */
    THEIRS_AT_A_TIME = 8, /* the same of an agent */
    STARTS_MAX = 3,       /* of a node: an ssh may be killed, an sshd asked by too many at a time */
    AGAIN_MS = 250,       /* before the next */
    OURS = -1
};

struct start { /* of a node */
    struct launch *launch;
    struct hydra hydra; /* if it is ours */
    int by;             /* OURS, or whose agent's */
    int times;
    uv_timer_t again;
    bool waiting; /* started, and not joined */
    bool joined, given_up;
    pid_t pid;         /* of the launcher */
    uint64_t begun_ms; /* of the loop; 0: not yet */
    /* once it has joined, as one that starts others */
    int room, asked;
};

/* What the attempts to start a node were given. */
struct given {
    struct ticket now;
    bool taken;
    uint64_t past[STARTS_MAX]; /* names of those of earlier ones */
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
    struct given *given; /* secret */
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
    l->given = secret_alloc((size_t)l->total * sizeof *l->given);
    if (!l->given)
        pm_quit(1, "out of memory");
    for (int i = 0; i < l->total; i++) {
        l->starts[i] = (struct start){.launch = l, .by = OURS};
        uv_timer_init(loop, &l->starts[i].again);
        l->starts[i].again.data = &l->starts[i];
    }
    return l;
}

json_t *launch_encode(const struct launch *l)
{
    static_assert((int)START_NETNS == (int)BED_NETNS && (int)START_LOOPBACK == (int)BED_LOOPBACK, "one list of beds");
    const struct ticket none = {0};
    struct start_plan plan;
    launch_way(&l->plan, 0, &none, &plan);
    const struct start_way way = {.bed = (enum start_bed)l->plan.options->bed,
                                  .launcher = (char *)plan.launcher,
                                  .program = (char *)plan.program,
                                  .way = plan.way};
    return start_way_encode(&way);
}

/* ---- what is run ---- */

/* A plan for the next attempt, with a ticket of its own. It holds the ticket: the caller wipes it. */
static void make_plan(const struct launch *l, int node, struct start_plan *plan)
{
    struct start *s = &l->starts[node];
    struct given *g = &l->given[node];
    g->past[s->times++ % STARTS_MAX] = g->now.id;
    g->taken = false;
    ticket_make(&g->now);
    launch_way(&l->plan, node, &g->now, plan);
}

static void start_here(struct launch *l, int node)
{
    struct start *s = &l->starts[node];
    struct start_plan plan;
    char *marker, **env = launch_env(&l->plan, &marker);
    make_plan(l, node, &plan);
    if (!s->begun_ms)
        s->begun_ms = uv_now(l->loop);
    if (!s->waiting)
        l->waiting++;
    s->waiting = true;
    s->pid = 0;
    l->running++;
    start_run(&s->hydra, &plan, env, l->plan.descriptors);
    sodium_memzero(&plan, sizeof plan);
    free(marker);
    free(env);
}

static void launched(struct hydra *h)
{
    struct start *s = h->user;
    s->pid = h->launcher;
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

static const char *how_it_ended(const struct hydra *h, int wait_status)
{
    return h->last[0] ? h->last : wait_status == 0 ? "what was to reach it has ended" : "";
}

static void again(uv_timer_t *timer)
{
    struct start *s = timer->data;
    struct launch *l = s->launch;
    int node = s->hydra.node;
    uv_timer_stop(timer);
    if (!l->stopped)
        start_here(l, node);
}

static void ended(struct hydra *h, int wait_status)
{
    struct start *s = h->user;
    struct launch *l = s->launch;
    l->running--;
    if (wait_status != -1 && !s->joined && !s->given_up && !l->stopped && s->times < STARTS_MAX) {
        log_info("node %d: its start ended before its agent came (%s); it is started again", h->node,
                 how_it_ended(h, wait_status));
        uv_timer_start(&s->again, again, AGAIN_MS, 0); /* an sshd that was asked by too many answers soon */
        return;
    }
    settle(l, s);
    s->given_up = true;
    l->events.ended(l->user, h->node, wait_status, how_it_ended(h, wait_status));
}

static void start_ours(struct launch *l, int node)
{
    static const struct hydra_events events = {launched, ended};
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
    struct start *s = &l->starts[node];
    struct start_plan plan;
    make_plan(l, node, &plan);
    s->by = by;
    s->begun_ms = uv_now(l->loop);
    s->waiting = true;
    l->starts[by].room--;
    l->starts[by].asked++;
    l->asked++;
    l->events.hand_over(l->user, by, node, &plan);
    sodium_memzero(&plan, sizeof plan);
}

/* The nodes of a bed have this machine's processors: with more at a time each is late for everything. */
static bool may_hand_over(const struct launch *l)
{
    return l->plan.options->bed == BED_NONE || l->waiting + l->asked < OURS_AT_A_TIME;
}

/* Neither an agent that has room, nor a node that is on its way and will have. */
static bool nobody_will_start_others(const struct launch *l)
{
    for (int i = 0; i < l->total; i++) {
        const struct start *s = &l->starts[i];
        if (s->joined ? s->room > 0 : s->begun_ms && !s->given_up)
            return false;
    }
    return l->next == l->direct;
}

void launch_begin(struct launch *l)
{
    int by;
    while (!l->stopped && l->next < l->direct && l->waiting < OURS_AT_A_TIME)
        start_ours(l, l->next++);
    while (!l->stopped && l->next_handed < l->total && may_hand_over(l) && (by = next_starter(l)) != OURS)
        hand_over(l, by, l->next_handed++);
    if (!l->stopped && l->next_handed < l->total && nobody_will_start_others(l))
        start_ours(l, l->next_handed++);
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

void launch_give_up(struct launch *l, int node)
{
    struct start *s = &l->starts[node];
    s->given_up = true;
    s->room = 0;
    uv_timer_stop(&s->again);
    settle(l, s);
    if (s->by == OURS)
        hydra_signal(&s->hydra, SIGTERM);
    for (int i = 0; i < l->total && !l->stopped; i++)
        if (l->starts[i].by == node && l->starts[i].waiting) {
            settle(l, &l->starts[i]);
            l->starts[i].begun_ms = 0; /* another one's end is not its delay */
            start_ours(l, i);
        }
    launch_begin(l);
}

bool launch_take_over(struct launch *l, int node)
{
    struct start *s = &l->starts[node];
    if (s->by == OURS || !s->waiting || l->stopped)
        return false;
    s->begun_ms = 0;
    launch_handed_ended(l, s->by, node, "it has not come in time");
    return true;
}

uint64_t launch_begun_ms(const struct launch *l, int node)
{
    return l->starts[node].begun_ms;
}

int launch_handed_most(const struct launch *l)
{
    int others = l->total - l->direct;
    return others < l->plan.options->fan_out ? others : l->plan.options->fan_out;
}

/* ---- tickets ---- */

int launch_ticket(const struct launch *l, uint64_t id, const uint8_t **key)
{
    for (int i = 0; i < l->total; i++) {
        const struct given *g = &l->given[i];
        if (g->now.id == id && l->starts[i].times > 0) {
            *key = g->now.key;
            return i;
        }
        for (int k = 0; k < STARTS_MAX; k++)
            if (g->past[k] && g->past[k] == id)
                return LAUNCH_PAST;
    }
    return LAUNCH_UNKNOWN;
}

bool launch_take(struct launch *l, int node)
{
    bool first = !l->given[node].taken;
    l->given[node].taken = true;
    return first;
}

void launch_give_back(struct launch *l, int node)
{
    l->given[node].taken = false;
}

pid_t launch_launcher_pid(const struct launch *l, int node)
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
