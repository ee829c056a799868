/* The data thread of an agent. One loop: transports, commands of the other threads, ranks' control sockets, timers. It
 * spins for a bounded time after the last request and otherwise sleeps in epoll, so that an idle node burns no processor.
 * This file and procs.c are where the runtime's agent side does I/O and reads the clock. */
#include "runtime/init/plane_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#include "collectives/barrier.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/core/collective_slot.h"
#include "runtime/recovery/push.h"
#include "runtime/recovery/recover.h"
#include "runtime/redundancy/replica.h"
#include "runtime/transport/shm.h"

enum {
    SPIN_US_DEFAULT = 50,
    OVER_GRACE_NS = 500000000, /* others may be dead when the job ends: do not wait longer for them */
    SHORT_SLEEP_NS = 200000,   /* a sleep that was not worth it */
    SPIN_MAX_NS = 400000,
    YIELD_EVERY = 8,           /* polls without work */
    SOCKETS_EVERY_NS = 100000, /* while spinning, look at the sockets this often */
};

struct blob {
    struct tp_addr addr;
    uint64_t incarnation;
    struct helper_blob helper;
};
static_assert(sizeof(struct blob) <= PLANE_BLOB_MAX, "fits");

/* ---- queues between threads ---- */

static void ring(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void push_command(struct plane *p, const struct command *c)
{
    struct command *copy = malloc(sizeof *copy);
    if (!copy) {
        log_error("out of memory: the agent ends");
        abort();
    }
    *copy = *c;
    copy->next = NULL;
    pthread_mutex_lock(&p->lock);
    *p->commands_tail = copy;
    p->commands_tail = &copy->next;
    atomic_store(&p->command_waiting, 1);
    pthread_mutex_unlock(&p->lock);
    ring(p->command_fd);
}

struct upcall *plane_upcall_new(struct plane *p, enum upcall_type type)
{
    struct upcall *u = calloc(1, sizeof *u);
    if (!u)
        node_break(&p->agent, "out of memory");
    else
        u->type = type;
    return u;
}

void plane_upcall(struct plane *p, struct upcall *u)
{
    pthread_mutex_lock(&p->lock);
    *p->upcalls_tail = u;
    p->upcalls_tail = &u->next;
    pthread_mutex_unlock(&p->lock);
    ring(p->wake_fd);
}

static void upcall_free(struct upcall *u)
{
    free(u->rank_node);
    free(u->alive);
    free(u->text);
    free(u);
}

static void upcall_run(struct plane *p, const struct upcall *u)
{
    const struct plane_callbacks *cb = &p->callbacks;
    switch (u->type) {
    case UPCALL_ASSIGNED:
        cb->assigned(cb->user, u->slot, u->rank, u->incarnation);
        break;
    case UPCALL_RESPAWN:
        cb->respawn(cb->user, u->rank, u->incarnation);
        break;
    case UPCALL_VIEW:
        cb->view(cb->user, u->epoch, u->rank_node, u->alive);
        break;
    case UPCALL_JOB_OVER:
        cb->job_over(cb->user, u->code, u->text);
        break;
    case UPCALL_FATAL:
        cb->fatal(cb->user, u->text);
        break;
    case UPCALL_EVENT:
        cb->event(cb->user, u->text);
        break;
    }
}

void plane_dispatch(struct plane *p)
{
    uint64_t count;
    while (read(p->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&p->lock);
    struct upcall *u = p->upcalls;
    p->upcalls = NULL;
    p->upcalls_tail = &p->upcalls;
    pthread_mutex_unlock(&p->lock);
    while (u) {
        struct upcall *next = u->next;
        upcall_run(p, u);
        upcall_free(u);
        u = next;
    }
}

int plane_wake_fd(const struct plane *p)
{
    return p->wake_fd;
}

/* ---- what the agent's parts ask for ---- */

void node_event(struct agent *a, const char *name, const char *fmt, ...)
{
    struct plane *p = a->owner;
    struct upcall *u = plane_upcall_new(p, UPCALL_EVENT);
    if (!u || !(u->text = malloc(1024))) {
        free(u);
        return;
    }
    int n = snprintf(u->text, 1024, "{\"t_ns\":%llu,\"node\":%d,\"event\":\"%s\"", (unsigned long long)clock_now_ns(),
                     a->self, name);
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(u->text + n, 1022 - (size_t)n, fmt, ap);
    va_end(ap);
    if (m < 0 || m >= 1022 - n) { /* never half a JSON text */
        upcall_free(u);
        return;
    }
    strcat(u->text, "}");
    plane_upcall(p, u);
}

static void tell_fatal(struct plane *p, const char *why)
{
    struct upcall *u = plane_upcall_new(p, UPCALL_FATAL);
    if (!u)
        abort();
    u->text = strdup(why);
    plane_upcall(p, u);
}

void node_break(struct agent *a, const char *why)
{
    if (a->broken)
        return;
    a->broken = true;
    atomic_store(&a->page->fenced, 1);
    log_error("%s", why);
    tell_fatal(a->owner, why);
}

void node_submit(struct agent *a, const struct view_event *e)
{
    struct plane *p = a->owner;
    struct member_event event = {.type = e->type, .a = e->a, .b = e->b, .c = e->c, .d = e->d};
    helper_submit(p->helper, &event);
}

void node_check_node(struct agent *a, int node)
{
    struct plane *p = a->owner;
    helper_check(p->helper, node);
}

void node_refused_node(struct agent *a, int node)
{
    struct plane *p = a->owner;
    helper_refused(p->helper, node);
}

void node_prepared(struct agent *a, uint64_t proposal, uint64_t value)
{
    struct plane *p = a->owner;
    helper_prepared(p->helper, proposal, value);
}

/* An ep is about to be destroyed: later events of this batch must not refer to it. */
static void forget_ep(struct plane *p, const struct tp_ep *ep)
{
    for (int i = p->batch_at + 1; i < p->batch_n; i++)
        if (p->batch[i].ep == ep)
            p->batch[i].ep = NULL;
}

static void conn_close(struct plane *p, struct conn *c)
{
    if (!c->ep)
        return;
    forget_ep(p, c->ep);
    tp_ep_destroy(c->ep);
    c->ep = NULL;
    c->up = false;
}

void node_drop_conn(struct agent *a, struct conn *c)
{
    struct plane *p = a->owner;
    struct proc *proc = procs_of_conn(p, c);
    if (proc)
        proc->conn = NULL;
    struct conn **link = &a->conns;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    conn_close(p, c);
    replica_forget(a, c);
    free(c);
}

/* ---- peers ---- */

static void peer_received(void *user, int from, const struct wire *w, const void *body)
{
    struct plane *p = user;
    if (w->type == WIRE_FORWARD)
        replica_forwarded(&p->agent, from, w, body);
    else if (w->type == WIRE_BARRIER)
        barrier_receive(p->agent.barrier, from, body, w->len, p->agent.now);
    else
        push_receive(&p->agent, from, w, body);
}

static void peer_acked(void *user, int node, uint64_t seq)
{
    (void)seq;
    struct plane *p = user;
    replica_acked(&p->agent, node);
    if (p->seg_waits)
        procs_acked(p);
}

static void peer_refused(void *user, int node)
{
    struct plane *p = user;
    helper_refused(p->helper, node);
}

static void peer_broken(void *user, int node)
{
    struct plane *p = user;
    helper_broken(p->helper, node);
}

static void peer_connected(void *user, int node)
{
    (void)user;
    (void)node; /* the stream repeats what was not acknowledged by itself */
}

static void barrier_send(void *user, int to, const void *data, size_t len)
{
    struct plane *p = user;
    struct wire w = {.type = WIRE_BARRIER, .len = (uint32_t)len};
    peer_send(&p->agent.peers, to, &w, data, p->agent.now);
}

static void barrier_complete(void *user, uint64_t seq)
{
    procs_barrier_complete(user, seq);
}

/* ---- connections of ranks and agents ---- */

static struct conn *find_conn(struct agent *a, const struct wire_hello *hello)
{
    for (struct conn *c = a->conns; c; c = c->next)
        if (c->rank == hello->rank && c->incarnation == hello->incarnation && c->node == hello->node)
            return c;
    return NULL;
}

static bool admit_rank(struct plane *p, const struct wire_hello *hello, struct tp_connreq *req)
{
    struct agent *a = &p->agent;
    if (hello->rank >= a->view.ranks || hello->incarnation < a->rank_fence[hello->rank])
        return false;
    struct conn *c = find_conn(a, hello);
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c)
            return false;
        c->rank = hello->rank;
        c->incarnation = (uint32_t)hello->incarnation;
        c->node = hello->node;
        c->next = a->conns;
        a->conns = c;
    }
    conn_close(p, c);
    if (a->net->table->accept(a->net, req, c, &c->ep) != KEEL_OK)
        c->ep = NULL;
    return true;
}

