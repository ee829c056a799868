/* In keeld's place: comes to keelrun with the ticket on standard input and names the process PID as itself (environment
 * VICTIM). It stays until keelrun does not want it any more. */
#include "pm/wire/conn.h"
#include "pm/wire/message.h"
#include "pm/wire/ticket.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

static const struct summons *to;

static void opened(struct pm_conn *c)
{
    const char *victim = getenv("VICTIM");
    conn_send_json(c, MSG_HELLO,
                   json_pack("{s:s, s:i, s:i, s:i, s:s}", "version", KEEL_VERSION, "node", to->node, "pid",
                             victim ? atoi(victim) : 1, "stub_pid", 1, "hostname", "thief"));
}

static void frame(struct pm_conn *c, uint8_t type, const uint8_t *body, size_t len)
{
    (void)c;
    (void)body;
    (void)len;
    fprintf(stderr, "told %d\n", type);
}

static void lost(struct pm_conn *c, const char *why)
{
    fprintf(stderr, "lost: %s\n", why);
    uv_stop(c->uv.handle.loop);
}

int main(void)
{
    static const struct conn_events events = {opened, frame, lost};
    static struct summons summons;
    char line[1000];
    if (sodium_init() < 0 || !fgets(line, sizeof line, stdin) || !summons_read(line, &summons))
        return 2;
    to = &summons;
    const struct session_key key = {.id = summons.ticket.id, .secret = summons.ticket.key};
    conn_connect(uv_default_loop(), summons.from, summons.host, summons.port, summons.job_id, &key, 60000, &events,
                 NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return 0;
}
