/* The processes of a node. */
#include "pm/keeld/keeld.h"

#include "pm/wire/orphans.h"
#include "pm/wire/order.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A program that comes to no point where it may end within that (KEEL_LEAVE_MS) is ended where it is. */
enum { LEAVE_MS_DEFAULT = 10000 };

static struct keeld_process *entry_of(struct process *p)
{
    struct keeld *a = p->user;
    return &a->processes[p->seat];
}

/* ---- events of a process ---- */

static void on_output(struct process *p, int stream, const uint8_t *lines, size_t len)
{
    const struct keeld *a = p->user;
    if (p->life.rank < 0 && a->state >= KEELD_ENDING)
        return; /* what a standby that was never needed printed before keel_init */
    keeld_output(p->user, p->life.rank, stream, lines, len);
}

static void pmi_feed(struct keeld *a, struct keeld_process *e, const uint8_t *data, size_t len)
{
    struct bytes out = {0};
    int abort_code = 0;
    const char *why = NULL;
    int effects = pmi_client_feed(e->pmi, data, len, &out, &abort_code, &why);
    process_write_pmi(e->p, out.data, out.len);
    bytes_free(&out);
    if (effects & PMI_BROKEN) {
        char name[REPLICA_NAME];
        log_warn("%s: its PMI socket is closed: %s", replica_name(&a->job.settings.replicas, e->p->life.rank, name),
                 why);
        process_close_pmi(e->p);
    }
    if (effects & PMI_FENCE)
        keeld_pmi_fence(a, keeld_pmi_world(a, e->p->life.rank));
    if ((effects & PMI_ABORT) && a->state == KEELD_RUNNING) {
        int code = abort_code & 255;
        if (replica_map_is_used(&a->job.settings.replicas)) { /* it ends with its set: as if it had ended so */
            e->aborted = code ? code : 1;
            process_kill(e->p, SIGKILL);
            return;
        }
        keeld_own_why(a, "rank %d on node %d aborted the job with code %d", e->p->life.rank, a->launch.node,
                      abort_code);
        plane_stop_job(a->plane, code ? code : 1, a->end.own_why);
    }
}

static void on_pmi(struct process *p, const uint8_t *data, size_t len)
{
    pmi_feed(p->user, entry_of(p), data, len);
}

static void on_stdin_taken(struct process *p, size_t len)
{
    struct keeld *a = p->user;
    uint8_t count[4];
    put_u32(count, (uint32_t)len);
    keeld_dialogue_send(a, MSG_STDIN_TAKEN, count, sizeof count);
}

/* What killed the rank. */
static int signal_of(const struct keeld_process *e)
{
    return e->hidden_pid ? e->hidden_signal : e->p->signal;
}

static void tell_ended(struct keeld *a, struct keeld_process *e)
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

static void on_exited(struct process *p)
{
    struct keeld *a = p->user;
    keeld_event(a, "exit",
                json_pack("{s:i, s:i, s:i, s:i}", "rank", p->life.rank, "pid", (int)p->pid, "code", p->code, "signal",
                          p->signal));
    if (entry_of(p)->pmi && pmi_client_gone(entry_of(p)->pmi) & PMI_FENCE)
        keeld_pmi_fence(a, keeld_pmi_world(a, p->life.rank));
    if (a->launch.join && a->state < KEELD_RUNNING)
        keeld_fail(a, 1, "a process of the node has ended before the job began");
    if (a->state != KEELD_RUNNING)
        return;
    /* No end of the rank, which begins elsewhere; unless it had ended by itself before it was killed. */
    if (entry_of(p)->made_to_leave && p->signal == SIGKILL) {
        plane_process_moved(a->plane, p->seat);
        return;
    }
    if (p->life.rank >= 0)
        tell_ended(a, entry_of(p));
    int aborted = entry_of(p)->aborted;
    plane_process_exited(a->plane, p->seat, aborted ? aborted : p->code, aborted ? 0 : p->signal);
}

