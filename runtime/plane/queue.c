/* What passes between the threads of an agent. Commands go to the data thread (from the event loop and the helper
 * thread), upcalls from the data thread to the event loop; both queues are under plane.lock and each has an eventfd
 * that wakes its reader. To the helper thread the data thread goes through detect/helper.h, which has a queue of its
 * own. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/plane/plane_int.h"

static void ring(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* ---- commands, to the data thread ---- */

void queue_command(struct plane *p, const struct command *c)
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

keel_status plane_process_started(struct plane *p, int seat, struct life life, int pid, int fd)
{
    struct command c = {.type = COMMAND_PROCESS_STARTED, .seat = seat, .life = life, .pid = pid, .fd = fd};
    queue_command(p, &c);
    return KEEL_OK;
}

void plane_process_refused(struct plane *p, struct life life)
{
    struct command c = {.type = COMMAND_PROCESS_REFUSED, .life = life};
    queue_command(p, &c);
}

void plane_process_exited(struct plane *p, int seat, int code, int signal)
{
    struct command c = {.type = COMMAND_PROCESS_EXITED, .seat = seat, .code = code, .signal = signal};
    queue_command(p, &c);
}

void plane_process_overdue(struct plane *p, int seat)
{
    struct command c = {.type = COMMAND_PROCESS_OVERDUE, .seat = seat};
    queue_command(p, &c);
}

void plane_process_lingers(struct plane *p, int seat)
{
    struct command c = {.type = COMMAND_PROCESS_LINGERS, .seat = seat};
    queue_command(p, &c);
}

void plane_process_moved(struct plane *p, int seat)
{
    struct command c = {.type = COMMAND_PROCESS_MOVED, .seat = seat};
    queue_command(p, &c);
}

void plane_process_output(struct plane *p, int seat, uint32_t id, const uint64_t at[2])
{
    struct command c = {.type = COMMAND_PROCESS_OUTPUT, .seat = seat, .value = id, .output = {at[0], at[1]}};
    queue_command(p, &c);
}

void plane_sets_stay(struct plane *p)
{
    struct command c = {.type = COMMAND_SETS_STAY};
    queue_command(p, &c);
}

void plane_move_rank(struct plane *p, int rank, int node)
{
    struct command c = {.type = COMMAND_MOVE_RANK, .life = life_of(rank, 0), .node = node};
    queue_command(p, &c);
}

void plane_stop_job(struct plane *p, int code, const char *why)
{
    (void)why; /* the launcher knows it; the others are told the code */
    struct command c = {.type = COMMAND_STOP_JOB, .code = code};
    queue_command(p, &c);
}

void plane_needs_sets(struct plane *p)
{
    struct command c = {.type = COMMAND_NEEDS_SETS};
    queue_command(p, &c);
}

void plane_writes(struct plane *p, struct life life)
{
    struct command c = {.type = COMMAND_WRITES, .life = life};
    queue_command(p, &c);
}

void plane_verify(struct plane *p, uint64_t id)
{
    struct command c = {.type = COMMAND_VERIFY, .value = id};
    queue_command(p, &c);
}

void plane_rebalance(struct plane *p, uint64_t id, uint32_t seconds)
{
    struct command c = {.type = COMMAND_REBALANCE, .value = id, .epoch = seconds};
    queue_command(p, &c);
}

/* The helper thread's callbacks. */

static void copy_events(struct command *c, const struct view_event *events, int n)
{
    c->n = n;
    for (int i = 0; i < n; i++)
        c->event[i] = events[i];
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct command c = {.type = COMMAND_PREPARE, .epoch = epoch, .value = proposal};
    copy_events(&c, events, n);
    queue_command(user, &c);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct command c = {.type = COMMAND_COMMIT, .epoch = epoch, .value = max_value};
    copy_events(&c, events, n);
    queue_command(user, &c);
}

static void on_settled(void *user, uint64_t epoch)
{
    struct command c = {.type = COMMAND_SETTLED, .epoch = epoch};
    queue_command(user, &c);
}

static void on_halt(void *user, const char *reason)
{
    struct command c = {.type = COMMAND_HALT};
    snprintf(c.text, sizeof c.text, "%s", reason);
    queue_command(user, &c);
}

static void on_report(void *user, const struct member_report *report)
{
    struct command c = {.type = COMMAND_REPORT, .report = *report};
    queue_command(user, &c);
}

struct helper_callbacks queue_helper_callbacks(struct plane *p)
{
    return (struct helper_callbacks){p, on_prepare, on_commit, on_settled, on_halt, on_report};
}

/* ---- upcalls, to the event loop ---- */

