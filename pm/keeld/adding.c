/* A new node that keelctl asks for. The agent that is asked starts the node's agent, as it would for keelrun, and is to
 * it what keelrun is to the others until it is a member: so it works whether or not keelrun is still there.
 *
 *   ASKS      keelrun, if it is there, gives numbers to all that come later: one at a time. MSG_NUMBER
 *   LAUNCHES  its agent is started, by the job's launcher or here, with a ticket for our listener
 *   BEGINS    it has come: CONFIG --READY--> keelrun is told where it is, MSG_ADDS
 *   MEETS     MEET to all that a view has alive; each has said MET, or is dead
 *   JOINS     START; it asks a member to have it born, and says MET of itself when a view has it
 *
 * What ends before that was nothing: the agent ends when it loses us, and the number is the next one's. Without keelrun
 * two agents may give one number to two nodes. The log says which of them is born (join.c): the other one ends, and is
 * started again with the next number. */
#include "pm/keeld/adding_parts.h"

#include "pm/wire/codec.h"
#include "pm/wire/settings.h"
#include "pm/wire/start.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_MS = 30000, /* for keelrun's answer: others that come may be before it */
    JOIN_MS = 30000,   /* from START to a view that has it */
    TRIES = 3,         /* where others take its number */
};

static void take_turn(struct keeld *a);
static void start_over(struct keeld_adding *n);

/* ---- how it ends ---- */

/* Nothing is left of the attempt. */
static void forget_attempt(struct keeld_adding *n, bool joined)
{
    adding_forget_meetings(n);
    if (n->newcomer)
        keeld_console_drop(n->newcomer);
    n->newcomer = NULL;
    dialogue_free(&n->frames);
    json_decref(n->ready);
    n->ready = NULL;
    secret_free(n->ticket, sizeof *n->ticket);
    n->ticket = NULL;
    if (n->step >= LAUNCHES)
        keeld_starts_added(n->agent, n->node, joined);
}

static void forget(struct keeld_adding *n)
{
    struct keeld_adding **at = &n->agent->addings.first;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    free(n->host);
    free(n->position);
    free(n);
}

/* Not for the same event: what it stands on may go with the one that ends. */
static void next_turn(uv_timer_t *timer)
{
    take_turn(timer->data);
}

static void end(struct keeld_adding *n, int code, const char *why)
{
    struct keeld *a = n->agent;
    bool had_turn = n == a->addings.first;
    json_t *told = json_pack("{s:i}", "code", code);
    if (why)
        json_object_set_new(told, "why", codec_text(why));
    else
        json_object_set_new(told, "node", json_integer(n->node));
    if (!why && n->place)
        json_object_set_new(told, "place", json_integer(n->place - 1));
    if (why && n->step >= LAUNCHES && n->console >= 0)
        keeld_dialogue_send_json(a, MSG_ADDS, json_pack("{s:i, s:o}", "node", n->node, "why", codec_text(why)));
    if (n->asker)
        conn_send_json(n->asker->conn, MSG_ADDED, told);
    else
        json_decref(told);
    if (why)
        log_info("no node is added: %s", why);
    forget_attempt(n, !why);
    forget(n);
    if (had_turn)
        uv_timer_start(&a->addings.deadline, next_turn, 0, 0);
}

void adding_fail(struct keeld_adding *n, int code, const char *fmt, ...)
{
    char why[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    end(n, code, why);
}

static const char *name_of(const struct keeld_adding *n)
{
    return n->host ? n->host : "this host";
}

static void passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    struct keeld_adding *n = a->addings.first;
    if (!n)
        return;
    if (n->step == ASKS)
        adding_fail(n, 1, "keelrun, which gives the number, has not answered within %d s", NUMBER_MS / 1000);
    else if (n->step == LAUNCHES || n->step == BEGINS)
        adding_fail(n, 1, "the agent on %s has not %s within %d s", name_of(n),
                    n->step == BEGINS ? "become ready" : "come", a->job.start_s);
    else if (n->step == MEETS)
        adding_fail(n, 1, "node %d has not heard of it within %d s", adding_deaf(n), ADDING_MEET_MS / 1000);
    else
        adding_fail(n, 1, "it has not become a member within %d s", JOIN_MS / 1000);
}

