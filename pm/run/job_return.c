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
#include "pm/run/job.h"

#include "pm/wire/codec.h"
#include "pm/wire/orphans.h"
#include "runtime/base/fault.h"
#include "runtime/base/kernel.h"
#include "runtime/base/log.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000, TOLD_AFTER_MS = 5000 };

struct returner {
    struct returner *next;
    enum { WAITS, BEGINS, MEETS, STARTS } step;
    struct pm_conn *conn; /* in WAITS; later the node's */
    int was, node;        /* node: from BEGINS on */
    int by;            /* of a node that is new: whose agent starts it, and sees to all between number and birth; -1 */
    char *host;        /* and where */
    uint64_t since_ms; /* of the step */
    bool told;         /* that it waits for others */
};

static const char *name_of(const struct job *j, int node, char *out, size_t size)
{
    return news_node(&j->news, node, out, (unsigned)size);
}

static void enter(struct job *j, struct returner *r, int step)
{
    r->step = step;
    r->since_ms = uv_now(&j->loop);
}

static void forget(struct job *j, struct returner *r)
{
    struct returner **at = &j->returners.first;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    free(r->host);
    free(r);
}

/* Who has a number, and is no member yet. */
static struct returner *under_way(const struct job *j)
{
    struct returner *r = j->returners.first;
    while (r && r->step == WAITS)
        r = r->next;
    return r;
}

static struct returner *by_node(const struct job *j, int node)
{
    struct returner *r = under_way(j);
    return r && r->node == node ? r : NULL;
}

static void send_away(struct job *j, struct returner *r, const char *why)
{
    if (why)
        conn_send_json(r->conn, MSG_REFUSED, json_pack("{s:s}", "why", why));
    else
        conn_send(r->conn, MSG_BYE, NULL, 0);
    job_forget_peer(j, r->conn);
    forget(j, r);
}

/* ---- its turn ---- */

static int first_living(const struct job *j)
{
    int i = 0;
    while (i < j->total - 1 && (j->nodes[i].phase != NODE_READY || j->nodes[i].unborn || !j->nodes[i].conn))
        i++;
    return i;
}

/* A number that nobody has had, of a view that was heard of; some may have been born that nobody is there of any more
 * to say so. */
static int next_number(struct job *j)
{
    for (; j->total < j->born; j->total++)
        j->nodes[j->total] = (struct job_node){.phase = NODE_LOST, .agent_fd = -1, .declared_ms = uv_now(&j->loop)};
    return j->total;
}

static long long draw_console(void)
{
    uint64_t number;
    randombytes_buf(&number, sizeof number);
    return (long long)(number >> 1);
}

/* A new one: the agent that starts it does the rest. */
static void begin_new(struct job *j, struct returner *r)
{
    int node = r->node = j->total++;
    struct job_node *n = &j->nodes[node];
    json_decref(n->ready);
    *n = (struct job_node){.phase = NODE_JOINED, .console = draw_console(), .agent_fd = -1, .unborn = true};
    if (j->names)
        j->names[node] = pm_strdup(r->host); /* until the end of the program, as the others */
    job_dialogue_open(j, node, NULL);
    dialogue_down(&n->dialogue);
    enter(j, r, BEGINS);
    FAULT_POINT("run.add_begins");
    job_send_json(j, r->by, MSG_NUMBER, json_pack("{s:i, s:I}", "node", node, "console", (json_int_t)n->console));
}

static void begin(struct job *j, struct returner *r)
{
    int node = r->node = j->total++;
    struct job_node *n = &j->nodes[node], *was = &j->nodes[r->was];
    json_decref(n->ready); /* of one that did not become a member */
    *n = (struct job_node){.phase = NODE_JOINED,
                           .started_as = was->started_as,
                           .console = draw_console(),
                           .agent_fd = was->agent_fd,
                           .sponsor = first_living(j),
                           .unborn = true};
    was->agent_fd = -1;
    if (j->names)
        j->names[node] = j->names[r->was];
    job_peer_is(j, r->conn, node);
    job_dialogue_open(j, node, r->conn);
    enter(j, r, BEGINS);
    FAULT_POINT("run.return_begins");
    job_send_config(j, node);
}

/* The first one that is new, or whom a view has called dead. */
static struct returner *next_one(struct job *j)
{
    struct returner *r = j->returners.first;
    while (r && r->by < 0 && !j->nodes[r->was].declared_ms)
        r = r->next;
    return r;
}

