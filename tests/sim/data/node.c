/* A node: the loop of an agent's data thread around the real data half, as runtime/plane has it. */
#include "tests/sim/data/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/repair.h"
#include "runtime/wire/layout.h"
#include "tests/sim/data/flips.h"
#include "tests/sim/data/model.h"
#include "tests/sim/data/replicas.h"
#include "tests/sim/data/returns.h"
#include "tests/sim/data/slides.h"

/* ---- what the agent asks of its owner ---- */

static void die_later(void *arg, uint64_t unused)
{
    (void)unused;
    struct node *n = arg;
    node_kill(n, false);
}

static void ops_fatal(void *user, const char *why)
{
    struct node *n = user;
    struct world *w = n->w;
    world_say(w, "node %d ends: %s", n->id, why);
    model_agent_ends(w, n, why);
    sched_at(&w->sched, w->sched.now + sched_below(&w->sched, 200 * US), die_later, n, 0);
}

static void ops_event(void *user, const char *name, const char *members)
{
    struct node *n = user;
    world_say(n->w, "node %d: %s%s", n->id, name, members);
    if (strcmp(name, "scrubbed") == 0)
        flips_told(n->w, members);
    model_event(n->w, n, name);
}

/* Is it only for copies that are to be filled? What is whole elsewhere, too, a program is told of; that is another
 * scenario's. */
static bool is_for_new_copies(const struct agent *a, size_t bytes)
{
    bool any = false;
    for (const struct store_segment *s = a->store.first; s; s = s->next)
        for (int slot = 0; slot < a->view.nodes; slot++) {
            const struct view_copyset *g = &a->view.copyset[copyset_of(slot, s->redundancy)];
            int at = view_copy_at(g, a->self);
            if (at < 0 || s->copy[slot].base || s->copy[slot].lost ||
                layout_memory_bytes(layout_copy_bytes(s->bytes_per_rank, (uint64_t)a->store.slot_ranks[slot])) != bytes)
                continue;
            if (g->copy[at].whole || repair_is_filled(a, copyset_of(slot, s->redundancy)))
                return false;
            any = true;
        }
    return any;
}

/* Only what is vast is: no other copy is as large. */
static bool is_scant(struct node *n, size_t bytes)
{
    return n->w->setup.scant && bytes >= VAST_COPY && sched_chance(&n->w->sched, 0.2);
}

static bool has_room(struct node *n, size_t bytes)
{
    int room = n->w->setup.room[n->id];
    return room < 0 || !is_for_new_copies(&n->agent, bytes) || n->new_copies++ < room;
}

static keel_status ops_memory_make(void *user, size_t bytes, void **base, int64_t *handle)
{
    struct node *n = user;
    if (is_scant(n, bytes))
        return KEEL_ERR_NOMEM;
    if (!has_room(n, bytes))
        return n->id % 2 ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
    struct memory *m = sim_alloc(sizeof *m);
    *m = (struct memory){
        .next = n->w->memory, .node = n->id, .bytes = bytes, .handle = ++n->w->next_handle, .refs = 1, .agents = true};
    if (bytes > PAGES_MIN)
        m->pages = pages_alloc(bytes, &m->base);
    else
        m->base = sim_alloc(bytes);
    n->w->memory = m;
    *base = m->base;
    *handle = m->handle;
    return KEEL_OK;
}

static void ops_memory_free(void *user, void *base, size_t bytes, int64_t handle)
{
    struct node *n = user;
    struct memory *m = memory_find(n->w, handle);
    if (!m || m->base != base || m->bytes != bytes)
        world_fail(n->w, "node %d frees memory that it does not have", n->id);
    else {
        m->agents = false;
        memory_unref(n->w, m);
    }
}

static keel_status ops_memory_fill(void *user, void *base, int64_t handle, size_t offset, const void *from,
                                   size_t bytes)
{
    struct node *n = user;
    struct memory *m = memory_find(n->w, handle);
    if (!m || m->base != base || offset > m->bytes || bytes > m->bytes - offset)
        world_fail(n->w, "node %d writes to memory that it does not have", n->id);
    else if (n->w->setup.room[n->id] >= 0 && sched_chance(&n->w->sched, 0.02))
        return KEEL_ERR_NOMEM; /* what it was given is not behind it */
    else
        memcpy((char *)base + offset, from, bytes);
    return KEEL_OK;
}

