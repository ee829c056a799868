/* Who takes part. Each node has its time to come and to be ready. One that does not is the job's first loss: if enough
 * others are there it is left out, and the numbers close up.
 *
 *   AWAITED --HELLO--> JOINED --READY--> READY      of each node
 *      `-- its launcher ends, its agent dies, its time is over --> LOST
 *
 *   when nobody is AWAITED or JOINED:   all READY: START
 *                                       else the last ones take the numbers of those that are missing, and all are told
 *                                       of the job as it is now:
 *                                       CONFIG, the next round, JOINED
 *
 * So a spare becomes the node whose place it takes, rank 0's too, and nothing in the job knows that there was
 * another one. */
#include "pm/run/job.h"
#include "pm/run/job_grid.h"

#include "pm/wire/codec.h"
#include "pm/wire/settings.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/racks.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 200 };

static void tell(void *user, const char *line)
{
    job_tell(user, line);
}

static void tell_waits(void *user, const char *line)
{
    job_tell_waits(user, line);
}

static void job_news_begin(struct job *j)
{
    const struct job_settings *s = &j->options->job;
    news_init(&j->news, s->nodes, s->spares, s->room, s->ranks, s->rank_node, j->names, tell, j);
    j->news.say_waits = tell_waits;
    j->news.replicas = replica_map_is_used(&s->replicas) ? &s->replicas : NULL;
    j->news.method = settings_on_grid(s) ? s->grid.method : NULL;
    if (s->degrade_asked || j->news.replicas)
        news_keels(&j->news);
    job_replicas_begin(j);
}

int job_place_of(const struct job *j, int started_as)
{
    int i = 0;
    while (i < j->all - 1 && j->nodes[i].started_as != started_as)
        i++;
    return i;
}

void job_send_config(struct job *j, int node)
{
    const struct options *o = j->options;
    char cwd[4096];
    char *const cwd_list[] = {getcwd(cwd, sizeof cwd) ? cwd : "/", NULL};
    json_t *m = json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:i}", "settings", settings_encode(&o->job),
                          "standbys", layout_max_per_node(o->job.rank_node, o->job.ranks), "launcher_pid",
                          (int)launch_launcher_pid(j->launch, j->nodes[node].started_as), "secret",
                          codec_blob(j->door.secret, SESSION_SECRET), "argv", codec_strings(o->program), "env",
                          codec_strings(environ), "cwd", codec_strings(cwd_list), "starts",
                          launch_handed_most(j->launch), "window", j->io.window);
    json_object_set_new(m, "node", json_integer(node));
    json_object_set_new(m, "round", json_integer(j->round.number));
    json_object_set_new(m, "console_port", json_integer(j->door.console_port));
    json_object_set_new(m, "console", json_integer(j->nodes[node].console));
    json_object_set_new(m, "console_s", json_integer(j->options->console_s));
    json_object_set_new(m, "start_s", json_integer(o->start_timeout_s));
    json_object_set_new(m, "way", launch_encode(j->launch));
    if (j->nodes[node].unborn)
        json_object_set_new(m, "sponsor", json_integer(j->nodes[node].sponsor));
    FAULT_POINT("run.configuring");
    job_send_json(j, node, MSG_CONFIG, m);
    FAULT_POINT("run.configured");
}

/* ---- the start ---- */

static void limit_passed(uv_timer_t *timer)
{
    char why[64];
    struct job *j = timer->data;
    snprintf(why, sizeof why, "the job's time of %d s is over", j->options->timeout_s);
    job_stop(j, 124, why);
}

/* For each node the one whose agent has started it; -1: we. */
static json_t *starters(const struct job *j)
{
    json_t *by = json_array();
    for (int i = 0; i < j->total; i++) {
        int starter = launch_by(j->launch, j->nodes[i].started_as);
        json_array_append_new(by, json_integer(starter < 0 ? starter : job_place_of(j, starter)));
    }
    return by;
}

