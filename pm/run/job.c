#include "pm/run/job.h"

#include "pm/wire/settings.h"
#include "pm/wire/codec.h"
#include "pm/wire/orphans.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROOF_MS = 1000, /* for a connection to prove that it belongs to the job */
    STRANGERS_MAX =
        64, /* connections without proof at a time, and one for each node that is awaited; of more some are dropped at once */
    ENDING_MS = 6000,       /* from the decision to the last node's MSG_OVER; then force */
    AGAIN_MS = 500,         /* between looks at nodes whose rest is waited for */
    FORCE_MS = 1500,        /* from force to giving up on a node */
    CLOSING_MS = 2000,      /* for the mpiexec instances to end by themselves */
    DOUBT_MS = 1000,        /* between pings while the loss of a node is unexplained */
    DOUBT_PINGS = 10,       /* without an answer from anybody: nothing is left to wait for */
    OUT_OF_REACH_MS = 3000, /* is told: see job_link.c */
};

struct peer {
    struct job *job;
    int node;     /* -1 until MSG_HELLO or MSG_RESUME */
    int ticket;   /* the node that it has the ticket of, once that is proved; -1 */
    bool past;    /* of an attempt that was given up */
    bool again;   /* it comes again, and has proved to know the secret */
    bool returns; /* as a node that it is not any more: job_return.c */
    struct pm_conn *conn;
    struct peer *newer, *older; /* strangers only */
};

static void end_if_all_gone(struct job *j);

/* ---- connections that have not proved to belong to the job ---- */

static void strangers_add(struct job *j, struct peer *peer)
{
    peer->older = j->newest_stranger;
    if (peer->older)
        peer->older->newer = peer;
    else
        j->oldest_stranger = peer;
    j->newest_stranger = peer;
    j->strangers++;
}

static void strangers_remove(struct job *j, struct peer *peer)
{
    *(peer->older ? &peer->older->newer : &j->oldest_stranger) = peer->newer;
    *(peer->newer ? &peer->newer->older : &j->newest_stranger) = peer->older;
    peer->newer = peer->older = NULL;
    j->strangers--;
}

/* The oldest one of the address that has most: members prove themselves at once. */
static struct peer *surplus_stranger(const struct job *j)
{
    struct peer *worst = NULL;
    int most = 0;
    for (struct peer *p = j->oldest_stranger; p; p = p->newer) {
        int here = 0;
        for (struct peer *q = p; q; q = q->newer)
            here += conn_same_host(p->conn, q->conn);
        if (here > most) {
            most = here;
            worst = p;
        }
    }
    return worst;
}

/* ---- deciding and ending ---- */

static const char *node_name(const struct job *j, int node, char *buffer, size_t size)
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

/* Nothing has come to its end yet. */
void job_tell_waits(struct job *j, const char *line)
{
    if (!j->options->quiet)
        job_say(j, "%s", line);
}

static void send_all_json(struct job *j, uint8_t type, json_t *m)
{
    char *text = json_dumps(m, JSON_COMPACT); /* once: START is as long as the job has nodes */
    for (int i = 0; text && i < j->total; i++) {
        job_send(j, i, type, text, strlen(text));
        if (type == MSG_START)
            FAULT_POINT("run.start_half_told");
    }
    free(text);
    json_decref(m);
}

/* Our own decision. The first one counts. */
static void decide(struct job *j, int code, const char *why)
{
    if (j->decided)
        return;
    j->decided = j->final = true;
    j->code = code;
    j->why = pm_strdup(why ? why : "");
    if (*j->why)
        job_say(j, "%s", j->why);
}

/* What a node says of the end: all say the same, but for what one of them alone knows. */
static void hear_end(struct job *j, int code, const char *why, bool own)
{
    if (j->final || (j->decided && (j->why_own || !(own || (j->code == 0 && code != 0)))))
        return;
    j->decided = true;
    j->code = code;
    j->why_own = own;
    free(j->why);
    j->why = pm_strdup(why ? why : "");
}

