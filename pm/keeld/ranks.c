/* The processes of a node: how they start, and become ranks. */
#include "pm/keeld/ranks_parts.h"

#include "pm/wire/codec.h"
#include "runtime/base/refusal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    struct process *p = process_adopt(&a->loop, pid, lifeline, &ranks_events, a);
    int seat = p ? next_seat(a, p, life_of(rank, 0)) : -1;
    if (p)
        a->processes[seat] = (struct keeld_process){.p = p, .world = -1};
    return p;
}

bool ranks_is_first(const struct keeld *a, int rank)
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
                                .with_stdin = life_is_none(life) || ranks_is_first(a, life.rank),
                                .hold_output = life_is_none(life),
                                .same_numbers = replica_map_is_used(&a->job.settings.replicas),
                                .world = keeld_world_open(a, life.rank)};
    int keel_fd = -1, error = 0;
    char text[REFUSAL_MAX];
    const char *what = "";
    struct process *p = process_start(&a->loop, &spec, &ranks_events, a, &keel_fd, &error, &what);
    for (size_t i = 0; i < env.count; i++)
        free(env.list[i]);
    free(env.list);
    if (!p) {
        if (spec.world >= 0)
            close(spec.world);
        if (*what)
            snprintf(why, why_size, "%s: %s", what, refusal_error(error, text));
        else
            snprintf(why, why_size, "cannot run %s: %s", a->job.argv[0], refusal_error(error, text));
        return error;
    }
    int seat = next_seat(a, p, life);
    for (int stream = 0; stream < 2; stream++)
        process_pause_output(p, stream, keeld_output_closed(a, stream));
    if (a->stopped)
        process_pass(p, SIGSTOP);
    /* only the first runner of a rank takes part in PMI: MPI has no notion of a second one */
    a->processes[seat] =
        (struct keeld_process){.p = p,
                               .pmi = keeld_pmi_client(a, life.rank, late),
                               .world = spec.world,
                               .assigned_late = late,
                               .is_guest = replica_map_is_used(&a->job.settings.replicas) && life.incarnation > 0};
    keeld_event(
        a, "rank_start",
        json_pack("{s:i, s:i, s:i}", "rank", life.rank, "pid", (int)p->pid, "incarnation", (int)life.incarnation));
    keel_status status = plane_process_started(a->plane, seat, life, (int)p->pid, keel_fd);
    if (status != KEEL_OK) {
        snprintf(why, why_size, "rank %d cannot join: %s", life.rank, refusal_text(status, text));
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
    char why[512], line[sizeof why + 24];
    keeld_pmi_open(a);
    keeld_event(a, "start",
                json_pack("{s:i, s:s, s:b}", "pid", (int)getpid(), "host", a->self_host, "spare",
                          a->launch.node >= a->job.settings.nodes));
    for (int r = 0; r < a->job.settings.ranks; r++) {
        int error =
            a->job.settings.rank_node[r] == a->launch.node ? start_one(a, life_of(r, 0), false, why, sizeof why) : 0;
        if (error) {
            snprintf(line, sizeof line, "node %d: %s", a->launch.node, why);
            keeld_fail(a, exit_code_of(error), line);
            return;
        }
    }
}

/* The node goes on with what it has. */
static void tell_not_started(struct keeld *a, struct life life, const char *why)
{
    keeld_event(a, "not_started",
                json_pack("{s:i, s:I, s:o}", "rank", life.rank, "incarnation", (json_int_t)life.incarnation, "why",
                          codec_text(why)));
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
        if (start_one(a, LIFE_NONE, false, why, sizeof why) != 0) {
            tell_not_started(a, LIFE_NONE, why); /* when a rank comes here it is tried again */
            return;
        }
    }
}

/* keelrun sends standard input to a process of rank 0 that it has heard of here, from its beginning. */
static void tell_begun(struct keeld *a, struct process *p)
{
    keeld_dialogue_send_json(a, MSG_BEGUN,
                             json_pack("{s:i, s:i, s:I}", "rank", p->life.rank, "pid", (int)p->pid, "incarnation",
                                       (json_int_t)p->life.incarnation));
    if (!ranks_is_first(a, p->life.rank))
        process_write_stdin(p, NULL, 0);
    else if (a->dialogue.gone)
        ranks_input_is_cut(a, &a->processes[p->seat]);
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
        tell_not_started(a, life, why);
        plane_process_refused(a->plane, life);
        return;
    }
    tell_begun(a, a->processes[a->process_count - 1].p);
}
