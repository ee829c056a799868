/* The ways to the agents of a job that runs. A connection says nothing about its node: one that breaks is made again by
 * the agent, and what both have to say waits for it (pm/wire/dialogue.h). That an agent has ended is known by a view of
 * the others, or by its own host, which says that nobody listens where the agent did; until then it is waited for. */
#include "pm/run/job.h"

#include "runtime/base/fault.h"
#include "runtime/base/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 300, /* between looks at what is cut off */
    ASK_MS = 2000, /* for an agent's listener to answer */
    REFUSALS = 5,  /* in a row: nobody listens there any more */
    TOLD_AFTER_MS = 3000,
    TELL_AGAIN_MS = 10000,
    PROGRESS_MS = 5000, /* who was heard so lately is slow */
};

/* A question whether anybody listens where the node's agent did. */
struct asking {
    struct job *job;
    int node; /* -1: the answer is not wanted any more */
};

static void send_now(void *user, uint8_t type, const void *body, size_t len)
{
    const struct job_node *n = user;
    conn_send(n->conn, type, body, len);
}

void job_dialogue_open(struct job *j, int node, struct pm_conn *conn)
{
    struct job_node *n = &j->nodes[node];
    n->conn = conn;
    dialogue_init(&n->dialogue, send_now, n);
    dialogue_up(&n->dialogue, 0);
}

void job_send(struct job *j, int node, uint8_t type, const void *body, size_t len)
{
    struct job_node *n = &j->nodes[node];
    if (n->conn || n->phase == NODE_READY)
        dialogue_send(&n->dialogue, type, body, len);
}

void job_send_json(struct job *j, int node, uint8_t type, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    if (text)
        job_send(j, node, type, text, strlen(text));
    free(text);
    json_decref(body);
}

void job_send_all_json(struct job *j, uint8_t type, json_t *m)
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

bool job_dialogue_waits(const struct job *j, int node)
{
    const struct job_node *n = &j->nodes[node];
    if (!n->conn)
        return n->cut_ms && uv_now(&j->loop) - n->cut_ms < (uint64_t)j->options->console_s * 1000;
    return conn_unacknowledged(n->conn) || uv_now(&j->loop) - n->conn->heard < PROGRESS_MS;
}

/* ---- is it still there? ---- */

static void answered(struct pm_conn *c)
{
    struct asking *a = c->user;
    if (a->node >= 0) {
        a->job->nodes[a->node].refusals = 0;
        a->job->nodes[a->node].asking = NULL;
    }
    free(a);
    conn_close(c);
}

static void unexpected(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    (void)c;
    (void)type;
    (void)body;
    (void)len;
}

static void not_answered(struct pm_conn *c, const char *why)
{
    struct asking *a = c->user;
    struct job *j = a->job;
    int node = a->node;
    free(a);
    if (node < 0)
        return;
    struct job_node *n = &j->nodes[node];
    n->asking = NULL;
    n->refusals = strcmp(why, uv_strerror(UV_ECONNREFUSED)) == 0 ? n->refusals + 1 : 0;
    if (n->refusals >= REFUSALS && !n->conn && n->cut_ms)
        job_node_gone(j, node, "nobody listens there any more");
}

static void ask(struct job *j, int node)
{
    static const struct conn_events events = {answered, unexpected, not_answered};
    struct job_node *n = &j->nodes[node];
    if (!n->ready)
        return; /* a new one, and nobody has said yet where it is */
    struct asking *a = pm_alloc(sizeof *a);
    *a = (struct asking){j, node};
    n->asking = a;
    const struct session_key secret = {.id = SESSION_OF_JOB, .secret = j->door.secret};
    conn_connect(&j->loop, NULL, json_string_value(json_object_get(n->ready, "host")),
                 (int)json_integer_value(json_object_get(n->ready, "port")), j->id, &secret, ASK_MS, &events, a);
}

/* Again only when there are more, and not all the time. */
static void tell_cut(struct job *j, int count, int node)
{
    char name[128];
    if (count <= j->cuts.told || (j->cuts.told && uv_now(&j->loop) - j->cuts.told_ms < TELL_AGAIN_MS))
        return;
    if (count == 1)
        job_say(j, "%s is out of reach from here; the job goes on, and what it writes waits",
                news_node(&j->news, node, name, sizeof name));
    else
        job_say(j, "%d nodes are out of reach from here; the job goes on, and what they write waits", count);
    j->cuts.told = count;
    j->cuts.told_ms = uv_now(&j->loop);
}

static bool is_cut(const struct job_node *n)
{
    return !n->conn && n->cut_ms && n->phase == NODE_READY;
}

static void look(uv_timer_t *timer)
{
    struct job *j = timer->data;
    int cut = 0, told = 0, last = -1;
    for (int i = 0; i < j->total; i++) {
        struct job_node *n = &j->nodes[i];
        if (!is_cut(n))
            continue;
        cut++;
        if (uv_now(&j->loop) - n->cut_ms >= TOLD_AFTER_MS) {
            told++;
            last = i;
        }
        if (!n->asking)
            ask(j, i);
    }
    if (!j->options->quiet && told)
        tell_cut(j, told, last);
    job_wait_for_news(j);
    if (!cut)
        job_dialogue_settled(j);
}

void job_dialogue_settled(struct job *j)
{
    bool lost = false; /* one that never was in reach again */
    for (int i = 0; i < j->total; i++) {
        const struct job_node *n = &j->nodes[i];
        if (is_cut(n))
            return;
        lost = lost || (!n->conn && n->cut_ms && n->phase == NODE_LOST);
    }
    if (j->cuts.told && !lost)
        job_say(j, "all nodes are in reach again");
    j->cuts.told = 0;
    uv_timer_stop(&j->cuts.looks);
}

void job_dialogue_cut(struct job *j, int node, const char *why)
{
    struct job_node *n = &j->nodes[node];
    char name[128];
    log_info("%s: the connection to its agent broke: %s", news_node(&j->news, node, name, sizeof name), why);
    job_event(j, "console_cut", json_pack("{s:i, s:s}", "about", node, "why", why));
    FAULT_POINT("run.cut");
    dialogue_down(&n->dialogue);
    n->cut_ms = uv_now(&j->loop);
    n->refusals = 0;
    if (!uv_is_active((uv_handle_t *)&j->cuts.looks))
        uv_timer_start(&j->cuts.looks, look, 0, LOOK_MS);
}

bool job_dialogue_resume(struct job *j, int node, struct pm_conn *conn, uint64_t received)
{
    struct job_node *n = &j->nodes[node];
    dialogue_down(&n->dialogue);
    if (received < n->dialogue.acked || received > n->dialogue.sent)
        return false;
    n->conn = conn;
    n->cut_ms = 0;
    if (n->asking)
        n->asking->node = -1;
    n->asking = NULL;
    FAULT_POINT("run.resuming");
    conn_send_json(conn, MSG_RESUMED, json_pack("{s:I}", "received", (json_int_t)n->dialogue.received));
    job_event(j, "console_resumed", json_pack("{s:i}", "about", node));
    job_dialogue_settled(j); /* before what it has to say, which may be the end */
    return dialogue_up(&n->dialogue, received);
}

void job_dialogue_begin(struct job *j)
{
    uv_timer_init(&j->loop, &j->cuts.looks);
    j->cuts.looks.data = j;
}
