#include "pm/keeld/keeld.h"

#include "pm/wire/settings.h"
#include "pm/wire/codec.h"
#include "pm/wire/descriptors.h"
#include "pm/wire/layout.h"
#include "runtime/base/clock.h"
#include "pm/wire/quit.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/secret.h"

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    JOIN_LEASE_MS = 60000,   /* from our start to MSG_CONFIG */
    TERM_GRACE_MS = 1000,    /* from SIGTERM to SIGKILL */
    FORCE_MS = 2000,         /* from SIGKILL to going without those that are left */
    DEPART_MS = 2000,        /* for the nodes that we have started to end */
    BACKLOG_BYTES = 1 << 20, /* recent output kept for keelctl attach */
};

uv_poll_t *keeld_watch(struct keeld *a, int fd, uv_poll_cb ready)
{
    uv_poll_t *watch = pm_alloc(sizeof *watch);
    uv_poll_init(&a->loop, watch, fd);
    watch->data = a;
    uv_poll_start(watch, UV_READABLE, ready);
    return watch;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void keeld_unwatch(uv_poll_t *watch)
{
    if (watch)
        uv_close((uv_handle_t *)watch, free_handle);
}

/* ---- what others see ---- */

void keeld_event(struct keeld *a, const char *event, json_t *members)
{
    json_t *line =
        json_pack("{s:I, s:i, s:s}", "t_ns", (json_int_t)clock_now_ns(), "node", a->launch.node, "event", event);
    if (members) {
        json_object_update_missing(line, members);
        json_decref(members);
    }
    keeld_link_send_json(a, MSG_EVENT, line);
}

/* ---- the end ---- */

static void leave(struct keeld *a, int exit_code)
{
    a->end.exit_code = exit_code;
    uv_stop(&a->loop);
}

static void depart_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    keeld_starts_signal(a, a->end.departing_forced ? SIGKILL : SIGTERM);
    if (a->end.departing_forced)
        uv_stop(&a->loop);
    a->end.departing_forced = true;
    uv_timer_start(&a->lease, depart_passed, DEPART_MS / 2, 0);
}

/* As the mpiexec that we run do when the nodes that they have started have ended. */
void keeld_depart(struct keeld *a, int exit_code)
{
    if (a->end.departing)
        return;
    a->end.departing = true;
    a->end.exit_code = exit_code;
    if (!a->starts)
        uv_stop(&a->loop);
    else
        uv_timer_start(&a->lease, depart_passed, a->ran ? DEPART_MS : 0, 0);
}

void keeld_starts_ended(struct keeld *a)
{
    if (a->end.departing && !a->starts)
        uv_stop(&a->loop);
}

static void leave_late(uv_timer_t *timer)
{
    keeld_depart(timer->data, 0);
}

void keeld_kill_all(struct keeld *a)
{
    keeld_ranks_signal(a, SIGKILL, false);
    keeld_ranks_orphans(a, true);
}

/* A rank that does not end after SIGKILL: another user's, or stuck in the kernel. */
static void force_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    log_error("a rank does not end; node %d goes without it", a->launch.node);
    keeld_processes_gone(a);
}

static void kill_ranks(struct keeld *a, bool asked)
{
    keeld_event(a, "kill", json_pack("{s:b}", "asked", (int)asked));
    keeld_kill_all(a);
    uv_timer_start(&a->end.grace, force_passed, FORCE_MS, 0);
}

static void grace_passed(uv_timer_t *timer)
{
    kill_ranks(timer->data, false);
}

void keeld_processes_gone(struct keeld *a)
{
    if (a->state != KEELD_ENDING)
        return;
    uv_timer_stop(&a->end.grace);
    keeld_ranks_orphans(a, true);
    a->state = KEELD_OVER;
    keeld_event(a, "over", json_pack("{s:i}", "code", a->end.code));
    keeld_log_drain(a);
    keeld_console_over(a);
    if (a->launch.join)
        keeld_join_over(a);
    if (a->link.gone) {
        /* a watcher gets a moment to take the last output */
        uv_timer_start(&a->lease, leave_late, a->console.guests || !a->launch.join ? 200 : 0, 0);
        return;
    }
    keeld_link_over(a);
}

void keeld_own_why(struct keeld *a, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (a->end.own_why)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->end.own_why = pm_strdup(text);
}