static void ops_memory_empty(void *user, void *base, int64_t handle, size_t offset, size_t bytes)
{
    struct node *n = user;
    struct memory *m = memory_find(n->w, handle);
    if (!m || m->base != base || offset > m->bytes || bytes > m->bytes - offset)
        world_fail(n->w, "node %d empties memory that it does not have", n->id);
    else
        memset((char *)base + offset, 0, bytes);
}

struct memory *memory_find(struct world *w, int64_t handle)
{
    struct memory *m = w->memory;
    while (m && m->handle != handle)
        m = m->next;
    return m;
}

struct memory *memory_at(const struct world *w, int node, const void *at)
{
    const uint8_t *byte = at;
    struct memory *m = w->memory;
    while (m && !(m->pages && m->node == node && byte >= m->base && byte < m->base + m->bytes))
        m = m->next;
    return m;
}

void memory_unref(struct world *w, struct memory *m)
{
    if (--m->refs > 0)
        return;
    struct memory **link = &w->memory;
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    if (m->pages)
        pages_free(m->pages);
    else
        free(m->base);
    free(m);
}

static struct runner *runner_of(const struct world *w, int id)
{
    struct runner *r = w->runners;
    while (r && r->id != id)
        r = r->next;
    return r;
}

static void ops_answer(void *user, struct proc *proc, const struct control *reply, int64_t handle)
{
    struct node *n = user;
    struct runner *r = runner_of(n->w, proc->id);
    if (r)
        runner_answer(r, reply, handle);
}

struct spawn {
    struct node *node;
    struct life life;
};

static void spawned(void *arg, uint64_t unused)
{
    (void)unused;
    struct spawn *s = arg;
    struct world *w = s->node->w;
    if (!s->node->dead && w->refused < w->setup.refusals && !w->healing && sched_chance(&w->sched, 0.6)) {
        w->refused++;
        world_say(w, "node %d cannot start rank %d", s->node->id, s->life.rank);
        node_command(s->node, &(struct command){
                                  .type = COMMAND_REFUSED, .rank = s->life.rank, .incarnation = s->life.incarnation});
    } else if (!s->node->dead) {
        struct runner *r = runner_new(s->node, s->life.rank, s->life.incarnation);
        node_command(s->node, &(struct command){.type = COMMAND_STARTED,
                                                .runner = r,
                                                .rank = s->life.rank,
                                                .incarnation = s->life.incarnation});
    }
    free(s);
}

static void ops_assign(void *user, struct proc *proc, struct life life)
{
    struct node *n = user;
    struct world *w = n->w;
    if (proc) {
        struct runner *r = runner_of(w, proc->id);
        r->rank = life.rank;
        r->incarnation = life.incarnation;
        runner_welcome(r);
        return;
    }
    struct spawn *s = sim_alloc(sizeof *s);
    *s = (struct spawn){n, life};
    sched_at(&w->sched, w->sched.now + sched_between(&w->sched, 20 * US, 2 * MS), spawned, s, 0);
}

static void ops_release(void *user, struct proc *proc)
{
    const struct node *n = user;
    struct runner *r = runner_of(n->w, proc->id);
    if (r)
        runner_release(r);
}

static void ops_stay(void *user, struct proc *proc)
{
    const struct node *n = user;
    struct runner *r = runner_of(n->w, proc->id);
    if (r)
        runner_stay(r);
}

/* Nothing of it is looked at any more. */
static void ops_forgotten(void *user, struct proc *proc)
{
    const struct node *n = user;
    struct runner *r = runner_of(n->w, proc->id);
    if (!r || r->state != RUNNER_ENDED)
        return;
    free(r->intents_memory);
    r->intents = r->intents_memory = NULL;
}

/* ---- commands ---- */

void node_command(struct node *n, const struct command *c)
{
    if (n->dead)
        return;
    struct command *copy = sim_alloc(sizeof *copy);
    *copy = *c;
    copy->next = NULL;
    *n->commands_tail = copy;
    n->commands_tail = &copy->next;
    process_signal(&n->process);
}

static void started(struct node *n, const struct command *c)
{
    assert(c->runner);
    if (!ranks_started(&n->agent, c->runner->id)) {
        agent_break(&n->agent, "no memory for a process");
        return;
    }
    if (c->rank >= 0)
        runner_welcome(c->runner);
    else
        ranks_view_settled(&n->agent); /* one that waits may be waited for */
}

