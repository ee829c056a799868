/* All that live hear of a node that is added, each over a connection of ours to its listener, as often as it takes. */
#include "pm/keeld/adding_parts.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"

#include <stdlib.h>

enum { MEET_AGAIN_MS = 100 };

/* One that is to hear of it. */
struct meeting {
    struct keeld *agent;
    struct meeting *next;
    struct pm_conn *conn; /* NULL: there is none now */
    int node;
    bool met;
    uv_timer_t again;
};

static void close_meeting(uv_handle_t *handle)
{
    free(handle->data);
}

void adding_forget_meetings(struct keeld_adding *n)
{
    for (struct meeting *m = n->meetings, *next; m; m = next) {
        next = m->next;
        if (m->conn)
            conn_close(m->conn);
        uv_close((uv_handle_t *)&m->again, close_meeting);
    }
    n->meetings = NULL;
}

json_t *adding_where(const struct keeld_adding *n)
{
    json_t *m = json_pack("{s:i}", "node", n->node);
    static const char *const what[] = {"blob", "host", "port"};
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++)
        json_object_set(m, what[i], json_object_get(n->ready, what[i]));
    return m;
}

static void meeting_open(struct pm_conn *c)
{
    const struct meeting *m = c->user;
    conn_send_json(c, MSG_MEET, adding_where(m->agent->addings.first));
}

static void meeting_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct meeting *m = c->user;
    struct keeld_adding *n = m->agent->addings.first;
    json_t *said = type == MSG_MET ? codec_object(body, len) : NULL;
    const char *why = json_string_value(json_object_get(said, "why"));
    if (said && why) {
        adding_fail(n, 1, "node %d: %s", m->node, why);
    } else if (said && json_is_true(json_object_get(said, "taken"))) {
        adding_taken(n);
    } else if (said) {
        m->met = true;
        adding_met(n);
    }
    json_decref(said);
}

static void meet(struct meeting *m);

static void meet_again(uv_timer_t *timer)
{
    meet(timer->data);
}

static void meeting_lost(struct pm_conn *c, const char *why)
{
    struct meeting *m = c->user;
    (void)why;
    m->conn = NULL;
    if (!m->met)
        uv_timer_start(&m->again, meet_again, MEET_AGAIN_MS, 0);
}

static void meet(struct meeting *m)
{
    static const struct conn_events events = {meeting_open, meeting_frame, meeting_lost};
    struct keeld *a = m->agent;
    const struct session_key key = {.id = SESSION_OF_JOB, .secret = a->job.secret};
    if (a->view.alive[m->node])
        m->conn = conn_connect(&a->loop, a->self_host, a->peers[m->node].host, a->peers[m->node].port, a->launch.job_id,
                               &key, ADDING_MEET_MS, &events, m);
}

static void must_meet(struct keeld_adding *n, int node)
{
    struct meeting *m = pm_alloc(sizeof *m);
    *m = (struct meeting){.agent = n->agent, .next = n->meetings, .node = node};
    n->meetings = m;
    uv_timer_init(&n->agent->loop, &m->again);
    m->again.data = m;
    meet(m);
}

void adding_meet_all(struct keeld_adding *n)
{
    const struct keeld *a = n->agent;
    for (int i = 0; i < a->view.born; i++)
        if (a->view.alive[i] && i != a->launch.node)
            must_meet(n, i);
    FAULT_POINT("add.meeting");
}

int adding_deaf(const struct keeld_adding *n)
{
    for (const struct meeting *m = n->meetings; m; m = m->next)
        if (!m->met && n->agent->view.alive[m->node])
            return m->node;
    return -1;
}
