/* What agents that have joined say. */
#include "pm/run/job.h"

#include "pm/wire/codec.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/plural.h"

#include <stdlib.h>
#include <string.h>

static void on_launched(struct job *j, int by, const json_t *m)
{
    long long node, pid;
    const char *why = json_string_value(json_object_get(m, "why"));
    by = j->nodes[by].started_as;
    if (!codec_int(m, "node", 0, j->all - 1, &node))
        return;
    if (why)
        launch_handed_ended(j->launch, by, (int)node, why);
    else if (codec_int(m, "pid", 1, INT32_MAX, &pid))
        launch_handed_started(j->launch, by, (int)node, (pid_t)pid);
}

static void on_ready(struct job *j, int node, const json_t *m)
{
    long long round;
    if (!json_is_string(json_object_get(m, "blob")) || !json_is_string(json_object_get(m, "host")) ||
        !json_is_integer(json_object_get(m, "port"))) {
        log_warn("node %d: a ready message without blob, host or port", node);
        return;
    }
    if (!codec_int(m, "round", 0, INT32_MAX, &round) || round != j->round.number)
        return; /* of a description that does not count any more */
    j->nodes[node].phase = NODE_READY;
    j->nodes[node].ready = json_deep_copy(m);
    FAULT_POINT("run.ready");
    job_start_if_ready(j);
}

static void on_over(struct job *j, int node, const json_t *m)
{
    long long code = 1;
    const char *why = json_string_value(json_object_get(m, "why"));
    codec_int(m, "code", 0, 255, &code);
    j->nodes[node].phase = NODE_OVER;
    FAULT_POINT("run.over");
    verdict_hear(&j->verdict, (int)code, why, json_is_true(json_object_get(m, "own")));
    job_begin_end(j);
    job_end_if_all_gone(j);
}

static json_t *fault_json(const struct fault *f)
{
    return json_pack("{s:i, s:i, s:b}", "rank", f->rank, "signal", f->signal, "again", f->again);
}

/* A rank crashed for good: every agent remembers it, the node's own may not be there at the end. */
static void tell_fault(struct job *j)
{
    const struct fault *f = &j->news.fault;
    if (f->signal == 0 || j->fault_told)
        return;
    j->fault_told = true;
    job_send_all_json(j, MSG_FAULT, fault_json(f));
}

static void take_view(struct job *j, uint64_t epoch, const int *rank_node, const bool *alive, const json_t *m)
{
    bool is_new = epoch > j->news.epoch;
    if (is_new)
        job_waits_view(j, rank_node, alive);
    j->news.free = (int)json_integer_value(json_object_get(m, "free"));
    news_view(&j->news, epoch, rank_node, alive, clock_now_ns());
    if (is_new && j->replicas.output)
        job_replicas_view(j, m);
}

static void tell_view(struct job *j, const json_t *m)
{
    const json_t *alive = json_object_get(m, "alive");
    int *rank_node = pm_alloc((size_t)j->options->job.ranks * sizeof *rank_node);
    int ids = settings_ids(&j->options->job);
    bool *is_alive = pm_alloc((size_t)ids * sizeof *is_alive);
    long long epoch;
    for (int i = 0; i < ids; i++)
        is_alive[i] = !json_is_false(json_array_get(alive, (size_t)i));
    if (j->phase >= JOB_RUNNING && !j->forced && codec_int(m, "epoch", 1, INT64_MAX, &epoch) &&
        codec_to_ints(json_object_get(m, "rank_node"), rank_node, j->options->job.ranks, -1, ids - 1))
        take_view(j, (uint64_t)epoch, rank_node, is_alive, m);
    tell_fault(j);
    free(rank_node);
    free(is_alive);
}

