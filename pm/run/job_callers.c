/* The connections to agents: those that have not proved to belong to the job, who comes over one, comes again or
 * comes back, and that one is lost. */
#include "pm/run/job.h"

#include "pm/wire/codec.h"
#include "pm/wire/orphans.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    PROOF_MS = 1000, /* for a connection to prove that it belongs to the job */
    /* connections without proof at a time, and one for each node that is awaited; of more some are dropped at once */
    STRANGERS_MAX = 64,
};

struct caller {
    struct job *job;
    int node;     /* -1 until MSG_HELLO or MSG_RESUME */
    int ticket;   /* the node that it has the ticket of, once that is proved; -1 */
    bool past;    /* of an attempt that was given up */
    bool again;   /* it comes again, and has proved to know the secret */
    bool returns; /* as a node that it is not any more: job_return.c */
    struct pm_conn *conn;
    struct caller *newer, *older; /* strangers only */
};

/* ---- connections that have not proved to belong to the job ---- */

static void strangers_add(struct strangers *s, struct caller *caller)
{
    caller->older = s->newest;
    if (caller->older)
        caller->older->newer = caller;
    else
        s->oldest = caller;
    s->newest = caller;
    s->count++;
}

static void strangers_remove(struct strangers *s, struct caller *caller)
{
    *(caller->older ? &caller->older->newer : &s->oldest) = caller->newer;
    *(caller->newer ? &caller->newer->older : &s->newest) = caller->older;
    caller->newer = caller->older = NULL;
    s->count--;
}

/* The oldest one of the address that has most: members prove themselves at once. */
static struct caller *surplus_stranger(const struct strangers *s)
{
    struct caller *worst = NULL;
    int most = 0;
    for (struct caller *p = s->oldest; p; p = p->newer) {
        int here = 0;
        for (struct caller *q = p; q; q = q->newer)
            here += conn_same_host(p->conn, q->conn);
        if (here > most) {
            most = here;
            worst = p;
        }
    }
    return worst;
}

/* ---- who comes ---- */

static void tell_restart(struct job *j, int node)
{
    char line[256], name[128];
    if (launch_starts(j->launch, j->nodes[node].started_as) == 1)
        return;
    snprintf(line, sizeof line, "the launcher of %s ended before its agent came and was started again",
             job_node_name(j, node, name, sizeof name));
    job_tell(j, line);
}

/* The job does without it, or has already begun. */
static void refuse(struct job *j, struct pm_conn *c, int node)
{
    char name[128];
    log_info("%s came too late", job_node_name(j, node, name, sizeof name));
    conn_send_json(c, MSG_REFUSED,
                   json_pack("{s:s}", "why", "it came too late: the job does without it; see keelrun --start-timeout"));
    strangers_remove(&j->strangers, c->user);
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
    struct caller *caller = c->user;
    long long node, pid;
    if (caller->node < 0 && codec_int(m, "node", 0, j->all - 1, &node) &&
        j->nodes[job_place_of(j, (int)node)].phase == NODE_LOST) {
        refuse(j, c, job_place_of(j, (int)node));
        return;
    }
    const char *version = json_string_value(json_object_get(m, "version"));
    if (caller->node >= 0 || !codec_int(m, "node", 0, j->all - 1, &node) || !codec_int(m, "pid", 1, INT32_MAX, &pid) ||
        !holds_ticket(j, c, (int)node) || j->nodes[job_place_of(j, (int)node)].phase != NODE_AWAITED) {
        log_info("%s: a second or senseless hello, dropped", c->peer);
        if (caller->node < 0) {
            strangers_remove(&j->strangers, caller);
        } else {
            j->nodes[caller->node].conn = NULL;
            j->nodes[caller->node].phase = NODE_LOST;
        }
        free(caller);
        conn_close(c);
        return;
    }
    int started_as = (int)node;
    node = job_place_of(j, started_as);
    caller->node = (int)node;
    strangers_remove(&j->strangers, caller);
    struct job_node *n = &j->nodes[node];
    n->phase = NODE_JOINED;
    job_dialogue_open(j, (int)node, c);
    FAULT_POINT("run.joined");
    tell_restart(j, (int)node);
    n->agent_fd = descendants_open((pid_t)pid, launch_launcher_pid(j->launch, started_as));
    if (!version || strcmp(version, KEEL_VERSION) != 0) {
        char name[128], why[256];
        snprintf(why, sizeof why, "%s has keeld %s, this is keelrun " KEEL_VERSION,
                 job_node_name(j, (int)node, name, sizeof name), version ? version : "of no version");
        job_stop(j, 1, why);
        return;
    }
    if (j->phase != JOB_JOINING)
        return;
    job_send_config(j, (int)node);
    launch_joined(j->launch, started_as);
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
    struct caller *caller = c->user;
    long long node, console, received;
    int last = job_return_may_come(j) ? j->total : j->total - 1;
    if (j->phase < JOB_RUNNING || !codec_int(m, "node", 0, last, &node) ||
        !codec_int(m, "console", 0, INT64_MAX, &console) || !codec_int(m, "received", 0, INT64_MAX, &received) ||
        console != j->nodes[node].console) {
        log_warn_some("%s: comes again, but was never here", c->peer);
        return; /* a stranger it stays */
    }
    /* who adds it, or a view, has said it, which has not come here: it comes again */
    if (node == j->total || j->nodes[node].phase < NODE_READY) {
        job_event(j, "came_early", json_pack("{s:i}", "about", (int)node));
        job_forget_peer(j, c);
        return;
    }
    strangers_remove(&j->strangers, caller);
    caller->node = (int)node;
    if (!j->nodes[node].ready && json_is_string(json_object_get(m, "blob")))
        j->nodes[node].ready = json_deep_copy(m);
    struct pm_conn *old = j->nodes[node].conn;
    if (old) {
        free(old->user);
        conn_close(old);
        j->nodes[node].conn = NULL;
    }
    if (!job_dialogue_resume(j, (int)node, c, (uint64_t)received))
        log_warn("node %lld: what its agent says that it has received cannot be", node);
    take_back(j, (int)node);
    if (j->phase == JOB_CLOSING)
        job_send(j, (int)node, MSG_BYE, NULL, 0);
}

