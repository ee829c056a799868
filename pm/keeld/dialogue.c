/* The way to keelrun. Until the job starts it is one connection, whose end is ours. From then on it is made again for
 * ever, and nothing is concluded from its absence:
 *
 *   THERE --cut--> waiting: output uses up its window and waits, news are kept --connected--> THERE, everything follows
 *   waiting --console_s--> given up: output is not kept for it any more, and does not wait; still waiting
 *   waiting --its host says, again and again, that nobody listens--> gone: it has ended, nobody takes anything any more
 *
 * When the job is over we stay until keelrun has said that it has everything, or for a while if its kernel has, and
 * for console_s at most. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,  /* to reach keelrun and prove ourselves */
    CONNECT_TRIES = 40, /* a listener under attack drops connections, ours among them */
    CONNECT_AGAIN_MS = 50,
    RESUME_AGAIN_MS = 1000,
    REFUSED_AGAIN_MS = 300,
    BYE_MS = 5000, /* from MSG_OVER to MSG_BYE, if all is with keelrun's kernel */
    OVER_AGAIN_MS = 500,
    REFUSALS = 3, /* a firewall may say once what keelrun's kernel says for good */
    EVENTS_MAX =
        8
        << 20, /* bytes of news that are kept while it is out of reach; of more, lines of the event log are left out */
};

static const struct conn_events first_events, resume_events, return_events;

/* ---- what is said ---- */

static void send_now(void *user, uint8_t type, const void *body, size_t len)
{
    struct keeld *a = user;
    conn_send(a->dialogue.conn, type, body, len);
}

void keeld_dialogue_send(struct keeld *a, uint8_t type, const void *body, size_t len)
{
    if (a->dialogue.gone)
        return;
    if (type == MSG_EVENT && !a->dialogue.frames.up && a->dialogue.frames.held > EVENTS_MAX)
        a->dialogue.events_lost++;
    else
        dialogue_send(&a->dialogue.frames, type, body, len);
}

void keeld_dialogue_send_json(struct keeld *a, uint8_t type, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    if (text)
        keeld_dialogue_send(a, type, text, strlen(text));
    free(text);
    json_decref(body);
}

/* Not to the log, which goes to keelrun: to what has started us, if that is still there. */
static void say_outside(const struct keeld *a, const char *line)
{
    log_error("%s", line);
    if (a->dialogue.outside >= 0)
        (void)dprintf(a->dialogue.outside, "keeld node %d: %s\n", a->launch.node, line);
}

/* ---- patience ---- */

static void patience_passed(uv_timer_t *timer);
static void does_not_return(struct keeld *a, const char *why);

static void leave_unheard(struct keeld *a)
{
    char line[160];
    snprintf(line, sizeof line,
             "the job is over, and keelrun did not take the rest of its output within %d s: it is lost",
             a->job.console_s);
    say_outside(a, line);
    keeld_depart(a, 0);
}

/* A keelrun that is stopped will find everything in its socket. */
static void still_unheard(struct keeld *a)
{
    if (a->dialogue.conn && conn_delivered(a->dialogue.conn))
        keeld_depart(a, 0);
    else if (uv_now(&a->loop) - a->dialogue.over_ms >= (uint64_t)a->job.console_s * 1000)
        leave_unheard(a);
    else
        uv_timer_start(&a->dialogue.patience, patience_passed, OVER_AGAIN_MS, 0);
}

static void patience_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    if (a->state == KEELD_OVER) {
        still_unheard(a);
    } else if (a->launch.back && a->state == KEELD_JOINING) {
        does_not_return(a, "keelrun has not taken it in");
    } else if (!a->dialogue.conn) {
        log_info("keelrun is out of reach for %d s: output does not wait for it any more", a->job.console_s);
        a->dialogue.given_up = true;
        keeld_output_free(a);
    }
}

static void be_patient(struct keeld *a)
{
    uv_timer_start(&a->dialogue.patience, patience_passed, (uint64_t)a->job.console_s * 1000, 0);
}

/* It has ended. */
static void keelrun_gone(struct keeld *a)
{
    log_info("keelrun is gone; the job goes on without it");
    a->dialogue.gone = true;
    uv_timer_stop(&a->dialogue.patience);
    dialogue_free(&a->dialogue.frames);
    keeld_adding_keelrun_gone(a);
    keeld_output_free(a);
    keeld_ranks_stdin_cut(a);
    if (a->stopped) /* by Ctrl-Z: nobody else would continue them */
        keeld_ranks_forward(a, SIGCONT);
    if (a->state == KEELD_OVER)
        keeld_depart(a, 0);
}

void keeld_dialogue_over(struct keeld *a)
{
    FAULT_POINT("link.over");
    keeld_dialogue_send_json(a, MSG_OVER,
                             json_pack("{s:i, s:o, s:b}", "code", a->end.code, "why", codec_text(a->end.why), "own",
                                       a->end.own_why != NULL));
    FAULT_POINT("link.over_told");
    a->dialogue.over_ms = uv_now(&a->loop);
    uv_timer_start(&a->dialogue.patience, patience_passed,
                   a->job.console_s * 1000LL < BYE_MS ? (uint64_t)a->job.console_s * 1000 : BYE_MS, 0);
}