/* A job that came to its end is no success if a rank crashed too often on the way. */
static int judge(struct keeld *a, int code)
{
    struct fault fault = keeld_ranks_fault(a);
    if (code != 0 || a->job.settings.degrade_asked || fault.signal == 0)
        return code;
    char did[SIGNAL_DID];
    keeld_own_why(a, "rank %d %s%s", fault.rank, signal_did(fault.signal, did, sizeof did),
                  fault.again ? " once more than it is started again" : "");
    return signal_code(fault.signal);
}

/* What keelrun's order says. The view that another agent made of its order may be here before ours is: its code says as much of SIGQUIT,
 * for which ranks leave core files. */
static int last_signal(const struct keeld *a, int code)
{
    return a->end.signal ? a->end.signal : code == 128 + SIGQUIT ? SIGQUIT : SIGTERM;
}

/* End the local processes: hard at once, else with a grace. */
static void keeld_end(struct keeld *a, int code, const char *why, bool hard)
{
    if (a->state < KEELD_ENDING) {
        a->end.code = keeld_kind_judge(a, judge(a, code));
        a->state = KEELD_ENDING;
        why = a->end.own_why ? a->end.own_why : why;
        a->end.why = why ? pm_strdup(why) : NULL;
        keeld_ranks_signal(a, SIGKILL, true);
        if (!hard && !keeld_ranks_gone(a)) {
            keeld_ranks_signal(a, last_signal(a, code), false);
            if (a->stopped)
                keeld_ranks_forward(a, SIGCONT); /* that they can */
            uv_timer_start(&a->end.grace, grace_passed, TERM_GRACE_MS, 0);
        }
    }
    if (hard && a->state == KEELD_ENDING)
        kill_ranks(a, true);
    if (keeld_ranks_gone(a))
        keeld_processes_gone(a);
}

void keeld_fail(struct keeld *a, int code, const char *why)
{
    log_info("%s", why);
    keeld_link_send_json(a, MSG_FAILED, json_pack("{s:i, s:o}", "code", code, "why", codec_text(why)));
    if (a->launch.join)
        keeld_join_failed(a, why);
    keeld_end(a, code, why, true);
}

/* ---- the view ---- */

/* Of a job that has not begun. */
static void view_init(struct keeld_view *v, const struct job_settings *s)
{
    int begun = s->nodes + s->spares, total = settings_ids(s);
    v->rank_node = pm_alloc((size_t)s->ranks * sizeof *v->rank_node);
    memcpy(v->rank_node, s->rank_node, (size_t)s->ranks * sizeof *v->rank_node);
    v->alive = pm_alloc((size_t)total * sizeof *v->alive);
    for (int i = 0; i < total; i++)
        v->alive[i] = i < begun;
    v->born = begun;
}

static void view_take(struct keeld_view *v, const struct job_settings *s, uint64_t epoch, const int *rank_node,
                      const bool *node_alive)
{
    int total = settings_ids(s);
    v->epoch = epoch;
    memcpy(v->rank_node, rank_node, (size_t)s->ranks * sizeof *rank_node);
    memcpy(v->alive, node_alive, (size_t)total * sizeof *node_alive);
    for (int i = v->born; i < total; i++)
        if (node_alive[i]) {
            v->born = i + 1;
            FAULT_POINT("view.born");
        }
}

static void view_free(struct keeld_view *v)
{
    free(v->rank_node);
    free(v->alive);
    v->rank_node = NULL;
    v->alive = NULL;
}

/* ---- the plane ---- */

static void plane_assigned(void *user, int seat, struct life life)
{
    keeld_ranks_assigned(user, seat, life);
}

static void plane_respawn(void *user, struct life life)
{
    struct keeld *a = user;
    if (a->state == KEELD_RUNNING && !keeld_kind_holds(a, life))
        keeld_ranks_respawn(a, life);
}

static void plane_here(void *user)
{
    struct keeld *a = user;
    if (a->here)
        return;
    a->here = true;
    keeld_kind_is_keels(a);
    keeld_link_send(a, MSG_HERE, NULL, 0);
}

static void plane_hidden_death(void *user, int seat, int pid, int signal)
{
    keeld_ranks_hidden_death(user, seat, pid, signal);
}

static void plane_plain_death(void *user, int seat)
{
    keeld_ranks_plain_death(user, seat);
}

