/* What the processes of a node do: they write, speak PMI, and end. */
#include "pm/keeld/ranks_parts.h"

#include "runtime/base/log.h"

#include <signal.h>
#include <stdio.h>

static struct keeld_process *entry_of(struct process *p)
{
    struct keeld *a = p->user;
    return &a->processes[p->seat];
}

static void on_output(struct process *p, int stream, const uint8_t *lines, size_t len)
{
    const struct keeld *a = p->user;
    if (p->life.rank < 0 && a->state >= KEELD_ENDING)
        return; /* what a standby that was never needed printed before keel_init */
    if (entry_of(p)->is_guest)
        return; /* the whole sets have written that, too */
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
    keeld_partners_need_all(p->user); /* what it is told is of its set's MPI world */
    pmi_feed(p->user, entry_of(p), data, len);
}

static void on_stdin_taken(struct process *p, size_t len)
{
    struct keeld *a = p->user;
    uint8_t body[8];
    put_u32(body, p->life.incarnation);
    put_u32(body + 4, (uint32_t)len);
    keeld_dialogue_send(a, MSG_STDIN_TAKEN, body, sizeof body);
}

/* A result that may be of a part of the input is none. Who goes elsewhere has none yet. */
static void look_at_input(struct keeld *a, struct process *p)
{
    const struct keeld_process *e = entry_of(p);
    char text[240], cut[100];
    snprintf(cut, sizeof cut, "standard input of rank 0 had not come to its end when keelrun ended, after %llu bytes",
             (unsigned long long)e->input.bytes);
    const char *const why[] = {
        [LACKS_END] = cut,
        [LACKS_ALL] = "rank 0 had begun again without standard input, as keelrun had ended",
        [LACKS_AGAIN] = "rank 0 had begun again without standard input, as more was read than is kept "
                        "(--stdin-keep; 0 says that it is not needed again)",
    };
    if (!e->input.lacks || e->leaves || p->signal || p->code)
        return;
    int n = snprintf(text, sizeof text, "keel: %s: its exit code 0 counts as 1\n", why[e->input.lacks]);
    keeld_output(a, p->life.rank, 2, (const uint8_t *)text, (size_t)n);
    p->code = 1;
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
    look_at_input(a, p);
    keeld_partners_look_at(a, entry_of(p));
    if (p->life.rank >= 0)
        ranks_tell_ended(a, entry_of(p));
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

const struct process_events ranks_events = {on_output, on_pmi, on_stdin_taken, on_exited, on_drained};
