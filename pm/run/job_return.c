/* Nodes that were declared dead, or have lost the quorum, and live. The agent of such a one has dropped all that it
 * had, and asks with the number of its console to come back. It gets a number that no node has had, and is a spare when
 * a view has it. One at a time:
 *
 *   WAITS --a view has it dead, it is its turn, there is room--> BEGINS: CONFIG --READY--> MEETS: MEET to all that live
 *   MEETS --each has said MET, or is dead--> STARTS: START --a view has it--> a node like others
 *   BEGINS, MEETS, STARTS --its agent ends, or is not ready in time--> nothing was, and the next one gets the number
 *
 * Whoever lives has to know where it is before it can become a member: views are agreed on by messages to all. It does
 * the rest itself: it asks a member to become one (docs/protocols/detection.md). */
#include "pm/run/job_return_parts.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000, TOLD_AFTER_MS = 5000 };

const char *returner_name(const struct job *j, int node, char *out, size_t size)
{
    return news_node(&j->news, node, out, (unsigned)size);
}

void returner_enter(struct job *j, struct returner *r, int step)
{
    r->step = step;
    r->since_ms = uv_now(&j->loop);
}

void returner_forget(struct job *j, struct returner *r)
{
    struct returner **at = &j->returners.first;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    free(r->host);
    free(r);
}

struct returner *returner_under_way(const struct job *j)
{
    struct returner *r = j->returners.first;
    while (r && r->step == WAITS)
        r = r->next;
    return r;
}

struct returner *returner_by_node(const struct job *j, int node)
{
    struct returner *r = returner_under_way(j);
    return r && r->node == node ? r : NULL;
}

void returner_send_away(struct job *j, struct returner *r, const char *why)
{
    if (why)
        conn_send_json(r->conn, MSG_REFUSED, json_pack("{s:s}", "why", why));
    else
        conn_send(r->conn, MSG_BYE, NULL, 0);
    job_forget_peer(j, r->conn);
    returner_forget(j, r);
}

/* Whose agent is lost that was to add a node: nobody is added. */
static void forget_helpless(struct job *j)
{
    for (struct returner *r = j->returners.first, *next; r; r = next) {
        next = r->next;
        if (r->by < 0 || j->nodes[r->by].phase == NODE_READY)
            continue;
        if (r->step == WAITS)
            returner_forget(j, r);
        else {
            job_return_failed(j, r->node, "the agent that was to start it is lost");
            return; /* which has looked at the others */
        }
    }
}

void job_return_look(struct job *j)
{
    forget_helpless(j);
    returner_start_when_met(j);
    returners_take_turns(j);
}

static void look(uv_timer_t *timer)
{
    struct job *j = timer->data;
    struct returner *r = returner_under_way(j);
    uint64_t waited = r ? uv_now(&j->loop) - r->since_ms : 0;
    char name[128], other[128], why[128];
    int deaf = r && r->step == MEETS ? returner_first_deaf(j) : -1;
    if (!j->returners.first || j->phase != JOB_RUNNING) {
        uv_timer_stop(timer);
        return;
    }
    if (deaf >= 0 && waited >= TOLD_AFTER_MS && !r->told) {
        r->told = true;
        job_tell_waits_for(j, "%s, which comes back as node %d, waits for %s to hear of it",
                           returner_name(j, r->was, name, sizeof name), r->node,
                           returner_name(j, deaf, other, sizeof other));
    } else if (r && r->by < 0 && r->step == BEGINS && waited >= (uint64_t)j->options->start_timeout_s * 1000) {
        snprintf(why, sizeof why, "it has not become ready within %d s", j->options->start_timeout_s);
        job_return_failed(j, r->node, why);
    }
}

void job_return_init(struct job *j)
{
    uv_timer_init(&j->loop, &j->returners.timer);
    j->returners.timer.data = j;
}

/* ---- who asks ---- */