static void fail_without_output(struct job *j)
{
    if (j->code == 0 && j->output_failed)
        j->code = 1;
}

/* Everything has been heard. */
static void report_end(struct job *j)
{
    if (!j->final && j->why && *j->why)
        job_say(j, "%s", j->why);
    fail_without_output(j);
    job_event(j, "over", json_pack("{s:i, s:o}", "code", j->code, "why", codec_text(j->why)));
    job_io_flush_events(j);
    fail_without_output(j); /* an event may be what could not be written */
    news_over(&j->news, j->code);
}

static void use_force(struct job *j);

static bool is_left(const struct job *j, int node)
{
    return j->nodes[node].phase != NODE_OVER && j->nodes[node].phase != NODE_LOST && !j->nodes[node].unborn;
}

/* Nobody is in a hurry, and the rest of what the node has to say will come, or may. */
static bool waits_for(struct job *j, int node)
{
    return !j->final && job_link_waits(j, node);
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
            node_name(j, node, name, sizeof name), j->options->console_s);
}

static void tell_silent(struct job *j, int node)
{
    const struct job_node *n = &j->nodes[node];
    char name[128];
    node_name(j, node, name, sizeof name);
    if (n->rest_told)
        job_say(j, "%s is still out of reach; the rest of its output is lost", name);
    else
        job_say(j, "%s does not answer and may still have processes of the job", name);
    j->output_failed |= n->rest_told;
}

static void ending_passed(uv_timer_t *timer)
{
    struct job *j = timer->data;
    int waited = 0, others = 0;
    for (int i = 0; i < j->total; i++)
        if (is_left(j, i) && waits_for(j, i)) {
            waited++;
            tell_rest(j, i);
        } else if (is_left(j, i)) {
            others++;
            if (j->forced) {
                tell_silent(j, i);
                j->nodes[i].phase = NODE_LOST;
            }
        }
    if (others && !j->forced)
        use_force(j);
    else if (waited)
        uv_timer_start(&j->deadline, ending_passed, AGAIN_MS, 0);
    end_if_all_gone(j);
}

static void enter_ending(struct job *j)
{
    if (j->phase >= JOB_ENDING)
        return;
    j->phase = JOB_ENDING;
    job_return_end(j);
    stdin_feed_stop(&j->feed);
    uv_timer_stop(&j->limit);
    uv_timer_stop(&j->doubt);
    if (j->waits.node) /* else the job has not begun */
        uv_timer_stop(&j->waiting);
    uv_timer_start(&j->deadline, ending_passed, ENDING_MS, 0);
}

static void use_force(struct job *j)
{
    if (j->phase == JOB_CLOSING)
        return;
    enter_ending(j);
    j->forced = true;
    send_all_json(j, MSG_STOP, json_pack("{s:i, s:s, s:b}", "code", j->code, "why", "", "hard", 1));
    launch_signal(j->launch, SIGTERM);
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].phase == NODE_AWAITED)
            j->nodes[i].phase = NODE_LOST;
    uv_timer_start(&j->deadline, ending_passed, FORCE_MS, 0);
    end_if_all_gone(j);
}

void job_stop(struct job *j, int code, const char *why)
{
    bool started = j->phase == JOB_RUNNING;
    decide(j, code, why);
    if (!started) {
        use_force(j);
        return;
    }
    enter_ending(j);
    send_all_json(j, MSG_STOP,
                  json_pack("{s:i, s:s, s:b, s:i}", "code", code, "why", why ? why : "", "hard", 0, "signal",
                            j->end_signal ? j->end_signal : SIGTERM));
}

void job_reader_gone(struct job *j)
{
    if (j->phase == JOB_RUNNING)
        job_stop(j, 128 + SIGPIPE, NULL);
    else if (j->code == 0)
        j->code = 128 + SIGPIPE, j->decided = j->final = true;
}