static void no_room(struct job *j, struct returner *r)
{
    char name[128], why[64];
    int room = j->options->job.room;
    if (r->by >= 0) {
        snprintf(why, sizeof why, "there is no room for one more node (--room %d)", room);
        job_send_json(j, r->by, MSG_NUMBER, json_pack("{s:s}", "why", why));
        forget(j, r);
        return;
    }
    job_tell_waits_for(j, "%s was declared dead and lives, but there is no room for one more node (--room %d): it ends",
                       name_of(j, r->was, name, sizeof name), room);
    send_away(j, r, "there is no room for one more node");
}

static void take_turns(struct job *j)
{
    const struct job_settings *s = &j->options->job;
    struct returner *r;
    while (j->phase == JOB_RUNNING && !under_way(j) && (r = next_one(j))) {
        if (next_number(j) == settings_ids(s)) {
            no_room(j, r);
            continue;
        }
        if (r->by >= 0)
            begin_new(j, r);
        else
            begin(j, r);
        return;
    }
}

/* ---- the others ---- */

static bool is_to_hear(const struct job *j, int node)
{
    return j->nodes[node].phase == NODE_READY && !j->nodes[node].unborn;
}

static int first_deaf(const struct job *j)
{
    for (int i = 0; i < j->total; i++)
        if (j->nodes[i].hears && is_to_hear(j, i))
            return i;
    return -1;
}

static void start(struct job *j, struct returner *r)
{
    json_t *blobs = json_array(), *peers = json_array();
    for (int i = 0; i < j->total; i++) {
        const json_t *ready = j->nodes[i].ready;
        json_array_append(blobs, json_object_get(ready, "blob"));
        json_array_append_new(peers, json_pack("{s:O, s:O}", "host", json_object_get(ready, "host"), "port",
                                               json_object_get(ready, "port")));
    }
    enter(j, r, STARTS);
    FAULT_POINT("run.return_starts");
    job_send_json(j, r->node, MSG_START, json_pack("{s:o, s:o}", "blobs", blobs, "peers", peers));
}

static void start_when_met(struct job *j)
{
    struct returner *r = under_way(j);
    if (r && r->step == MEETS && first_deaf(j) < 0)
        start(j, r);
}

void job_return_ready(struct job *j, int node, const json_t *m)
{
    struct returner *r = by_node(j, node);
    struct job_node *n = &j->nodes[node];
    if (!r || r->by >= 0 || r->step != BEGINS || !json_is_string(json_object_get(m, "blob")) ||
        !json_is_string(json_object_get(m, "host")) || !json_is_integer(json_object_get(m, "port")))
        return;
    n->phase = NODE_READY;
    n->ready = json_deep_copy(m);
    j->nodes[r->was].console = -1; /* it is taken */
    enter(j, r, MEETS);
    FAULT_POINT("run.return_meets");
    for (int i = 0; i < j->total; i++) {
        j->nodes[i].hears = is_to_hear(j, i);
        if (j->nodes[i].hears)
            job_send_json(j, i, MSG_MEET,
                          json_pack("{s:i, s:O, s:O, s:O}", "node", node, "blob", json_object_get(m, "blob"), "host",
                                    json_object_get(m, "host"), "port", json_object_get(m, "port")));
    }
    start_when_met(j);
}

void job_return_met(struct job *j, int node, const json_t *m)
{
    const struct returner *r = under_way(j);
    const char *why = json_string_value(json_object_get(m, "why"));
    long long about;
    if (!r || r->step != MEETS || !codec_int(m, "node", 0, j->total - 1, &about) || about != r->node)
        return;
    j->nodes[node].hears = false;
    if (why)
        job_return_failed(j, r->node, why);
    else
        start_when_met(j);
}

/* ---- how it ends ---- */

static void tell_return(struct job *j, const struct returner *r)
{
    uint64_t dead_ms = uv_now(&j->loop) - j->nodes[r->was].declared_ms;
    news_returned(&j->news, r->was, r->node, dead_ms);
    job_event(j, "returned",
              json_pack("{s:i, s:i, s:I}", "about", r->node, "was", r->was, "dead_ms", (json_int_t)dead_ms));
}

void job_take_birth(struct job *j, int node, uint64_t epoch)
{
    struct returner *r = by_node(j, node);
    struct job_node *n = &j->nodes[node];
    n->unborn = false;
    n->born_epoch = epoch;
    if (n->phase == NODE_JOINED)
        n->phase = NODE_READY; /* a view is here before what the agent says that has added it */
    if (!r)
        return;
    FAULT_POINT("run.returned");
    if (r->by >= 0)
        news_added(&j->news, node);
    else
        tell_return(j, r);
    if (!n->conn && !n->cut_ms)
        job_dialogue_cut(j, node, "it has not come here yet");
    forget(j, r);
    job_greet(j, node);
    take_turns(j);
}