/* M17 */
static void look_at_beginners(const struct node *n, const bool *refused)
{
    const struct view *v = &n->agent.view;
    for (int r = 0; r < v->ranks; r++) {
        const struct view_rank *k = &v->rank[r];
        if (k->state == RANK_RUNNING && k->joined == v->epoch && refused[k->node])
            world_fail(n->w, "epoch %llu: rank %d is to begin on node %d, which starts no process",
                       (unsigned long long)v->epoch, r, k->node);
    }
}

static void committed(struct node *n, const struct command *c)
{
    world_say(n->w, "node %d commits epoch %llu (%d events, first %u %u)", n->id, (unsigned long long)c->epoch, c->n,
              c->n ? c->event[0].type : 0, c->n ? c->event[0].a : 0);
    bool refused[NODES_MAX];
    memcpy(refused, n->agent.view.refuses, (size_t)view_ids(&n->agent.view) * sizeof *refused);
    model_commit(n->w, n, c);
    recover_commit(&n->agent, c->epoch, c->event, c->n, c->value);
    look_at_beginners(n, refused);
    replicas_committed(n);
    disasters_committed(n->w, n->id);
}

static void job_over(struct node *n)
{
    if (n->over)
        return;
    n->over = true;
    model_over(n->w, n);
}

static void run_command(struct node *n, const struct command *c)
{
    struct agent *a = &n->agent;
    struct proc *proc = c->runner ? ranks_find(a, c->runner->id) : NULL;
    switch (c->type) {
    case COMMAND_STARTED:
        started(n, c);
        break;
    case COMMAND_EXITED:
        if (proc && c->moved)
            ranks_moved(a, proc);
        else if (proc)
            ranks_exited(a, proc, c->code, c->signal);
        break;
    case COMMAND_REFUSED:
        ranks_refused(a, life_of(c->rank, c->incarnation));
        break;
    case COMMAND_MOVE:
        n->w->moves += ranks_release(a, life_of(c->rank, c->incarnation), c->node, c->order);
        break;
    case COMMAND_WEIGH:
        if (c->code == 0)
            weighing_filled(a, 1 << 30, c->value);
        else if (c->code == 1)
            weighing_left(a, c->value);
        else if (c->code == 2)
            weighing_ask(a, 0, 0);
        else
            a->ops.submit(a->ops.user, &c->event[0]);
        break;
    case COMMAND_CONTROL:
        if (proc && proc->life.rank >= 0 && !proc->exited)
            ranks_control(a, proc, &c->control);
        break;
    case COMMAND_PREPARE:
        recover_prepare(a, c->epoch, c->value, c->event, c->n);
        break;
    case COMMAND_COMMIT:
        committed(n, c);
        break;
    case COMMAND_SETTLED:
        recover_settled(a, c->epoch);
        model_settled(n->w, n, c->epoch);
        replicas_check(n->w, "settled");
        if (a->view.stopped && a->recovery.settled >= a->view.epoch)
            job_over(n);
        break;
    case COMMAND_DOOMED:
        recover_doomed(a, c->node);
        break;
    case COMMAND_SUSPECTED:
    case COMMAND_CLEARED:
        health_suspect(a, c->node, c->type == COMMAND_SUSPECTED);
        break;
    case COMMAND_HALT:
        if (a->view.stopped)
            job_over(n);
        else
            agent_break(a, "halted");
        break;
    }
}

static bool run_commands(struct node *n)
{
    bool any = n->commands != NULL;
    while (n->commands) {
        struct command *c = n->commands;
        n->commands = c->next;
        if (!n->commands)
            n->commands_tail = &n->commands;
        run_command(n, c);
        free(c);
    }
    return any;
}

/* ---- the loop ---- */

static bool one_round(struct node *n)
{
    struct agent *a = &n->agent;
    struct world *w = n->w;
    a->now = w->sched.now;
    bool first = sched_chance(&w->sched, 0.5), busy = false;
    if (first)
        busy |= run_commands(n);
    busy |= agent_poll(a, n->shm) > 0;
    busy |= agent_poll(a, n->net) > 0;
    if (!first)
        busy |= run_commands(n);
    busy |= agent_step(a);
    n->rounds++;
    return busy;
}

static void agent_main(void *user)
{
    struct node *n = user;
    struct sched *s = &n->w->sched;
    for (;;) {
        n->working = true;
        bool busy = one_round(n);
        n->working = false;
        process_spend(&n->process, sched_chance(s, 0.002) ? sched_below(s, 2 * MS) : sched_between(s, 200, 2 * US));
        if (!busy && !n->commands && !net_has_work(n->net) && !net_has_work(n->shm))
            process_sleep(&n->process, agent_deadline(&n->agent));
    }
}