void job_output_lost(struct job *j, const char *why)
{
    if (j->phase == JOB_RUNNING)
        job_stop(j, 1, why);
    else
        job_say(j, "%s", why);
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

static void end_if_all_gone(struct job *j)
{
    bool any_over = false;
    for (int i = 0; i < j->total; i++) {
        if (is_left(j, i))
            return;
        any_over |= j->nodes[i].phase == NODE_OVER;
    }
    if (j->phase == JOB_CLOSING)
        return;
    if (!any_over)
        decide(j, 1, "all nodes were lost");
    enter_ending(j);
    j->phase = JOB_CLOSING;
    job_link_settled(j);
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

/* ---- a loss that no view explains ----
 *
 * Usually the others declare a lost node dead, or the job ends. If neither comes, the others may stand still, and may
 * do so for ever: a node that halted for want of a quorum leaves behind just those that are frozen. Pings are counted,
 * not time: who was suspended together with the whole job finds one timer run out, not ten. And only those that the node's kernel has
 * acknowledged: a node that is out of reach from here may be well. */

/* Who would know what became of the job: how many are left, all of them out of reach, and for how long. */
struct remote {
    int node, count; /* the last of them; 0: there is none, or one is in reach */
    uint64_t cut_ms;
};

static struct remote all_remote(const struct job *j)
{
    struct remote r = {.node = -1, .cut_ms = UINT64_MAX};
    uint64_t now = uv_now(&j->loop);
    for (int i = 0; i < j->total; i++) {
        const struct job_node *n = &j->nodes[i];
        if (!is_left(j, i))
            continue;
        if (n->conn || !n->cut_ms)
            return (struct remote){.node = -1};
        r.node = i;
        r.count++;
        if (now - n->cut_ms < r.cut_ms)
            r.cut_ms = now - n->cut_ms;
    }
    return r;
}

/* A node whose loss makes it likely that those out of reach are lost, too: one that no view explains, or the last of the others. -1: none,
 * and it is our own cable that may be cut. */
static int sign_of_the_end(const struct job *j, int left)
{
    int lost = -1;
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].phase == NODE_LOST && (left == 1 || j->nodes[i].unexplained))
            lost = i;
    return lost;
}

void job_wait_for_news(struct job *j)
{
    struct remote r = all_remote(j);
    int lost = r.count ? sign_of_the_end(j, r.count) : -1;
    char a[128], b[128], why[512];
    if (j->phase != JOB_RUNNING || lost < 0 || r.cut_ms < OUT_OF_REACH_MS) {
        j->news_awaited = j->news_awaited && r.count;
        return;
    }
    node_name(j, lost, a, sizeof a);
    node_name(j, r.node, b, sizeof b);
    if (r.cut_ms >= (uint64_t)j->options->console_s * 1000) {
        snprintf(why, sizeof why,
                 "%s is lost, and %s has been out of reach for %d s: nobody else is left who would say what became of "
                 "the job",
                 a, b, j->options->console_s);
        decide(j, 1, why);
        use_force(j);
    } else if (!j->news_awaited) {
        j->news_awaited = true;
        job_say(j,
                "%s is lost, and %s, which would know of the job, is out of reach: it is waited for, %d s at most; "
                "Ctrl-C does without",
                a, b, j->options->console_s);
    }
}

static void doubt_tick(uv_timer_t *timer)
{
    struct job *j = timer->data;
    int lost = -1, silent = -1, least = DOUBT_PINGS;
    for (int i = 0; i < j->total; i++) {
        struct job_node *n = &j->nodes[i];
        if (n->unexplained)
            lost = i;
        if (n->phase == NODE_LOST || n->unborn)
            continue;
        if (!n->conn || conn_unacknowledged(n->conn)) /* its host does not hear us, or is slow: that says nothing */
            n->unanswered = 0;
        if (n->unanswered < least)
            least = n->unanswered;
        silent = i;
        n->unanswered++;
        job_send(j, i, MSG_PING, NULL, 0);
    }
    if (lost < 0) {
        uv_timer_stop(&j->doubt);
    } else if (silent >= 0 && least >= DOUBT_PINGS) {
        char a[128], b[128], why[384];
        snprintf(why, sizeof why,
                 "the agent of %s ended, and that of %s has not answered for %d s, though its host does: frozen",
                 node_name(j, lost, a, sizeof a), node_name(j, silent, b, sizeof b), DOUBT_PINGS * DOUBT_MS / 1000);
        decide(j, 1, why);
        use_force(j);
    }
}

