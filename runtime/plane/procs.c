/* This node's processes: they start, become ranks, go elsewhere and end. */
#include "runtime/plane/procs_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/agent/ranks.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/reserve.h"

struct process *procs_of(struct plane *p, const struct proc *proc)
{
    for (struct process *k = p->processes; k; k = k->next)
        if (k->proc == proc)
            return k;
    return NULL;
}

static void queue_seat(struct plane *p, enum upcall_type type, int seat)
{
    struct upcall *u = queue_upcall_new(p, type);
    if (!u)
        return;
    u->seat = seat;
    queue_upcall(p, u);
}

/* The process, or what would be one, is ended; its rank goes to another node. */
static void refuse(struct plane *p, int seat, struct life life, const char *why)
{
    queue_event_of(p, "not_started", J_INT("rank", life.rank), J_UINT("incarnation", life.incarnation),
                   J_TEXT("why", why));
    queue_seat(p, UPCALL_END, seat);
    if (!life_is_none(life))
        ranks_refused(&p->agent, life);
}

static bool welcome_or_refuse(struct plane *p, struct process *k, struct life life)
{
    char text[REFUSAL_MAX];
    struct proc *proc = k->proc;
    errno = EMFILE; /* what is kept back is for connections */
    if (reserve_is_whole() && procs_welcome(p, k, life))
        return true;
    refuse(p, proc->id, life, refusal_error(errno, text));
    ranks_free(&p->agent, proc);
    return false;
}

void procs_assign(void *user, struct proc *proc, struct life life)
{
    struct plane *p = user;
    struct process *k = proc ? procs_of(p, proc) : NULL;
    if (k && !welcome_or_refuse(p, k, life))
        return;
    struct upcall *u = queue_upcall_new(p, k ? UPCALL_ASSIGNED : UPCALL_RESPAWN);
    if (!u)
        return;
    u->seat = k ? proc->id : -1;
    u->life = life;
    queue_upcall(p, u);
}

void procs_release(void *user, struct proc *proc)
{
    struct plane *p = user;
    struct process *k = procs_of(p, proc);
    if (!k)
        return;
    struct control r = {.type = CONTROL_RELEASE, .node = proc->moves_to};
    procs_send_packet(k, &r, sizeof r, NULL, 0);
    queue_seat(p, UPCALL_RELEASE, proc->id);
}

void procs_stay(void *user, struct proc *proc)
{
    queue_seat(user, UPCALL_STAY, proc->id);
}

void procs_overdue(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    if (proc && ranks_overdue(&p->agent, proc))
        queue_seat(p, UPCALL_END, c->seat);
}

void procs_lingers(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    if (proc)
        ranks_lingers(&p->agent, proc);
}

void procs_failed(void *user)
{
    struct plane *p = user;
    for (struct process *k = p->processes; k; k = k->next)
        if (k->failure_fd >= 0 && eventfd_write(k->failure_fd, 1) && errno != EAGAIN) /* full: it is readable */
            log_warn("pid %d is not told of a failure: %s", k->pid, strerror(errno));
}

/* "PID (NAME) STATE ..." with user and system time as the 11th and 12th field after the state. */
static unsigned state_of(const char *stat, uint64_t *ticks)
{
    const char *at = strrchr(stat, ')');
    char state;
    unsigned long long user_ticks, system_ticks;
    if (!at || sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user_ticks,
                      &system_ticks) != 3)
        return PAGE_PROCESS_NONE;
    *ticks = user_ticks + system_ticks;
    return strchr("Tt", state)   ? PAGE_PROCESS_STOPPED
           : strchr("ZX", state) ? PAGE_PROCESS_NONE
           : state == 'D'        ? PAGE_PROCESS_WAITS
                                 : PAGE_PROCESS_RUNS;
}