static void on_drained(struct process *p)
{
    struct keeld *a = p->user;
    if (a->state == KEELD_ENDING && keeld_ranks_gone(a))
        keeld_processes_gone(a);
    else if (a->state == KEELD_OUT && keeld_ranks_gone(a))
        keeld_return_processes_gone(a);
}

/* ---- start ---- */

static const struct process_events events = {on_output, on_pmi, on_stdin_taken, on_exited, on_drained};

static int next_seat(struct keeld *a, struct process *p, struct life life)
{
    int seat = a->process_count++;
    a->processes = realloc(a->processes, (size_t)a->process_count * sizeof *a->processes);
    if (!a->processes)
        abort();
    p->seat = seat;
    p->life = life;
    return seat;
}

struct process *keeld_ranks_adopt(struct keeld *a, int rank, pid_t pid, int lifeline)
{
    struct process *p = process_adopt(&a->loop, pid, lifeline, &events, a);
    int seat = p ? next_seat(a, p, life_of(rank, 0)) : -1;
    if (p)
        a->processes[seat] = (struct keeld_process){.p = p, .world = -1};
    return p;
}

/* Of each set there is one that has standard input. */
static bool is_first(const struct keeld *a, int rank)
{
    return rank >= 0 && replica_of(&a->job.settings.replicas, rank).rank == 0;
}

/* Returns the errno of a failure, described in why. */
static int start_one(struct keeld *a, struct life life, bool late, char *why, size_t why_size)
{
    struct env_list env = keeld_rank_env(a, life.rank);
    struct process_spec spec = {.argv = a->job.argv,
                                .env = env.list,
                                .cwd = a->job.cwd,
                                .descriptors = a->launch.descriptors,
                                .with_stdin = !late && is_first(a, life.rank),
                                .hold_output = life_is_none(life),
                                .same_numbers = replica_map_is_used(&a->job.settings.replicas),
                                .world = keeld_world_open(a, life.rank)};
    int keel_fd = -1, error = 0;
    char text[REFUSAL_MAX];
    const char *what = "";
    struct process *p = process_start(&a->loop, &spec, &events, a, &keel_fd, &error, &what);
    for (size_t i = 0; i < env.count; i++)
        free(env.list[i]);
    free(env.list);
    if (!p) {
        if (spec.world >= 0)
            close(spec.world);
        if (*what)
            snprintf(why, why_size, "node %d: %s: %s", a->launch.node, what, refusal_error(error, text));
        else
            snprintf(why, why_size, "node %d: cannot run %s: %s", a->launch.node, a->job.argv[0],
                     refusal_error(error, text));
        return error;
    }
    int seat = next_seat(a, p, life);
    for (int stream = 0; stream < 2; stream++)
        process_pause_output(p, stream, keeld_output_closed(a, stream));
    if (a->stopped)
        process_pass(p, SIGSTOP);
    /* only the first runner of a rank takes part in PMI: MPI has no notion of a second one */
    a->processes[seat] = (struct keeld_process){
        .p = p, .pmi = keeld_pmi_client(a, life.rank, late), .world = spec.world, .assigned_late = late};
    keeld_event(
        a, "rank_start",
        json_pack("{s:i, s:i, s:i}", "rank", life.rank, "pid", (int)p->pid, "incarnation", (int)life.incarnation));
    keel_status status = plane_process_started(a->plane, seat, life, (int)p->pid, keel_fd);
    if (status != KEEL_OK) {
        snprintf(why, why_size, "node %d: rank %d cannot join: %s", a->launch.node, life.rank,
                 refusal_text(status, text));
        return EIO;
    }
    return 0;
}

static int exit_code_of(int error)
{
    return error == ENOENT ? 127 : error == EACCES || error == ENOEXEC ? 126 : 1;
}