static void doubt(struct job *j, int node)
{
    bool active = uv_is_active((uv_handle_t *)&j->doubt);
    j->nodes[node].unexplained = true;
    if (j->phase != JOB_RUNNING || active)
        return;
    for (int i = 0; i < j->total; i++)
        j->nodes[i].unanswered = 0;
    uv_timer_start(&j->doubt, doubt_tick, DOUBT_MS, DOUBT_MS);
}

/* ---- messages from agents ---- */

static void tell_restart(struct job *j, int node)
{
    char line[256], name[128];
    if (launch_starts(j->launch, j->nodes[node].started_as) == 1)
        return;
    snprintf(line, sizeof line, "the launcher of %s ended before its agent came and was started again",
             node_name(j, node, name, sizeof name));
    job_tell(j, line);
}

/* The job does without it, or has already begun. */
static void refuse(struct job *j, struct pm_conn *c, int node)
{
    char name[128];
    log_info("%s came too late", node_name(j, node, name, sizeof name));
    conn_send_json(c, MSG_REFUSED,
                   json_pack("{s:s}", "why", "it came too late: the job does without it; see keelrun --start-timeout"));
    strangers_remove(j, c->user);
    free(c->user);
    conn_close(c);
}

/* Of the attempt that counts now. */
static bool holds_ticket(struct job *j, const struct pm_conn *c, int node)
{
    const uint8_t *key;
    return launch_ticket(j->launch, c->session.key.id, &key) == node;
}

static void on_hello(struct job *j, struct pm_conn *c, const json_t *m)
{
    struct peer *peer = c->user;
    long long node, pid;
    if (peer->node < 0 && codec_int(m, "node", 0, j->all - 1, &node) &&
        j->nodes[job_place_of(j, (int)node)].phase == NODE_LOST) {
        refuse(j, c, job_place_of(j, (int)node));
        return;
    }
    const char *version = json_string_value(json_object_get(m, "version"));
    if (peer->node >= 0 || !codec_int(m, "node", 0, j->all - 1, &node) || !codec_int(m, "pid", 1, INT32_MAX, &pid) ||
        !holds_ticket(j, c, (int)node) || j->nodes[job_place_of(j, (int)node)].phase != NODE_AWAITED) {
        log_info("%s: a second or senseless hello, dropped", c->peer);
        if (peer->node < 0) {
            strangers_remove(j, peer);
        } else {
            j->nodes[peer->node].conn = NULL;
            j->nodes[peer->node].phase = NODE_LOST;
        }
        free(peer);
        conn_close(c);
        return;
    }
    int started_as = (int)node;
    node = job_place_of(j, started_as);
    peer->node = (int)node;
    strangers_remove(j, peer);
    struct job_node *n = &j->nodes[node];
    n->phase = NODE_JOINED;
    job_link_open(j, (int)node, c);
    FAULT_POINT("run.joined");
    tell_restart(j, (int)node);
    n->agent_fd = descendants_open((pid_t)pid, launch_launcher_pid(j->launch, started_as));
    if (!version || strcmp(version, KEEL_VERSION) != 0) {
        char name[128], why[256];
        snprintf(why, sizeof why, "%s has keeld %s, this is keelrun " KEEL_VERSION,
                 node_name(j, (int)node, name, sizeof name), version ? version : "of no version");
        job_stop(j, 1, why);
        return;
    }
    if (j->phase != JOB_JOINING)
        return;
    job_send_config(j, (int)node);
    launch_joined(j->launch, started_as);
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

static void feed_send(void *user, const uint8_t *data, size_t len)
{
    struct job *j = user;
    job_send(j, j->options->job.rank_node[0], MSG_STDIN, data, len);
}

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

static void on_ready(struct job *j, int node, const json_t *m)
{
    long long round;
    if (!json_is_string(json_object_get(m, "blob")) || !json_is_string(json_object_get(m, "host")) ||
        !json_is_integer(json_object_get(m, "port"))) {
        log_warn("node %d: a ready message without blob, host or port", node);
        return;
    }
    if (!codec_int(m, "round", 0, INT32_MAX, &round) || round != j->round)
        return; /* of a description that does not count any more */
    j->nodes[node].phase = NODE_READY;
    j->nodes[node].ready = json_deep_copy(m);
    FAULT_POINT("run.ready");
    job_start_if_ready(j);
}

void job_run_now(struct job *j)
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
    send_all_json(j, MSG_START, json_pack("{s:o, s:o}", "blobs", blobs, "peers", peers));
    char id[17];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)j->id);
    job_event(j, "started",
              json_pack("{s:s, s:i, s:i, s:i, s:i, s:o}", "job", id, "nodes", j->options->job.nodes, "spares",
                        j->options->job.spares, "room", j->options->job.room, "ranks", j->options->job.ranks,
                        "started_by", starters(j)));
    FAULT_POINT("run.started");
    stdin_feed_start(&j->feed, &j->loop, feed_send, j);
    if (j->options->timeout_s)
        uv_timer_start(&j->limit, limit_passed, (uint64_t)j->options->timeout_s * 1000, 0);
}