static bool admit_agent(struct plane *p, const struct wire_hello *hello, struct tp_connreq *req)
{
    struct agent *a = &p->agent;
    struct peer *peer = &a->peers.peer[hello->node];
    if (hello->incarnation != a->node_incarnation[hello->node])
        return false;
    struct tp_ep *ep;
    if (a->net->table->accept(a->net, req, peer, &ep) != KEEL_OK)
        return true; /* it tries again */
    if (peer->in)
        forget_ep(p, peer->in);
    peer_accepted(&a->peers, hello->node, ep);
    return true;
}

static void connection_request(struct plane *p, const struct tp_event *e)
{
    struct agent *a = &p->agent;
    struct wire_hello hello;
    bool admitted = false;
    if (wire_hello_valid(e->data, e->len, a->secret, a->job, a->self)) {
        memcpy(&hello, e->data, sizeof hello);
        if (hello.node >= 0 && hello.node < a->members && !a->node_fence[hello.node])
            admitted = hello.rank < 0 ? admit_agent(p, &hello, e->req) : admit_rank(p, &hello, e->req);
    }
    if (admitted)
        return;
    a->net->table->reject(a->net, e->req);
    p->rejected++;
    log_warn("a connection without this job's authenticator, or from the dead, was refused");
    node_event(a, "refused", ",\"count\":%llu", (unsigned long long)p->rejected);
}