static void on_view(struct job *j, const json_t *m)
{
    const json_t *alive = json_object_get(m, "alive");
    long long epoch;
    if (!codec_int(m, "epoch", 1, INT64_MAX, &epoch))
        return;
    tell_view(j, m);
    for (int i = j->born; i < settings_ids(&j->options->job); i++)
        if (json_is_true(json_array_get(alive, (size_t)i)))
            j->born = i + 1;
    job_take_late_births(j, (uint64_t)epoch);
    for (int i = 0; i < j->total; i++) {
        struct job_node *n = &j->nodes[i];
        const json_t *lives = json_array_get(alive, (size_t)i);
        if (n->unborn && json_is_true(lives))
            job_take_birth(j, i, (uint64_t)epoch);
        if (n->unborn || !json_is_false(lives) || (uint64_t)epoch < n->born_epoch || n->phase == NODE_OVER)
            continue;
        n->phase = NODE_LOST;
        n->unexplained = false;
        if (!n->declared_ms)
            n->declared_ms = uv_now(&j->loop);
    }
    job_return_look(j);
    job_end_if_all_gone(j);
}

static void on_failed(struct job *j, const json_t *m)
{
    long long code = 1;
    const char *why = json_string_value(json_object_get(m, "why"));
    codec_int(m, "code", 1, 255, &code);
    job_decide(j, (int)code, why ? why : "a node failed to start");
    job_use_force(j);
}

/* A rank's process ended, or a rank goes on in a new one. */
static void on_process(struct job *j, int node, uint8_t type, const json_t *m)
{
    long long rank, pid, signal_number = 0, life = 0;
    if (j->phase < JOB_RUNNING || j->forced || !codec_int(m, "rank", 0, j->options->job.ranks - 1, &rank) ||
        !codec_int(m, "pid", 1, INT32_MAX, &pid))
        return;
    codec_int(m, "signal", SIGNAL_HIDDEN, 64, &signal_number);
    codec_int(m, "incarnation", 0, UINT32_MAX, &life);
    if (type == MSG_ENDED)
        news_ended(&j->news, node, (int)rank, (int)pid, (int)signal_number);
    else
        news_begun(&j->news, node, (int)rank);
    if (type == MSG_BEGUN && j->replicas.output)
        job_replicas_begun(j, node, (int)rank, (uint32_t)life);
    else if (type == MSG_BEGUN && rank == 0)
        job_feed_again(j, node, (uint32_t)life);
    tell_fault(j);
}

void job_hear_here(struct job *j)
{
    for (int i = 0; i < j->total && !j->standbys_begun; i++)
        job_send(j, i, MSG_STANDBY, NULL, 0);
    j->standbys_begun = true;
    news_keels(&j->news);
}

void job_greet(struct job *j, int node)
{
    const struct fault *f = &j->news.fault;
    if (j->standbys_begun)
        job_send(j, node, MSG_STANDBY, NULL, 0);
    job_tell_input(j, node);
    if (j->fault_told)
        job_send_json(j, node, MSG_FAULT, fault_json(f));
}

static void on_lost(struct job *j, int node, const json_t *m)
{
    char name[128];
    long long bytes = 0;
    codec_int(m, "bytes", 1, INT64_MAX, &bytes);
    j->io.failed = true;
    job_say(j, "%s was out of reach for more than %d s: %lld %s of its output %s lost",
            job_node_name(j, node, name, sizeof name), j->options->console_s, bytes, plural(bytes, "byte", "bytes"),
            plural(bytes, "is", "are"));
}

/* Of one that no view has: only what concerns itself. */
static void unborn_json(struct job *j, int node, uint8_t type, const json_t *m)
{
    const char *why = json_string_value(json_object_get(m, "why"));
    if (type == MSG_READY)
        job_return_ready(j, node, m);
    else if (type == MSG_VIEW)
        on_view(j, m); /* the first that has it may be its own */
    else if (type == MSG_FAILED || type == MSG_OVER)
        job_return_failed(j, node, why ? why : "it has ended");
}

