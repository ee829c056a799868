/* The end of a job at a node: its processes get a signal, time, and then SIGKILL; and the end of the agent. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/log.h"
#include "runtime/base/signals.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    TERM_GRACE_MS = 1000, /* from SIGTERM to SIGKILL */
    FORCE_MS = 2000,      /* from SIGKILL to going without those that are left */
    DEPART_MS = 2000,     /* for the nodes that we have started to end */
};

void keeld_leave(struct keeld *a, int exit_code)
{
    a->end.exit_code = exit_code;
    uv_stop(&a->loop);
}

static void depart_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    keeld_starts_signal(a, a->end.departing_forced ? SIGKILL : SIGTERM);
    if (a->end.departing_forced)
        uv_stop(&a->loop);
    a->end.departing_forced = true;
    uv_timer_start(&a->lease, depart_passed, DEPART_MS / 2, 0);
}

/* As the mpiexec that we run do when the nodes that they have started have ended. */
void keeld_depart(struct keeld *a, int exit_code)
{
    if (a->end.departing)
        return;
    a->end.departing = true;
    a->end.exit_code = exit_code;
    if (!a->starts)
        uv_stop(&a->loop);
    else
        uv_timer_start(&a->lease, depart_passed, a->ran ? DEPART_MS : 0, 0);
}

void keeld_starts_ended(struct keeld *a)
{
    if (a->end.departing && !a->starts)
        uv_stop(&a->loop);
}

static void leave_late(uv_timer_t *timer)
{
    keeld_depart(timer->data, 0);
}

void keeld_kill_all(struct keeld *a)
{
    keeld_ranks_signal(a, SIGKILL, false);
    keeld_ranks_orphans(a, true);
}

/* A rank that does not end after SIGKILL: another user's, or stuck in the kernel. */
static void force_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    log_error("a rank does not end; node %d goes without it", a->launch.node);
    keeld_processes_gone(a);
}

static void kill_ranks(struct keeld *a, bool asked)
{
    keeld_event(a, "kill", json_pack("{s:b}", "asked", (int)asked));
    keeld_kill_all(a);
    uv_timer_start(&a->end.grace, force_passed, FORCE_MS, 0);
}

static void grace_passed(uv_timer_t *timer)
{
    kill_ranks(timer->data, false);
}

void keeld_processes_gone(struct keeld *a)
{
    if (a->state != KEELD_ENDING)
        return;
    uv_timer_stop(&a->end.grace);
    keeld_ranks_orphans(a, true);
    keeld_world_over(a);
    a->state = KEELD_OVER;
    keeld_event(a, "over", json_pack("{s:i}", "code", a->end.code));
    keeld_log_drain(a);
    keeld_console_over(a);
    if (a->launch.join)
        keeld_join_over(a);
    if (a->dialogue.gone) {
        /* a watcher gets a moment to take the last output */
        uv_timer_start(&a->lease, leave_late, a->console.guests || !a->launch.join ? 200 : 0, 0);
        return;
    }
    keeld_dialogue_over(a);
}

void keeld_own_why(struct keeld *a, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (a->end.own_why)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->end.own_why = pm_strdup(text);
}

/* A job that came to its end is no success if a rank crashed too often on the way. */
static int judge(struct keeld *a, int code)
{
    struct fault fault = keeld_ranks_fault(a);
    if (code != 0 || a->job.settings.degrade_asked || fault.signal == 0 ||
        replica_map_is_used(&a->job.settings.replicas))
        return code;
    char did[SIGNAL_DID];
    keeld_own_why(a, "rank %d %s%s", fault.rank, signal_did(fault.signal, did, sizeof did),
                  fault.again ? " once more than it is started again" : "");
    return signal_code(fault.signal);
}

/* What keelrun's order says. The view that another agent made of its order may be here before ours is: its code says as
 * much of SIGQUIT, for which ranks leave core files. */
static int last_signal(const struct keeld *a, int code)
{
    return a->end.signal ? a->end.signal : code == 128 + SIGQUIT ? SIGQUIT : SIGTERM;
}

/* End the local processes: hard at once, else with a grace. */
void keeld_end(struct keeld *a, int code, const char *why, bool hard)
{
    if (a->state < KEELD_ENDING) {
        a->end.code = keeld_kind_judge(a, judge(a, code));
        a->state = KEELD_ENDING;
        keeld_adding_stop(a, "the job ends");
        why = a->end.own_why ? a->end.own_why : why;
        a->end.why = why ? pm_strdup(why) : NULL;
        keeld_ranks_signal(a, SIGKILL, true);
        if (!hard && !keeld_ranks_gone(a)) {
            keeld_ranks_signal(a, last_signal(a, code), false);
            if (a->stopped)
                keeld_ranks_forward(a, SIGCONT); /* that they can */
            uv_timer_start(&a->end.grace, grace_passed, TERM_GRACE_MS, 0);
        }
    }
    if (hard && a->state == KEELD_ENDING)
        kill_ranks(a, true);
    if (keeld_ranks_gone(a))
        keeld_processes_gone(a);
}

void keeld_fail(struct keeld *a, int code, const char *why)
{
    log_info("%s", why);
    keeld_dialogue_send_json(a, MSG_FAILED, json_pack("{s:i, s:o}", "code", code, "why", codec_text(why)));
    if (a->launch.join)
        keeld_join_failed(a, why);
    keeld_end(a, code, why, true);
}
