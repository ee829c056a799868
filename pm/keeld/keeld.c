#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "pm/wire/quit.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    JOIN_LEASE_MS = 60000,   /* from our start to MSG_CONFIG */
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

void keeld_event(struct keeld *a, const char *event, json_t *members)
{
    json_t *line =
        json_pack("{s:I, s:i, s:s}", "t_ns", (json_int_t)clock_now_ns(), "node", a->launch.node, "event", event);
    if (members) {
        json_object_update_missing(line, members);
        json_decref(members);
    }
    keeld_dialogue_send_json(a, MSG_EVENT, line);
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
    if (!dialogue_receive(&a->dialogue.frames, type, body, len))
        return;
    if (type == MSG_STDIN) {
        keeld_ranks_stdin(a, body, len);
        return;
    }
    if (type == MSG_STDIN_CUT) {
        keeld_ranks_stdin_lacks(a, body, len);
        return;
    }
    if (type == MSG_INPUT) {
        a->fed = len == 1 && body[0] <= INPUT_SOME_ONCE ? body[0] : INPUT_SOME;
        keeld_ranks_fed(a);
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
        keeld_dialogue_send(a, MSG_PONG, NULL, 0);
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
        keeld_config_take(a, m);
    else if (type == MSG_START)
        keeld_start(a, json_object_get(m, "blobs"), json_object_get(m, "peers"));
    else if (type == MSG_MEET)
        keeld_config_meet(a, m);
    else if (type == MSG_STOP)
        keeld_stop(a, m);
    else if (type == MSG_NUMBER)
        keeld_adding_number(a, m);
    else if (type == MSG_LAUNCH)
        keeld_starts_begin(a, m);
    else if (type == MSG_FAULT)
        on_fault(a, m);
    else if (type == MSG_SIGNAL)
        on_signal(a, m);
    else if (type == MSG_REFUSED)
        keeld_dialogue_refused(a, json_string_value(json_object_get(m, "why")));
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
    dialogue_free(&a->dialogue.frames);
    bytes_free(&a->output.log_lines.held);
    for (int i = 0; a->peers && i < settings_ids(&a->job.settings); i++)
        keeld_config_forget(&a->peers[i]);
    free(a->peers);
    keeld_config_free(&a->job);
    keeld_view_free(&a->view);
    free(a->end.why);
    free(a->end.own_why);
    free(a->kind.held);
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
    uv_timer_init(&a.loop, &a.leaving);
    uv_timer_init(&a.loop, &a.partners.look);
    keeld_adding_init(&a);
    keeld_kind_init(&a);
    keeld_waits_init(&a);
    keeld_output_init(&a);
    uv_signal_init(&a.loop, &a.child_signal);
    a.lease.data = a.leaving.data = a.partners.look.data = a.end.grace.data = a.child_signal.data = &a;
    uv_signal_start(&a.child_signal, child_signalled, SIGCHLD);
    backlog_init(&a.output.backlog, BACKLOG_BYTES);
    if (launch->back)
        keeld_return_take(&a);
    keeld_dialogue_begin(&a);
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
