/* A node's helper thread: the real agreement core (detect/member.h), its datagrams and heartbeat reads, and the
 * hand-over of requests and decisions between it and the data thread. A frozen node's helper does nothing; what came
 * meanwhile is handed in when it wakes. */
#include "tests/sim/data/world.h"

#include <stdlib.h>
#include <string.h>

struct message {
    struct node *to;
    int from;
    size_t len;
    uint64_t value;
    uint8_t data[MEMBER_DATAGRAM_MAX];
};

/* Run it in the helper of n, now or when it wakes. False: n is no more. */
static bool deferred(struct node *n, sched_run *run, void *arg, uint64_t number)
{
    if (!n->process.frozen)
        return false;
    struct deferred *d = sim_alloc(sizeof *d);
    *d = (struct deferred){.run = run, .arg = arg, .n = number};
    *n->deferred_tail = d;
    n->deferred_tail = &d->next;
    return true;
}

static bool works(const struct node *n)
{
    return !n->dead && n->member && !n->halted;
}

static void tick(void *arg, uint64_t at);

/* After every call into the core. */
static void sync(struct node *n)
{
    uint64_t at = member_deadline(n->member);
    if (n->halted || at == NEVER)
        return;
    if (at < n->w->sched.now)
        at = n->w->sched.now;
    if (n->tick_at <= at)
        return;
    n->tick_at = at;
    sched_at(&n->w->sched, at + sched_below(&n->w->sched, 20 * US), tick, n, at);
}

static void tick(void *arg, uint64_t at)
{
    struct node *n = arg;
    if (!works(n) || n->tick_at != at || n->process.frozen)
        return;
    n->tick_at = NEVER;
    struct heap *outer = heap_enter(&n->helper_heap);
    member_tick(n->member, n->w->sched.now);
    heap_enter(outer);
    sync(n);
}

/* ---- what comes over the network ---- */

static bool path(const struct world *w, int from, int to)
{
    return !w->net.cut[from][to] && !w->net.off[from] && !w->net.off[to];
}

static void datagram_in(void *arg, uint64_t unused)
{
    struct message *m = arg;
    struct node *n = m->to;
    if (!works(n)) {
        free(m);
        return;
    }
    if (deferred(n, datagram_in, m, unused))
        return;
    struct heap *outer = heap_enter(&n->helper_heap);
    member_receive(n->member, m->from, m->data, m->len, n->w->sched.now);
    heap_enter(outer);
    sync(n);
    free(m);
}

static void datagram_arrives(void *arg, uint64_t unused)
{
    struct message *m = arg;
    if (path(m->to->w, m->from, m->to->id))
        datagram_in(m, unused);
    else
        free(m);
}

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct node *n = user;
    struct world *w = n->w;
    for (int copies = sched_chance(&w->sched, 0.01) ? 2 : 1; copies > 0; copies--) {
        if (sched_chance(&w->sched, 0.01))
            continue;
        struct message *m = sim_alloc(sizeof *m);
        m->to = &w->node[to];
        m->from = n->id;
        m->len = len;
        memcpy(m->data, data, len);
        sched_at(&w->sched, w->sched.now + net_delay(&w->net), datagram_arrives, m, 0);
    }
}

static void heartbeat_back(void *arg, uint64_t unused)
{
    struct message *m = arg;
    struct node *n = m->to;
    if (!works(n) || !path(n->w, m->from, n->id)) {
        free(m);
        return;
    }
    if (deferred(n, heartbeat_back, m, unused))
        return;
    struct heap *outer = heap_enter(&n->helper_heap);
    if (m->value)
        member_heartbeat(n->member, m->from, m->value, n->w->sched.now);
    else
        member_broken(n->member, m->from, n->w->sched.now);
    heap_enter(outer);
    sync(n);
    free(m);
}

/* At the node whose heartbeat is read. The card reads also what a frozen process holds. */
static void heartbeat_there(void *arg, uint64_t unused)
{
    struct message *m = arg;
    struct world *w = m->to->w;
    struct node *target = &w->node[m->from];
    if (!path(w, m->to->id, m->from)) {
        free(m);
        return;
    }
    bool frozen = target->process.frozen && !target->dead;
    if (frozen && !w->net.card && deferred(target, heartbeat_there, m, unused))
        return;
    bool closed = target->dead ||
                  (works(target) && member_believes_dead(target->member, m->to->id)); /* to who was left out, too */
    m->value = closed ? 0 : 1 + (frozen ? target->frozen_at : w->sched.now);
    sched_at(&w->sched, w->sched.now + net_delay(&w->net), heartbeat_back, m, 0);
}

