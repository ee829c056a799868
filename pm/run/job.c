#include "pm/run/job.h"

#include "pm/wire/codec.h"
#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

const char *job_node_name(const struct job *j, int node, char *buffer, size_t size)
{
    return news_node(&j->news, node, buffer, (unsigned)size);
}

void job_tell(struct job *j, const char *line)
{
    /* with abort the end of the job says it all */
    if (!j->options->quiet && j->options->job.on_failure != VIEW_ABORT)
        job_say(j, "%s", line);
}

void job_tell_waits_for(struct job *j, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    job_tell_waits(j, line);
}

void job_tell_waits(struct job *j, const char *line)
{
    if (!j->options->quiet)
        job_say(j, "%s", line);
}

void job_hand_over(struct job *j, int by, int node, const struct start_plan *plan)
{
    const struct ticket *t = &plan->summons.ticket;
    job_send_json(j, by, MSG_LAUNCH,
                  json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:o, s:o}", "node", node, "launcher", plan->launcher,
                            "program", plan->program, "way", (int)plan->way, "host", plan->host, "from",
                            plan->summons.from, "id", codec_blob(&t->id, sizeof t->id), "key",
                            codec_blob(t->key, sizeof t->key)));
}

void job_launcher_ended(struct job *j, int started_as, int wait_status, const char *text)
{
    char name[128], why[512];
    int n = 0, node = job_place_of(j, started_as);
    job_node_name(j, node, name, sizeof name);
    log_info("%s: its launcher ended with status %#x", name, (unsigned)wait_status);
    if (j->nodes[node].phase == NODE_AWAITED && j->phase == JOB_JOINING) {
        n = snprintf(why, sizeof why, "%s could not be started: ", name);
        if (*text)
            snprintf(why + n, sizeof why - (size_t)n, "%s", text);
        else
            snprintf(why + n, sizeof why - (size_t)n, "its launcher ended with status %d",
                     WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status));
        job_node_missing(j, node, why);
    }
    if (j->phase == JOB_CLOSING && launch_running(j->launch) == 0)
        uv_stop(&j->loop);
}

void job_run(struct job *j)
{
    job_signals_begin(j);
    uv_timer_init(&j->loop, &j->deadline);
    uv_timer_init(&j->loop, &j->limit);
    uv_timer_init(&j->loop, &j->doubt);
    job_dialogue_begin(j);
    job_return_init(j);
    j->deadline.data = j->limit.data = j->doubt.data = j;
    job_start_begin(j);
    uv_run(&j->loop, UV_RUN_DEFAULT);
    job_signals_end();
    job_waits_end(j);
    news_fini(&j->news);
    job_replicas_end(j);
    free(j->names);
    free(j->verdict.why);
}