static void plane_view(void *user, uint64_t epoch, const int *rank_node, const bool *node_alive, bool by_loss)
{
    struct keeld *a = user;
    int total = settings_ids(&a->job.settings);
    if (a->state != KEELD_RUNNING)
        return;
    keeld_kind_view(a, rank_node, node_alive);
    view_take(&a->view, &a->job.settings, epoch, rank_node, node_alive);
    keeld_pmi_view(a);
    if (by_loss) /* keelrun would say who goes on where; the end of the job says it all */
        return;
    json_t *alive = json_array();
    for (int i = 0; i < total; i++)
        json_array_append_new(alive, json_boolean(node_alive[i]));
    keeld_link_send_json(a, MSG_VIEW,
                         json_pack("{s:I, s:o, s:o}", "epoch", (json_int_t)epoch, "rank_node",
                                   codec_ints(rank_node, a->job.settings.ranks), "alive", alive));
}

static void plane_over(void *user, int code, const char *why)
{
    keeld_end(user, code, why, false);
}

static void plane_fatal(void *user, const char *why, bool out)
{
    struct keeld *a = user;
    bool returns = out && keeld_return_may(a);
    log_error("this node %s: %s", returns ? "gives up its ranks and its memory" : "ends", why);
    keeld_kill_all(a);
    if (returns)
        keeld_return_begin(a);
    else
        leave(a, 1);
}

static void plane_event(void *user, const char *json)
{
    struct keeld *a = user;
    /* once the job is over nodes go one by one, which is no failure */
    if (a->state == KEELD_RUNNING)
        keeld_link_send(a, MSG_EVENT, json, strlen(json));
}

static void plane_verified(void *user, uint64_t id, const char *json)
{
    keeld_console_verified(user, id, json);
}

static void plane_waits(void *user, const char *members)
{
    keeld_waits_changed(user, members);
}

static void plane_woken(uv_poll_t *handle, int status, int events)
{
    struct keeld *a = handle->data;
    (void)events;
    if (status == 0)
        plane_dispatch(a->plane);
}

/* What is missing here becomes the one line that keelrun says of the job; all other nodes may miss the same. */
static void plane_not_opened(struct keeld *a, keel_status status, const char *error)
{
    char why[600], text[REFUSAL_MAX];
    if (error[0])
        snprintf(why, sizeof why, "node %d: %s", a->launch.node, error);
    else
        snprintf(why, sizeof why, "node %d: its memory and transport could not be set up: %s", a->launch.node,
                 refusal_text(status, text));
    keeld_fail(a, 1, why);
}

static bool plane_open(struct keeld *a, struct plane_blob *blob)
{
    char error[300];
    struct plane_config config = {.job_id = a->launch.job_id,
                                  .node = a->launch.node,
                                  .host = a->self_host,
                                  .settings = &a->job.settings,
                                  .secret = a->job.secret,
                                  .was = a->launch.back ? a->launch.back->node + 1 : 0,
                                  .sponsor = a->job.sponsor};
    struct plane_callbacks callbacks = {.user = a,
                                        .assigned = plane_assigned,
                                        .respawn = plane_respawn,
                                        .here = plane_here,
                                        .hidden_death = plane_hidden_death,
                                        .plain_death = plane_plain_death,
                                        .view = plane_view,
                                        .job_over = plane_over,
                                        .fatal = plane_fatal,
                                        .event = plane_event,
                                        .verified = plane_verified,
                                        .waits = plane_waits};
    log_keep_errors(error, sizeof error);
    keel_status status = plane_create(&config, &callbacks, &a->plane, blob);
    log_keep_errors(NULL, 0);
    if (status != KEEL_OK) {
        plane_not_opened(a, status, error);
        return false;
    }
    a->plane_wake = keeld_watch(a, plane_wake_fd(a->plane), plane_woken);
    return true;
}

/* ---- messages from keelrun ---- */

/* It was started as another one, in whose place nobody else has come, or with more between. */
static void become_node(struct keeld *a, int node)
{
    char who[32];
    if (node == a->launch.node)
        return;
    a->launch.node = node;
    snprintf(who, sizeof who, "keeld node %d", node);
    log_init(who);
    keeld_console_close(a);
    keeld_console_open(a);
}