static void conn_event(struct plane *p, struct conn *c, const struct tp_event *e)
{
    if (e->type == TP_CONNECTED) {
        c->up = true;
    } else if (e->type == TP_CLOSED) {
        /* What it was writing stays known until the rank is declared dead, or connects again. */
        conn_close(p, c);
    } else if (e->type == TP_RECV) {
        const struct wire *w = e->data;
        if (e->len < sizeof *w || e->len != sizeof *w + w->len) {
            log_error("malformed message from rank %d", c->rank);
            return;
        }
        if (w->type == WIRE_ENTER)
            node_enter(&p->agent, c, w);
        else
            replica_request(&p->agent, c, w, w + 1);
    }
}

static bool run_commands(struct plane *p);

static int poll_transport(struct plane *p, struct tp *tp)
{
    struct agent *a = &p->agent;
    p->batch_n = tp_poll(tp, p->batch, PLANE_BATCH);
    p->batch_at = -1;
    /* The helper thread calls a view settled when all helpers have committed it, and the commit may still be in our queue;
     * but it was put there before anything that another node sends because of it, so it is to be carried out first. */
    if (p->batch_n > 0)
        (void)run_commands(p);
    for (p->batch_at = 0; p->batch_at < p->batch_n; p->batch_at++) {
        const struct tp_event *e = &p->batch[p->batch_at];
        if (e->type == TP_CONNREQ) {
            connection_request(p, e);
            continue;
        }
        if (!e->ep)
            continue;
        struct peer *peer = tp_ep_user(e->ep);
        if (peer >= a->peers.peer && peer < a->peers.peer + a->members)
            peer_event(&a->peers, peer, e, a->now);
        else
            conn_event(p, tp_ep_user(e->ep), e);
    }
    return p->batch_n;
}

/* ---- commands ---- */