static void on_over(struct job *j, int node, const json_t *m)
{
    long long code = 1;
    const char *why = json_string_value(json_object_get(m, "why"));
    codec_int(m, "code", 0, 255, &code);
    j->nodes[node].phase = NODE_OVER;
    FAULT_POINT("run.over");
    hear_end(j, (int)code, why, json_is_true(json_object_get(m, "own")));
    enter_ending(j);
    end_if_all_gone(j);
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
    send_all_json(j, MSG_FAULT, fault_json(f));
}

static void take_view(struct job *j, uint64_t epoch, const int *rank_node, const bool *alive)
{
    if (epoch > j->news.epoch)
        job_waits_view(j, rank_node, alive);
    news_view(&j->news, epoch, rank_node, alive, clock_now_ns());
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
        take_view(j, (uint64_t)epoch, rank_node, is_alive);
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
    end_if_all_gone(j);
}

static void on_failed(struct job *j, const json_t *m)
{
    long long code = 1;
    const char *why = json_string_value(json_object_get(m, "why"));
    codec_int(m, "code", 1, 255, &code);
    decide(j, (int)code, why ? why : "a node failed to start");
    use_force(j);
}

/* A rank's process ended, or a rank goes on in a new one. */
static void on_process(struct job *j, int node, uint8_t type, const json_t *m)
{
    long long rank, pid, signal_number = 0;
    if (j->phase < JOB_RUNNING || j->forced || !codec_int(m, "rank", 0, j->options->job.ranks - 1, &rank) ||
        !codec_int(m, "pid", 1, INT32_MAX, &pid))
        return;
    codec_int(m, "signal", SIGNAL_HIDDEN, 64, &signal_number);
    if (type == MSG_ENDED)
        news_ended(&j->news, node, (int)rank, (int)pid, (int)signal_number);
    else
        news_begun(&j->news, node, (int)rank);
    tell_fault(j);
}

/* The program is one of Keel's: its ranks can go on elsewhere, and the spares' processes may wait for their use. */
static void on_here(struct job *j)
{
    for (int i = 0; i < j->total && !j->standbys_begun; i++)
        job_send(j, i, MSG_STANDBY, NULL, 0);
    j->standbys_begun = true;
    news_keels(&j->news);
}