static void run_now(struct job *j)
{
    json_t *blobs = json_array(), *peers = json_array();
    for (int i = 0; i < j->total; i++) {
        json_array_append(blobs, json_object_get(j->nodes[i].ready, "blob"));
        json_array_append_new(peers, json_pack("{s:O, s:O}", "host", json_object_get(j->nodes[i].ready, "host"), "port",
                                               json_object_get(j->nodes[i].ready, "port")));
    }
    FAULT_POINT("run.starting");
    j->phase = JOB_RUNNING;
    news_started(&j->news, clock_now_ns());
    job_waits_begin(j);
    uv_timer_stop(&j->deadline);
    job_signals_runs();
    job_send_all_json(j, MSG_START, json_pack("{s:o, s:o}", "blobs", blobs, "peers", peers));
    char id[17];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)j->id);
    json_t *started = json_pack("{s:s, s:i, s:i, s:i, s:i, s:o}", "job", id, "nodes", j->options->job.nodes, "spares",
                                j->options->job.spares, "room", j->options->job.room, "ranks", j->options->job.ranks,
                                "started_by", starters(j));
    if (settings_on_grid(&j->options->job))
        job_grid_tell(&j->options->job, started);
    if (j->replicas.output)
        json_object_set_new(started, "replicas", settings_replicas(&j->options->job.replicas));
    job_event(j, "started", started);
    FAULT_POINT("run.started");
    job_feed_begin(j);
    if (j->options->timeout_s)
        uv_timer_start(&j->limit, limit_passed, (uint64_t)j->options->timeout_s * 1000, 0);
}

/* ---- who is missing ---- */

static int count_left(const struct job *j)
{
    int left = 0;
    for (int i = 0; i < j->total; i++)
        left += j->nodes[i].phase != NODE_LOST;
    return left;
}

void job_node_missing(struct job *j, int node, const char *why)
{
    const struct options *o = j->options;
    char line[600];
    if (j->phase != JOB_JOINING || j->nodes[node].phase == NODE_LOST)
        return;
    FAULT_POINT("run.missing");
    j->nodes[node].phase = NODE_LOST;
    job_drop_connection(j, node);
    if (count_left(j) < o->job.nodes || o->job.on_failure == VIEW_ABORT) {
        job_stop(j, 1, why);
        return;
    }
    snprintf(line, sizeof line, "%s; %s", why,
             node >= o->job.nodes        ? "the job starts without this spare"
             : settings_on_grid(&o->job) ? "its ranks start elsewhere on the grid"
                                         : "a spare takes its place");
    job_tell(j, line);
    job_event(j, "node_missing", json_pack("{s:i, s:o}", "about", node, "why", codec_text(why)));
    launch_give_up(j->launch, j->nodes[node].started_as);
    job_start_if_ready(j);
}

static void swap(struct job *j, int a, int b)
{
    const struct copy_rule *copies = &j->options->job.copies;
    for (int level = 0; level < copies->levels; level++) {
        int *domain = &copies->domain[level * settings_ids(&j->options->job)], was = domain[a];
        domain[a] = domain[b];
        domain[b] = was;
    }

    struct job_node n = j->nodes[a];
    j->nodes[a] = j->nodes[b];
    j->nodes[b] = n;
    if (j->names) {
        char *name = j->names[a];
        j->names[a] = j->names[b];
        j->names[b] = name;
    }
}

/* Whom the user's file names may not be there any more. */
static void forget_watchers(struct job *j)
{
    struct job_settings *s = &j->options->job;
    if (s->topology != MEMBER_FILE)
        return;
    s->topology = MEMBER_RING;
    s->edge_count = 0;
    job_tell(j, "the nodes watch each other in a ring: the file of --topology is for all of them");
}

/* Of those that are left. */
static void keep_domains(struct job *j, int left)
{
    struct job_settings *s = &j->options->job;
    int stride = settings_ids(s);
    s->spares = left - s->nodes;
    settings_make_room(s, stride);
    for (int level = 0; level < s->copies.levels; level++) {
        const int *domain = &s->copies.domain[level * settings_ids(s)];
        bool all_same = true;
        for (int m = 1; m < left; m++)
            all_same = all_same && domain[m] == domain[0];
        if (all_same) {
            char line[128];
            snprintf(line, sizeof line, "the nodes that have come are all of one %s: no copy is in another one",
                     racks_level_name(&s->copies, level + 1));
            job_tell(j, line);
        }
    }
}

/* Each is where order says: order[i] has been at order[i]. */
static void rearrange(struct job *j, int *order)
{
    for (int i = 0; i < j->total; i++) {
        int from = order[i];
        while (from < i) /* it gave way to one before it */
            from = order[from];
        swap(j, i, from);
    }
}