static bool job_from_json(struct keeld *a, const json_t *m)
{
    struct keeld_job *job = &a->job;
    long long standbys, launcher, starts, window, port, console_s, node, round, sponsor = 0;
    size_t secret_len = 0;
    *job = (struct keeld_job){.secret = job->secret};
    if (!settings_decode(&job->settings, json_object_get(m, "settings")) ||
        !codec_int(m, "node", 0, settings_ids(&job->settings) - 1, &node) ||
        !codec_int(m, "round", 0, INT32_MAX, &round) || !codec_int(m, "standbys", 0, LAYOUT_MAX_RANKS, &standbys) ||
        !codec_int(m, "launcher_pid", 0, INT32_MAX, &launcher) ||
        !codec_int(m, "starts", 0, LAYOUT_MAX_NODES, &starts) ||
        !codec_int(m, "window", OUTPUT_WINDOW, OUTPUT_WINDOW_MAX, &window) ||
        !codec_int(m, "console_port", 1, 65535, &port) || !codec_int(m, "console", 0, INT64_MAX, &job->console) ||
        !codec_int(m, "console_s", 1, INT32_MAX, &console_s) ||
        !codec_to_blob(json_object_get(m, "secret"), job->secret, SESSION_SECRET, &secret_len) ||
        secret_len != SESSION_SECRET)
        return false;
    job->standbys = (int)standbys;
    job->launcher_pid = (int)launcher;
    job->starts = (int)starts;
    job->window = (int)window;
    job->console_port = (int)port;
    job->console_s = (int)console_s;
    job->round = (int)round;
    codec_int(m, "sponsor", 0, settings_ids(&job->settings) - 1, &sponsor);
    job->sponsor = (int)sponsor;
    become_node(a, (int)node);
    job->argv = codec_to_strings(json_object_get(m, "argv"));
    job->env = codec_to_strings(json_object_get(m, "env"));
    char **cwd = codec_to_strings(json_object_get(m, "cwd"));
    job->cwd = cwd && cwd[0] ? pm_strdup(cwd[0]) : NULL;
    free(cwd);
    return job->argv && job->argv[0] && job->env && job->cwd;
}

static bool enough_descriptors(struct keeld *a)
{
    int here = a->job.standbys;
    long needed = descriptors_of_agent(here, a->job.settings.ranks - here,
                                       a->job.settings.nodes + a->job.settings.spares, a->job.starts);
    long missing = descriptors_missing(needed);
    char why[256];
    if (!missing)
        return true;
    snprintf(why, sizeof why,
             "node %d: its agent needs %ld descriptors (7 for each of %d ranks, 1 for each other rank, 4 for "
             "each node, 2 for each that it starts), the hard limit is %ld: see ulimit -Hn",
             a->launch.node, needed, here, needed - missing);
    keeld_fail(a, 1, why);
    return false;
}

static bool allows_silence(struct keeld *a)
{
    char why[PLANE_WHY_MAX], text[PLANE_WHY_MAX + 32];
    if (plane_allows_silence(&a->job.settings, why))
        return true;
    snprintf(text, sizeof text, "node %d: %s", a->launch.node, why);
    keeld_fail(a, 2, text);
    return false;
}

void keeld_configure(struct keeld *a)
{
    if (!enough_descriptors(a) || !allows_silence(a))
        return;
    view_init(&a->view, &a->job.settings);
    a->state = KEELD_CONFIGURED;
    struct plane_blob blob = {0};
    if (!plane_open(a, &blob))
        return;
    if (!a->console.port && !keeld_console_listen(a)) {
        keeld_fail(a, 1, "no listener for the other nodes");
        return;
    }
    json_t *ready = json_pack("{s:i, s:o, s:s, s:i}", "round", a->job.round, "blob", codec_blob(blob.bytes, blob.len),
                              "host", a->self_host, "port", a->console.port);
    if (a->launch.join)
        keeld_join_ready(a, ready);
    else
        keeld_link_send_json(a, MSG_READY, ready);
    FAULT_POINT("start.ready");
}

static void job_free(struct keeld_job *job)
{
    settings_free(&job->settings);
    free(job->argv);
    free(job->env);
    free(job->cwd);
}

/* The job is another one than was said, for somebody did not come. */
static void start_over(struct keeld *a)
{
    keeld_unwatch(a->plane_wake);
    a->plane_wake = NULL;
    plane_destroy(a->plane);
    a->plane = NULL;
    view_free(&a->view);
    job_free(&a->job);
    a->state = KEELD_JOINING;
}

static void on_config(struct keeld *a, const json_t *m)
{
    bool first = a->state == KEELD_JOINING;
    if (a->state >= KEELD_RUNNING)
        return; /* it cannot take part, and has said so */
    if (!first)
        start_over(a);
    uv_timer_stop(&a->lease); /* from here on it is keelrun who waits */
    uv_timer_stop(&a->link.patience);
    if (!job_from_json(a, m)) {
        log_error("keelrun sent a job description that does not make sense");
        leave(a, 1);
        return;
    }
    if (a->launch.back && first)
        link_up(&a->link.frames, 0); /* as the node that it is from now on */
    FAULT_POINT("start.configured");
    if (first)
        keeld_output_widen(a, a->job.window);
    keeld_configure(a);
}

