/* What ranks wait for, on the terminal: pm/wire/waits.h decides what is said and when. */
#include "pm/run/job.h"

#include "runtime/base/clock.h"

#include <stdio.h>

static void say(void *user, const char *line)
{
    struct job *j = user;
    if (!j->options->quiet)
        job_say(j, "%s", line);
    job_event(j, "waits", json_pack("{s:s}", "text", line));
}

static void look(uv_timer_t *timer)
{
    struct job *j = timer->data;
    if (j->phase != JOB_RUNNING)
        return;
    uint64_t now = clock_now_ns(), next = waits_tick(&j->wait.table, now);
    if (next != UINT64_MAX)
        uv_timer_start(timer, look, next > now ? (next - now) / KEEL_NS_PER_MS + 1 : 1, 0);
}

void job_waits_begin(struct job *j)
{
    uv_timer_init(&j->loop, &j->wait.timer);
    j->wait.timer.data = j;
    waits_init(&j->wait.table, settings_ids(&j->options->job), j->options->job.ranks, j->options->job.rank_node, say,
               j);
    j->wait.table.names = j->names;
    j->wait.table.doubts = true;
    j->wait.table.replicas = j->replicas.output ? &j->options->job.replicas : NULL;
}

void job_waits_view(struct job *j, const int *rank_node, const bool *alive)
{
    if (j->phase != JOB_RUNNING)
        return;
    waits_view(&j->wait.table, rank_node, alive);
    look(&j->wait.timer);
}

void job_waits_report(struct job *j, int node, const json_t *report)
{
    if (j->phase != JOB_RUNNING)
        return;
    waits_report(&j->wait.table, node, report, clock_now_ns());
    look(&j->wait.timer);
}

void job_waits_patience(struct job *j, int node, const char *how, const char *why, double limit_ms, bool waited_for)
{
    struct waits_doubt d = {.limit_ms = limit_ms, .waited_for = waited_for};
    if (j->phase != JOB_RUNNING || node < 0 || node >= j->total || !j->news.alive[node])
        return;
    snprintf(d.how, sizeof d.how, "%s", how);
    snprintf(d.why, sizeof d.why, "%s", why);
    waits_patience(&j->wait.table, node, &d, clock_now_ns());
    look(&j->wait.timer);
}

void job_waits_answers(struct job *j, int node)
{
    if (j->phase == JOB_RUNNING)
        waits_answers(&j->wait.table, node);
}

void job_waits_end(struct job *j)
{
    waits_fini(&j->wait.table);
}