/* ---- the first connection ---- */

static void connect_first(struct keeld *a)
{
    const struct summons *s = a->launch.summons;
    const struct session_key ticket = {.id = s->ticket.id, .secret = s->ticket.key};
    a->dialogue.conn =
        conn_connect(&a->loop, s->from, s->host, s->port, s->job_id, &ticket, CONNECT_MS, &first_events, a);
}

static void first_open(struct pm_conn *c)
{
    struct keeld *a = c->user;
    char name[256] = "?";
    gethostname(name, sizeof name - 1);
    a->dialogue.joined = true;
    dialogue_up(&a->dialogue.frames, 0);
    conn_local_host(c, a->self_host, sizeof a->self_host);
    FAULT_POINT("start.connected");
    keeld_log_capture(a);
    conn_send_json(c, MSG_HELLO,
                   json_pack("{s:s, s:i, s:i, s:i, s:s}", "version", KEEL_VERSION, "node", a->launch.node, "pid",
                             (int)getpid(), "stub_pid", (int)a->stub_pid, "hostname", name));
    FAULT_POINT("start.greeted");
}

void keeld_dialogue_refused(struct keeld *a, const char *why)
{
    char line[256];
    snprintf(line, sizeof line, "not admitted: %s", why ? why : "keelrun does not say why");
    say_outside(a, line);
    keeld_depart(a, 1);
}

/* ---- further ones ---- */

static void resume(struct keeld *a)
{
    const struct summons *s = a->launch.summons;
    const struct session_key secret = {.id = SESSION_OF_JOB, .secret = a->job.secret};
    const struct conn_events *events = a->launch.back && a->state == KEELD_JOINING ? &return_events : &resume_events;
    a->dialogue.resuming =
        conn_connect(&a->loop, s->from, s->host, a->job.console_port, s->job_id, &secret, CONNECT_MS, events, a);
}

static void again_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    if (a->state == KEELD_JOINING && !a->launch.back)
        connect_first(a);
    else
        resume(a);
}

static void resume_open(struct pm_conn *c)
{
    struct keeld *a = c->user;
    json_t *m = json_pack("{s:i, s:I, s:I}", "node", a->launch.node, "console", (json_int_t)a->job.console, "received",
                          (json_int_t)a->dialogue.frames.received);
    const struct keeld_peer *here = a->job.added && a->peers ? &a->peers[a->launch.node] : NULL;
    if (here && here->blob) { /* who has added it may have died before it said so */
        json_object_set_new(m, "blob", codec_blob(here->blob, here->blob_len));
        json_object_set_new(m, "host", json_string(here->host));
        json_object_set_new(m, "port", json_integer(here->port));
    }
    conn_send_json(c, MSG_RESUME, m);
    FAULT_POINT("link.resuming");
}

static void tell_losses(struct keeld *a)
{
    if (a->dialogue.output_lost)
        keeld_dialogue_send_json(a, MSG_LOST, json_pack("{s:I}", "bytes", (json_int_t)a->dialogue.output_lost));
    if (a->dialogue.events_lost)
        keeld_event(a, "events_lost", json_pack("{s:I}", "count", (json_int_t)a->dialogue.events_lost));
    a->dialogue.output_lost = a->dialogue.events_lost = 0;
}

static void resumed(struct keeld *a, struct pm_conn *c, const json_t *m)
{
    long long received;
    a->dialogue.resuming = NULL;
    a->dialogue.conn = c;
    a->dialogue.refusals = 0;
    a->dialogue.ended = false;
    if (!codec_int(m, "received", 0, INT64_MAX, &received) || !dialogue_up(&a->dialogue.frames, (uint64_t)received)) {
        log_error("what keelrun says of this node's output cannot be");
        a->dialogue.conn = NULL;
        conn_close(c);
        keelrun_gone(a);
        return;
    }
    FAULT_POINT("link.resumed");
    a->dialogue.given_up = false;
    if (a->state != KEELD_OVER)
        uv_timer_stop(&a->dialogue.patience);
    keeld_output_free(a);
    tell_losses(a);
}

static void resume_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    struct keeld *a = c->user;
    if (c == a->dialogue.conn) {
        keeld_run_frame(a, type, body, len);
        return;
    }
    json_t *m = codec_object(body, len);
    if (type == MSG_RESUMED)
        resumed(a, c, m);
    else if (type == MSG_BYE)
        keeld_depart(a, 0);
    json_decref(m);
}

static bool is_refusal(const char *why)
{
    return strcmp(why, uv_strerror(UV_ECONNREFUSED)) == 0 || strcmp(why, "authentication failed") == 0 ||
           strcmp(why, "not Keel's protocol") == 0;
}