void keeld_ranks_start(struct keeld *a)
{
    char why[512];
    keeld_pmi_open(a);
    keeld_event(a, "start",
                json_pack("{s:i, s:s, s:b}", "pid", (int)getpid(), "host", a->self_host, "spare",
                          a->launch.node >= a->job.settings.nodes));
    for (int r = 0; r < a->job.settings.ranks; r++) {
        int error =
            a->job.settings.rank_node[r] == a->launch.node ? start_one(a, life_of(r, 0), false, why, sizeof why) : 0;
        if (error) {
            keeld_fail(a, exit_code_of(error), why);
            return;
        }
    }
}

/* A spare's processes, once somebody has called keel_init: a program that does not would run there from end to end. */
void keeld_ranks_standby(struct keeld *a)
{
    char why[512];
    if (a->state != KEELD_RUNNING || a->launch.node < a->job.settings.nodes || a->standbys_begun ||
        replica_map_is_used(&a->job.settings.replicas)) /* no rank of which begins again */
        return;
    a->standbys_begun = true;
    for (int i = 0; i < a->job.standbys; i++) {
        int error = start_one(a, LIFE_NONE, false, why, sizeof why);
        if (error) {
            keeld_fail(a, exit_code_of(error), why);
            return;
        }
    }
}

static void tell_begun(struct keeld *a, const struct process *p)
{
    keeld_dialogue_send_json(a, MSG_BEGUN, json_pack("{s:i, s:i}", "rank", p->life.rank, "pid", (int)p->pid));
}

void keeld_ranks_assigned(struct keeld *a, int seat, struct life life)
{
    if (seat < 0 || seat >= a->process_count || a->state != KEELD_RUNNING)
        return;
    struct keeld_process *e = &a->processes[seat];
    e->p->life = life;
    e->assigned_late = true;
    process_release_output(e->p);
    tell_begun(a, e->p);
    keeld_event(
        a, "assigned",
        json_pack("{s:i, s:i, s:i}", "rank", life.rank, "pid", (int)e->p->pid, "incarnation", (int)life.incarnation));
}

void keeld_ranks_respawn(struct keeld *a, struct life life)
{
    char why[512];
    if (start_one(a, life, true, why, sizeof why) != 0) {
        keeld_own_why(a, "%s", why);
        plane_stop_job(a->plane, 1, why);
        return;
    }
    tell_begun(a, a->processes[a->process_count - 1].p);
}

/* ---- ranks that go elsewhere ---- */