static void tell_view(struct plane *p)
{
    const struct view *v = &p->agent.view;
    struct upcall *u = plane_upcall_new(p, UPCALL_VIEW);
    if (!u)
        return;
    u->epoch = v->epoch;
    u->rank_node = calloc((size_t)v->ranks, sizeof *u->rank_node);
    u->alive = calloc((size_t)p->agent.members, sizeof *u->alive);
    if (!u->rank_node || !u->alive) {
        upcall_free(u);
        return;
    }
    for (int r = 0; r < v->ranks; r++)
        u->rank_node[r] = v->rank[r].node;
    for (int m = 0; m < p->agent.members; m++)
        u->alive[m] = v->alive[m];
    plane_upcall(p, u);
}

static void tell_over(struct plane *p)
{
    if (p->over_told)
        return;
    p->over_told = true;
    const struct view *v = &p->agent.view;
    struct upcall *u = plane_upcall_new(p, UPCALL_JOB_OVER);
    if (!u)
        return;
    u->code = v->code;
    if (v->code)
        u->text = strdup(v->why);
    plane_upcall(p, u);
}

static void committed(struct plane *p, const struct command *c)
{
    struct agent *a = &p->agent;
    recover_commit(a, c->epoch, c->event, c->n, c->value);
    procs_view_committed(p, c->value);
    tell_view(p);
    if (a->view.stopped && !p->stop_deadline)
        p->stop_deadline = a->now + OVER_GRACE_NS;
}

static void settled(struct plane *p, const struct command *c)
{
    struct agent *a = &p->agent;
    recover_settled(a, c->epoch);
    procs_view_settled(p);
    if (a->view.stopped && a->settled >= a->view.epoch)
        tell_over(p);
}

static void reported(struct plane *p, const struct member_report *r)
{
    if (r->kind == MEMBER_REPORT_VERDICT && r->node >= 0 && r->node < p->agent.members)
        p->agent.node_doomed[r->node] = true; /* recover_try_answer follows in this round of the loop */
    switch (r->kind) {
    case MEMBER_REPORT_SUSPECT:
    case MEMBER_REPORT_CLEARED:
    case MEMBER_REPORT_VERDICT:
    case MEMBER_REPORT_LINK_BROKEN:
    case MEMBER_REPORT_LINK_OK:
        node_event(&p->agent, member_report_name(r->kind), ",\"about\":%d,\"evidence\":\"%s\",\"text\":\"%s\"", r->node,
                   member_evidence_name(r->evidence), r->text ? r->text : "");
        break;
    default:
        break;
    }
}

static void run_command(struct plane *p, const struct command *c)
{
    struct agent *a = &p->agent;
    struct view_event stop = {VIEW_STOP, (uint32_t)c->code, 0, 0, 0};
    switch (c->type) {
    case COMMAND_PROCESS_STARTED:
        procs_started(p, c);
        break;
    case COMMAND_PROCESS_EXITED:
        procs_exited(p, c);
        break;
    case COMMAND_STOP_JOB:
        node_submit(a, &stop);
        break;
    case COMMAND_PREPARE:
        recover_prepare(a, c->epoch, c->value, c->event, c->n);
        break;
    case COMMAND_COMMIT:
        committed(p, c);
        break;
    case COMMAND_SETTLED:
        settled(p, c);
        break;
    case COMMAND_HALT:
        if (a->view.stopped)
            tell_over(p); /* the others left before us */
        else
            node_break(a, c->text);
        break;
    case COMMAND_REPORT:
        reported(p, &c->report);
        break;
    case COMMAND_QUIT:
        p->quit = true;
        break;
    }
}