/* The numbers that follow where the grid has no node in the places of those that are missing. */
static bool close_up_on_grid(struct job *j)
{
    int *order = pm_alloc((size_t)j->total * sizeof *order);
    bool *lost = pm_alloc((size_t)j->total * sizeof *lost);
    for (int i = 0; i < j->total; i++)
        lost[i] = j->nodes[i].phase == NODE_LOST;
    bool whole = job_grid_close_up(&j->options->job, lost, order);
    if (whole)
        rearrange(j, order);
    free(order);
    free(lost);
    return whole;
}

/* The last ones take the places of those that are missing; these come behind. */
static void close_up_list(struct job *j, int left)
{
    int last = j->total - 1;
    for (int i = 0; i < left; i++) {
        if (j->nodes[i].phase != NODE_LOST)
            continue;
        while (j->nodes[last].phase == NODE_LOST)
            last--;
        swap(j, i, last--);
    }
}

/* False: not all have a place, and the job is at its end. */
static bool close_up(struct job *j)
{
    int left = count_left(j);
    if (!settings_on_grid(&j->options->job)) {
        close_up_list(j, left);
    } else if (!close_up_on_grid(j)) {
        job_stop(j, 1, "--substitution has no node of the grid for one that is missing");
        return false;
    }
    keep_domains(j, left);
    j->total = left;
    forget_watchers(j);
    news_fini(&j->news);
    job_replicas_end(j);
    job_news_begin(j);
    return true;
}

static void next_round(struct job *j)
{
    if (!close_up(j))
        return;
    FAULT_POINT("run.closed_up");
    j->round.number++;
    j->round.begun_ms = uv_now(&j->loop);
    for (int i = 0; i < j->total; i++) {
        struct job_node *n = &j->nodes[i];
        json_decref(n->ready);
        n->ready = NULL;
        n->phase = NODE_JOINED;
        job_moved(j, i);
        job_send_config(j, i);
    }
}

void job_start_if_ready(struct job *j)
{
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].phase == NODE_AWAITED || j->nodes[i].phase == NODE_JOINED)
            return;
    if (j->phase != JOB_JOINING)
        return;
    if (count_left(j) < j->total)
        next_round(j);
    else
        run_now(j);
}

/* ---- time ---- */

static bool is_late(const struct job *j, int node)
{
    const struct job_node *n = &j->nodes[node];
    uint64_t begun = j->round.number ? j->round.begun_ms : launch_begun_ms(j->launch, n->started_as);
    return (n->phase == NODE_AWAITED || n->phase == NODE_JOINED) && begun &&
           uv_now(&j->loop) - begun >= (uint64_t)j->options->start_timeout_s * 1000;
}

static void look(uv_timer_t *timer)
{
    struct job *j = timer->data;
    char name[128], why[512];
    for (int i = 0; i < j->total && j->phase == JOB_JOINING; i++) {
        if (!is_late(j, i) ||
            (j->nodes[i].phase == NODE_AWAITED && launch_take_over(j->launch, j->nodes[i].started_as)))
            continue;
        const char *last = launch_last_line(j->launch, j->nodes[i].started_as);
        snprintf(why, sizeof why, "%s has not %s within %d s%s%s", news_node(&j->news, i, name, sizeof name),
                 j->nodes[i].phase == NODE_AWAITED ? "joined" : "become ready", j->options->start_timeout_s,
                 *last ? ": " : "", last);
        job_node_missing(j, i, why);
    }
}

static long long console_number(void)
{
    uint64_t number;
    randombytes_buf(&number, sizeof number);
    return (long long)(number >> 1);
}

void job_start_begin(struct job *j)
{
    const struct options *o = j->options;
    j->total = j->all = o->job.nodes + o->job.spares;
    j->nodes = pm_alloc((size_t)settings_ids(&o->job) * sizeof *j->nodes);
    for (int i = 0; i < j->all; i++)
        j->nodes[i] = (struct job_node){.started_as = i, .agent_fd = -1, .console = console_number()};
    if (o->hosts.count) {
        j->names = pm_alloc((size_t)settings_ids(&o->job) * sizeof *j->names);
        memcpy(j->names, o->hosts.names, (size_t)j->all * sizeof *j->names);
    }
    job_news_begin(j);
    uv_timer_start(&j->deadline, look, LOOK_MS, LOOK_MS);
    launch_begin(j->launch);
}
