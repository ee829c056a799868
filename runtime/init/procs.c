/* This node's processes, as the data thread sees them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include "collectives/barrier.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/init/plane_int.h"
#include "runtime/recovery/push.h"
#include "runtime/recovery/recover.h"
#include "runtime/transport/shm.h"

enum { WELCOME_FDS = 2 + TP_SHM_FDS };

static struct proc *of_slot(struct plane *p, int slot)
{
    for (struct proc *proc = p->procs; proc; proc = proc->next)
        if (proc->slot == slot)
            return proc;
    return NULL;
}

static struct proc *of_rank(struct plane *p, int rank, uint32_t incarnation)
{
    for (struct proc *proc = p->procs; proc; proc = proc->next)
        if (proc->rank == rank && proc->incarnation == incarnation)
            return proc;
    return NULL;
}

struct proc *procs_of_conn(struct plane *p, const struct conn *c)
{
    for (struct proc *proc = p->procs; proc; proc = proc->next)
        if (proc->conn == c)
            return proc;
    return NULL;
}

/* ---- control socket ---- */

/* Send one packet, with descriptors. A rank that does not read its socket (256 packets behind) is not waited for. */
static bool send_packet(struct proc *proc, const void *data, size_t len, const int *fds, int nfds)
{
    if (proc->fd < 0)
        return false;
    struct iovec iov = {(void *)data, len};
    union {
        char bytes[CMSG_SPACE(WELCOME_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (nfds) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
        memcpy(CMSG_DATA(h), fds, (size_t)nfds * sizeof(int));
    }
    ssize_t n = sendmsg(proc->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EPIPE) /* EPIPE: it has just ended, or is a program that does not use Keel */
        log_warn("rank %d (pid %d) does not take control messages: %s", proc->rank, proc->pid, strerror(errno));
    return n >= 0;
}

static void answer(struct proc *proc, const struct control *request, int status)
{
    struct control reply = *request;
    reply.status = status;
    send_packet(proc, &reply, sizeof reply, NULL, 0);
}

static struct intent_page *make_intents(int *fd)
{
    *fd = memfd_create("keel-intents", MFD_CLOEXEC);
    if (*fd < 0)
        return NULL;
    if (ftruncate(*fd, sizeof(struct intent_page)) == 0) {
        void *m = mmap(NULL, sizeof(struct intent_page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
        if (m != MAP_FAILED)
            return m;
    }
    close(*fd);
    return NULL;
}

static uint32_t segments_complete(const struct agent *a, uint64_t instances)
{
    uint32_t n = 0;
    while (n < a->store.count && a->store.segment[n].known && a->store.segment[n].instance <= instances)
        n++;
    return n;
}

/* Tell the process who it is and hand it what it needs. */
static void welcome(struct plane *p, struct proc *proc, int rank, uint32_t incarnation)
{
    struct agent *a = &p->agent;
    uint64_t joined = incarnation > 0 ? p->rank_joined[rank] : 0;
    struct conn *c = calloc(1, sizeof *c);
    int intents_fd = -1, shm_fds[TP_SHM_FDS];
    if (!c || !(proc->intents = make_intents(&intents_fd)) || tp_shm_create(a->shm, c, shm_fds, &c->ep) != KEEL_OK) {
        node_break(a, "no memory to talk to a rank");
        free(c);
        return;
    }
    proc->rank = rank;
    proc->incarnation = incarnation;
    proc->conn = c;
    proc->entered = recover_value_instances(joined);
    p->rank_started[rank] = incarnation + 1;
    c->rank = rank;
    c->incarnation = incarnation;
    c->node = a->self;
    c->up = true;
    c->next = a->conns;
    a->conns = c;
    struct control_welcome w = {.type = CONTROL_WELCOME,
                                .rank = rank,
                                .size = a->view.ranks,
                                .node = a->self,
                                .incarnation = incarnation,
                                .restarted = incarnation > 0,
                                .job = a->job,
                                .instance = recover_value_instances(joined),
                                .collectives = recover_value_collectives(joined),
                                .segments = segments_complete(a, recover_value_instances(joined))};
    memcpy(w.secret, a->secret, sizeof w.secret);
    snprintf(w.host, sizeof w.host, "%s", p->host);
    int fds[WELCOME_FDS] = {p->page_fd, intents_fd, shm_fds[0], shm_fds[1], shm_fds[2]};
    send_packet(proc, &w, sizeof w, fds, WELCOME_FDS);
    close(intents_fd);
    for (int i = 0; i < TP_SHM_FDS; i++)
        close(shm_fds[i]);
}

/* ---- segments ---- */

static bool everybody_knows(struct plane *p, uint32_t seg)
{
    if (!p->announced[seg])
        return true;
    for (int m = 0; m < p->agent.members; m++)
        if (m != p->agent.self && p->announced[seg][m] && !peer_is_acked(&p->agent.peers, m, p->announced[seg][m]))
            return false;
    return true;
}

static void announce(struct plane *p, uint32_t seg)
{
    struct agent *a = &p->agent;
    if (!p->announced[seg])
        p->announced[seg] = calloc((size_t)a->members, sizeof(uint64_t));
    for (int m = 0; p->announced[seg] && m < a->members; m++)
        if (m != a->self && a->view.alive[m])
            p->announced[seg][m] = push_send_segment(a, m, seg);
}

static void seg_create(struct plane *p, struct proc *proc, const struct control *r)
{
    struct agent *a = &p->agent;
    bool known = r->seg < a->store.count && a->store.segment[r->seg].known;
    if (known && a->store.segment[r->seg].freed) {
        struct control reply = *r;
        reply.a = 1; /* it was freed: a restarted rank repeats an old allocation */
        answer(proc, &reply, KEEL_OK);
        return;
    }
    keel_status status = store_define(&a->store, r->seg, r->bytes, r->redundancy, (uint64_t)r->b);
    if (status == KEEL_OK)
        status = push_make_copies(a, r->seg);
    struct seg_wait *wait = status == KEEL_OK ? malloc(sizeof *wait) : NULL;
    if (!wait) {
        answer(proc, r, status == KEEL_OK ? KEEL_ERR_NOMEM : status);
        return;
    }
    if (!known || !p->announced[r->seg])
        announce(p, r->seg);
    *wait = (struct seg_wait){.next = p->seg_waits, .slot = proc->slot, .id = r->id, .seg = r->seg};
    p->seg_waits = wait;
    procs_acked(p);
}

void procs_acked(struct plane *p)
{
    struct seg_wait **link = &p->seg_waits;
    while (*link) {
        struct seg_wait *w = *link;
        if (!everybody_knows(p, w->seg)) {
            link = &w->next;
            continue;
        }
        struct proc *proc = of_slot(p, w->slot);
        struct control reply = {.type = CONTROL_SEG_CREATE, .id = w->id, .seg = w->seg};
        if (proc)
            answer(proc, &reply, KEEL_OK);
        *link = w->next;
        free(w);
    }
}

static void seg_map(struct plane *p, struct proc *proc, const struct control *r)
{
    struct store_copy *copy = store_copy(&p->agent.store, r->seg, r->slot);
    struct control reply = *r;
    reply.status = !copy ? KEEL_ERR_STATE : copy->lost ? KEEL_ERR_DATA_LOST : KEEL_OK;
    reply.bytes = copy ? copy->bytes : 0;
    send_packet(proc, &reply, sizeof reply, copy ? &copy->fd : NULL, reply.status == KEEL_OK);
}

static void seg_free(struct plane *p, struct proc *proc, const struct control *r)
{
    struct agent *a = &p->agent;
    if (r->seg != SYSTEM_SEGMENT && r->seg < a->store.count && !a->store.segment[r->seg].freed) {
        store_free(&a->store, r->seg);
        announce(p, r->seg);
    }
    answer(proc, r, KEEL_OK);
}

/* ---- requests ---- */

static void application_event(struct agent *a, const struct proc *proc, const struct control *r)
{
    size_t name_len = strnlen(r->text, CONTROL_TEXT_MAX);
    const char *text = name_len + 1 < CONTROL_TEXT_MAX ? r->text + name_len + 1 : "";
    json_t *fields = json_pack("{s:i, s:I}", "rank", proc->rank, "number", (json_int_t)r->a);
    json_t *name = json_stringn(r->text, name_len);
    if (*text)
        json_object_set_new(fields, "text", json_stringn(text, strnlen(text, CONTROL_TEXT_MAX - name_len - 1)));
    if (name && fields) {
        json_object_set(fields, "name", name);
        char *dump = json_dumps(fields, JSON_COMPACT);
        /* dump is "{...}": its members follow ours */
        if (dump)
            node_event(a, "application", ",%.*s", (int)strlen(dump) - 2, dump + 1);
        free(dump);
    }
    json_decref(name);
    json_decref(fields);
}

static void tell_here(struct plane *p)
{
    struct upcall *u = p->here ? NULL : queue_upcall_new(p, UPCALL_HERE);
    p->here = true;
    if (u)
        queue_upcall(p, u);
}

/* A program that does not use Keel: its process cannot be replaced. True if the job ends for it. */
static bool ends_job(struct plane *p, const struct proc *proc, int signal_number)
{
    if (!signal_number || !p->config.plain_death_ends || p->here || proc->incarnation > 0)
        return false;
    struct upcall *u = queue_upcall_new(p, UPCALL_PLAIN_DEATH);
    if (u) {
        u->slot = proc->slot;
        queue_upcall(p, u);
    }
    return true;
}

static void request(struct plane *p, struct proc *proc, const struct control *r)
{
    struct agent *a = &p->agent;
    struct view_event e = {VIEW_RANK_LEFT, (uint32_t)proc->rank, proc->incarnation, 0, 0};
    switch (r->type) {
    case CONTROL_SEG_CREATE:
        seg_create(p, proc, r);
        break;
    case CONTROL_SEG_MAP:
        seg_map(p, proc, r);
        break;
    case CONTROL_SEG_FREE:
        seg_free(p, proc, r);
        break;
    case CONTROL_CHECK:
        if (r->slot >= 0 && r->slot < a->members)
            node_check_node(a, r->slot);
        break;
    case CONTROL_LEAVING:
        node_submit(a, &e);
        answer(proc, r, KEEL_OK);
        break;
    case CONTROL_ABORT:
        e = (struct view_event){VIEW_STOP, (uint32_t)r->a & 0xff, (uint32_t)proc->rank + 1, 0, 0};
        node_submit(a, &e);
        break;
    case CONTROL_EVENT:
        application_event(a, proc, r);
        break;
    case CONTROL_HERE:
        tell_here(p);
        break;
    default:
        log_error("rank %d sends an unknown control message %u", proc->rank, r->type);
    }
}

static void close_control(struct plane *p, struct proc *proc)
{
    if (proc->fd < 0)
        return;
    epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, proc->fd, NULL);
    close(proc->fd);
    proc->fd = -1;
}

void procs_readable(struct plane *p, struct proc *proc)
{
    for (;;) {
        struct control r;
        ssize_t n = recv(proc->fd, &r, sizeof r, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            close_control(p, proc);
            return;
        }
        if (n != sizeof r || proc->rank < 0)
            log_error("pid %d sends a control message of %zd bytes", proc->pid, n);
        else
            request(p, proc, &r);
    }
}

/* ---- start and end ---- */

void procs_started(struct plane *p, const struct command *c)
{
    struct proc *proc = calloc(1, sizeof *proc);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = proc};
    if (!proc || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) != 0) {
        node_break(&p->agent, "cannot watch a process");
        close(c->fd);
        free(proc);
        return;
    }
    *proc = (struct proc){.next = p->procs, .slot = c->slot, .pid = c->pid, .fd = c->fd, .rank = -1};
    p->procs = proc;
    if (c->rank >= 0)
        welcome(p, proc, c->rank, c->incarnation);
    else
        procs_view_settled(p); /* a standby may be waited for */
}

static void free_proc(struct plane *p, struct proc *proc)
{
    struct proc **link = &p->procs;
    while (*link != proc)
        link = &(*link)->next;
    *link = proc->next;
    close_control(p, proc);
    if (proc->conn)
        node_drop_conn(&p->agent, proc->conn);
    if (proc->intents)
        munmap(proc->intents, sizeof *proc->intents);
    free(proc);
}

void procs_exited(struct plane *p, const struct command *c)
{
    struct proc *proc = of_slot(p, c->slot);
    if (!proc)
        return;
    if (proc->fd >= 0 && proc->rank >= 0)
        procs_readable(p, proc); /* its last words come before its end */
    if (proc->rank < 0 || p->agent.view.stopped) {
        free_proc(p, proc);
        return;
    }
    /* What it has sent and not been heard is dropped with the connection when the view says that it is dead. */
    proc->exited = true;
    close_control(p, proc);
    struct view_event e = {c->signal ? VIEW_RANK_DEAD : VIEW_RANK_DONE, (uint32_t)proc->rank, proc->incarnation,
                           (uint32_t)(c->signal ? c->signal : c->code), 0};
    if (ends_job(p, proc, c->signal))
        e = (struct view_event){VIEW_STOP, 128 + (uint32_t)c->signal, 0, 0, 0};
    node_submit(&p->agent, &e);
}

void node_note_intents(struct agent *a, int rank, uint32_t incarnation)
{
    struct plane *p = a->owner;
    struct proc *proc = of_rank(p, rank, incarnation);
    for (int i = 0; proc && proc->intents && i < INTENT_MAX; i++) {
        const struct intent *t = &proc->intents->entry[i];
        if (!atomic_load_explicit(&t->active, memory_order_acquire))
            continue;
        const struct store_copy *copy =
            t->slot < (uint32_t)a->view.nodes ? store_copy(&a->store, t->seg, (int)t->slot) : NULL;
        if (!copy || t->len > copy->bytes || t->offset > copy->bytes - t->len)
            continue;
        if (t->len == 0)
            continue;
        struct patch patch = {.seg = t->seg, .slot = (int)t->slot, .offset = t->offset, .len = t->len};
        patch.torn = patch.second = true; /* the other copy is never torn while this one is written */
        push_add_doubt(a, rank, incarnation, &patch);
    }
}

void procs_free(struct plane *p)
{
    while (p->procs)
        free_proc(p, p->procs);
    for (struct seg_wait *w = p->seg_waits, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    p->seg_waits = NULL;
}

/* ---- views ---- */

void procs_view_committed(struct plane *p, uint64_t value)
{
    struct agent *a = &p->agent;
    for (int r = 0; r < a->view.ranks; r++) {
        const struct view_rank *k = &a->view.rank[r];
        if (k->joined == a->view.epoch && k->node == a->self && k->state == RANK_RUNNING) {
            p->rank_joined[r] = value;
            p->join_instances = recover_value_instances(value);
            p->join_collectives = recover_value_collectives(value);
        }
    }
    for (struct proc *proc = p->procs, *next; proc; proc = next) {
        next = proc->next;
        if (!proc->exited || proc->rank < 0)
            continue;
        const struct view_rank *k = &a->view.rank[proc->rank];
        if (k->incarnation != proc->incarnation || k->state != RANK_RUNNING)
            free_proc(p, proc);
    }
    procs_acked(p);
    procs_try_enter(p);
}

static struct proc *free_standby(struct plane *p)
{
    for (struct proc *proc = p->procs; proc; proc = proc->next)
        if (proc->rank < 0 && !proc->exited)
            return proc;
    return NULL;
}

/* Ranks that joined on this node get their processes. */
void procs_view_settled(struct plane *p)
{
    struct agent *a = &p->agent;
    for (int r = 0; r < a->view.ranks && !a->view.stopped; r++) {
        const struct view_rank *k = &a->view.rank[r];
        if (k->node != a->self || k->state != RANK_RUNNING || !k->joined || k->joined > a->settled ||
            p->rank_started[r] == k->incarnation + 1)
            continue;
        p->rank_started[r] = k->incarnation + 1;
        struct proc *proc = free_standby(p);
        FAULT_POINT("procs.joining");
        if (proc)
            welcome(p, proc, r, k->incarnation);
        FAULT_POINT("procs.joined");
        struct upcall *u = queue_upcall_new(p, proc ? UPCALL_ASSIGNED : UPCALL_RESPAWN);
        if (!u)
            return;
        u->slot = proc ? proc->slot : -1;
        u->rank = r;
        u->incarnation = k->incarnation;
        queue_upcall(p, u);
        node_event(a, proc ? "substituted" : "respawned", ",\"rank\":%d,\"incarnation\":%u", r, k->incarnation);
    }
}

/* ---- barriers ---- */

/* The instance that the rank has entered: a rank that joined counts as having entered what was complete before. */
static uint64_t rank_entered(struct plane *p, int rank)
{
    const struct view_rank *k = &p->agent.view.rank[rank];
    const struct proc *proc = of_rank(p, rank, k->incarnation);
    return proc ? proc->entered : k->joined ? recover_value_instances(p->rank_joined[rank]) : 0;
}

void procs_try_enter(struct plane *p)
{
    struct agent *a = &p->agent;
    if (!a->takes_part || barrier_waiting(a->barrier))
        return;
    uint64_t next = barrier_completed(a->barrier) + 1;
    for (int r = 0; r < a->view.ranks; r++)
        if (a->view.rank[r].node == a->self && view_rank_takes_part(&a->view, r) && rank_entered(p, r) < next)
            return;
    FAULT_POINT("barrier.all_ranks_entered");
    barrier_enter(a->barrier, a->now);
    FAULT_POINT("barrier.entered");
}

void procs_barrier_complete(struct plane *p, uint64_t instance)
{
    struct agent *a = &p->agent;
    bool internal = false;
    FAULT_POINT("barrier.completed");
    p->enter_due = true;
    for (struct proc *proc = p->procs; proc; proc = proc->next) {
        if (!proc->entering || proc->entered != instance)
            continue;
        proc->entering = false;
        internal = internal || (proc->enter.flags & WIRE_F_INTERNAL);
        struct wire reply = {.type = WIRE_REPLY, .seq = proc->enter.seq, .a = (int64_t)instance};
        if (proc->conn && proc->conn->ep)
            (void)tp_send(proc->conn->ep, &reply, sizeof reply, NULL, 0, NULL);
    }
    if (instance > p->join_instances)
        a->collectives += !internal;
    else if (instance == p->join_instances)
        a->collectives = p->join_collectives;
}

void node_enter(struct agent *a, struct conn *c, const struct wire *w)
{
    struct plane *p = a->owner;
    struct proc *proc = procs_of_conn(p, c);
    if (!proc)
        return;
    proc->enter = *w;
    proc->entering = true;
    proc->entered = (uint64_t)w->a;
    if (proc->entered <= barrier_completed(a->barrier)) {
        /* it joined while this one was being completed */
        proc->entering = false;
        struct wire reply = {.type = WIRE_REPLY, .seq = w->seq, .a = w->a};
        (void)tp_send(c->ep, &reply, sizeof reply, NULL, 0, NULL);
        return;
    }
    procs_try_enter(p);
}
