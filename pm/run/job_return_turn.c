/* A node that has its turn to come back, or to be added: its number, that the others hear of it, its birth, or that it
 * is not born. */
#include "pm/run/job_return_parts.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"

#include <sodium.h>
#include <stdio.h>

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
    returner_enter(j, r, BEGINS);
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
    returner_enter(j, r, BEGINS);
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
        returner_forget(j, r);
        return;
    }
    job_tell_waits_for(j, "%s was declared dead and lives, but there is no room for one more node (--room %d): it ends",
                       returner_name(j, r->was, name, sizeof name), room);
    returner_send_away(j, r, "there is no room for one more node");
}

void returners_take_turns(struct job *j)
{
    const struct job_settings *s = &j->options->job;
    struct returner *r;
    while (j->phase == JOB_RUNNING && !returner_under_way(j) && (r = next_one(j))) {
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

int returner_first_deaf(const struct job *j)
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
        const json_t *ready = j->nodes[i].ready; /* NULL: it was gone before it was heard where it was */
        json_array_append_new(blobs, ready ? json_incref(json_object_get(ready, "blob")) : json_null());
        json_array_append_new(peers, ready ? json_pack("{s:O, s:O}", "host", json_object_get(ready, "host"), "port",
                                                       json_object_get(ready, "port"))
                                           : json_null());
    }
    returner_enter(j, r, STARTS);
    FAULT_POINT("run.return_starts");
    job_send_json(j, r->node, MSG_START, json_pack("{s:o, s:o}", "blobs", blobs, "peers", peers));
}

void returner_start_when_met(struct job *j)
{
    struct returner *r = returner_under_way(j);
    if (r && r->step == MEETS && returner_first_deaf(j) < 0)
        start(j, r);
}

void job_return_ready(struct job *j, int node, const json_t *m)
{
    struct returner *r = returner_by_node(j, node);
    struct job_node *n = &j->nodes[node];
    if (!r || r->by >= 0 || r->step != BEGINS || !json_is_string(json_object_get(m, "blob")) ||
        !json_is_string(json_object_get(m, "host")) || !json_is_integer(json_object_get(m, "port")))
        return;
    n->phase = NODE_READY;
    n->ready = json_deep_copy(m);
    j->nodes[r->was].console = -1; /* it is taken */
    returner_enter(j, r, MEETS);
    FAULT_POINT("run.return_meets");
    for (int i = 0; i < j->total; i++) {
        j->nodes[i].hears = is_to_hear(j, i);
        if (j->nodes[i].hears)
            job_send_json(j, i, MSG_MEET,
                          json_pack("{s:i, s:O, s:O, s:O}", "node", node, "blob", json_object_get(m, "blob"), "host",
                                    json_object_get(m, "host"), "port", json_object_get(m, "port")));
    }
    returner_start_when_met(j);
}

void job_return_met(struct job *j, int node, const json_t *m)
{
    const struct returner *r = returner_under_way(j);
    const char *why = json_string_value(json_object_get(m, "why"));
    long long about;
    if (!r || r->step != MEETS || !codec_int(m, "node", 0, j->total - 1, &about) || about != r->node)
        return;
    j->nodes[node].hears = false;
    if (why)
        job_return_failed(j, r->node, why);
    else
        returner_start_when_met(j);
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
    struct returner *r = returner_by_node(j, node);
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
    returner_forget(j, r);
    job_greet(j, node);
    returners_take_turns(j);
}

bool job_return_may_come(const struct job *j)
{
    return j->total < settings_ids(&j->options->job) && j->nodes[j->total].taken_back;
}

void job_take_late_births(struct job *j, uint64_t epoch)
{
    while (j->total < j->born && job_return_may_come(j)) {
        int node = j->total++;
        struct job_node *n = &j->nodes[node];
        *n = (struct job_node){
            .phase = NODE_READY, .console = n->console, .ready = n->ready, .agent_fd = -1, .born_epoch = epoch};
        job_dialogue_open(j, node, NULL);
        news_added(&j->news, node);
        job_dialogue_cut(j, node, "it has not come here yet");
        job_greet(j, node);
    }
}

void job_return_failed(struct job *j, int node, const char *why)
{
    struct returner *r = returner_by_node(j, node);
    char name[128];
    if (!r || !j->nodes[node].unborn)
        return;
    FAULT_POINT("run.return_failed");
    if (r->by >= 0) {
        job_event(j, "not_added", json_pack("{s:i, s:o}", "about", node, "why", codec_text(why)));
    } else {
        job_tell_waits_for(j, "%s, which was to come back as node %d, does not: %s",
                           returner_name(j, r->was, name, sizeof name), node, why);
        job_event(j, "not_returned", json_pack("{s:i, s:i, s:s}", "about", node, "was", r->was, "why", why));
    }
    job_send(j, node, MSG_BYE, NULL, 0);
    job_drop_connection(j, node);
    dialogue_free(&j->nodes[node].dialogue);
    j->nodes[node].phase = NODE_LOST;
    j->nodes[node].taken_back = r->by >= 0;
    if (r->by < 0)
        j->nodes[r->was].agent_fd = j->nodes[node].agent_fd;
    j->nodes[node].agent_fd = -1;
    j->total--; /* it is the last one */
    returner_forget(j, r);
    returners_take_turns(j);
}