static void leave_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    uint64_t now = uv_now(&a->loop), next = UINT64_MAX;
    for (int i = 0; i < a->process_count; i++) {
        struct keeld_process *e = &a->processes[i];
        if (!e->leave_by || e->p->exited)
            continue;
        if (e->leave_by > now) {
            next = e->leave_by < next ? e->leave_by : next;
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
    keeld_event(a, "leaving", json_pack("{s:i, s:i}", "rank", e->p->life.rank, "pid", (int)e->p->pid));
    if (!uv_is_active((uv_handle_t *)&a->leaving))
        uv_timer_start(&a->leaving, leave_passed, in, 0);
}

void keeld_ranks_stay(struct keeld *a, int seat)
{
    struct keeld_process *e = seat >= 0 && seat < a->process_count ? &a->processes[seat] : NULL;
    if (!e || e->p->exited)
        return;
    e->leave_by = 0; /* the timer finds nobody */
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
        tell_ended(a, e); /* not as it was told before */
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

/* At once, as they have nothing to bring to an end: what they write and say counts no more. Their ends are deaths of
 * their ranks, for what they were writing. */
void keeld_ranks_retire(struct keeld *a)
{
    const struct replica_map *m = &a->job.settings.replicas;
    for (int i = 0; i < a->process_count && replica_map_is_used(m); i++) {
        struct keeld_process *e = &a->processes[i];
        if (e->retired || e->p->exited || e->p->life.rank < 0 ||
            !a->view.loss[replica_of(m, e->p->life.rank).set].retired)
            continue;
        e->retired = true;
        keeld_event(a, "retired", json_pack("{s:i, s:i}", "rank", e->p->life.rank, "pid", (int)e->p->pid));
        process_kill(e->p, SIGKILL);
    }
}

/* ---- all of them ---- */

/* Processes of others that never became ranks: they are told that they cannot, and do as they like. */
static bool are_not_ours(const struct keeld *a)
{
    return a->launch.join && !a->ran;
}

bool keeld_ranks_gone(const struct keeld *a)
{
    if (are_not_ours(a))
        return true;
    for (int i = 0; i < a->process_count; i++)
        if (!a->processes[i].p->drained)
            return false;
    return true;
}

void keeld_ranks_signal(struct keeld *a, int signal, bool standbys_only)
{
    for (int i = 0; i < a->process_count && !are_not_ours(a); i++)
        if (!standbys_only || a->processes[i].p->life.rank < 0)
            process_kill(a->processes[i].p, signal);
}

/* Stopped ones are in no terminal's group: SIGTSTP would be lost on them. Who waits for a rank gets no warning of the
 * batch system's, for which it has no handler yet. */
void keeld_ranks_forward(struct keeld *a, int signal_number)
{
    bool all = signal_number == SIGTSTP || signal_number == SIGCONT;
    if (all)
        a->stopped = signal_number == SIGTSTP;
    for (int i = 0; i < a->process_count; i++)
        if (all || a->processes[i].p->life.rank >= 0)
            process_pass(a->processes[i].p, signal_number == SIGTSTP ? SIGSTOP : signal_number);
}

void keeld_ranks_stdin(struct keeld *a, const uint8_t *data, size_t len)
{
    for (int i = 0; i < a->process_count; i++)
        if (is_first(a, a->processes[i].p->life.rank) && !a->processes[i].assigned_late) {
            process_write_stdin(a->processes[i].p, data, len);
            return;
        }
}

void keeld_ranks_pause(struct keeld *a, int stream, bool pause)
{
    for (int i = 0; i < a->process_count; i++)
        process_pause_output(a->processes[i].p, stream, pause);
}

void keeld_ranks_pmi_release(struct keeld *a, int world, const json_t *kvs)
{
    pmi_release(a->pmi.world[world].server, kvs);
    for (int i = 0; i < a->process_count; i++)
        if (a->processes[i].pmi && keeld_pmi_world(a, a->processes[i].p->life.rank) == world &&
            pmi_client_release(a->processes[i].pmi))
            process_write_pmi(a->processes[i].p, (const uint8_t *)pmi_barrier_out, strlen(pmi_barrier_out));
}

/* Their ends are heard elsewhere. */
static bool is_waited_for(void *user, pid_t pid)
{
    const struct keeld *a = user;
    for (int i = 0; i < a->process_count; i++)
        if (a->processes[i].p->pid == pid && !a->processes[i].p->exited)
            return true;
    return keeld_starts_has(a, pid);
}

/* What starts other nodes stays, also what of it is left when its launcher was killed: on a bed these nodes live below.
 * If we have not heard of the job's start they may have, and know when to end; but an ssh that gets no answer waits
 * for ever. */
static bool stays(void *user, pid_t pid)
{
    const struct keeld *a = user;
    if (!a->ran)
        return start_is_agents(pid) || (!a->end.departing && is_waited_for(user, pid));
    return is_waited_for(user, pid) || start_is_of(pid);
}

void keeld_ranks_orphans(struct keeld *a, bool kill_them)
{
    if (kill_them)
        orphans_kill(stays, a);
    else
        orphans_reap(is_waited_for, a);
}

void keeld_ranks_free(struct keeld *a)
{
    for (int i = 0; i < a->process_count; i++)
        pmi_client_destroy(a->processes[i].pmi);
    free(a->processes);
    keeld_pmi_close(a);
}