static bool run_commands(struct plane *p)
{
    if (!atomic_load_explicit(&p->command_waiting, memory_order_acquire))
        return false;
    uint64_t count;
    while (read(p->command_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&p->lock);
    struct command *c = p->commands;
    p->commands = NULL;
    p->commands_tail = &p->commands;
    atomic_store(&p->command_waiting, 0);
    pthread_mutex_unlock(&p->lock);
    while (c) {
        struct command *next = c->next;
        run_command(p, c);
        free(c);
        c = next;
    }
    return true;
}

/* ---- the loop ---- */

static void handle_sockets(struct plane *p, int timeout_ms)
{
    struct epoll_event ev[16];
    int n = epoll_wait(p->epoll_fd, ev, 16, timeout_ms);
    for (int i = 0; i < n; i++)
        if (ev[i].data.ptr) /* others only wake the loop */
            procs_readable(p, ev[i].data.ptr);
}

static int sleep_ms(const struct plane *p)
{
    uint64_t deadline = peers_deadline(&p->agent.peers);
    uint64_t b = barrier_deadline(p->agent.barrier);
    if (b < deadline)
        deadline = b;
    if (p->stop_deadline && !p->over_told && p->stop_deadline < deadline)
        deadline = p->stop_deadline;
    if (deadline == UINT64_MAX)
        return -1;
    return deadline <= p->agent.now ? 0 : (int)((deadline - p->agent.now) / KEEL_NS_PER_MS + 1);
}

static bool round_of_work(struct plane *p)
{
    struct agent *a = &p->agent;
    a->now = clock_now_ns();
    bool busy = poll_transport(p, a->shm) > 0;
    busy |= poll_transport(p, a->net) > 0;
    busy |= run_commands(p);
    busy |= push_step(a);
    if (a->now >= barrier_deadline(a->barrier))
        barrier_tick(a->barrier, a->now);
    if (p->enter_due) {
        p->enter_due = false;
        procs_try_enter(p);
    }
    peers_tick(&a->peers, a->now);
    recover_try_answer(a);
    if (p->stop_deadline && a->now >= p->stop_deadline)
        tell_over(p);
    return busy;
}

/* Sleep until something comes. Remote reads and writes are served inside the provider and leave no event, so it is the
 * length of the sleep that tells how busy the node is: after a short one it pays to spin longer. Returns the time to spin. */
static uint64_t sleep_and_learn(struct plane *p, uint64_t spin_ns)
{
    uint64_t from = clock_now_ns();
    handle_sockets(p, sleep_ms(p));
    if (clock_now_ns() - from > SHORT_SLEEP_NS)
        return p->spin_ns;
    uint64_t longer = spin_ns * 4;
    return p->spin_ns == 0 ? 0 : longer > SPIN_MAX_NS ? SPIN_MAX_NS : longer;
}

static void *data_thread(void *arg)
{
    struct plane *p = arg;
    struct agent *a = &p->agent;
    pthread_setname_np(pthread_self(), "keel-data");
    uint64_t busy_at = clock_now_ns(), sockets_at = 0, spin_ns = p->spin_ns;
    unsigned idle = 0;
    while (!p->quit) {
        bool busy = round_of_work(p);
        if (busy)
            busy_at = a->now;
        if (a->now - busy_at < spin_ns) {
            if (busy)
                idle = 0;
            else if (idle++ % YIELD_EVERY == 0)
                sched_yield(); /* whoever waits for what was done here, or computes, may need this processor */
            if (a->now - sockets_at > SOCKETS_EVERY_NS) {
                sockets_at = a->now;
                handle_sockets(p, 0);
            }
            continue;
        }
        if (a->shm->table->arm(a->shm) && a->net->table->arm(a->net) &&
            !atomic_load_explicit(&p->command_waiting, memory_order_acquire)) {
            spin_ns = sleep_and_learn(p, spin_ns);
            busy_at = clock_now_ns();
        } else {
            handle_sockets(p, 0);
        }
    }
    return NULL;
}

/* ---- helper thread's callbacks: into the queue ---- */

static void copy_events(struct command *c, const struct member_event *events, int n)
{
    c->n = n;
    for (int i = 0; i < n; i++)
        c->event[i] = (struct view_event){events[i].type, events[i].a, events[i].b, events[i].c, events[i].d};
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct member_event *events, int n)
{
    struct command c = {.type = COMMAND_PREPARE, .epoch = epoch, .value = proposal};
    copy_events(&c, events, n);
    push_command(user, &c);
}

static void on_commit(void *user, uint64_t epoch, const struct member_event *events, int n, uint64_t max_value)
{
    struct command c = {.type = COMMAND_COMMIT, .epoch = epoch, .value = max_value};
    copy_events(&c, events, n);
    push_command(user, &c);
}

static void on_settled(void *user, uint64_t epoch)
{
    struct command c = {.type = COMMAND_SETTLED, .epoch = epoch};
    push_command(user, &c);
}

static void on_halt(void *user, const char *reason)
{
    struct command c = {.type = COMMAND_HALT};
    snprintf(c.text, sizeof c.text, "%s", reason);
    push_command(user, &c);
}

static void on_report(void *user, const struct member_report *report)
{
    struct command c = {.type = COMMAND_REPORT, .report = *report};
    push_command(user, &c);
}

/* ---- start and end ---- */

static keel_status make_page(struct plane *p)
{
    struct agent *a = &p->agent;
    uint32_t nodes = (uint32_t)a->view.nodes, members = (uint32_t)a->members, ranks = (uint32_t)a->view.ranks;
    size_t bytes = page_bytes(nodes, members, ranks);
    int fd = memfd_create("keel-view", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return KEEL_ERR_SYSTEM;
    a->page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    p->page_fd = open(path, O_RDONLY | O_CLOEXEC);
    close(fd);
    if (a->page == MAP_FAILED || p->page_fd < 0)
        return KEEL_ERR_SYSTEM;
    a->page->magic = PAGE_MAGIC;
    a->page->nodes = nodes;
    a->page->members = members;
    a->page->ranks = ranks;
    a->page->self = (uint32_t)a->self;
    for (int r = 0; r < a->view.ranks; r++) {
        page_rank(a->page, r)->slot = (uint32_t)a->view.rank[r].slot;
        page_rank(a->page, r)->index = (uint32_t)a->view.rank[r].index;
    }
    for (int s = 0; s < a->view.nodes; s++)
        page_slot(a->page, s)->ranks = (uint64_t)a->view.slot_ranks[s];
    recover_show_view(a);
    return KEEL_OK;
}

static keel_status make_agent(struct plane *p, const struct plane_config *config)
{
    struct agent *a = &p->agent;
    enum view_policy policy = config->on_failure == ON_FAILURE_DEGRADE ? VIEW_DEGRADE
                              : config->on_failure == ON_FAILURE_ABORT ? VIEW_ABORT
                                                                       : VIEW_SUBSTITUTE;
    a->owner = p;
    a->self = config->node;
    a->members = config->nodes + config->spares;
    a->job = config->job_id;
    memcpy(a->secret, config->secret, sizeof a->secret);
    fault_init(a->self, -1, 0);
    randombytes_buf(&a->incarnation, sizeof a->incarnation);
    a->waiters_tail = &a->waiters;
    a->stash_tail = &a->stash;
    if (!view_init(&a->view, policy, config->nodes, config->spares, config->ranks, config->rank_node))
        return KEEL_ERR_NOMEM;
    size_t slots = (size_t)config->nodes, members = (size_t)a->members, ranks = (size_t)config->ranks;
    a->slots_before = calloc(slots, sizeof *a->slots_before);
    a->node_incarnation = calloc(members, sizeof *a->node_incarnation);
    a->rank_fence = calloc(ranks, sizeof *a->rank_fence);
    a->node_fence = calloc(members, sizeof *a->node_fence);
    a->node_doomed = calloc(members, sizeof *a->node_doomed);
    a->dedup = calloc(slots, sizeof *a->dedup);
    a->push = calloc(slots, sizeof *a->push);
    p->announced = calloc(STORE_SEGMENTS_MAX, sizeof *p->announced);
    p->rank_joined = calloc(ranks, sizeof *p->rank_joined);
    p->rank_started = calloc(ranks, sizeof *p->rank_started);
    if (!a->slots_before || !a->node_incarnation || !a->rank_fence || !a->node_fence || !a->node_doomed || !a->dedup ||
        !a->push || !p->announced || !p->rank_joined || !p->rank_started)
        return KEEL_ERR_NOMEM;
    for (size_t s = 0; s < slots; s++)
        if (!dedup_init(&a->dedup[s], config->ranks))
            return KEEL_ERR_NOMEM;
    return make_page(p);
}

static keel_status open_transports(struct plane *p)
{
    struct agent *a = &p->agent;
    struct tp_config config = {.host = p->host, .provider = "tcp"};
    keel_status status = tp_ofi.open(&config, &a->net);
    if (status == KEEL_OK)
        status = a->net->table->listen(a->net, &p->addr);
    if (status == KEEL_OK)
        status = tp_shm_open(&a->shm);
    struct peers_ops ops = {p, peer_received, peer_acked, peer_refused, peer_broken, peer_connected};
    if (status == KEEL_OK)
        status = peers_init(&a->peers, a->self, a->members, a->net, a->job, a->incarnation, a->secret, &ops);
    if (status == KEEL_OK)
        status = store_init(&a->store, a->net, a->view.nodes, a->view.slot_ranks);
    if (status == KEEL_OK)
        status = store_define(&a->store, SYSTEM_SEGMENT, SYSTEM_SEGMENT_BYTES, KEEL_REDUNDANCY_SHADOW, 0);
    if (status == KEEL_OK)
        status = push_make_copies(a, SYSTEM_SEGMENT);
    return status;
}

static keel_status watch(struct plane *p, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? KEEL_OK : KEEL_ERR_SYSTEM;
}

static keel_status make_helper(struct plane *p, struct helper_blob *blob)
{
    struct agent *a = &p->agent;
    struct helper_config config = {
        .job_id = a->job, .host = p->host, .provider = "tcp", .incarnation = (uint32_t)a->incarnation};
    memcpy(config.secret, a->secret, sizeof config.secret);
    member_params_default(&config.params, a->members, a->self);
    struct helper_callbacks callbacks = {p, on_prepare, on_commit, on_settled, on_halt, on_report};
    return helper_create(&config, &callbacks, &p->helper, blob);
}

keel_status plane_create(const struct plane_config *config, const struct plane_callbacks *callbacks, struct plane **out,
                         struct plane_blob *blob)
{
    struct plane *p = calloc(1, sizeof *p);
    if (!p || sodium_init() < 0) {
        free(p);
        return KEEL_ERR_NOMEM;
    }
    p->config = *config;
    p->callbacks = *callbacks;
    p->commands_tail = &p->commands;
    p->upcalls_tail = &p->upcalls;
    p->page_fd = -1;
    /* The helper thread takes the lock, too, and must not wait for a data thread that has no processor. */
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&p->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    snprintf(p->host, sizeof p->host, "%s", config->host);
    const char *spin = getenv("KEEL_SPIN_US");
    p->spin_ns = (uint64_t)(spin ? atoi(spin) : SPIN_US_DEFAULT) * KEEL_NS_PER_US;
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct blob b = {0};
    keel_status status = p->epoll_fd < 0 || p->command_fd < 0 || p->wake_fd < 0 ? KEEL_ERR_SYSTEM : KEEL_OK;
    if (status == KEEL_OK)
        status = make_agent(p, config);
    if (status == KEEL_OK)
        status = open_transports(p);
    if (status == KEEL_OK)
        status = watch(p, p->command_fd);
    if (status == KEEL_OK)
        status = watch(p, p->agent.shm->table->wait_fd(p->agent.shm));
    if (status == KEEL_OK)
        status = watch(p, p->agent.net->table->wait_fd(p->agent.net));
    struct barrier_ops ops = {p, barrier_send, barrier_complete};
    if (status == KEEL_OK && !(p->agent.barrier = barrier_create(p->agent.members, p->agent.self, &ops)))
        status = KEEL_ERR_NOMEM;
    if (status == KEEL_OK)
        status = make_helper(p, &b.helper);
    if (status != KEEL_OK) {
        plane_destroy(p);
        return status;
    }
    b.addr = p->addr;
    b.incarnation = p->agent.incarnation;
    blob->len = sizeof b;
    memcpy(blob->bytes, &b, sizeof b);
    *out = p;
    return KEEL_OK;
}

static void set_first_members(struct plane *p)
{
    struct agent *a = &p->agent;
    uint64_t members[BARRIER_NODES_MAX / 64] = {0};
    for (int m = 0; m < a->members; m++)
        if (view_node_takes_part(&a->view, m))
            members[m / 64] |= (uint64_t)1 << (m % 64);
    a->takes_part = view_node_takes_part(&a->view, a->self);
    barrier_set_members(a->barrier, members, clock_now_ns());
}

keel_status plane_start(struct plane *p, const struct plane_blob *blobs)
{
    struct agent *a = &p->agent;
    struct helper_blob *helpers = calloc((size_t)a->members, sizeof *helpers);
    if (!helpers)
        return KEEL_ERR_NOMEM;
    for (int m = 0; m < a->members; m++) {
        struct blob b;
        memcpy(&b, blobs[m].bytes, sizeof b);
        a->node_incarnation[m] = b.incarnation;
        helpers[m] = b.helper;
        peer_address(&a->peers, m, &b.addr);
        page_node(a->page, m)->addr = b.addr;
        page_node(a->page, m)->incarnation = b.incarnation;
    }
    set_first_members(p);
    keel_status status = helper_start(p->helper, helpers);
    free(helpers);
    if (status != KEEL_OK)
        return status;
    if (pthread_create(&p->thread, NULL, data_thread, p) != 0)
        return KEEL_ERR_SYSTEM;
    p->running = true;
    return KEEL_OK;
}

keel_status plane_process_started(struct plane *p, int slot, int rank, uint32_t incarnation, int pid, int fd)
{
    struct command c = {
        .type = COMMAND_PROCESS_STARTED, .slot = slot, .rank = rank, .incarnation = incarnation, .pid = pid, .fd = fd};
    push_command(p, &c);
    return KEEL_OK;
}

void plane_process_exited(struct plane *p, int slot, int code, int signal)
{
    struct command c = {.type = COMMAND_PROCESS_EXITED, .slot = slot, .code = code, .signal = signal};
    push_command(p, &c);
}

void plane_stop_job(struct plane *p, int code, const char *why)
{
    (void)why; /* the launcher knows it; the others are told the code */
    struct command c = {.type = COMMAND_STOP_JOB, .code = code};
    push_command(p, &c);
}

static void free_queues(struct plane *p)
{
    for (struct command *c = p->commands, *next; c; c = next) {
        next = c->next;
        if (c->type == COMMAND_PROCESS_STARTED)
            close(c->fd);
        free(c);
    }
    for (struct upcall *u = p->upcalls, *next; u; u = next) {
        next = u->next;
        upcall_free(u);
    }
}

static void free_agent(struct plane *p)
{
    struct agent *a = &p->agent;
    while (a->conns)
        node_drop_conn(a, a->conns);
    for (struct waiter *w = a->waiters, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    for (struct stashed *s = a->stash, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    for (struct doubt *d = a->doubts, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    if (a->store.segment)
        store_fini(&a->store);
    if (a->peers.peer)
        peers_fini(&a->peers);
    for (int s = 0; a->dedup && s < a->view.nodes; s++)
        dedup_fini(&a->dedup[s]);
    barrier_destroy(a->barrier);
    if (a->net)
        a->net->table->close(a->net);
    if (a->shm)
        a->shm->table->close(a->shm);
    if (a->page && a->page != MAP_FAILED)
        munmap(a->page, page_bytes(a->page->nodes, a->page->members, a->page->ranks));
    free(a->slots_before);
    free(a->node_incarnation);
    free(a->rank_fence);
    free(a->node_fence);
    free(a->node_doomed);
    free(a->dedup);
    free(a->push);
    view_fini(&a->view);
}

void plane_destroy(struct plane *p)
{
    if (!p)
        return;
    if (p->running) {
        struct command quit = {.type = COMMAND_QUIT};
        push_command(p, &quit);
        pthread_join(p->thread, NULL);
    }
    helper_destroy(p->helper);
    procs_free(p);
    free_queues(p);
    free_agent(p);
    for (int seg = 0; p->announced && seg < STORE_SEGMENTS_MAX; seg++)
        free(p->announced[seg]);
    free(p->announced);
    free(p->rank_joined);
    free(p->rank_started);
    close(p->page_fd);
    close(p->epoll_fd);
    close(p->command_fd);
    close(p->wake_fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