static void cut(struct keeld *a, const char *why)
{
    a->dialogue.conn = NULL;
    dialogue_down(&a->dialogue.frames);
    log_info("the connection to keelrun broke (%s); it is made again", why);
    a->dialogue.ended = strcmp(why, "closed by peer") == 0 || strcmp(why, uv_strerror(UV_ECONNRESET)) == 0;
    FAULT_POINT("link.broken");
    if (a->state != KEELD_OVER)
        be_patient(a);
    resume(a);
}

static void resume_lost(struct pm_conn *c, const char *why)
{
    struct keeld *a = c->user;
    if (c == a->dialogue.conn) {
        cut(a, why);
        return;
    }
    a->dialogue.resuming = NULL;
    a->dialogue.refusals = is_refusal(why) ? a->dialogue.refusals + 1 : 0;
    a->dialogue.ended = a->dialogue.ended || a->dialogue.refusals > 0;
    if (a->dialogue.refusals >= REFUSALS)
        keelrun_gone(a);
    else
        uv_timer_start(&a->dialogue.again, again_passed, a->dialogue.refusals ? REFUSED_AGAIN_MS : RESUME_AGAIN_MS, 0);
}

static void first_frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    keeld_run_frame(c->user, type, body, len);
}

static void first_lost(struct pm_conn *c, const char *why)
{
    struct keeld *a = c->user;
    if (a->state >= KEELD_RUNNING && a->ran) {
        cut(a, why);
        return;
    }
    a->dialogue.conn = NULL;
    dialogue_down(&a->dialogue.frames);
    if (a->state == KEELD_JOINING && !a->dialogue.joined && !is_refusal(why) && ++a->dialogue.tries < CONNECT_TRIES) {
        uv_timer_start(&a->dialogue.again, again_passed, CONNECT_AGAIN_MS, 0);
        return;
    }
    log_error("node %d: no launcher at %s: %s", a->launch.node, c->peer, why);
    keeld_kill_all(a);
    keeld_depart(a, 1);
}

static const struct conn_events first_events = {first_open, first_frame, first_lost};
static const struct conn_events resume_events = {resume_open, resume_frame, resume_lost};

/* ---- of one that comes back ---- */

static void return_open(struct pm_conn *c)
{
    struct keeld *a = c->user;
    a->dialogue.resuming = NULL;
    a->dialogue.conn = c;
    conn_local_host(c, a->self_host, sizeof a->self_host);
    if (!a->dialogue.joined)
        keeld_log_capture(a);
    a->dialogue.joined = true;
    keeld_return_ask(a, c);
}

static void does_not_return(struct keeld *a, const char *why)
{
    char line[200];
    snprintf(line, sizeof line, "node %d was put out of the job, and does not come back: %s", a->launch.node, why);
    say_outside(a, line);
    keeld_kill_all(a);
    keeld_depart(a, 1);
}

/* Nothing has been agreed on before MSG_CONFIG: it is asked again. */
static void return_lost(struct pm_conn *c, const char *why)
{
    struct keeld *a = c->user;
    bool was_open = c == a->dialogue.conn;
    if (was_open && a->state >= KEELD_RUNNING && a->ran) {
        cut(a, why);
        return;
    }
    a->dialogue.conn = a->dialogue.resuming = NULL;
    dialogue_down(&a->dialogue.frames);
    a->dialogue.refusals = !was_open && is_refusal(why) ? a->dialogue.refusals + 1 : 0;
    if (a->state != KEELD_JOINING)
        does_not_return(a, "keelrun was lost while it began");
    else if (a->dialogue.refusals >= REFUSALS)
        does_not_return(a, "keelrun has ended");
    else
        uv_timer_start(&a->dialogue.again, again_passed, a->dialogue.refusals ? REFUSED_AGAIN_MS : RESUME_AGAIN_MS, 0);
}

static const struct conn_events return_events = {return_open, first_frame, return_lost};

void keeld_dialogue_anew(struct keeld *a, const char *host)
{
    struct summons *s = a->launch.summons;
    a->dialogue.conn = NULL;
    dialogue_free(&a->dialogue.frames);
    dialogue_init(&a->dialogue.frames, send_now, a);
    if (!host) {
        keelrun_gone(a);
        return;
    }
    snprintf(s->host, sizeof s->host, "%s", host);
    be_patient(a);
    resume(a);
}

void keeld_dialogue_begin(struct keeld *a)
{
    dialogue_init(&a->dialogue.frames, send_now, a);
    uv_timer_init(&a->loop, &a->dialogue.again);
    uv_timer_init(&a->loop, &a->dialogue.patience);
    a->dialogue.again.data = a->dialogue.patience.data = a;
    a->dialogue.gone = a->launch.join;
    a->dialogue.outside = -1;
    if (a->dialogue.gone)
        return;
    a->dialogue.outside = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (!a->launch.back) {
        connect_first(a);
        return;
    }
    be_patient(a);
    resume(a);
}