static void enter(struct keeld_adding *n, enum adding_step step, uint64_t limit_ms)
{
    n->step = step;
    uv_timer_start(&n->agent->addings.deadline, passed, limit_ms, 0);
}

/* ---- its number, and its start ---- */

static void send_newcomer(void *user, uint8_t type, const void *body, size_t len)
{
    const struct keeld_adding *n = user;
    if (n->newcomer)
        conn_send(n->newcomer->conn, type, body, len);
}

static void launch(struct keeld_adding *n)
{
    struct keeld *a = n->agent;
    const struct start_way *way = &a->job.way;
    char *keel_launch = keeld_own_path("keel-launch");
    struct start_plan plan = {.launcher = way->launcher,
                              .program = way->program,
                              .way = n->host ? way->way : ORDER_HERE,
                              .host = n->host ? n->host : a->self_host,
                              .keel_launch = keel_launch};
    struct summons *to = &plan.summons;
    n->ticket = secret_alloc(sizeof *n->ticket);
    if (!n->ticket) {
        free(keel_launch);
        adding_fail(n, 1, "out of memory");
        return;
    }
    ticket_make(n->ticket);
    dialogue_init(&n->frames, send_newcomer, n);
    *to = (struct summons){.job_id = a->launch.job_id, .ticket = *n->ticket, .port = a->console.port, .node = n->node};
    snprintf(to->host, sizeof to->host, "%s", a->self_host);
    if (way->bed == START_LOOPBACK)
        summons_loopback(n->node, to->from, sizeof to->from);
    FAULT_POINT("add.launching");
    enter(n, LAUNCHES, (uint64_t)a->job.start_s * 1000);
    keeld_starts_add(a, &plan);
    sodium_memzero(&plan, sizeof plan);
    free(keel_launch);
}

/* There is no keelrun that would have a say. */
static bool is_alone(const struct keeld_adding *n)
{
    return n->console < 0 || n->agent->dialogue.gone;
}

static void begin(struct keeld_adding *n)
{
    struct keeld *a = n->agent;
    char why[300];
    int code = adding_may_be(n, why, sizeof why);
    if (code) {
        end(n, code, why);
        return;
    }
    n->console = -1;
    n->node = a->view.born;
    if (a->dialogue.gone) {
        launch(n);
        return;
    }
    enter(n, ASKS, NUMBER_MS);
    keeld_dialogue_send_json(a, MSG_ADDS, json_pack("{s:o}", "host", codec_text(n->host ? n->host : a->self_host)));
}

static void take_turn(struct keeld *a)
{
    struct keeld_adding *n = a->addings.first;
    if (n && n->step == WAITS)
        begin(n);
}

void keeld_adding_number(struct keeld *a, const json_t *m)
{
    struct keeld_adding *n = a->addings.first;
    long long node, console;
    const char *why = json_string_value(json_object_get(m, "why"));
    if (why && n && n->step == ASKS) {
        end(n, ADDING_USE, why);
        return;
    }
    if (why || !codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node) ||
        !codec_int(m, "console", 0, INT64_MAX, &console))
        return;
    if (!n || n->step != ASKS) { /* it was waited for no longer */
        keeld_dialogue_send_json(a, MSG_ADDS,
                                 json_pack("{s:i, s:s}", "node", (int)node, "why", "the answer came too late"));
        return;
    }
    n->node = (int)node;
    n->console = console;
    launch(n);
}

/* Another one was born under its number. */
static void start_over(struct keeld_adding *n)
{
    struct keeld *a = n->agent;
    if (!is_alone(n) || a->view.born <= n->node || ++n->tries == TRIES) {
        adding_fail(n, 1, "its number %d was given to another node", n->node);
        return;
    }
    forget_attempt(n, false);
    n->step = WAITS;
    uv_timer_start(&a->addings.deadline, next_turn, 0, 0);
}