static void on_return(struct job *j, struct pm_conn *c, const json_t *m)
{
    struct caller *caller = c->user;
    strangers_remove(&j->strangers, caller);
    caller->returns = true;
    if (job_return_asked(j, c, m))
        return;
    log_warn_some("%s: comes back as a node that it was not, or not any more", c->peer);
    job_event(j, "return_refused", json_pack("{s:s}", "from", c->peer));
    conn_send_json(c, MSG_REFUSED, json_pack("{s:s}", "why", "it is no node that may come back"));
    job_forget_peer(j, c);
}

/* ---- connections ---- */

static void agent_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct caller *caller = c->user;
    struct job *j = caller->job;
    if (caller->node >= 0)
        j->nodes[caller->node].unanswered = 0;
    if (caller->node >= 0 && !dialogue_receive(&j->nodes[caller->node].dialogue, type, body, len))
        return;
    if (type == MSG_PONG)
        return; /* being heard was all */
    if (type == MSG_HERE) {
        job_hear_here(j);
        return;
    }
    if (type == MSG_OUTPUT) {
        job_output(j, caller->node, body, len);
    } else if (type == MSG_EVENT) {
        if (!memchr(body, '\n', len)) {
            job_event_line(j, (const char *)body, len);
            job_hear_event(j, caller->node, (const char *)body, len);
        }
    } else if (type == MSG_STDIN_TAKEN) { /* one who began before may have taken some: it is not asked any more */
        if (len == 8 && j->replicas.output)
            stdin_feed_taken(&j->feed, job_replicas_taken(j, caller->node, get_u32(body), get_u32(body + 4)));
        else if (len == 8 && get_u32(body) == j->feed_life)
            stdin_feed_taken(&j->feed, get_u32(body + 4));
    } else {
        json_t *m = codec_object(body, len);
        if (!m)
            log_warn_some("%s: message %d is not JSON", c->peer, type);
        else if (type == MSG_HELLO && !caller->again)
            on_hello(j, c, m);
        else if (type == MSG_RESUME && caller->again && caller->node < 0)
            on_resume(j, c, m);
        else if (type == MSG_RETURN && caller->again && caller->node < 0 && !caller->returns)
            on_return(j, c, m);
        else if (caller->node >= 0)
            job_hear(j, caller->node, type, m);
        json_decref(m);
    }
}

static const uint8_t *find_ticket(void *user, uint64_t id)
{
    struct caller *caller = user;
    const uint8_t *key = NULL;
    caller->past = launch_ticket(caller->job->launch, id, &key) == LAUNCH_PAST;
    return key;
}

/* A ticket is for one. Who has it and is not the agent that it was made for has the job's secret, or would have it
 * soon. */
