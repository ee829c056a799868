/* A new node that keelctl asks for. The agent that is asked starts the node's agent, as it would for keelrun, and is to
 * it what keelrun is to the others until it is a member: so it works whether or not keelrun is still there.
 *
 *   ASKS      keelrun, if it is there, gives numbers to all that come later: one at a time. MSG_NUMBER
 *   NUMBERED  our view comes to have all that have lower numbers, and it is decided which place of the grid it takes:
 *             nobody else can be born before it, so nobody takes that place meanwhile
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
    TRIES = 3,         /* where others take its number */
};

static void take_turn(struct keeld *a);

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

void adding_end(struct keeld_adding *n, int code, const char *why)
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
    if (why && n->step >= NUMBERED && n->console >= 0)
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
    adding_end(n, code, why);
}

const char *adding_name(const struct keeld_adding *n)
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
    else if (n->step == NUMBERED)
        adding_fail(n, 1, "no view has all nodes below %d within %d s", n->node, NUMBER_MS / 1000);
    else if (n->step == LAUNCHES || n->step == BEGINS)
        adding_fail(n, 1, "the agent on %s has not %s within %d s", adding_name(n),
                    n->step == BEGINS ? "become ready" : "come", a->job.start_s);
    else if (n->step == MEETS)
        adding_fail(n, 1, "node %d has not heard of it within %d s", adding_deaf(n), ADDING_MEET_MS / 1000);
    else
        adding_fail(n, 1, "it has not become a member within %d s", ADDING_JOIN_MS / 1000);
}

void adding_enter(struct keeld_adding *n, enum adding_step step, uint64_t limit_ms)
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
    adding_enter(n, LAUNCHES, (uint64_t)a->job.start_s * 1000);
    keeld_starts_add(a, &plan);
    sodium_memzero(&plan, sizeof plan);
    free(keel_launch);
}

/* Once our view has all that were born before: whatever else is born has its number, and not both come to be. */
static void launch_in_order(struct keeld_adding *n)
{
    char why[300];
    if (n->agent->view.born > n->node) {
        adding_start_over(n);
        return;
    }
    if (n->agent->view.born < n->node)
        return;
    int code = adding_may_be(n, why, sizeof why);
    if (code)
        adding_end(n, code, why);
    else
        launch(n);
}

static void take_number(struct keeld_adding *n, int node, long long console)
{
    n->node = node;
    n->console = console;
    FAULT_POINT("add.numbered");
    adding_enter(n, NUMBERED, NUMBER_MS);
    launch_in_order(n);
}

bool adding_is_alone(const struct keeld_adding *n)
{
    return n->console < 0 || n->agent->dialogue.gone;
}

static void begin(struct keeld_adding *n)
{
    struct keeld *a = n->agent;
    char why[300];
    int code = adding_may_be(n, why, sizeof why);
    if (code) {
        adding_end(n, code, why);
        return;
    }
    n->console = -1;
    n->node = a->view.born;
    if (a->dialogue.gone) {
        take_number(n, a->view.born, -1);
        return;
    }
    adding_enter(n, ASKS, NUMBER_MS);
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
        adding_end(n, ADDING_USE, why);
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
    take_number(n, (int)node, console);
}

void adding_start_over(struct keeld_adding *n)
{
    struct keeld *a = n->agent;
    if (!adding_is_alone(n) || a->view.born <= n->node || ++n->tries == TRIES) {
        adding_fail(n, 1, "its number %d was given to another node", n->node);
        return;
    }
    forget_attempt(n, false);
    n->step = WAITS;
    uv_timer_start(&a->addings.deadline, next_turn, 0, 0);
}

void adding_taken(struct keeld_adding *n)
{
    if (!adding_is_alone(n) || n->agent->view.born > n->node)
        adding_start_over(n);
}

void keeld_adding_launcher_ended(struct keeld *a, int node, const char *why)
{
    struct keeld_adding *n = a->addings.first;
    if (n && n->step >= LAUNCHES && n->node == node && !n->newcomer)
        adding_fail(n, 1, "no agent comes from %s: %s", adding_name(n), why);
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
    if (n->step == JOINS && a->view.born > n->node && adding_is_alone(n))
        adding_start_over(n);
    else
        adding_fail(n, 1, "the agent on %s ended while it %s (%s)", adding_name(n),
                    n->step == JOINS ? "joined" : "began", why);
}

void keeld_adding_view(struct keeld *a)
{
    struct keeld_adding *n = a->addings.first;
    if (n && n->step == NUMBERED)
        launch_in_order(n);
    else if (!n || n->step != MEETS)
        return;
    else if (a->view.born > n->node)
        adding_start_over(n);
    else
        adding_met(n);
}

void keeld_adding_keelrun_gone(struct keeld *a)
{
    struct keeld_adding *n = a->addings.first;
    if (!n || n->step != ASKS)
        return;
    take_number(n, a->view.born, -1);
}

void keeld_adding_stop(struct keeld *a, const char *why)
{
    while (a->addings.first)
        adding_end(a->addings.first, 1, why);
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
        adding_end(n, code, why);
    else
        take_turn(a);
}

void keeld_adding_init(struct keeld *a)
{
    uv_timer_init(&a->loop, &a->addings.deadline);
    a->addings.deadline.data = a;
}