static void on_read(void *user, int node)
{
    struct node *n = user;
    struct message *m = sim_alloc(sizeof *m);
    m->to = n;
    m->from = node;
    sched_at(&n->w->sched, n->w->sched.now + net_delay(&n->w->net), heartbeat_there, m, 0);
}

static void on_watch(void *user, int node, bool on)
{
    struct node *n = user;
    n->watched[node] = on;
}

static void broken_in(void *arg, uint64_t about)
{
    struct node *n = arg;
    bool refused = about >> 32;
    int node = (int)(about & 0xffff);
    if (!works(n) || !path(n->w, node, n->id) || deferred(n, broken_in, arg, about))
        return;
    struct heap *outer = heap_enter(&n->helper_heap);
    if (refused)
        member_refused(n->member, node, n->w->sched.now);
    else
        member_broken(n->member, node, n->w->sched.now);
    heap_enter(outer);
    sync(n);
}

static void kernel_in(void *arg, uint64_t about)
{
    struct node *n = arg;
    if (!works(n) || !path(n->w, (int)about, n->id) || deferred(n, kernel_in, arg, about))
        return;
    struct heap *outer = heap_enter(&n->helper_heap);
    member_kernel(n->member, (int)about, n->w->sched.now);
    heap_enter(outer);
    sync(n);
}

/* The host's kernel answers, unless it is off or cut off. */
static void on_probe(void *user, int node)
{
    struct node *n = user;
    struct world *w = n->w;
    if (!path(w, n->id, node))
        return;
    bool dead = w->node[node].dead;
    sched_at(&w->sched, w->sched.now + 2 * net_delay(&w->net), dead ? broken_in : kernel_in, n,
             (uint64_t)dead << 32 | (uint64_t)node);
}

void helper_died(struct node *dead)
{
    struct world *w = dead->w;
    for (int m = 0; m < w->members; m++)
        if (!dead->off && m != dead->id && w->node[m].watched[dead->id])
            sched_at(&w->sched, w->sched.now + net_delay(&w->net), broken_in, &w->node[m], (uint64_t)dead->id);
}

/* ---- decisions, for the data thread ---- */

static struct command with_events(enum command_type type, uint64_t epoch, uint64_t value,
                                  const struct view_event *events, int n)
{
    struct command c = {.type = type, .epoch = epoch, .value = value, .n = n};
    for (int i = 0; i < n; i++)
        c.event[i] = events[i];
    return c;
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct command c = with_events(COMMAND_PREPARE, epoch, proposal, events, n);
    node_command(user, &c);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct command c = with_events(COMMAND_COMMIT, epoch, max_value, events, n);
    node_command(user, &c);
}

static void on_settled(void *user, uint64_t epoch)
{
    struct command c = {.type = COMMAND_SETTLED, .epoch = epoch};
    node_command(user, &c);
}

static void on_halt(void *user, const char *reason)
{
    struct node *n = user;
    n->halted = true;
    world_say(n->w, "node %d halts: %s", n->id, reason);
    struct command c = {.type = COMMAND_HALT};
    node_command(n, &c);
}

static void on_report(void *user, const struct member_report *report)
{
    struct node *n = user;
    struct command c = {.node = report->node};
    switch (report->kind) {
    case MEMBER_REPORT_VERDICT:
        world_say(n->w, "node %d: node %d is dead (%s)", n->id, report->node, member_evidence_name(report->evidence));
        c.type = COMMAND_DOOMED;
        break;
    case MEMBER_REPORT_SUSPECT:
        c.type = COMMAND_SUSPECTED;
        break;
    case MEMBER_REPORT_CLEARED:
        c.type = COMMAND_CLEARED;
        break;
    default:
        return;
    }
    node_command(n, &c);
}

/* ---- requests of the data thread ---- */

enum ask { ASK_SUBMIT, ASK_CHECK, ASK_REFUSED, ASK_BROKEN, ASK_PREPARED };
struct asked {
    struct node *node;
    enum ask kind;
    int about;
    uint64_t proposal, value;
    struct view_event event;
};