struct upcall *queue_upcall_new(struct plane *p, enum upcall_type type)
{
    struct upcall *u = calloc(1, sizeof *u);
    if (!u)
        agent_break(&p->agent, "out of memory");
    else
        u->type = type;
    return u;
}

void queue_upcall(struct plane *p, struct upcall *u)
{
    pthread_mutex_lock(&p->lock);
    *p->upcalls_tail = u;
    p->upcalls_tail = &u->next;
    pthread_mutex_unlock(&p->lock);
    ring(p->wake_fd);
}

void queue_upcall_free(struct upcall *u)
{
    free(u->rank_node);
    free(u->alive);
    free(u->lost);
    free(u->text);
    free(u);
}

static void upcall_run(struct plane *p, const struct upcall *u)
{
    const struct plane_callbacks *cb = &p->callbacks;
    switch (u->type) {
    case UPCALL_ASSIGNED:
        cb->assigned(cb->user, u->seat, u->life);
        break;
    case UPCALL_RESPAWN:
        cb->respawn(cb->user, u->life);
        break;
    case UPCALL_RELEASE:
        cb->release(cb->user, u->seat);
        break;
    case UPCALL_STAY:
        cb->stay(cb->user, u->seat);
        break;
    case UPCALL_END:
        cb->end(cb->user, u->seat);
        break;
    case UPCALL_VIEW:
        cb->view(cb->user, &(struct plane_view){.epoch = u->epoch,
                                                .rank_node = u->rank_node,
                                                .node_alive = u->alive,
                                                .free = u->free,
                                                .files = u->files,
                                                .by_loss = u->by_loss,
                                                .loss = u->loss,
                                                .in_vain = u->in_vain,
                                                .lost = u->lost,
                                                .nlost = u->nlost});
        break;
    case UPCALL_JOB_OVER:
        cb->job_over(cb->user, u->code, u->text);
        break;
    case UPCALL_FATAL:
        cb->fatal(cb->user, u->text, u->code != 0);
        break;
    case UPCALL_EVENT:
        cb->event(cb->user, u->text);
        break;
    case UPCALL_HERE:
        cb->here(cb->user);
        break;
    case UPCALL_VERIFIED:
        cb->verified(cb->user, u->epoch, u->text);
        break;
    case UPCALL_REBALANCED:
        cb->rebalanced(cb->user, u->epoch, u->text);
        break;
    case UPCALL_WAITS:
        cb->waits(cb->user, u->text);
        break;
    case UPCALL_OUTPUT:
        cb->output(cb->user, u->seat, (uint32_t)u->epoch, u->code != 0, u->output);
        break;
    case UPCALL_HIDDEN_DEATH:
        cb->hidden_death(cb->user, u->seat, u->pid, u->code);
        break;
    case UPCALL_PLAIN_DEATH:
        cb->plain_death(cb->user, u->seat);
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
        queue_upcall_free(u);
        u = next;
    }
}

int plane_wake_fd(const struct plane *p)
{
    return p->wake_fd;
}

void queue_event(struct plane *p, const char *name, const char *members)
{
    enum { FRAME = 128 }; /* keys and numbers */
    uint64_t at = clock_now_ns();
    struct upcall *u = queue_upcall_new(p, UPCALL_EVENT);
    size_t size = FRAME + strlen(name) + strlen(members);
    if (!u || !(u->text = malloc(size))) {
        free(u);
        return;
    }
    struct json_writer w = json_into(u->text, size);
    json_open(&w, NULL, '{');
    json_put(&w, J_UINT("t_ns", at));
    json_put(&w, J_INT("node", p->agent.self));
    json_put(&w, J_TEXT("event", name));
    json_put_written(&w, members);
    json_close(&w, '}');
    assert(json_is_whole(&w));
    queue_upcall(p, u);
}

void queue_event_members(struct plane *p, const char *name, const struct json_member *m, size_t count)
{
    char members[512];
    struct json_writer w = json_into(members, sizeof members);
    json_go_on(&w);
    json_put_all(&w, m, count);
    if (json_is_whole(&w)) /* never half a JSON text */
        queue_event(p, name, members);
}

void queue_fatal(struct plane *p, const char *why)
{
    struct upcall *u = queue_upcall_new(p, UPCALL_FATAL);
    if (!u)
        abort();
    u->text = strdup(why);
    u->code = p->out;
    queue_upcall(p, u);
}

void queue_free(struct plane *p)
{
    for (struct candidate *k = p->candidates, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    for (struct command *c = p->commands, *next; c; c = next) {
        next = c->next;
        if (c->type == COMMAND_PROCESS_STARTED)
            close(c->fd);
        free(c);
    }
    for (struct upcall *u = p->upcalls, *next; u; u = next) {
        next = u->next;
        queue_upcall_free(u);
    }
}