unsigned procs_look_at(void *user, const struct proc *proc, uint64_t *ticks)
{
    const struct process *k = procs_of(user, proc);
    char path[64], stat[1024];
    if (!k)
        return PAGE_PROCESS_NONE;
    snprintf(path, sizeof path, "/proc/%d/stat", k->owner && k->fd >= 0 ? k->owner : k->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, stat, sizeof stat - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return PAGE_PROCESS_NONE;
    stat[n] = '\0';
    return state_of(stat, ticks);
}

void procs_started(struct plane *p, const struct command *c)
{
    struct process *k = calloc(1, sizeof *k);
    struct proc *proc = ranks_started(&p->agent, c->seat);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = k};
    if (k)
        *k = (struct process){
            .proc = proc, .pid = c->pid, .door_fd = c->fd, .fd = -1, .handed_fd = -1, .owner_fd = -1, .failure_fd = -1};
    if (!k || !proc || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) != 0 || !entry_open(p, k)) {
        char text[REFUSAL_MAX];
        refuse(p, c->seat, c->life, refusal_error(errno, text));
        close(c->fd);
        free(k);
        if (proc)
            ranks_free(&p->agent, proc);
        return;
    }
    k->next = p->processes;
    p->processes = k;
    if (!life_is_none(c->life))
        (void)welcome_or_refuse(p, k, c->life);
    else
        ranks_view_settled(&p->agent); /* a standby may be waited for */
}

/* A program that does not use Keel: its process cannot be replaced. True if the job ends for it. */
static bool ends_job(struct plane *p, const struct proc *proc, int signal_number)
{
    if (!signal_number || !settings_plain_death_ends(p->config.settings) || p->here || proc->life.incarnation > 0)
        return false;
    struct upcall *u = queue_upcall_new(p, UPCALL_PLAIN_DEATH);
    if (u) {
        u->seat = proc->id;
        queue_upcall(p, u);
    }
    return true;
}

/* Of a process that has ended: its last words come before its end. NULL: it is none of ours, or forgotten. */
static struct process *heard_out(struct plane *p, const struct proc *proc)
{
    struct process *k = proc ? procs_of(p, proc) : NULL;
    if (!k)
        return NULL;
    procs_readable(p, k);
    entry_shut(p, k);
    return k;
}

void procs_exited(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    const struct process *k = heard_out(p, proc);
    if (!k)
        return;
    if (k->intents && atomic_load(&k->intents->moved) && c->code == 0) /* it may be to stay by now */
        ranks_moved(&p->agent, proc);
    else if (k->hidden)
        ranks_exited(&p->agent, proc, 0, k->signal);
    else if (proc->life.rank >= 0 && !p->agent.view.stopped && ends_job(p, proc, c->signal))
        ranks_ended_job(&p->agent, proc, 128 + c->signal);
    else
        ranks_exited(&p->agent, proc, c->code, c->signal);
}

void procs_moved(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    if (heard_out(p, proc))
        ranks_moved(&p->agent, proc);
}

void procs_output(struct plane *p, const struct command *c)
{
    struct proc *proc = ranks_find(&p->agent, c->seat);
    const struct control reply = {.type = CONTROL_OUTPUT,
                                  .id = (uint32_t)c->value,
                                  .status = KEEL_OK,
                                  .a = (int64_t)c->output[0],
                                  .b = (int64_t)c->output[1]};
    if (proc)
        procs_answer(p, proc, &reply, -1);
}

void procs_forgotten(void *user, struct proc *proc)
{
    struct plane *p = user;
    struct process *k = procs_of(p, proc);
    if (!k)
        return;
    struct process **link = &p->processes;
    while (*link != k)
        link = &(*link)->next;
    *link = k->next;
    entry_shut(p, k);
    if (k->intents)
        counts_end(p, &k->intents->counters);
    if (k->intents)
        munmap(k->intents, sizeof *k->intents);
    if (k->failure_fd >= 0)
        close(k->failure_fd);
    free(k);
}

void procs_free(struct plane *p)
{
    while (p->processes)
        ranks_free(&p->agent, p->processes->proc);
}