/* It may have been lost for us by what its host said, and not for the others. */
static void take_back(struct job *j, int node)
{
    struct job_node *n = &j->nodes[node];
    if (n->phase != NODE_LOST || !n->unexplained)
        return;
    n->phase = NODE_READY;
    n->unexplained = false;
}

/* An agent whose connection broke is there again. */
static void on_resume(struct job *j, struct pm_conn *c, const json_t *m)
{
    struct peer *peer = c->user;
    long long node, console, received;
    if (j->phase < JOB_RUNNING || !codec_int(m, "node", 0, j->total - 1, &node) ||
        !codec_int(m, "console", 0, INT64_MAX, &console) || !codec_int(m, "received", 0, INT64_MAX, &received) ||
        console != j->nodes[node].console || j->nodes[node].phase < NODE_READY) {
        log_warn_some("%s: comes again, but was never here", c->peer);
        return; /* a stranger it stays */
    }
    strangers_remove(j, peer);
    peer->node = (int)node;
    struct pm_conn *old = j->nodes[node].conn;
    if (old) {
        free(old->user);
        conn_close(old);
        j->nodes[node].conn = NULL;
    }
    if (!job_link_resume(j, (int)node, c, (uint64_t)received))
        log_warn("node %lld: what its agent says that it has received cannot be", node);
    take_back(j, (int)node);
    if (j->phase == JOB_CLOSING)
        job_send(j, (int)node, MSG_BYE, NULL, 0);
}

void job_forget_peer(struct job *j, struct pm_conn *c)
{
    const struct peer *peer = c->user;
    if (peer->node < 0 && !peer->returns)
        strangers_remove(j, c->user);
    free(c->user);
    conn_close(c);
}

void job_peer_is(struct job *j, struct pm_conn *c, int node)
{
    struct peer *peer = c->user;
    (void)j;
    peer->node = node;
}

void job_greet(struct job *j, int node)
{
    const struct fault *f = &j->news.fault;
    if (j->standbys_begun)
        job_send(j, node, MSG_STANDBY, NULL, 0);
    if (j->fault_told)
        job_send_json(j, node, MSG_FAULT, fault_json(f));
}

static void on_return(struct job *j, struct pm_conn *c, const json_t *m)
{
    struct peer *peer = c->user;
    strangers_remove(j, peer);
    peer->returns = true;
    if (job_return_asked(j, c, m))
        return;
    log_warn_some("%s: comes back as a node that it was not, or not any more", c->peer);
    job_event(j, "return_refused", json_pack("{s:s}", "from", c->peer));
    conn_send_json(c, MSG_REFUSED, json_pack("{s:s}", "why", "it is no node that may come back"));
    job_forget_peer(j, c);
}

