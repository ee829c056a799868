/* The end of a job: who decides it, who is waited for, when force is used. */
#include "pm/run/job.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"
#include "runtime/base/kernel.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENDING_MS = 6000,  /* from the decision to the last node's MSG_OVER; then force */
    AGAIN_MS = 500,    /* between looks at nodes whose rest is waited for */
    FORCE_MS = 1500,   /* from force to giving up on a node */
    CLOSING_MS = 2000, /* for the mpiexec instances to end by themselves */
};

void job_decide(struct job *j, int code, const char *why)
{
    struct verdict *v = &j->verdict;
    if (v->decided)
        return;
    v->decided = v->final = true;
    v->code = code;
    v->why = pm_strdup(why ? why : "");
    if (*v->why)
        job_say(j, "%s", v->why);
}

void verdict_hear(struct verdict *v, int code, const char *why, bool own)
{
    if (v->final || (v->decided && (v->why_own || !(own || (v->code == 0 && code != 0)))))
        return;
    v->decided = true;
    v->code = code;
    v->why_own = own;
    free(v->why);
    v->why = pm_strdup(why ? why : "");
}

static void fail_without_output(struct job *j)
{
    if (j->verdict.code == 0 && j->io.failed)
        j->verdict.code = 1;
}

/* Everything has been heard. */
static void report_end(struct job *j)
{
    if (!j->verdict.final && j->verdict.why && *j->verdict.why)
        job_say(j, "%s", j->verdict.why);
    job_replicas_over(j);
    fail_without_output(j);
    job_event(j, "over", json_pack("{s:i, s:o}", "code", j->verdict.code, "why", codec_text(j->verdict.why)));
    job_io_flush_events(j);
    fail_without_output(j); /* an event may be what could not be written */
    news_over(&j->news, j->verdict.code);
}

bool job_is_left(const struct job *j, int node)
{
    return j->nodes[node].phase != NODE_OVER && j->nodes[node].phase != NODE_LOST && !j->nodes[node].unborn;
}

/* Nobody is in a hurry, and the rest of what the node has to say will come, or may. */
static bool waits_for(struct job *j, int node)
{
    return !j->verdict.final && job_dialogue_waits(j, node);
}

static void tell_rest(struct job *j, int node)
{
    struct job_node *n = &j->nodes[node];
    char name[128];
    if (n->rest_told || n->conn)
        return;
    n->rest_told = true;
    job_say(j,
            "the job is over, and %s is out of reach: the rest of its output is waited for, %d s at most; Ctrl-C does "
            "without",
            job_node_name(j, node, name, sizeof name), j->options->console_s);
}

static void tell_silent(struct job *j, int node)
{
    const struct job_node *n = &j->nodes[node];
    char name[128];
    job_node_name(j, node, name, sizeof name);
    if (n->rest_told)
        job_say(j, "%s is still out of reach; the rest of its output is lost", name);
    else
        job_say(j, "%s does not answer and may still have processes of the job", name);
    j->io.failed |= n->rest_told;
}

static void ending_passed(uv_timer_t *timer)
{
    struct job *j = timer->data;
    int waited = 0, others = 0;
    for (int i = 0; i < j->total; i++)
        if (job_is_left(j, i) && waits_for(j, i)) {
            waited++;
            tell_rest(j, i);
        } else if (job_is_left(j, i)) {
            others++;
            if (j->forced) {
                tell_silent(j, i);
                j->nodes[i].phase = NODE_LOST;
            }
        }
    if (others && !j->forced)
        job_use_force(j);
    else if (waited)
        uv_timer_start(&j->deadline, ending_passed, AGAIN_MS, 0);
    job_end_if_all_gone(j);
}

void job_begin_end(struct job *j)
{
    if (j->phase >= JOB_ENDING)
        return;
    j->phase = JOB_ENDING;
    job_return_end(j);
    stdin_feed_stop(&j->feed);
    uv_timer_stop(&j->limit);
    uv_timer_stop(&j->doubt);
    if (j->wait.table.node) /* else the job has not begun */
        uv_timer_stop(&j->wait.timer);
    uv_timer_start(&j->deadline, ending_passed, ENDING_MS, 0);
}

