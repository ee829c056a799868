/* The agent of a node that was declared dead, or has lost the quorum, and lives: the others go on without it, for good.
 * What it had is worth nothing any more. It kills its ranks and begins anew as another program image, which has nothing
 * of it but where keelrun is:
 *
 *   RUNNING --put out--> OUT --its ranks have ended--> exec --> JOINING --RETURN, CONFIG--> CONFIGURED --START--> ...
 *                         `-- one does not end --> the end            `-- nobody answers, REFUSED --> the end
 *
 * CONFIG gives it a number that no node has had. Who has the number of its console, which keelrun has told it alone, is
 * that node; keelrun takes it once. Without keelrun, or before the job's start, being put out is the end. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "pm/wire/order.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    GONE_MS = 2000, /* from SIGKILL to the end of the ranks */
    SAID_MS = 500,  /* for what was said to reach keelrun's kernel */
    LOOK_MS = 10,
};

/* A keelrun that has probably ended, which a cut keeps us from hearing for certain, is not waited for. */
bool keeld_return_may(const struct keeld *a)
{
    bool there = !a->dialogue.gone && !a->dialogue.ended;
    return a->state == KEELD_RUNNING && !a->launch.join && there && a->job.settings.room > 0;
}

/* ---- the end of the first life ---- */

static void stays_behind(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    log_error("a rank does not end: node %d does not come back", a->launch.node);
    keeld_depart(a, 1);
}

void keeld_return_begin(struct keeld *a)
{
    FAULT_POINT("return.out");
    a->state = KEELD_OUT;
    uv_timer_start(&a->end.grace, stays_behind, GONE_MS, 0);
    if (keeld_ranks_gone(a))
        keeld_return_processes_gone(a);
}

static void leave_when_said(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    if (a->state != KEELD_OUT)
        return; /* the job ends */
    if (a->dialogue.conn && !conn_delivered(a->dialogue.conn) && uv_now(&a->loop) - a->dialogue.over_ms < SAID_MS) {
        uv_timer_start(timer, leave_when_said, LOOK_MS, 0);
        return;
    }
    FAULT_POINT("return.leaving");
    a->returns = true;
    keeld_depart(a, 1);
}

void keeld_return_processes_gone(struct keeld *a)
{
    keeld_ranks_orphans(a, true);
    keeld_event(a, "put_out", NULL);
    keeld_log_drain(a);
    a->dialogue.over_ms = uv_now(&a->loop);
    leave_when_said(&a->end.grace);
}

int keeld_return_leave(struct keeld *a)
{
    int fds[2];
    struct keeld_legacy *l = secret_alloc(sizeof *l);
    if (!l || pipe2(fds, O_CLOEXEC) < 0) {
        secret_free(l, sizeof *l);
        return -1;
    }
    *l = (struct keeld_legacy){.summons = *a->launch.summons,
                               .node = a->launch.node,
                               .console_port = a->job.console_port,
                               .console_s = a->job.console_s,
                               .console = a->job.console,
                               .stub_pid = a->stub_pid,
                               .descriptors = a->launch.descriptors};
    memcpy(l->secret, a->job.secret, SESSION_SECRET);
    sodium_memzero(&l->summons.ticket, sizeof l->summons.ticket);
    ssize_t written = write(fds[1], l, sizeof *l); /* a pipe holds more */
    secret_free(l, sizeof *l);
    close(fds[1]);
    if (a->dialogue.outside >= 0) { /* nobody reads our own pipe any more */
        dup2(a->dialogue.outside, STDOUT_FILENO);
        dup2(a->dialogue.outside, STDERR_FILENO);
    }
    if (written == (ssize_t)sizeof *l)
        return fds[0];
    close(fds[0]);
    return -1;
}

void keeld_return_exec(int legacy, uint64_t job_id)
{
    char self[4096], job[17];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    FAULT_POINT("return.exec");
    dup2(legacy, STDIN_FILENO);
    close(legacy);
    self[n > 0 ? n : 0] = '\0';
    snprintf(job, sizeof job, "%016llx", (unsigned long long)job_id);
    setenv(START_ENV, job, 1); /* the kernel shows it, and forget_launcher takes it away again */
    execl(self, "keeld", "--return", (char *)NULL);
    execl("/proc/self/exe", "keeld", "--return", (char *)NULL); /* its file may have another name by now */
    log_error("keeld cannot be run again: %s", strerror(errno));
}

/* ---- the second ---- */

struct keeld_legacy *keeld_return_read(void)
{
    struct stat st;
    size_t len = 0;
    ssize_t n = 1;
    struct keeld_legacy *l = secret_alloc(sizeof *l);
    bool is_pipe = l && fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode);
    while (is_pipe && len < sizeof *l && n > 0) {
        n = read(STDIN_FILENO, (uint8_t *)l + len, sizeof *l - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (is_pipe && len == sizeof *l)
        return l;
    if (l)
        secret_free(l, sizeof *l);
    return NULL;
}

void keeld_return_take(struct keeld *a)
{
    const struct keeld_legacy *l = a->launch.back;
    memcpy(a->job.secret, l->secret, SESSION_SECRET);
    a->job.console = l->console;
    a->job.console_port = l->console_port;
    a->job.console_s = l->console_s;
}

void keeld_return_ask(struct keeld *a, struct pm_conn *c)
{
    const struct keeld_legacy *l = a->launch.back;
    conn_send_json(c, MSG_RETURN,
                   json_pack("{s:s, s:i, s:I, s:i}", "version", KEEL_VERSION, "node", l->node, "console",
                             (json_int_t)l->console, "pid", (int)getpid()));
    FAULT_POINT("return.asked");
}

void keeld_return_started(struct keeld *a)
{
    FAULT_POINT("return.started");
    keeld_dialogue_send_json(a, MSG_MET, json_pack("{s:i}", "node", a->launch.node));
}