void adding_taken(struct keeld_adding *n)
{
    if (!is_alone(n) || n->agent->view.born > n->node)
        start_over(n);
}

void keeld_adding_launcher_ended(struct keeld *a, int node, const char *why)
{
    struct keeld_adding *n = a->addings.first;
    if (n && n->step >= LAUNCHES && n->node == node && !n->newcomer)
        adding_fail(n, 1, "no agent comes from %s: %s", name_of(n), why);
}

/* ---- it has come ---- */

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
    enter(n, BEGINS, (uint64_t)a->job.start_s * 1000);
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
        adding_fail(n, 1, "%s has keeld %s, this is " KEEL_VERSION, name_of(n), version ? version : "of no version");
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
    enter(n, JOINS, JOIN_MS);
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
        start_over(n);
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
    enter(n, MEETS, ADDING_MEET_MS);
    adding_meet_all(n);
    adding_met(n);
}

/* ---- it is a member ---- */

static void is_member(struct keeld_adding *n, const json_t *m)
{
    struct keeld *a = n->agent;
    long long node;
    if (n->step != JOINS || !codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node) || node != n->node)
        return;
    if (is_alone(n) && a->kind.is_keels) /* keelrun would tell it */
        conn_send(n->newcomer->conn, MSG_STANDBY, NULL, 0);
    FAULT_POINT("add.added");
    keeld_event(a, "added", json_pack("{s:i, s:i, s:i}", "about", n->node, "was", n->was - 1, "place", n->place - 1));
    n->newcomer->added = false; /* it lives without us, and hangs up when it has heard that */
    conn_send(n->newcomer->conn, MSG_BYE, NULL, 0);
    n->newcomer = NULL;
    end(n, 0, NULL);
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

/* ---- what happens beside it ---- */

void keeld_adding_lost(struct keeld *a, const struct keeld_guest *g, const char *why)
{
    for (struct keeld_adding *n = a->addings.first; n; n = n->next)
        if (n->asker == g)
            n->asker = NULL;
    struct keeld_adding *n = a->addings.first;
    if (!n || n->newcomer != g)
        return;
    n->newcomer = NULL;
    if (n->step == JOINS && a->view.born > n->node && is_alone(n))
        start_over(n);
    else
        adding_fail(n, 1, "the agent on %s ended while it %s (%s)", name_of(n), n->step == JOINS ? "joined" : "began",
                    why);
}

void keeld_adding_view(struct keeld *a)
{
    struct keeld_adding *n = a->addings.first;
    if (!n || n->step != MEETS)
        return;
    if (a->view.born > n->node)
        start_over(n);
    else
        adding_met(n);
}

void keeld_adding_keelrun_gone(struct keeld *a)
{
    struct keeld_adding *n = a->addings.first;
    if (!n || n->step != ASKS)
        return;
    n->node = a->view.born;
    launch(n);
}

void keeld_adding_stop(struct keeld *a, const char *why)
{
    while (a->addings.first)
        end(a->addings.first, 1, why);
    uv_timer_stop(&a->addings.deadline);
}

void keeld_adding_ask(struct keeld *a, struct keeld_guest *g, const json_t *m)
{
    char why[300];
    const char *host = json_string_value(json_object_get(m, "host")),
               *position = json_string_value(json_object_get(m, "position"));
    struct keeld_adding *n = pm_alloc(sizeof *n), **at = &a->addings.first;
    *n = (struct keeld_adding){.agent = a,
                               .asker = g,
                               .host = host ? pm_strdup(host) : NULL,
                               .position = position ? pm_strdup(position) : NULL};
    while (*at)
        at = &(*at)->next;
    *at = n;
    int code = adding_may_be(n, why, sizeof why);
    if (code)
        end(n, code, why);
    else
        take_turn(a);
}

void keeld_adding_init(struct keeld *a)
{
    uv_timer_init(&a->loop, &a->addings.deadline);
    a->addings.deadline.data = a;
}