void job_use_force(struct job *j)
{
    if (j->phase == JOB_CLOSING)
        return;
    job_begin_end(j);
    j->forced = true;
    job_send_all_json(j, MSG_STOP, json_pack("{s:i, s:s, s:b}", "code", j->verdict.code, "why", "", "hard", 1));
    launch_signal(j->launch, SIGTERM);
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].phase == NODE_AWAITED)
            j->nodes[i].phase = NODE_LOST;
    uv_timer_start(&j->deadline, ending_passed, FORCE_MS, 0);
    job_end_if_all_gone(j);
}

void job_stop(struct job *j, int code, const char *why)
{
    bool started = j->phase == JOB_RUNNING;
    job_decide(j, code, why);
    if (!started) {
        job_use_force(j);
        return;
    }
    job_begin_end(j);
    job_send_all_json(j, MSG_STOP,
                      json_pack("{s:i, s:s, s:b, s:i}", "code", code, "why", why ? why : "", "hard", 0, "signal",
                                j->end_signal ? j->end_signal : SIGTERM));
}

void job_reader_gone(struct job *j)
{
    if (j->phase == JOB_RUNNING)
        job_stop(j, 128 + SIGPIPE, NULL);
    else if (j->verdict.code == 0)
        j->verdict.code = 128 + SIGPIPE, j->verdict.decided = j->verdict.final = true;
}

void job_output_lost(struct job *j, const char *why)
{
    if (j->phase == JOB_RUNNING)
        job_stop(j, 1, why);
    else
        job_say(j, "%s", why);
}

void job_interrupted(struct job *j, int signal_number)
{
    char why[64];
    snprintf(why, sizeof why, "ended by signal %d (%s)", signal_number, strsignal(signal_number));
    if (signal_number == SIGQUIT)
        j->end_signal = SIGQUIT;
    if (++j->signals_seen == 1 && j->phase < JOB_ENDING) {
        job_stop(j, 128 + signal_number, why);
    } else {
        job_decide(j, 128 + signal_number, why);
        job_use_force(j);
    }
}

static void closing_passed(uv_timer_t *timer)
{
    struct job *j = timer->data;
    if (!j->closing_forced) { /* first politely: Hydra then ends its proxies */
        j->closing_forced = true;
        launch_signal(j->launch, SIGTERM);
        uv_timer_start(&j->deadline, closing_passed, CLOSING_MS / 2, 0);
        return;
    }
    launch_signal(j->launch, SIGKILL);
    uv_stop(&j->loop);
}

/* An agent on this machine that did not end in order: frozen, or broken. The pidfd cannot name another process. */
static void kill_agents(struct job *j)
{
    for (int i = 0; i < j->all || i < j->total; i++)
        if ((j->nodes[i].phase == NODE_LOST || j->nodes[i].unborn) && j->nodes[i].agent_fd >= 0)
            (void)process_signal(j->nodes[i].agent_fd, SIGKILL);
}

void job_end_if_all_gone(struct job *j)
{
    bool any_over = false;
    for (int i = 0; i < j->total; i++) {
        if (job_is_left(j, i))
            return;
        any_over |= j->nodes[i].phase == NODE_OVER;
    }
    if (j->phase == JOB_CLOSING)
        return;
    if (!any_over)
        job_decide(j, 1, "all nodes were lost");
    job_begin_end(j);
    j->phase = JOB_CLOSING;
    job_dialogue_settled(j);
    FAULT_POINT("run.closing");
    for (int i = 0; i < j->total; i++) {
        job_send(j, i, MSG_BYE, NULL, 0);
        FAULT_POINT("run.bye_half_told");
    }
    report_end(j);
    kill_agents(j);
    if (launch_running(j->launch) == 0)
        uv_stop(&j->loop);
    else
        uv_timer_start(&j->deadline, closing_passed, CLOSING_MS, 0);
}
