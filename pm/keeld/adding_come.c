/* A new node that keelctl asked for, from its agent's first word here until it is a member. */
#include "pm/keeld/adding_parts.h"

#include "pm/wire/codec.h"
#include "pm/wire/settings.h"
#include "pm/wire/start.h"
#include "runtime/base/fault.h"
#include "runtime/base/limits.h"
#include "runtime/base/log.h"

#include <string.h>

const uint8_t *keeld_adding_key(const struct keeld *a, uint64_t id)
{
    const struct keeld_adding *n = a->addings.first;
    return n && n->ticket && n->ticket->id == id ? n->ticket->key : NULL;
}

void keeld_adding_opened(struct keeld *a, struct keeld_guest *g)
{
    struct keeld_adding *n = a->addings.first;
    if (!n || n->step != LAUNCHES || n->newcomer) {
        log_error("a second agent, from %s, came with the ticket of node %d: somebody else has learned it",
                  g->conn->peer, n ? n->node : -1);
        if (n)
            adding_fail(n, 1, "a second agent came with its ticket");
        keeld_console_drop(g);
        return;
    }
    g->added = true;
    n->newcomer = g;
    dialogue_up(&n->frames, 0);
    FAULT_POINT("add.come");
    adding_enter(n, BEGINS, (uint64_t)a->job.start_s * 1000);
}

static void configure(struct keeld_adding *n)
{
    const struct keeld *a = n->agent;
    const struct keeld_job *job = &a->job;
    char *const cwd[] = {job->cwd, NULL};
    json_t *m =
        json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:b, s:i, "
                  "s:i, s:o}",
                  "settings", settings_encode(&job->settings), "standbys", job->standbys, "launcher_pid", 0, "secret",
                  codec_blob(job->secret, SESSION_SECRET), "argv", codec_strings(job->argv), "env",
                  codec_strings(job->env), "cwd", codec_strings(cwd), "starts", 0, "window", job->window, "node",
                  n->node, "round", 0, "console_port", job->console_port, "start_s", job->start_s, "console",
                  (json_int_t)(n->console >= 0 ? n->console : 0), "console_s", job->console_s, "sponsor",
                  a->launch.node, "added", 1, "was", n->was, "place", n->place, "way", start_way_encode(&job->way));
    if (n->console >= 0)
        json_object_set_new(m, "keelrun", json_string(a->launch.summons->host));
    conn_send_json(n->newcomer->conn, MSG_CONFIG, m);
    FAULT_POINT("add.configured");
}

static void greeted(struct keeld_adding *n, const json_t *m)
{
    const char *version = json_string_value(json_object_get(m, "version"));
    if (n->step != BEGINS)
        return;
    if (!version || strcmp(version, KEEL_VERSION) != 0)
        adding_fail(n, 1, "%s has keeld %s, this is " KEEL_VERSION, adding_name(n),
                    version ? version : "of no version");
    else
        configure(n);
}

/* ---- the others hear of it ---- */

void adding_met(struct keeld_adding *n)
{
    struct keeld *a = n->agent;
    if (adding_deaf(n) >= 0)
        return;
    json_t *blobs = json_array(), *peers = json_array();
    for (int i = 0; i < n->node; i++) {
        const struct keeld_peer *p = &a->peers[i];
        json_array_append_new(blobs, p->blob ? codec_blob(p->blob, p->blob_len) : json_null());
        json_array_append_new(peers, json_pack("{s:s, s:i}", "host", p->host, "port", p->port));
    }
    json_array_append(blobs, json_object_get(n->ready, "blob"));
    json_array_append_new(peers, adding_where(n));
    adding_forget_meetings(n);
    FAULT_POINT("add.starting");
    adding_enter(n, JOINS, ADDING_JOIN_MS);
    conn_send_json(n->newcomer->conn, MSG_START, json_pack("{s:o, s:o}", "blobs", blobs, "peers", peers));
    FAULT_POINT("add.started");
}

static void is_ready(struct keeld_adding *n, const json_t *m)
{
    struct keeld *a = n->agent;
    if (n->step != BEGINS || !json_is_string(json_object_get(m, "blob")) ||
        !json_is_string(json_object_get(m, "host")) || !json_is_integer(json_object_get(m, "port")))
        return;
    n->ready = json_deep_copy(m);
    json_t *where = adding_where(n);
    FAULT_POINT("add.ready");
    if (a->view.born > n->node) {
        json_decref(where);
        adding_start_over(n);
        return;
    }
    if (n->console >= 0)
        keeld_dialogue_send_json(a, MSG_ADDS, json_incref(where));
    bool good = keeld_config_learn(a, where);
    json_decref(where);
    if (!good) {
        adding_fail(n, 1, "what it says of itself cannot be used");
        return;
    }
    adding_enter(n, MEETS, ADDING_MEET_MS);
    adding_meet_all(n);
    adding_met(n);
}

/* ---- it is a member ---- */

static void is_member(struct keeld_adding *n, const json_t *m)
{
    struct keeld *a = n->agent;
    long long node, place;
    if (n->step != JOINS || !codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node) || node != n->node ||
        !codec_int(m, "place", 0, LIMIT_NODES, &place))
        return;
    n->place = (int)place;                      /* as the view has it */
    if (adding_is_alone(n) && a->kind.is_keels) /* keelrun would tell it */
        conn_send(n->newcomer->conn, MSG_STANDBY, NULL, 0);
    if (adding_is_alone(n))
        conn_send(n->newcomer->conn, MSG_INPUT, &(uint8_t){(uint8_t)a->fed}, 1);
    FAULT_POINT("add.added");
    keeld_event(a, "added", json_pack("{s:i, s:i, s:i}", "about", n->node, "was", n->was - 1, "place", n->place - 1));
    n->newcomer->added = false; /* it lives without us, and hangs up when it has heard that */
    conn_send(n->newcomer->conn, MSG_BYE, NULL, 0);
    n->newcomer = NULL;
    adding_end(n, 0, NULL);
}

static void take_output(const struct keeld_adding *n, const uint8_t *body, size_t len)
{
    uint8_t back[8];
    if (len < OUTPUT_HEADER)
        return;
    put_u32(back, get_u32(body + 8) == 2);
    put_u32(back + 4, (uint32_t)(len - OUTPUT_HEADER));
    conn_send(n->newcomer->conn, MSG_TAKEN, back, sizeof back);
}

void keeld_adding_frame(struct keeld *a, uint8_t type, const uint8_t *body, size_t len)
{
    struct keeld_adding *n = a->addings.first;
    if (!dialogue_receive(&n->frames, type, body, len))
        return;
    if (type == MSG_OUTPUT) {
        take_output(n, body, len);
        return;
    }
    json_t *m = codec_object(body, len);
    const char *why = json_string_value(json_object_get(m, "why"));
    if (m && type == MSG_HELLO)
        greeted(n, m);
    else if (m && type == MSG_READY)
        is_ready(n, m);
    else if (m && type == MSG_MET)
        is_member(n, m);
    else if (m && (type == MSG_FAILED || type == MSG_OVER))
        adding_fail(n, 1, "%s", why ? why : "its agent has ended");
    json_decref(m);
}