static void on_lost(struct job *j, int node, const json_t *m)
{
    char name[128];
    long long bytes = 0;
    codec_int(m, "bytes", 1, INT64_MAX, &bytes);
    j->output_failed = true;
    job_say(j, "%s was out of reach for more than %d s: %lld bytes of its output are lost",
            node_name(j, node, name, sizeof name), j->options->console_s, bytes);
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

static void agent_json(struct job *j, int node, uint8_t type, const json_t *m)
{
    if (j->nodes[node].unborn)
        unborn_json(j, node, type, m);
    else if (type == MSG_MET)
        job_return_met(j, node, m);
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
    else if (type == MSG_WAITS)
        job_waits_report(j, node, m);
    else if (type == MSG_LOST)
        on_lost(j, node, m);
    else if (type == MSG_OVER)
        on_over(j, node, m);
}

/* What of it people are told at once. A line of nodes and times: looked into only if it may be one of these. */
static void tell_event(struct job *j, int node, const char *line, size_t len)
{
    static const char *const told[] = {"\"patience\"", "\"cleared\"", "\"cut_off\"", "\"late\""};
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
    else if (event && strcmp(event, "late") == 0 && j->options->job.silence_ms < SILENCE_DEFAULT_MS)
        news_late(&j->news, node, json_is_number(by) ? json_number_value(by) : 0, j->options->job.silence_ms);
    json_decref(m);
}

static void agent_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct peer *peer = c->user;
    struct job *j = peer->job;
    if (peer->node >= 0)
        j->nodes[peer->node].unanswered = 0;
    if (peer->node >= 0 && !link_receive(&j->nodes[peer->node].link, type, body, len))
        return;
    if (type == MSG_PONG)
        return; /* being heard was all */
    if (type == MSG_HERE) {
        on_here(j);
        return;
    }
    if (type == MSG_OUTPUT) {
        job_output(j, peer->node, body, len);
    } else if (type == MSG_EVENT) {
        if (!memchr(body, '\n', len)) {
            job_event_line(j, (const char *)body, len);
            tell_event(j, peer->node, (const char *)body, len);
        }
    } else if (type == MSG_STDIN_TAKEN && len == 4) {
        stdin_feed_taken(&j->feed, get_u32(body));
    } else {
        json_t *m = codec_object(body, len);
        if (!m)
            log_warn_some("%s: message %d is not JSON", c->peer, type);
        else if (type == MSG_HELLO && !peer->again)
            on_hello(j, c, m);
        else if (type == MSG_RESUME && peer->again && peer->node < 0)
            on_resume(j, c, m);
        else if (type == MSG_RETURN && peer->again && peer->node < 0 && !peer->returns)
            on_return(j, c, m);
        else if (peer->node >= 0)
            agent_json(j, peer->node, type, m);
        json_decref(m);
    }
}

static const uint8_t *find_ticket(void *user, uint64_t id)
{
    struct peer *peer = user;
    const uint8_t *key = NULL;
    peer->past = launch_ticket(peer->job->launch, id, &key) == LAUNCH_PAST;
    return key;
}

/* A ticket is for one. Who has it and is not the agent that it was made for has the job's secret, or would have it
 * soon. */
static void agent_open(struct pm_conn *c)
{
    struct peer *peer = c->user;
    struct job *j = peer->job;
    const uint8_t *key;
    log_debug("%s belongs to the job", c->peer);
    if (peer->again)
        return;
    int node = launch_ticket(j->launch, c->session.key.id, &key);
    if (node < 0)
        return; /* just given up: its hello is refused */
    if (launch_take(j->launch, node)) {
        peer->ticket = node;
        return;
    }
    char name[128], why[384];
    snprintf(why, sizeof why,
             "a second agent, from %s, came with the ticket of %s: somebody else has learned it, and the job ends",
             c->peer, node_name(j, node, name, sizeof name));
    job_stop(j, 1, why);
}

void job_node_gone(struct job *j, int node, const char *why)
{
    char name[128];
    if (j->nodes[node].unborn)
        job_return_failed(j, node, why);
    if (!is_left(j, node))
        return;
    j->nodes[node].phase = NODE_LOST;
    log_info("%s: its agent has ended: %s", node_name(j, node, name, sizeof name), why);
    job_event(j, "agent_lost", json_pack("{s:i, s:s}", "lost", node, "why", why));
    job_waits_report(j, node, NULL); /* its ranks wait for nobody any more */
    doubt(j, node);
    job_return_look(j); /* it is not waited for */
    end_if_all_gone(j);
}

static void lost_before_start(struct job *j, int node, const char *why)
{
    char name[128], text[256];
    job_event(j, "agent_lost", json_pack("{s:i, s:s}", "lost", node, "why", why));
    snprintf(text, sizeof text, "%s: its agent ended before the start (%s)", node_name(j, node, name, sizeof name),
             why);
    job_node_missing(j, node, text);
}

void job_moved(struct job *j, int node)
{
    struct job_node *n = &j->nodes[node];
    struct peer *peer = n->conn ? n->conn->user : NULL;
    n->link.user = n;
    if (peer)
        peer->node = node;
}

