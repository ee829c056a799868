/* What the data thread does when a command comes: processes that started or ended, views that are prepared, committed
 * and settled, reports of the detector, the end of the job. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agent/health.h"
#include "runtime/agent/ranks.h"
#include "runtime/agent/recover.h"
#include "runtime/agent/verify.h"
#include "runtime/base/log.h"
#include "runtime/plane/plane_int.h"
#include "runtime/view/plan.h"

enum { OVER_GRACE_NS = 500000000 }; /* others may be dead when the job ends: do not wait longer for them */

/* False: no memory. */
static bool add_lost(const struct agent *a, struct upcall *u)
{
    u->lost = calloc((size_t)a->view.ranks, sizeof *u->lost);
    for (int r = 0; u->lost && r < a->view.ranks; r++) {
        const struct view_rank *k = &a->view.rank[r];
        if (k->state == RANK_DEAD)
            u->lost[u->nlost++] = (struct replica_loss){
                .native = r, .node = k->death.node, .signal = k->death.signal, .epoch = k->death.epoch};
    }
    return u->lost != NULL;
}

static void tell_view(struct plane *p)
{
    const struct view *v = &p->agent.view;
    struct upcall *u = queue_upcall_new(p, UPCALL_VIEW);
    if (!u)
        return;
    u->epoch = v->epoch;
    u->free = plan_free_nodes(v);
    u->files = v->replicas ? view_files_set(v) : -1;
    u->by_loss = v->by_loss;
    memcpy(u->loss, v->loss, sizeof u->loss);
    for (int s = 0; s < REPLICAS_MAX; s++)
        u->in_vain[s] = view_set_in_vain(v, s) ? *view_set_in_vain(v, s) : (struct replica_loss){.retired = false};
    u->rank_node = calloc((size_t)v->ranks, sizeof *u->rank_node);
    u->alive = calloc((size_t)p->agent.members, sizeof *u->alive);
    if (!u->rank_node || !u->alive || (p->agent.partners && !add_lost(&p->agent, u))) {
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

static void move_rank(struct plane *p, const struct command *c)
{
    const struct view *v = &p->agent.view;
    int rank = c->life.rank; /* whichever life of it is here */
    if (rank >= v->ranks || !ranks_release(&p->agent, view_life(v, rank), c->node, 0))
        log_warn("rank %d cannot go to node %d", rank, c->node);
}

/* Several may have been given one number, one after the other: the view says which of them has it. */
static void introduce_born(struct plane *p, const struct command *c)
{
    for (int i = 0; i < c->n; i++)
        for (const struct candidate *k = c->event[i].type == VIEW_NODE_BORN ? p->candidates : NULL; k; k = k->next)
            if (k->node == (int)c->event[i].a && (uint32_t)k->incarnation == c->event[i].b)
                agent_address(&p->agent, k->node, &k->addrs, k->incarnation);
}

static void met(struct plane *p, const struct command *c)
{
    struct candidate *k = malloc(sizeof *k);
    if (!k) {
        agent_break(&p->agent, "out of memory for a node that comes later");
        return;
    }
    *k = (struct candidate){p->candidates, c->node, c->value, c->addrs};
    p->candidates = k;
}

static void committed(struct plane *p, const struct command *c)
{
    struct agent *a = &p->agent;
    introduce_born(p, c);
    recover_commit(a, c->epoch, c->event, c->n, c->value);
    tell_view(p);
    if (a->view.stopped && !p->stop_deadline)
        p->stop_deadline = a->now + OVER_GRACE_NS;
}

static void settled(struct plane *p, const struct command *c)
{
    struct agent *a = &p->agent;
    recover_settled(a, c->epoch);
    if (a->view.stopped && a->recovery.settled >= a->view.epoch)
        commands_tell_over(p);
}

static void show_links(struct plane *p)
{
    struct member_link links[MEMBER_LINKS_MAX];
    struct health_link shown[MEMBER_LINKS_MAX];
    int n = helper_links(p->helper, links);
    for (int i = 0; i < n; i++)
        shown[i] = (struct health_link){links[i].a, links[i].b, links[i].since_ns};
    health_links(&p->agent, shown, n);
}

/* What ranks may see of it, on the view page. */
static void show_report(struct plane *p, const struct member_report *r)
{
    switch (r->kind) {
    case MEMBER_REPORT_SUSPECT:
    case MEMBER_REPORT_CLEARED:
        health_suspect(&p->agent, r->node, r->kind == MEMBER_REPORT_SUSPECT);
        break;
    case MEMBER_REPORT_AGENT:
        health_doubt(&p->agent, r->node, PAGE_DOUBT_AGENT, true);
        break;
    case MEMBER_REPORT_ANSWERED:
        health_answered(&p->agent, r->node, r->asked_ns);
        break;
    case MEMBER_REPORT_LINKS:
        show_links(p);
        break;
    default:
        break;
    }
}

static double ms_of(uint64_t ns)
{
    return (double)ns / (double)KEEL_NS_PER_MS;
}

/* How long a suspect is waited for, and why longer than usual. */
static void tell_patience(struct plane *p, const struct member_doubt *d)
{
    bool never = d->limit_ns == MEMBER_NEVER;
    queue_event_of(p, "patience", J_INT("about", d->node), J_TEXT("how", member_how_name(d->how)),
                   J_TEXT("why", member_why_name(d->why)),
                   never ? J_NULL("limit_ms") : J_REAL("limit_ms", ms_of(d->limit_ns), 0),
                   J_BOOL("waited_for", d->waited_for));
}

/* Ranks may have something to save before this node ends. */
static void tell_cut_off(struct plane *p, const struct member_report *r)
{
    bool cut = r->kind == MEMBER_REPORT_CUT_OFF;
    if (cut)
        queue_event_of(p, member_report_name(r->kind), J_TEXT("text", r->text),
                       J_REAL("limit_ms", ms_of(r->limit_ns), 0));
    else
        queue_event(p, member_report_name(r->kind), "");
    health_cut_off(&p->agent, cut);
}

static void tell_late(struct plane *p, const struct member_report *r)
{
    queue_event_of(p, member_report_name(r->kind), J_REAL("by_ms", ms_of(r->limit_ns), 0));
}

static void reported(struct plane *p, const struct member_report *r)
{
    show_report(p, r);
    if (r->kind == MEMBER_REPORT_VERDICT) {
        health_doubt(&p->agent, r->node, PAGE_DOUBT_DEAD, true);
        recover_doomed(&p->agent, r->node);
    }
    switch (r->kind) {
    case MEMBER_REPORT_SUSPECT:
    case MEMBER_REPORT_CLEARED:
    case MEMBER_REPORT_VERDICT:
    case MEMBER_REPORT_LINK_BROKEN:
    case MEMBER_REPORT_LINK_OK:
        queue_event_of(p, member_report_name(r->kind), J_INT("about", r->node),
                       J_TEXT("evidence", member_evidence_name(r->evidence)), J_TEXT("text", r->text));
        break;
    case MEMBER_REPORT_PATIENCE:
        tell_patience(p, &r->doubt);
        break;
    case MEMBER_REPORT_CUT_OFF:
    case MEMBER_REPORT_IN_TOUCH:
        tell_cut_off(p, r);
        break;
    case MEMBER_REPORT_LATE:
        tell_late(p, r);
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
    case COMMAND_PROCESS_REFUSED:
        ranks_refused(a, c->life);
        break;
    case COMMAND_PROCESS_EXITED:
        procs_exited(p, c);
        break;
    case COMMAND_PROCESS_OVERDUE:
        procs_overdue(p, c);
        break;
    case COMMAND_PROCESS_LINGERS:
        procs_lingers(p, c);
        break;
    case COMMAND_PROCESS_MOVED:
        procs_moved(p, c);
        break;
    case COMMAND_PROCESS_OUTPUT:
        procs_output(p, c);
        break;
    case COMMAND_SETS_STAY:
        ranks_needs(a, NEEDS_ITS);
        break;
    case COMMAND_MOVE_RANK:
        move_rank(p, c);
        break;
    case COMMAND_STOP_JOB:
        a->ops.submit(a->ops.user, &stop);
        break;
    case COMMAND_NEEDS_SETS:
        ranks_needs(a, NEEDS_SETS);
        break;
    case COMMAND_WRITES:
        ranks_writes(a, c->life.rank);
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
        p->out = member_was_left_out(c->text);
        if (a->view.stopped)
            commands_tell_over(p); /* the others left before us */
        else
            agent_break(a, c->text);
        break;
    case COMMAND_MEET:
        met(p, c);
        break;
    case COMMAND_REPORT:
        reported(p, &c->report);
        break;
    case COMMAND_VERIFY:
        verify_start(a, c->value);
        break;
    case COMMAND_REBALANCE:
        weighing_ask(a, c->value, (uint32_t)c->epoch);
        break;
    case COMMAND_QUIT:
        p->quit = true;
        break;
    }
}

struct command *commands_take(struct plane *p)
{
    uint64_t count;
    if (!atomic_load_explicit(&p->command_waiting, memory_order_acquire))
        return NULL;
    pthread_mutex_lock(&p->lock);
    struct command *first = p->commands;
    p->commands = NULL;
    p->commands_tail = &p->commands;
    atomic_store(&p->command_waiting, 0);
    while (read(p->command_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    pthread_mutex_unlock(&p->lock);
    return first;
}

/* The helper thread calls a view settled when all helpers have committed it, and the commit may still be in this queue:
 * messages of those who are ahead wait in their streams until it is carried out (agent/peer.h, agent/execute.c). */
void commands_run(struct plane *p, struct command *first)
{
    for (struct command *c = first; c;) {
        struct command *next = c->next;
        run_command(p, c);
        free(c);
        c = next;
    }
}
