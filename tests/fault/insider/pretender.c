/* For returns.py: rank 0 knows the job's secret, as each rank does, and pretends to be the agent of a node that comes
 * back. Of each line "HOST PORT NODE CONSOLE" on its standard input it says what keelrun answered: "told TYPE",
 * "lost WHY". */
#include <keel/keel.h>

#include "pm/wire/conn.h"
#include "pm/wire/message.h"
#include "runtime/client/client.h"
#include "runtime/client/job/process.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROVE_MS = 60000 };

static int node;
static long long console;

static void opened(struct pm_conn *c)
{
    conn_send_json(c, MSG_RETURN,
                   json_pack("{s:s, s:i, s:I, s:i}", "version", KEEL_VERSION, "node", node, "console",
                             (json_int_t)console, "pid", 1));
}

static void frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    (void)c;
    (void)body;
    (void)len;
    printf("told %d\n", type);
    fflush(stdout);
}

static void lost(struct pm_conn *c, const char *why)
{
    printf("lost %s\n", why);
    fflush(stdout);
    uv_stop(c->uv.handle.loop);
}

static void check(keel_status status, const char *what)
{
    if (status == KEEL_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, keel_status_text(status));
    exit(1);
}

int main(void)
{
    static const struct conn_events events = {opened, frame, lost};
    char host[64];
    int port;
    uint64_t done;
    check(keel_init(), "init");
    if (keel_restarted())
        check(keel_resume(&done), "resume");
    const struct session_key of_job = {.id = SESSION_OF_JOB, .secret = process_client.secret};
    while (keel_rank() == 0 && scanf("%63s %d %d %lld", host, &port, &node, &console) == 4) {
        conn_connect(uv_default_loop(), NULL, host, port, process_client.job, &of_job, PROVE_MS, &events, NULL);
        uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    }
    check(keel_barrier(), "barrier");
    check(keel_finalize(), "finalize");
    return 0;
}