void job_hear(struct job *j, int node, uint8_t type, const json_t *m)
{
    if (j->nodes[node].unborn)
        unborn_json(j, node, type, m);
    else if (type == MSG_MET)
        job_return_met(j, node, m);
    else if (type == MSG_ADDS)
        job_return_adds(j, node, m);
    else if (type == MSG_READY && j->phase == JOB_JOINING && j->nodes[node].phase == NODE_JOINED)
        on_ready(j, node, m);
    else if (type == MSG_LAUNCHED)
        on_launched(j, node, m);
    else if (type == MSG_VIEW)
        on_view(j, m);
    else if (type == MSG_FAILED)
        on_failed(j, m);
    else if (type == MSG_ENDED || type == MSG_BEGUN)
        on_process(j, node, type, m);
    else if (type == MSG_PLACE)
        job_replicas_place(j, m);
    else if (type == MSG_WAITS)
        job_waits_report(j, node, m);
    else if (type == MSG_LOST)
        on_lost(j, node, m);
    else if (type == MSG_OVER)
        on_over(j, node, m);
}

static void on_auto(struct job *j, const json_t *m)
{
    long long slot, moves;
    const char *chose = json_string_value(json_object_get(m, "chose")),
               *why = json_string_value(json_object_get(m, "why")),
               *prices = json_string_value(json_object_get(m, "prices_s"));
    if (codec_int(m, "slot", -1, j->options->job.nodes - 1, &slot) && codec_int(m, "moves", 0, INT32_MAX, &moves) &&
        chose && why && prices)
        news_auto(&j->news, (int)slot, chose, (int)moves, why, prices);
}

/* Who waits for the rank waits for its next process, and that for the program's end. */
static void on_still_ends(struct job *j, const json_t *m)
{
    long long rank, ms;
    if (codec_int(m, "rank", 0, j->options->job.ranks - 1, &rank) && codec_int(m, "ms", 0, INT32_MAX, &ms))
        job_tell_waits_for(j,
                           "rank %lld is to go to another node: it has called keel_finalize, and its program has not "
                           "ended for %.1f s; it continues when that ends",
                           rank, (double)ms / 1000);
}

static void on_not_started(struct job *j, int node, const json_t *m)
{
    long long rank;
    const char *why = json_string_value(json_object_get(m, "why"));
    if (why && codec_int(m, "rank", -1, j->options->job.ranks - 1, &rank))
        news_refused(&j->news, node, (int)rank, why);
}

/* A line of nodes and times: looked into only if it may be one of these. */
void job_hear_event(struct job *j, int node, const char *line, size_t len)
{
    static const char *const told[] = {"\"patience\"", "\"cleared\"",    "\"cut_off\"",    "\"late\"",
                                       "\"auto\"",     "\"still_ends\"", "\"not_started\""};
    bool any = false;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        any = any || memmem(line, len, told[i], strlen(told[i]));
    json_t *m = any ? codec_object((const uint8_t *)line, len) : NULL;
    const char *event = json_string_value(json_object_get(m, "event"));
    const json_t *limit = json_object_get(m, "limit_ms"), *about = json_object_get(m, "about"),
                 *by = json_object_get(m, "by_ms");
    int of = json_is_integer(about) ? (int)json_integer_value(about) : -1;
    double ms = json_is_number(limit) ? json_number_value(limit) : -1;
    const char *how = json_string_value(json_object_get(m, "how")), *why = json_string_value(json_object_get(m, "why"));
    if (event && strcmp(event, "patience") == 0 && how && why)
        job_waits_patience(j, of, how, why, ms, json_is_true(json_object_get(m, "waited_for")));
    else if (event && strcmp(event, "cleared") == 0)
        job_waits_answers(j, of);
    else if (event && strcmp(event, "cut_off") == 0)
        news_cut_off(&j->news, node, ms);
    else if (event && strcmp(event, "auto") == 0)
        on_auto(j, m);
    else if (event && strcmp(event, "still_ends") == 0)
        on_still_ends(j, m);
    else if (event && strcmp(event, "not_started") == 0)
        on_not_started(j, node, m);
    else if (event && strcmp(event, "late") == 0 && j->options->job.silence_ms < SILENCE_DEFAULT_MS)
        news_late(&j->news, node, json_is_number(by) ? json_number_value(by) : 0, j->options->job.silence_ms);
    json_decref(m);
}