/* Where a node is; null: nobody has come by that number yet. */
static bool take_peer(struct keeld *a, int node, const json_t *peer, const json_t *blob, struct plane_blob *out)
{
    long long port = 0;
    size_t len = 0;
    const char *host = json_string_value(json_object_get(peer, "host"));
    *out = (struct plane_blob){0};
    if (json_is_null(blob))
        return true;
    if (!codec_to_blob(blob, out->bytes, sizeof out->bytes, &len))
        return false;
    out->len = (uint32_t)len;
    codec_int(peer, "port", 1, 65535, &port);
    snprintf(a->peers[node].host, sizeof a->peers[node].host, "%s", host ? host : "?");
    a->peers[node].port = (int)port;
    return true;
}

void keeld_start(struct keeld *a, const json_t *list, const json_t *peers)
{
    size_t total = (size_t)settings_ids(&a->job.settings), said = json_array_size(list);
    if (a->state != KEELD_CONFIGURED || said > total || json_array_size(peers) != said)
        return;
    FAULT_POINT("start.told");
    a->peers = pm_alloc(total * sizeof *a->peers);
    struct plane_blob *blobs = pm_alloc(total * sizeof *blobs);
    bool good = true;
    for (size_t i = 0; i < said; i++)
        good &= take_peer(a, (int)i, json_array_get(peers, i), json_array_get(list, i), &blobs[i]);
    char what[PLANE_WHY_MAX] = "keelrun's list of the nodes cannot be read", why[PLANE_WHY_MAX + 32];
    keel_status status = good ? plane_start(a->plane, blobs, what) : KEEL_ERR_ARG;
    free(blobs);
    if (status != KEEL_OK) {
        snprintf(why, sizeof why, "node %d: %s", a->launch.node, what);
        keeld_fail(a, 1, why);
        return;
    }
    FAULT_POINT("start.plane_begun");
    uv_timer_stop(&a->lease);
    keeld_starts_settled(a);
    a->state = KEELD_RUNNING;
    a->ran = true;
    atomic_store(a->launch.runs, true);
    if (a->launch.join)
        keeld_join_run(a);
    else
        keeld_ranks_start(a);
    if (a->launch.back)
        keeld_return_started(a);
    FAULT_POINT("start.ranks_begun");
}

/* A node that comes later is there; it is no member yet, and becomes one only when all that live have said that they
 * know where it is. */
static void on_meet(struct keeld *a, const json_t *m)
{
    long long node;
    struct plane_blob blob;
    FAULT_POINT("meet.told");
    if (a->state != KEELD_RUNNING || !codec_int(m, "node", 0, settings_ids(&a->job.settings) - 1, &node) ||
        node == a->launch.node)
        return;
    bool good = take_peer(a, (int)node, m, json_object_get(m, "blob"), &blob) && blob.len > 0 &&
                plane_meet(a->plane, (int)node, &blob) == KEEL_OK;
    json_t *met = json_pack("{s:I}", "node", (json_int_t)node);
    if (!good)
        json_object_set_new(met, "why", json_string("the others cannot use what it says of itself"));
    keeld_link_send_json(a, MSG_MET, met);
    FAULT_POINT("meet.answered");
}

void keeld_stop(struct keeld *a, const json_t *m)
{
    long long code = 1, signal_number;
    bool hard = json_is_true(json_object_get(m, "hard"));
    const char *why = json_string_value(json_object_get(m, "why"));
    codec_int(m, "code", 0, 255, &code);
    if (codec_int(m, "signal", 1, 31, &signal_number))
        a->end.signal = (int)signal_number;
    if (hard || !a->ran)
        keeld_starts_signal(a, SIGTERM);
    if (a->state == KEELD_RUNNING && !hard)
        plane_stop_job(a->plane, (int)code, why && *why ? why : NULL);
    else
        keeld_end(a, (int)code, why, hard);
}

static void on_fault(struct keeld *a, const json_t *m)
{
    long long rank, signal_number;
    if (codec_int(m, "rank", 0, a->job.settings.ranks - 1, &rank) &&
        codec_int(m, "signal", SIGNAL_HIDDEN, 31, &signal_number) && fault_is_own((int)signal_number))
        a->end.fault = (struct fault){(int)rank, (int)signal_number, json_is_true(json_object_get(m, "again"))};
}