static void ask_in(void *arg, uint64_t unused)
{
    struct asked *q = arg;
    struct node *n = q->node;
    if (!works(n)) {
        free(q);
        return;
    }
    if (deferred(n, ask_in, q, unused))
        return;
    uint64_t now = n->w->sched.now;
    struct heap *outer = heap_enter(&n->helper_heap);
    switch (q->kind) {
    case ASK_SUBMIT:
        member_submit(n->member, &q->event, now);
        break;
    case ASK_CHECK:
        member_check(n->member, q->about, now);
        break;
    case ASK_REFUSED:
        member_refused(n->member, q->about, now);
        break;
    case ASK_BROKEN:
        member_broken(n->member, q->about, now);
        break;
    case ASK_PREPARED:
        member_prepared(n->member, q->proposal, q->value, now);
        break;
    }
    heap_enter(outer);
    sync(n);
    free(q);
}

static void ask(struct node *n, const struct asked *asked)
{
    struct sched *s = &n->w->sched;
    struct asked *q = sim_alloc(sizeof *q);
    *q = *asked;
    q->node = n;
    uint64_t at = s->now + (sched_chance(s, 0.05) ? sched_below(s, 500 * US) : sched_between(s, 200, 5 * US));
    n->helper_at = at > n->helper_at ? at : n->helper_at + 1;
    sched_at(s, n->helper_at, ask_in, q, 0);
}

static void ops_submit(void *user, const struct view_event *e)
{
    ask(user, &(struct asked){.kind = ASK_SUBMIT, .event = *e});
}
static void ops_check(void *user, int node)
{
    ask(user, &(struct asked){.kind = ASK_CHECK, .about = node});
}
static void ops_refused(void *user, int node)
{
    ask(user, &(struct asked){.kind = ASK_REFUSED, .about = node});
}
static void ops_broken(void *user, int node)
{
    ask(user, &(struct asked){.kind = ASK_BROKEN, .about = node});
}
static void ops_prepared(void *user, uint64_t proposal, uint64_t value)
{
    ask(user, &(struct asked){.kind = ASK_PREPARED, .proposal = proposal, .value = value});
}

struct agent_ops helper_ops(struct node *n)
{
    return (struct agent_ops){.user = n,
                              .submit = ops_submit,
                              .check = ops_check,
                              .refused = ops_refused,
                              .broken = ops_broken,
                              .prepared = ops_prepared};
}

/* ---- start, thaw, end ---- */

bool helper_init(struct node *n)
{
    struct world *w = n->w;
    struct member_params p;
    member_params_default(&p, w->members, n->id);
    p.period_ns = 4 * MS;
    p.late_ns = 10 * MS;
    p.ping_ns = 2 * MS;
    p.limit_ns = 40 * MS;
    p.stopped_ns = 40 * MS;
    p.answer_ns = 40 * MS;
    p.startup_ns = 150 * MS;
    p.rto_ns = MS / 2;
    p.rto_max_ns = 10 * MS;
    p.seed = w->setup.seed;
    p.n_born = w->members - w->setup.joiners;
    p.incarnation = 1000 + (uint32_t)n->id;
    if (n->id >= p.n_born) {
        p.was = w->setup.join_was[n->id - p.n_born];
        p.place = w->setup.join_place[n->id - p.n_born];
    }
    p.sponsor = (int)sched_below(&w->sched, (uint64_t)p.n_born);
    struct member_ops ops = {n,         on_send,    on_read, on_watch,  on_probe, on_prepare,
                             on_commit, on_settled, on_halt, on_report, NULL};
    struct heap *outer = heap_enter(&n->helper_heap);
    n->member = member_create(&p, &ops, w->sched.now);
    heap_enter(outer);
    n->tick_at = NEVER;
    n->deferred_tail = &n->deferred;
    return n->member != NULL;
}

void helper_start(struct node *n)
{
    sync(n);
}

void helper_thawed(struct node *n)
{
    struct deferred *d = n->deferred;
    n->deferred = NULL;
    n->deferred_tail = &n->deferred;
    while (d) {
        struct deferred *next = d->next;
        d->run(d->arg, d->n);
        free(d);
        d = next;
    }
    if (!works(n))
        return;
    n->tick_at = NEVER;
    sync(n);
}

void helper_fini(struct node *n)
{
    heap_drop(&n->helper_heap);
    n->member = NULL;
}
