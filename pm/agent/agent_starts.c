/* Nodes that this one starts for keelrun: one mpiexec each. */
#include "pm/agent/agent.h"

#include "pm/wire/codec.h"
#include "pm/wire/hydra.h"
#include "pm/wire/layout.h"
#include "pm/wire/ticket.h"

#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct agent_start {
    struct daemon *agent;
    struct agent_start *next;
    struct hydra hydra;
};

static void tell_ended(struct daemon *a, int node, const char *why)
{
    if (a->run)
        conn_send_json(a->run, MSG_LAUNCHED, json_pack("{s:i, s:o}", "node", node, "why", codec_text(why)));
}

static void ended(struct hydra *h, int wait_status)
{
    struct agent_start *s = h->user, **at = &s->agent->starts;
    struct daemon *a = s->agent;
    (void)wait_status;
    tell_ended(a, h->node, h->last[0] ? h->last : "its mpiexec ended");
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
    agent_starts_ended(a);
}

static void idle(struct hydra *h)
{
    hydra_signal(h, SIGTERM);
}

static void run(struct daemon *a, int node, const char *const *argv, const char *from)
{
    static const struct hydra_events events = {ended, idle};
    struct agent_start *s = pm_alloc(sizeof *s);
    size_t count = 0;
    while (environ[count])
        count++;
    char **env = pm_alloc((count + 2) * sizeof *env);
    memcpy(env, environ, count * sizeof *env);
    char *variable = ticket_variable(a->launch.job_id, a->launch.ticket, a->launch.host, a->launch.port, node, from);
    env[count] = variable;
    s->agent = a;
    s->next = a->starts;
    a->starts = s;
    hydra_init(&s->hydra, &a->loop, node, &events, s);
    hydra_start(&s->hydra, &(struct hydra_command){.argv = argv, .env = env, .descriptors = &a->launch.descriptors});
    if (a->starts == s && a->run) /* else it has ended by now */
        conn_send_json(a->run, MSG_LAUNCHED, json_pack("{s:i, s:i}", "node", node, "pid", (int)s->hydra.pid));
    sodium_memzero(variable, strlen(variable));
    free(variable);
    free(env);
}

void agent_starts_begin(struct daemon *a, const json_t *m)
{
    long long node;
    const char *from = json_string_value(json_object_get(m, "from"));
    char **argv = codec_to_strings(json_object_get(m, "argv"));
    if (a->state < AGENT_RUNNING && argv && argv[0] && from && codec_int(m, "node", 0, LAYOUT_MAX_NODES * 2, &node))
        run(a, (int)node, (const char *const *)argv, from);
    free(argv);
}

void agent_starts_settled(struct daemon *a)
{
    for (struct agent_start *s = a->starts; s; s = s->next)
        hydra_settled(&s->hydra);
}

void agent_starts_signal(struct daemon *a, int signal)
{
    for (struct agent_start *s = a->starts; s; s = s->next)
        hydra_signal(&s->hydra, signal);
}

bool agent_starts_has(const struct daemon *a, pid_t pid)
{
    for (const struct agent_start *s = a->starts; s; s = s->next)
        if (s->hydra.pid == pid)
            return true;
    return false;
}