static unsigned ops_look_at(void *user, const struct proc *proc, uint64_t *ticks)
{
    (void)user;
    (void)proc;
    *ticks = 0;
    return PAGE_PROCESS_RUNS;
}

static void ops_failed(void *user)
{
    (void)user; /* the ranks of this simulation read the page */
}

/* ---- start and end ---- */

void node_init(struct world *w, int id)
{
    struct node *n = &w->node[id];
    const struct setup *s = &w->setup;
    n->w = w;
    n->id = id;
    n->commands_tail = &n->commands;
    process_start(&n->process, &w->sched, id, -1, 0, agent_main, n, sched_between(&w->sched, 1 * US, 50 * US));
    n->net = net_open(&w->net, &n->process, false);
    n->shm = net_open(&w->net, &n->process, true);
    n->page = sim_alloc(page_bytes((uint32_t)s->nodes, (uint32_t)w->members, (uint32_t)s->ranks));
    n->page->tracked = 1; /* writes are marked, also where nobody tracks: within what each copy has for it */
    static const uint8_t secret[32] = {1};
    struct grid_rule rule;
    bool fits = !s->grid.nodes || slides_rule(s, &rule);
    struct agent_config config = {.ops = helper_ops(n),
                                  .secret = secret,
                                  .self = id,
                                  .nodes = s->nodes,
                                  .spares = s->spares,
                                  .room = s->joiners,
                                  .ranks = s->ranks,
                                  .rank_node = s->rank_node,
                                  .policy = s->policy,
                                  .replicas = w->replicas ? &w->replicas->map : NULL,
                                  .check = s->check,
                                  .on_death = s->on_death,
                                  .copies = setup_copies(s),
                                  .grid = s->grid.nodes ? &rule : NULL,
                                  .job = 7,
                                  .incarnation = 1000 + (uint64_t)id,
                                  .net = n->net,
                                  .shm = n->shm,
                                  .page = n->page,
                                  .now = w->sched.now};
    config.ops.fatal = ops_fatal;
    config.ops.event = ops_event;
    config.ops.memory_make = ops_memory_make;
    config.ops.memory_free = ops_memory_free;
    config.ops.memory_fill = ops_memory_fill;
    config.ops.memory_empty = ops_memory_empty;
    config.ops.answer = ops_answer;
    config.ops.assign = ops_assign;
    config.ops.forgotten = ops_forgotten;
    config.ops.release = ops_release;
    config.ops.stay = ops_stay;
    config.ops.look_at = ops_look_at;
    config.ops.failed = ops_failed;
    struct heap *outer = heap_enter(&n->process.heap);
    keel_status status = fits ? agent_init(&n->agent, &config) : KEEL_ERR_ARG;
    heap_enter(outer);
    if (status != KEEL_OK || !helper_init(n))
        world_fail(w, "node %d does not start: %s", id, keel_status_name(status));
    if (s->scrubs || s->flips) { /* a pass takes a moment, so that there are sums to be compared with */
        n->agent.scrub.rate = (uint64_t)1 << 34;
        n->agent.scrub.pass_ns = 2 * MS;
        n->agent.scrub.slack_ns = MS;
    }
    if (s->fail_at && s->fail_node == id) {
        n->process.heap.fail_at = n->process.heap.allocations + s->fail_at;
        n->process.heap.fail_more = s->fail_more;
    }
}

void node_start(struct node *n)
{
    struct world *w = n->w;
    const struct setup *s = &w->setup;
    for (int m = 0; m < w->members; m++) {
        struct tp_addrs addrs = {.n = 1};
        if (!w->node[m].page)
            continue; /* it has not come yet */
        w->node[m].net->table->listen(w->node[m].net, &addrs.of[0]);
        agent_address(&n->agent, m, &addrs, 1000 + (uint64_t)m);
    }
    helper_start(n);
    int most = 0;
    for (int r = 0; r < s->ranks; r++) {
        int here = 0;
        for (int k = 0; k < s->ranks; k++)
            here += s->rank_node[k] == s->rank_node[r];
        most = here > most ? here : most;
        if (s->rank_node[r] == n->id)
            node_command(n, &(struct command){.type = COMMAND_STARTED, .runner = runner_new(n, r, 0), .rank = r});
    }
    if (s->refusals && sched_chance(&w->sched, 0.7))
        most = 0; /* it has no room for a process that waits */
    for (int i = 0; n->id >= s->nodes && i < most; i++)
        node_command(n, &(struct command){.type = COMMAND_STARTED, .runner = runner_new(n, -1, 0), .rank = -1});
}