static void agent_open(struct pm_conn *c)
{
    struct caller *caller = c->user;
    struct job *j = caller->job;
    const uint8_t *key;
    log_debug("%s belongs to the job", c->peer);
    if (caller->again)
        return;
    int node = launch_ticket(j->launch, c->session.key.id, &key);
    if (node < 0)
        return; /* just given up: its hello is refused */
    if (launch_take(j->launch, node)) {
        caller->ticket = node;
        return;
    }
    char name[128], why[384];
    snprintf(why, sizeof why,
             "a second agent, from %s, came with the ticket of %s: somebody else has learned it, and the job ends",
             c->peer, job_node_name(j, node, name, sizeof name));
    job_stop(j, 1, why);
}

static void lost_before_start(struct job *j, int node, const char *why)
{
    char name[128], text[256];
    job_event(j, "agent_lost", json_pack("{s:i, s:s}", "lost", node, "why", why));
    snprintf(text, sizeof text, "%s: its agent ended before the start (%s)", job_node_name(j, node, name, sizeof name),
             why);
    job_node_missing(j, node, text);
}

static void agent_lost(struct pm_conn *c, const char *why)
{
    struct caller *caller = c->user;
    struct job *j = caller->job;
    int node = caller->node;
    if (node < 0 && caller->returns) {
        job_return_lost(j, c);
        free(caller);
        return;
    }
    if (node < 0) {
        strangers_remove(&j->strangers, caller);
        if (caller->ticket >= 0)
            launch_give_back(j->launch, caller->ticket);
        if (caller->past)
            log_info("%s: an agent of an attempt that was given up", c->peer);
        else
            log_warn_some("dropped a connection from %s: %s", c->peer, why);
        free(caller);
        return;
    }
    free(caller);
    j->nodes[node].conn = NULL;
    dialogue_down(&j->nodes[node].dialogue);
    if (j->nodes[node].unborn && !job_return_started(j, node))
        job_return_failed(j, node, why);
    if (!job_is_left(j, node) && !(j->nodes[node].unborn && j->nodes[node].phase == NODE_READY))
        return;
    if (j->phase == JOB_JOINING)
        lost_before_start(j, node, why);
    else
        job_dialogue_cut(j, node, why);
}

void job_agent_connected(struct job *j, bool again)
{
    static const struct conn_events events = {agent_open, agent_frame, agent_lost};
    struct caller *caller = pm_alloc(sizeof *caller);
    *caller = (struct caller){.job = j, .node = -1, .ticket = -1, .again = again};
    const struct session_key tickets = {.find = find_ticket, .user = caller},
                             secret = {.id = SESSION_OF_JOB, .secret = j->door.secret};
    caller->conn = conn_accept((uv_stream_t *)(again ? &j->door.console : &j->door.listener), j->id,
                               again ? &secret : &tickets, PROOF_MS, &events, caller);
    if (!caller->conn) {
        free(caller);
        return;
    }
    strangers_add(&j->strangers, caller);
    int most = STRANGERS_MAX;
    for (int i = 0; i < j->total; i++)
        most += j->nodes[i].phase == NODE_AWAITED;
    if (j->strangers.count > most) {
        struct caller *oldest = surplus_stranger(&j->strangers);
        log_warn_some("dropped a connection from %s: too many without a proof", oldest->conn->peer);
        strangers_remove(&j->strangers, oldest);
        conn_close(oldest->conn);
        free(oldest);
    }
}

/* ---- for the other files ---- */

void job_forget_peer(struct job *j, struct pm_conn *c)
{
    const struct caller *caller = c->user;
    if (caller->node < 0 && !caller->returns)
        strangers_remove(&j->strangers, c->user);
    free(c->user);
    conn_close(c);
}

void job_peer_is(struct job *j, struct pm_conn *c, int node)
{
    struct caller *caller = c->user;
    (void)j;
    caller->node = node;
}

void job_moved(struct job *j, int node)
{
    struct job_node *n = &j->nodes[node];
    struct caller *caller = n->conn ? n->conn->user : NULL;
    n->dialogue.user = n;
    if (caller)
        caller->node = node;
}

void job_drop_connection(struct job *j, int node)
{
    struct pm_conn *c = j->nodes[node].conn;
    if (!c)
        return;
    free(c->user);
    conn_close(c);
    j->nodes[node].conn = NULL;
    dialogue_down(&j->nodes[node].dialogue);
}
