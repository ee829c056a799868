/* How the processes of a node end: by a fault, for another node, with their set. */
#include "pm/keeld/ranks_parts.h"

#include "runtime/base/env.h"
#include "runtime/base/signals.h"

#include <signal.h>

/* A program that comes to no point where it may end within that (KEEL_LEAVE_MS) is ended where it is. One that has come
 * there, and does not end, is looked for all the time: others wait for its next process. */
enum { LEAVE_MS_DEFAULT = 10000, LINGERS_MS = 5000 };

/* What killed the rank. */
static int signal_of(const struct keeld_process *e)
{
    return e->hidden_pid ? e->hidden_signal : e->p->signal;
}

void ranks_tell_ended(struct keeld *a, struct keeld_process *e)
{
    const struct process *p = e->p;
    int signal = signal_of(e);
    if (e->retired)
        return;
    e->own_fault = fault_is_own(signal);
    keeld_dialogue_send_json(a, MSG_ENDED,
                             json_pack("{s:i, s:i, s:i, s:i}", "rank", p->life.rank, "pid",
                                       e->hidden_pid ? e->hidden_pid : (int)p->pid, "code", signal ? 0 : p->code,
                                       "signal", signal));
}

static void leave_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    uint64_t now = uv_now(&a->loop), next = UINT64_MAX;
    for (int i = 0; i < a->process_count; i++) {
        struct keeld_process *e = &a->processes[i];
        if (!e->leave_by || e->p->exited)
            continue;
        if (e->leave_by > now) {
            uint64_t look = now + LINGERS_MS < e->leave_by ? now + LINGERS_MS : e->leave_by;
            next = look < next ? look : next;
            plane_process_lingers(a->plane, i);
            continue;
        }
        e->leave_by = 0;
        plane_process_overdue(a->plane, i);
    }
    if (next != UINT64_MAX)
        uv_timer_start(&a->leaving, leave_passed, next - now, 0);
}

void keeld_ranks_release(struct keeld *a, int seat)
{
    struct keeld_process *e = seat >= 0 && seat < a->process_count ? &a->processes[seat] : NULL;
    if (!e || a->state != KEELD_RUNNING || e->p->exited)
        return;
    uint64_t in = env_number("KEEL_LEAVE_MS", LEAVE_MS_DEFAULT);
    e->leave_by = uv_now(&a->loop) + in;
    e->leaves = true;
    keeld_event(a, "leaving", json_pack("{s:i, s:i}", "rank", e->p->life.rank, "pid", (int)e->p->pid));
    if (!uv_is_active((uv_handle_t *)&a->leaving))
        uv_timer_start(&a->leaving, leave_passed, in < LINGERS_MS ? in : LINGERS_MS, 0);
}

void keeld_ranks_stay(struct keeld *a, int seat)
{
    struct keeld_process *e = seat >= 0 && seat < a->process_count ? &a->processes[seat] : NULL;
    if (!e || e->p->exited)
        return;
    e->leave_by = 0; /* the timer finds nobody */
    e->leaves = false;
    keeld_event(a, "staying", json_pack("{s:i, s:i}", "rank", e->p->life.rank, "pid", (int)e->p->pid));
}

void keeld_ranks_end(struct keeld *a, int seat)
{
    struct keeld_process *e = seat >= 0 && seat < a->process_count ? &a->processes[seat] : NULL;
    if (!e || a->state != KEELD_RUNNING || e->p->exited)
        return;
    e->made_to_leave = true;
    keeld_event(a, "made_to_leave", json_pack("{s:i, s:i}", "rank", e->p->life.rank, "pid", (int)e->p->pid));
    process_kill(e->p, SIGKILL);
}

void keeld_ranks_hidden_death(struct keeld *a, int seat, int pid, int signal)
{
    struct keeld_process *e = seat >= 0 && seat < a->process_count ? &a->processes[seat] : NULL;
    if (!e || a->state != KEELD_RUNNING)
        return;
    e->hidden_pid = pid;
    e->hidden_signal = signal;
    if (e->p->exited)
        ranks_tell_ended(a, e); /* not as it was told before */
    else
        process_kill(e->p, SIGKILL);
}

void keeld_ranks_plain_death(struct keeld *a, int seat)
{
    const struct process *p = a->processes[seat].p;
    char name[16];
    keeld_own_why(a, "rank %d (pid %d, node %d) was killed by %s before it called keel_init, so it cannot be replaced",
                  p->life.rank, (int)p->pid, a->launch.node, signal_name(p->signal, name, sizeof name));
}

/* keelrun hears the places before the bytes. */
void keeld_ranks_output(struct keeld *a, int seat, uint32_t id, bool begins, const uint64_t at[2])
{
    struct keeld_process *e = seat >= 0 && seat < a->process_count ? &a->processes[seat] : NULL;
    uint64_t came[2] = {at[0], at[1]};
    if (!e)
        return;
    if (begins && !e->retired) {
        process_output_begins(e->p, at);
        e->is_guest = false;
        keeld_dialogue_send_json(a, MSG_PLACE,
                                 json_pack("{s:i, s:I, s:I, s:I}", "rank", e->p->life.rank, "out", (json_int_t)at[0],
                                           "err", (json_int_t)at[1], "epoch", (json_int_t)a->view.epoch));
    } else if (!begins) {
        process_output_came(e->p, came);
    }
    plane_process_output(a->plane, seat, id, came);
}

struct fault keeld_ranks_fault(const struct keeld *a)
{
    for (int i = 0; i < a->process_count; i++) {
        bool again = false;
        for (int k = i + 1; k < a->process_count; k++)
            again |= a->processes[k].p->life.rank == a->processes[i].p->life.rank;
        const struct process *p = a->processes[i].p;
        if (a->processes[i].own_fault && !again)
            return (struct fault){p->life.rank, signal_of(&a->processes[i]), p->life.incarnation > 0};
    }
    return a->end.fault;
}

void keeld_ranks_go_on(struct keeld *a)
{
    for (int i = 0; i < a->process_count; i++) {
        struct keeld_process *e = &a->processes[i];
        int at = e->own_fault ? a->view.rank_node[e->p->life.rank] : -1;
        e->own_fault = e->own_fault && (at < 0 || at == a->launch.node);
    }
}

/* At once, as they have nothing to bring to an end: what they write and say counts no more. Their ends are deaths of
 * their ranks, for what they were writing. Those of a set that has begun anew go on. */
void keeld_ranks_retire(struct keeld *a)
{
    const struct replica_map *m = &a->job.settings.replicas;
    for (int i = 0; i < a->process_count && replica_map_is_used(m); i++) {
        struct keeld_process *e = &a->processes[i];
        if (e->retired || e->p->exited || e->p->life.rank < 0 ||
            !replica_is_over(&a->view.loss[replica_of(m, e->p->life.rank).set], e->p->life.incarnation))
            continue;
        e->retired = true;
        keeld_event(a, "retired", json_pack("{s:i, s:i}", "rank", e->p->life.rank, "pid", (int)e->p->pid));
        process_kill(e->p, SIGKILL);
    }
}
