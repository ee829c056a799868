/* What the data thread does when a command comes: processes that started or ended, views that are prepared, committed and
 * settled, reports of the detector, the end of the job. */
#include "runtime/init/plane_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/recovery/recover.h"

enum { OVER_GRACE_NS = 500000000 }; /* others may be dead when the job ends: do not wait longer for them */

static void tell_view(struct plane *p)
{
    const struct view *v = &p->agent.view;
    struct upcall *u = queue_upcall_new(p, UPCALL_VIEW);
    if (!u)
        return;
    u->epoch = v->epoch;
    u->rank_node = calloc((size_t)v->ranks, sizeof *u->rank_node);
    u->alive = calloc((size_t)p->agent.members, sizeof *u->alive);
    if (!u->rank_node || !u->alive) {
        queue_upcall_free(u);
        return;
    }
    for (int r = 0; r < v->ranks; r++)
        u->rank_node[r] = v->rank[r].node;
    for (int m = 0; m < p->agent.members; m++)
        u->alive[m] = v->alive[m];
    queue_upcall(p, u);
}

void commands_tell_over(struct plane *p)
{
    if (p->over_told)
        return;
    p->over_told = true;
    const struct view *v = &p->agent.view;
    struct upcall *u = queue_upcall_new(p, UPCALL_JOB_OVER);
    if (!u)
        return;
    u->code = v->code;
    if (v->code)
        u->text = strdup(v->why);
    queue_upcall(p, u);
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
        commands_tell_over(p);
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
            commands_tell_over(p); /* the others left before us */
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

/* Where the queue is cut if messages have arrived. The helper thread calls a view settled when all helpers have committed
 * it, and the commit may still be in our queue; but it was put there before anything that another node sends because of
 * it, so it is to be carried out before messages. A prepare comes after them: it drops the connections of the dead, and
 * what they announced has to be known by then (their remote writes have taken effect already). Nobody commits what we
 * have not answered, so no commit that matters is behind it. */
static struct command **end_of_commands(struct plane *p, bool messages)
{
    struct command **link = &p->commands;
    while (*link && !(messages && (*link)->type == COMMAND_PREPARE))
        link = &(*link)->next;
    for (const struct command *c = *link; c; c = c->next)
        if (c->type == COMMAND_COMMIT)
            return p->commands_tail;
    return link;
}

static struct command *take_commands(struct plane *p, bool messages)
{
    pthread_mutex_lock(&p->lock);
    struct command **end = end_of_commands(p, messages);
    struct command *first = end == &p->commands ? NULL : p->commands, *rest = *end;
    *end = NULL;
    if (!rest) {
        uint64_t count;
        while (read(p->command_fd, &count, sizeof count) < 0 && errno == EINTR)
            ;
        p->commands_tail = &p->commands;
        atomic_store(&p->command_waiting, 0);
    }
    p->commands = rest;
    pthread_mutex_unlock(&p->lock);
    return first;
}

bool commands_run(struct plane *p, bool messages)
{
    if (!atomic_load_explicit(&p->command_waiting, memory_order_acquire))
        return false;
    struct command *c = take_commands(p, messages);
    while (c) {
        struct command *next = c->next;
        run_command(p, c);
        free(c);
        c = next;
    }
    return true;
}