void job_return_failed(struct job *j, int node, const char *why)
{
    struct returner *r = by_node(j, node);
    char name[128];
    if (!r || !j->nodes[node].unborn)
        return;
    FAULT_POINT("run.return_failed");
    if (r->by >= 0) {
        job_event(j, "not_added", json_pack("{s:i, s:o}", "about", node, "why", codec_text(why)));
    } else {
        job_tell_waits_for(j, "%s, which was to come back as node %d, does not: %s",
                           name_of(j, r->was, name, sizeof name), node, why);
        job_event(j, "not_returned", json_pack("{s:i, s:i, s:s}", "about", node, "was", r->was, "why", why));
    }
    job_send(j, node, MSG_BYE, NULL, 0);
    job_drop_connection(j, node);
    dialogue_free(&j->nodes[node].dialogue);
    j->nodes[node].phase = NODE_LOST;
    if (r->by < 0)
        j->nodes[r->was].agent_fd = j->nodes[node].agent_fd;
    j->nodes[node].agent_fd = -1;
    j->total--; /* it is the last one */
    forget(j, r);
    take_turns(j);
}

/* Whose agent is lost that was to add a node: nobody is added. */
static void forget_helpless(struct job *j)
{
    for (struct returner *r = j->returners.first, *next; r; r = next) {
        next = r->next;
        if (r->by < 0 || j->nodes[r->by].phase == NODE_READY)
            continue;
        if (r->step == WAITS)
            forget(j, r);
        else {
            job_return_failed(j, r->node, "the agent that was to start it is lost");
            return; /* which has looked at the others */
        }
    }
}

void job_return_look(struct job *j)
{
    forget_helpless(j);
    start_when_met(j);
    take_turns(j);
}

static void look(uv_timer_t *timer)
{
    struct job *j = timer->data;
    struct returner *r = under_way(j);
    uint64_t waited = r ? uv_now(&j->loop) - r->since_ms : 0;
    char name[128], other[128], why[128];
    int deaf = r && r->step == MEETS ? first_deaf(j) : -1;
    if (!j->returners.first || j->phase != JOB_RUNNING) {
        uv_timer_stop(timer);
        return;
    }
    if (deaf >= 0 && waited >= TOLD_AFTER_MS && !r->told) {
        r->told = true;
        job_tell_waits_for(j, "%s, which comes back as node %d, waits for %s to hear of it",
                           name_of(j, r->was, name, sizeof name), r->node, name_of(j, deaf, other, sizeof other));
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
            send_away(j, r, NULL);
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
    enter(j, r, WAITS);
    if (j->phase != JOB_RUNNING) {
        send_away(j, r, NULL);
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
    struct returner *r = under_way(j);
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
        enter(j, r, WAITS);
        take_turns(j);
    } else if (now && now->node == node && why) {
        job_return_failed(j, (int)node, why);
    } else if (now && now->node == node && now->step == BEGINS && host) {
        j->nodes[node].ready = json_deep_copy(m);
        j->nodes[node].phase = NODE_READY; /* it comes as one whose connection broke */
        enter(j, now, STARTS);
    } else if (node < j->total && host && !j->nodes[node].unborn && !j->nodes[node].ready) {
        j->nodes[node].ready = json_deep_copy(m); /* a view was here before */
    }
}

bool job_return_started(const struct job *j, int node)
{
    const struct returner *r = by_node(j, node);
    return r && r->step == STARTS;
}

bool job_return_lost(struct job *j, const struct pm_conn *c)
{
    for (struct returner *r = j->returners.first; r; r = r->next)
        if (r->step == WAITS && r->by < 0 && r->conn == c) {
            forget(j, r);
            return true;
        }
    return false;
}

void job_return_end(struct job *j)
{
    for (struct returner *r = j->returners.first, *next; r; r = next) {
        next = r->next;
        if (r->step == WAITS && r->by >= 0) {
            forget(j, r);
            continue;
        }
        if (r->step == WAITS) {
            send_away(j, r, NULL);
            continue;
        }
        job_send(j, r->node, MSG_BYE, NULL, 0);
        j->nodes[r->node].phase = NODE_LOST; /* nobody waits for it */
        forget(j, r);
    }
    uv_timer_stop(&j->returners.timer);
}
