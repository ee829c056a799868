/* A rank's process: its client (runtime/client), its control socket, its birth and death. */
#include "tests/sim/data/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/agent/ranks.h"
#include "runtime/client/move.h"
#include "tests/sim/data/model.h"
#include "tests/sim/data/replicas.h"
#include "tests/sim/data/slides.h"

/* ---- what the client asks of its owner ---- */

static uint64_t env_now(void *user)
{
    const struct runner *r = user;
    return r->w->sched.now;
}

static void env_sleep(void *user, int ms)
{
    struct runner *r = user;
    if (!net_has_work(r->net) && !net_has_work(r->shm))
        process_sleep(process_current(), r->w->sched.now + (uint64_t)ms * MS);
    else
        process_spend(process_current(), 100);
}

static void env_yield(void *user)
{
    struct runner *r = user;
    process_spend(process_current(), sched_between(&r->w->sched, r->turn_ns / 10, r->turn_ns));
}

static keel_status ask(struct runner *r, struct control *request, void **memory)
{
    struct world *w = r->w;
    request->id = ++r->request;
    r->answered = false;
    uint64_t deadline = w->sched.now + 30 * SEC;
    struct command c = {.type = COMMAND_CONTROL, .runner = r, .control = *request};
    node_command(r->node, &c);
    while (!r->answered) {
        if (r->node->dead)
            return KEEL_ERR_AGENT_GONE;
        if (w->sched.now >= deadline)
            return KEEL_ERR_TIMEOUT;
        process_sleep(process_current(), w->sched.now + 5 * MS);
    }
    *request = r->answer;
    struct memory *m = r->answer_memory;
    r->answer_memory = NULL;
    if (memory)
        *memory = m ? m->base : NULL;
    else if (m)
        memory_unref(w, m);
    return (keel_status)request->status;
}

/* One thread at a time. */
static keel_status env_request(void *user, struct control *request, void **memory)
{
    struct runner *r = user;
    while (r->asks)
        process_spend(process_current(), US);
    r->asks = true;
    keel_status status = ask(r, request, memory);
    r->asks = false;
    return status;
}

static void env_unmap(void *user, void *base, size_t bytes)
{
    struct runner *r = user;
    for (struct memory *m = r->w->memory; m; m = m->next)
        if (m->base == base && m->bytes == bytes) {
            memory_unref(r->w, m);
            return;
        }
    world_fail(r->w, "rank %d unmaps what it has not mapped", r->rank);
}

static bool env_tell(void *user, const struct control *request)
{
    struct runner *r = user;
    if (sched_chance(&r->w->sched, 0.05)) /* its socket is full */
        return false;
    struct command c = {.type = COMMAND_CONTROL, .runner = r, .control = *request};
    node_command(r->node, &c);
    return true;
}

static bool env_agent_is_gone(void *user)
{
    const struct runner *r = user;
    return r->node->dead;
}

/* Aligned words are stored whole; in between anything may happen. */
static void env_copy(void *user, void *dst, const void *src, size_t len)
{
    struct runner *r = user;
    uint8_t *to = dst;
    const uint8_t *from = src;
    while (len > 0) {
        size_t head = (8 - ((uintptr_t)to & 7)) & 7, part = len;
        if (sched_chance(&r->w->sched, 0.3)) {
            part = head + 8 * sched_below(&r->w->sched, len / 8 + 1);
            part = part == 0 || part > len ? len : part;
        }
        memcpy(to, from, part);
        to += part;
        from += part;
        len -= part;
        if (len > 0)
            process_spend(process_current(), sched_between(&r->w->sched, 20, 2 * US));
    }
}

static void end(struct runner *r, int code, int signal);

/* At a point where nothing is half-done that only this process can go on with. */
static void env_moves(void *user)
{
    struct runner *r = user;
    if (sched_chance(&r->w->sched, 0.2)) /* it goes on to the next one */
        return;
    if (!move_go(&r->client))
        return;
    slides_went(r->w, r);
    move_ended(&r->client);
    world_say(r->w, "rank %d.%u on node %d ends%s: it moves", r->rank, r->incarnation, r->node->id,
              atomic_load(&r->intents->moved) == MOVED_COMPLETE ? "" : " in doubt");
    r->moved = true;
    end(r, 0, 0);
}