void job_drop_connection(struct job *j, int node)
{
    struct pm_conn *c = j->nodes[node].conn;
    if (!c)
        return;
    free(c->user);
    conn_close(c);
    j->nodes[node].conn = NULL;
    link_down(&j->nodes[node].link);
}

static void agent_lost(struct pm_conn *c, const char *why)
{
    struct peer *peer = c->user;
    struct job *j = peer->job;
    int node = peer->node;
    if (node < 0 && peer->returns) {
        job_return_lost(j, c);
        free(peer);
        return;
    }
    if (node < 0) {
        strangers_remove(j, peer);
        if (peer->ticket >= 0)
            launch_give_back(j->launch, peer->ticket);
        if (peer->past)
            log_info("%s: an agent of an attempt that was given up", c->peer);
        else
            log_warn_some("dropped a connection from %s: %s", c->peer, why);
        free(peer);
        return;
    }
    free(peer);
    j->nodes[node].conn = NULL;
    link_down(&j->nodes[node].link);
    if (j->nodes[node].unborn && !job_return_started(j, node))
        job_return_failed(j, node, why);
    if (!is_left(j, node) && !(j->nodes[node].unborn && j->nodes[node].phase == NODE_READY))
        return;
    if (j->phase == JOB_JOINING)
        lost_before_start(j, node, why);
    else
        job_link_cut(j, node, why);
}

void job_agent_connected(struct job *j, bool again)
{
    static const struct conn_events events = {agent_open, agent_frame, agent_lost};
    struct peer *peer = pm_alloc(sizeof *peer);
    *peer = (struct peer){.job = j, .node = -1, .ticket = -1, .again = again};
    const struct session_key tickets = {.find = find_ticket, .user = peer},
                             secret = {.id = SESSION_OF_JOB, .secret = j->secret};
    peer->conn = conn_accept((uv_stream_t *)(again ? &j->console : &j->listener), j->id, again ? &secret : &tickets,
                             PROOF_MS, &events, peer);
    if (!peer->conn) {
        free(peer);
        return;
    }
    strangers_add(j, peer);
    int most = STRANGERS_MAX;
    for (int i = 0; i < j->total; i++)
        most += j->nodes[i].phase == NODE_AWAITED;
    if (j->strangers > most) {
        struct peer *oldest = surplus_stranger(j);
        log_warn_some("dropped a connection from %s: too many without a proof", oldest->conn->peer);
        strangers_remove(j, oldest);
        conn_close(oldest->conn);
        free(oldest);
    }
}

void job_launcher_ended(struct job *j, int started_as, int wait_status, const char *text)
{
    char name[128], why[512];
    int n = 0, node = job_place_of(j, started_as);
    node_name(j, node, name, sizeof name);
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

/* ---- start ---- */

void job_interrupted(struct job *j, int signal_number)
{
    char why[64];
    snprintf(why, sizeof why, "ended by signal %d (%s)", signal_number, strsignal(signal_number));
    if (signal_number == SIGQUIT)
        j->end_signal = SIGQUIT;
    if (++j->signals_seen == 1 && j->phase < JOB_ENDING) {
        job_stop(j, 128 + signal_number, why);
    } else {
        decide(j, 128 + signal_number, why);
        use_force(j);
    }
}

void job_run(struct job *j)
{
    job_signals_begin(j);
    uv_timer_init(&j->loop, &j->deadline);
    uv_timer_init(&j->loop, &j->limit);
    uv_timer_init(&j->loop, &j->doubt);
    job_link_begin(j);
    job_return_init(j);
    j->deadline.data = j->limit.data = j->doubt.data = j;
    job_start_begin(j);
    uv_run(&j->loop, UV_RUN_DEFAULT);
    job_signals_end();
    job_waits_end(j);
    news_fini(&j->news);
    free(j->names);
    free(j->why);
}