/* It is told where all are, and all that live where it is; then it begins. */
static void comes(void *arg, uint64_t unused)
{
    (void)unused;
    struct node *n = arg;
    struct world *w = n->w;
    struct tp_addrs addrs = {.n = 1};
    const int first = w->setup.nodes + w->setup.spares;
    /* one before it has not been born yet: its id is not the next */
    if (w->model->view.next_id < n->id || !returns_may_come(w, n->id)) {
        if (!w->healing)
            sched_at(&w->sched, w->sched.now + 2 * MS, comes, n, 0);
        return;
    }
    returns_came(w, n->id);
    world_say(w, "node %d comes, which was %d", n->id, w->setup.join_was[n->id - first] - 1);
    node_init(w, n->id);
    n->dead = false;
    n->net->table->listen(n->net, &addrs.of[0]);
    for (int m = 0; m < w->members && !w->failed; m++)
        if (m != n->id && !w->node[m].dead)
            agent_address(&w->node[m].agent, n->id, &addrs, 1000 + (uint64_t)n->id);
    node_start(n);
}

void node_joins(struct world *w, int id)
{
    struct node *n = &w->node[id];
    n->w = w;
    n->id = id;
    n->dead = true; /* nobody is there */
    sched_at(&w->sched, w->setup.join_at[id - w->setup.nodes - w->setup.spares], comes, n, 0);
}

static void rank_dies(void *arg, uint64_t unused)
{
    (void)unused;
    runner_kill(arg, 9);
}

void node_kill(struct node *n, bool off)
{
    struct world *w = n->w;
    if (n->dead)
        return;
    world_say(w, "node %d %s", n->id, off ? "is switched off" : "is killed");
    model_node_dies(w, n);
    n->dead = true;
    n->off = off;
    w->deaths++;
    bool self = process_current() == &n->process;
    if (!self)
        process_kill(&n->process);
    if (off) {
        net_host_off(&w->net, n->id);
    } else {
        net_owner_died(n->net);
        net_owner_died(n->shm);
    }
    helper_died(n);
    struct runner *own = NULL;
    for (struct runner *r = w->runners; r; r = r->next) {
        if (r->node != n || r->state == RUNNER_ENDED)
            continue;
        if (process_is_current(&r->process) && off)
            own = r;
        else if (off)
            runner_kill(r, 9);
        else /* they go on for a moment */
            sched_at(&w->sched, w->sched.now + sched_below(&w->sched, 100 * US), rank_dies, r, 0);
    }
    if (self)
        process_kill(&n->process);
    else if (own)
        runner_kill(own, 9);
}

static void node_thaw(void *arg, uint64_t ranks)
{
    struct node *n = arg;
    if (n->dead)
        return;
    world_say(n->w, "node %d goes on", n->id);
    process_thaw(&n->process);
    helper_thawed(n);
    for (struct runner *r = n->w->runners; ranks && r; r = r->next)
        if (r->node == n && r->state == RUNNER_RUNS)
            process_thaw(&r->process);
}

void node_freeze(struct node *n, bool ranks, uint64_t ns)
{
    struct world *w = n->w;
    if (n->dead || n->process.frozen)
        return;
    world_say(w, "node %d is frozen%s for %.3f ms", n->id, ranks ? " with its ranks" : "", (double)ns / MS);
    n->frozen_at = w->sched.now;
    sched_at(&w->sched, w->sched.now + ns, node_thaw, n, ranks);
    struct runner *own = NULL;
    for (struct runner *r = w->runners; ranks && r; r = r->next)
        if (r->node == n && r->state == RUNNER_RUNS) {
            if (process_is_current(&r->process))
                own = r;
            else
                process_freeze(&r->process);
        }
    process_freeze(&n->process); /* if it is us, this returns when it thaws */
    if (own)
        process_freeze(&own->process);
}

void node_fini(struct node *n)
{
    process_free(&n->process);
    if (n->hall)
        munmap(n->hall, n->hall_bytes);
    helper_fini(n);
}