/* Of a connection that broke before anything was agreed on. */
static void forget_older(struct job *j, int was)
{
    for (struct returner *r = j->returners.first, *next; r; r = next) {
        next = r->next;
        if (r->by >= 0)
            continue;
        if (r->was == was && r->step == WAITS)
            returner_send_away(j, r, NULL);
        else if (r->was == was)
            job_return_failed(j, r->node, "its connection broke, and it asks again");
    }
}

bool job_return_asked(struct job *j, struct pm_conn *c, const json_t *m)
{
    long long node, console;
    const char *version = json_string_value(json_object_get(m, "version"));
    if (j->phase < JOB_RUNNING || !version || strcmp(version, KEEL_VERSION) != 0 ||
        !codec_int(m, "node", 0, j->total - 1, &node) || !codec_int(m, "console", 0, INT64_MAX, &console) ||
        console != j->nodes[node].console || j->nodes[node].unborn)
        return false;
    FAULT_POINT("run.return_asked");
    forget_older(j, (int)node);
    struct returner *r = pm_alloc(sizeof *r), **at = &j->returners.first;
    *r = (struct returner){.conn = c, .was = (int)node, .node = -1, .by = -1};
    while (*at)
        at = &(*at)->next;
    *at = r;
    returner_enter(j, r, WAITS);
    if (j->phase != JOB_RUNNING) {
        returner_send_away(j, r, NULL);
        return true;
    }
    uv_timer_start(&j->returners.timer, look, LOOK_MS, LOOK_MS);
    job_drop_connection(j, (int)node);
    job_node_gone(j, (int)node, "it was put out of the job, as it says itself");
    job_return_look(j);
    return true;
}

static struct returner *new_one(struct job *j, int by)
{
    struct returner *r = returner_under_way(j);
    return r && r->by == by ? r : NULL;
}

void job_return_adds(struct job *j, int by, const json_t *m)
{
    const char *host = json_string_value(json_object_get(m, "host")),
               *why = json_string_value(json_object_get(m, "why"));
    struct returner *now = new_one(j, by);
    long long node;
    if (!codec_int(m, "node", 0, settings_ids(&j->options->job) - 1, &node)) {
        struct returner *r = pm_alloc(sizeof *r), **at = &j->returners.first;
        *r = (struct returner){.was = -1, .node = -1, .by = by, .host = pm_strdup(host ? host : "?")};
        while (*at)
            at = &(*at)->next;
        *at = r;
        returner_enter(j, r, WAITS);
        FAULT_POINT("run.add_asked");
        returners_take_turns(j);
    } else if (now && now->node == node && why) {
        job_return_failed(j, (int)node, why);
    } else if (now && now->node == node && now->step == BEGINS && host) {
        j->nodes[node].ready = json_deep_copy(m);
        j->nodes[node].phase = NODE_READY; /* it comes as one whose connection broke */
        returner_enter(j, now, STARTS);
    } else if (node < j->total && host && !j->nodes[node].unborn && !j->nodes[node].ready) {
        j->nodes[node].ready = json_deep_copy(m); /* a view was here before */
    }
}

bool job_return_started(const struct job *j, int node)
{
    const struct returner *r = returner_by_node(j, node);
    return r && r->step == STARTS;
}

bool job_return_lost(struct job *j, const struct pm_conn *c)
{
    for (struct returner *r = j->returners.first; r; r = r->next)
        if (r->step == WAITS && r->by < 0 && r->conn == c) {
            returner_forget(j, r);
            return true;
        }
    return false;
}

void job_return_end(struct job *j)
{
    for (struct returner *r = j->returners.first, *next; r; r = next) {
        next = r->next;
        if (r->step == WAITS && r->by >= 0) {
            returner_forget(j, r);
            continue;
        }
        if (r->step == WAITS) {
            returner_send_away(j, r, NULL);
            continue;
        }
        job_send(j, r->node, MSG_BYE, NULL, 0);
        j->nodes[r->node].phase = NODE_LOST; /* nobody waits for it */
        returner_forget(j, r);
    }
    uv_timer_stop(&j->returners.timer);
}
