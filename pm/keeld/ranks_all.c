/* All processes of a node at once: signals, standard input, PMI, and what they leave behind. */
#include "pm/keeld/ranks_parts.h"

#include "pm/wire/order.h"
#include "pm/wire/orphans.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* The process of rank 0 that the frame names, from the i-th on; NULL: it is not here. */
static struct keeld_process *fed_by(struct keeld *a, const uint8_t *body, size_t len, int *i)
{
    while (len >= 4 && *i < a->process_count) {
        struct keeld_process *e = &a->processes[(*i)++];
        if (ranks_is_first(a, e->p->life.rank) && e->p->life.incarnation == get_u32(body))
            return e;
    }
    return NULL;
}

void keeld_ranks_stdin(struct keeld *a, const uint8_t *body, size_t len)
{
    struct keeld_process *e;
    for (int i = 0; (e = fed_by(a, body, len, &i));) {
        e->input.bytes += len - 4;
        e->input.ended = len == 4;
        process_write_stdin(e->p, body + 4, len - 4);
    }
}

void keeld_ranks_stdin_lacks(struct keeld *a, const uint8_t *body, size_t len)
{
    struct keeld_process *e;
    for (int i = 0; (e = fed_by(a, body, len, &i));)
        if (e->is_guest)
            process_kill(e->p, SIGKILL);
        else
            e->input.lacks = LACKS_AGAIN;
}

void keeld_ranks_fed(struct keeld *a)
{
    if (a->fed != INPUT_NONE && a->plane && replica_map_is_used(&a->job.settings.replicas))
        plane_sets_stay(a->plane);
}

/* It reads an end, as nobody waits for the dead; but that is none if there was any input (ranks_events.c): what keelrun
 * had read may have gone with it. */
void ranks_input_is_cut(struct keeld *a, struct keeld_process *e)
{
    static const char text[] = "keel: rank 0 has begun again without standard input, as keelrun has ended\n";
    bool open = !e->input.ended && e->p->in_open, again = e->p->life.incarnation > 0;
    if (open && (e->input.bytes > 0 || (a->fed && !again))) {
        e->input.lacks = LACKS_END;
    } else if (open && a->fed == INPUT_SOME) {
        e->input.lacks = LACKS_ALL;
        keeld_output(a, e->p->life.rank, 2, (const uint8_t *)text, sizeof text - 1);
    }
    process_write_stdin(e->p, NULL, 0);
}

void keeld_ranks_stdin_cut(struct keeld *a)
{
    for (int i = 0; i < a->process_count; i++)
        if (ranks_is_first(a, a->processes[i].p->life.rank))
            ranks_input_is_cut(a, &a->processes[i]);
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