static void on_signal(struct keeld *a, const json_t *m)
{
    long long number;
    if (a->state == KEELD_RUNNING && codec_int(m, "signal", 1, 64, &number))
        keeld_ranks_forward(a, (int)number);
}

void keeld_run_frame(struct keeld *a, uint8_t type, const uint8_t *body, size_t len)
{
    if (!link_receive(&a->link.frames, type, body, len))
        return;
    if (type == MSG_STDIN) {
        keeld_ranks_stdin(a, body, len);
        return;
    }
    if (type == MSG_TAKEN) {
        keeld_output_taken(a, body, len);
        return;
    }
    if (type == MSG_BYE) {
        FAULT_POINT("link.bye");
        keeld_depart(a, 0);
        return;
    }
    if (type == MSG_PING) {
        keeld_link_send(a, MSG_PONG, NULL, 0);
        return;
    }
    if (type == MSG_STANDBY) {
        keeld_kind_is_keels(a);
        keeld_ranks_standby(a);
        return;
    }
    json_t *m = codec_object(body, len);
    if (!m) {
        log_warn("message %d from keelrun is not JSON", type);
        return;
    }
    if (type == MSG_CONFIG)
        on_config(a, m);
    else if (type == MSG_START)
        keeld_start(a, json_object_get(m, "blobs"), json_object_get(m, "peers"));
    else if (type == MSG_MEET)
        on_meet(a, m);
    else if (type == MSG_STOP)
        keeld_stop(a, m);
    else if (type == MSG_LAUNCH)
        keeld_starts_begin(a, m);
    else if (type == MSG_FAULT)
        on_fault(a, m);
    else if (type == MSG_SIGNAL)
        on_signal(a, m);
    else if (type == MSG_REFUSED)
        keeld_link_refused(a, json_string_value(json_object_get(m, "why")));
    json_decref(m);
}

static void join_lease_passed(uv_timer_t *timer)
{
    log_error("keelrun did not answer in time");
    keeld_depart(timer->data, 1);
}

static void child_signalled(uv_signal_t *handle, int signal_number)
{
    (void)signal_number;
    keeld_ranks_orphans(handle->data, false);
}

static void keeld_free(struct keeld *a)
{
    plane_destroy(a->plane);
    keeld_ranks_free(a);
    keeld_waits_free(a);
    backlog_free(&a->output.backlog);
    link_free(&a->link.frames);
    bytes_free(&a->output.log_lines.held);
    job_free(&a->job);
    view_free(&a->view);
    free(a->end.why);
    free(a->end.own_why);
    free(a->held);
    free(a->peers);
    pmi_root_destroy(a->pmi.root);
    secret_free(a->launch.summons, sizeof *a->launch.summons);
    secret_free(a->job.secret, SESSION_SECRET);
    /* the loop's handles go with the process */
}

int keeld_run(const struct keeld_launch *launch, pid_t stub_pid)
{
    static struct keeld a;
    codec_init();
    a.launch = *launch;
    a.job.secret = secret_alloc(SESSION_SECRET);
    if (!a.job.secret)
        pm_quit(1, "out of memory");
    a.stub_pid = stub_pid;
    a.console.fd = -1;
    uv_loop_init(&a.loop);
    uv_timer_init(&a.loop, &a.lease);
    uv_timer_init(&a.loop, &a.end.grace);
    keeld_kind_init(&a);
    keeld_waits_init(&a);
    keeld_output_init(&a);
    uv_signal_init(&a.loop, &a.child_signal);
    a.lease.data = a.end.grace.data = a.child_signal.data = &a;
    uv_signal_start(&a.child_signal, child_signalled, SIGCHLD);
    backlog_init(&a.output.backlog, BACKLOG_BYTES);
    if (launch->back)
        keeld_return_take(&a);
    keeld_link_begin(&a);
    if (launch->join) {
        keeld_join_begin(&a);
    } else {
        if (!launch->back)
            uv_timer_start(&a.lease, join_lease_passed, JOIN_LEASE_MS, 0);
        keeld_console_open(&a);
    }
    uv_run(&a.loop, UV_RUN_DEFAULT);
    keeld_console_close(&a);
    keeld_kill_all(&a);
    int legacy = a.returns ? keeld_return_leave(&a) : -1;
    keeld_free(&a);
    if (legacy >= 0)
        keeld_return_exec(legacy, launch->job_id);
    return a.end.exit_code;
}