/* ---- life ---- */

struct runner *runner_new(struct node *n, int rank, uint32_t incarnation)
{
    struct world *w = n->w;
    struct runner *r = sim_alloc(sizeof *r);
    *r = (struct runner){.next = w->runners,
                         .w = w,
                         .node = n,
                         .id = ++w->next_runner,
                         .rank = rank,
                         .incarnation = incarnation,
                         .state = RUNNER_STANDBY};
    w->runners = r;
    return r;
}

static void runner_main(void *user)
{
    struct runner *r = user;
    struct world *w = r->w;
    struct client_env env = {.user = r,
                             .now = env_now,
                             .sleep = env_sleep,
                             .yield = env_yield,
                             .request = env_request,
                             .unmap = env_unmap,
                             .tell = env_tell,
                             .agent_is_gone = env_agent_is_gone,
                             .copy = env_copy,
                             .moves = env_moves};
    keel_status status = client_init(&r->client, &env, &r->welcome, r->node->page, r->intents, r->net, r->shm);
    if (status != KEEL_OK) {
        world_fail(w, "rank %d cannot join: %s", r->rank, keel_status_name(status));
        return;
    }
    r->client.timeout_ns = w->setup.timeout_ns;
    r->client.looks.short_ns = sched_chance(&w->sched, 0.5) ? 0 : 2 * US;
    r->own->user = client_own_connection(&r->client);
    r->client.looks.once = true;
    r->turn_ns = sched_chance(&w->sched, 0.25) ? 500 : sched_between(&w->sched, 500, 4 * US);
    r->client.connections.bytewise = sched_chance(&w->sched, 0.5);
    client_attach(&r->client, r->own);
    hall_attach(&r->client, r->node->hall);
    r->client.ready = true;
    r->joined = true;
    if (w->setup.fail_at && w->setup.fail_rank == r->rank && (r->incarnation == 0 || w->setup.fail_again)) {
        r->process.heap.fail_at = r->process.heap.allocations + w->setup.fail_at;
        r->process.heap.fail_more = w->setup.fail_more;
    }
    if (w->replicas)
        replicas_run(r);
    else
        program_run(r);
    runner_exit(r, 0);
}

/* Megabytes, of which little is used: only that costs time. */
static void open_hall(struct node *n)
{
    size_t bytes = hall_bytes(n->page, (uint32_t)n->id);
    if (n->hall || !bytes)
        return;
    n->hall = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    n->hall_bytes = bytes;
    if (n->hall == MAP_FAILED) {
        perror("hall");
        exit(2);
    }
}

static void make_intents(struct runner *r)
{
    enum { ALIGN = _Alignof(struct intent_page) };
    r->intents_memory = sim_alloc(sizeof *r->intents + ALIGN);
    uintptr_t at = (uintptr_t)r->intents_memory;
    r->intents = (void *)((char *)r->intents_memory + (ALIGN - at % ALIGN) % ALIGN);
}

void runner_welcome(struct runner *r)
{
    struct node *n = r->node;
    struct world *w = n->w;
    struct proc *proc = ranks_find(&n->agent, r->id);
    struct conn *c = proc ? ranks_conn(&n->agent, proc) : NULL;
    if (!c) {
        agent_break(&n->agent, "no memory to talk to a rank");
        return;
    }
    open_hall(n);
    make_intents(r);
    r->state = RUNNER_RUNS;
    process_start(&r->process, &w->sched, n->id, r->rank, r->incarnation, runner_main, r,
                  sched_between(&w->sched, 5 * US, 300 * US));
    r->net = net_open(&w->net, &r->process, false);
    r->shm = net_open(&w->net, &r->process, true);
    struct tp_ep *ep;
    net_pair(n->shm, c, &ep, r->shm, NULL, &r->own);
    ranks_welcome(&n->agent, proc, life_of(r->rank, r->incarnation), ep, r->intents, &r->welcome);
    world_say(w, "rank %d.%u starts on node %d", r->rank, r->incarnation, n->id);
}

void runner_answer(struct runner *r, const struct control *reply, int64_t handle)
{
    if (r->state != RUNNER_RUNS || reply->id != r->request)
        return;
    struct memory *m = handle >= 0 ? memory_find(r->w, handle) : NULL;
    if (m)
        m->refs++;
    r->answer = *reply;
    r->answer_memory = m;
    r->answered = true;
    process_signal(&r->process);
}

/* The agent holds a pidfd. */
static void noticed(void *arg, uint64_t how)
{
    struct runner *r = arg;
    struct command c = {
        .type = COMMAND_EXITED, .runner = r, .code = (int)(how & 0xff), .signal = (int)(how >> 8), .moved = r->moved};
    node_command(r->node, &c);
}

static void end(struct runner *r, int code, int signal)
{
    struct world *w = r->w;
    bool ran = r->state == RUNNER_RUNS;
    r->state = RUNNER_ENDED;
    r->killed = signal != 0;
    model_rank_ends(w, r, signal != 0);
    if (ran) {
        if (!r->node->off) {
            net_owner_died(r->net);
            net_owner_died(r->shm);
        }
    }
    sched_at(&w->sched, w->sched.now + sched_between(&w->sched, 5 * US, 400 * US), noticed, r,
             (uint64_t)signal << 8 | (uint64_t)code);
    if (ran)
        process_kill(&r->process);
}

void runner_kill(struct runner *r, int signal)
{
    if (r->state == RUNNER_ENDED)
        return;
    if (r->state == RUNNER_RUNS)
        world_say(r->w, "rank %d.%u on node %d is killed", r->rank, r->incarnation, r->node->id);
    end(r, 0, signal);
}

void runner_exit(struct runner *r, int code)
{
    world_say(r->w, "rank %d.%u ends", r->rank, r->incarnation);
    end(r, code, 0);
}

/* It is not waited for any longer. */
static void release_ends(void *arg, uint64_t release)
{
    struct runner *r = arg;
    if (r->state != RUNNER_RUNS || r->node->dead || r->releases != release)
        return;
    struct proc *proc = ranks_find(&r->node->agent, r->id);
    if (!proc || !ranks_overdue(&r->node->agent, proc))
        return;
    world_say(r->w, "rank %d.%u on node %d has not ended by itself", r->rank, r->incarnation, r->node->id);
    r->moved = true;
    end(r, 0, 9);
}

void runner_release(struct runner *r)
{
    struct sched *s = &r->w->sched;
    uint64_t most = sched_chance(s, 0.6) ? 300 * MS : sched_chance(s, 0.5) ? 20 * MS : 300 * US;
    r->released = true;
    sched_at(s, s->now + sched_below(s, most), release_ends, r, ++r->releases);
}

void runner_stay(struct runner *r)
{
    r->released = false;
    if (!sched_chance(&r->w->sched, 0.2)) /* else its owner hears of it too late, and asks */
        r->releases++;
}

static void runner_thaw(void *arg, uint64_t unused)
{
    (void)unused;
    struct runner *r = arg;
    if (r->state == RUNNER_RUNS && !r->node->process.frozen)
        process_thaw(&r->process);
    else if (r->state == RUNNER_RUNS)
        sched_at(&r->w->sched, r->w->sched.now + MS, runner_thaw, r, 0);
}

void runner_freeze(struct runner *r, uint64_t ns)
{
    if (r->state != RUNNER_RUNS || r->process.frozen)
        return;
    world_say(r->w, "rank %d is frozen for %.3f ms", r->rank, (double)ns / MS);
    sched_at(&r->w->sched, r->w->sched.now + ns, runner_thaw, r, 0);
    process_freeze(&r->process);
}

void runner_free(struct runner *r)
{
    if (r->state == RUNNER_RUNS || r->process.fiber)
        process_free(&r->process);
}
