/* Nodes that this one starts for keelrun. */
#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "pm/wire/layout.h"
#include "pm/wire/start.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct keeld_start {
    struct keeld *agent;
    struct keeld_start *next;
    struct hydra hydra;
    bool adds; /* a new node, see adding.c */
};

static void tell_ended(struct keeld *a, int node, const char *why)
{
    keeld_dialogue_send_json(a, MSG_LAUNCHED, json_pack("{s:i, s:o}", "node", node, "why", codec_text(why)));
}

static void launched(struct hydra *h)
{
    const struct keeld_start *s = h->user;
    if (s->adds)
        return;
    keeld_dialogue_send_json(s->agent, MSG_LAUNCHED, json_pack("{s:i, s:i}", "node", h->node, "pid", (int)h->launcher));
}

static void ended(struct hydra *h, int wait_status)
{
    struct keeld_start *s = h->user, **at = &s->agent->starts;
    struct keeld *a = s->agent;
    (void)wait_status;
    const char *why = h->last[0] ? h->last : "its launcher ended";
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->adds)
        keeld_adding_launcher_ended(a, h->node, why);
    else
        tell_ended(a, h->node, why);
    free(s);
    keeld_starts_ended(a);
}

static void run(struct keeld *a, int node, const struct start_plan *plan, bool adds)
{
    static const struct hydra_events events = {launched, ended};
    struct keeld_start *s = pm_alloc(sizeof *s);
    size_t count = 0;
    while (environ[count])
        count++;
    char **env = pm_alloc((count + 2) * sizeof *env);
    memcpy(env, environ, count * sizeof *env);
    env[count] = pm_printf(START_ENV "=%016llx", (unsigned long long)a->launch.job_id);
    s->agent = a;
    s->adds = adds;
    s->next = a->starts;
    a->starts = s;
    hydra_init(&s->hydra, &a->loop, node, &events, s);
    start_run(&s->hydra, plan, env, &a->launch.descriptors);
    free(env[count]);
    free(env);
}

/* Programs of ours lie under one path on all hosts. */
char *keeld_own_path(const char *name)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    return slash ? pm_printf("%.*s/%s", (int)(slash - self), self, name) : pm_strdup(name);
}

static bool plan_from_json(const struct keeld *a, const json_t *m, struct start_plan *p)
{
    long long way, node;
    size_t id_len = 0, key_len = 0;
    const char *from = json_string_value(json_object_get(m, "from"));
    struct summons *to = &p->summons;
    p->launcher = json_string_value(json_object_get(m, "launcher"));
    p->program = json_string_value(json_object_get(m, "program"));
    p->host = json_string_value(json_object_get(m, "host"));
    if (!p->launcher || !p->program || !p->host || !from || !codec_int(m, "way", 0, ORDER_HERE, &way) ||
        !codec_int(m, "node", 0, LIMIT_NODES * 2, &node) ||
        !codec_to_blob(json_object_get(m, "id"), &to->ticket.id, sizeof to->ticket.id, &id_len) ||
        !codec_to_blob(json_object_get(m, "key"), to->ticket.key, sizeof to->ticket.key, &key_len))
        return false;
    p->way = (enum order_way)way;
    to->job_id = a->launch.job_id;
    to->node = (int)node;
    to->port = a->launch.summons->port;
    snprintf(to->host, sizeof to->host, "%s", a->launch.summons->host);
    snprintf(to->from, sizeof to->from, "%s", from);
    return id_len == sizeof to->ticket.id && key_len == sizeof to->ticket.key;
}

void keeld_starts_begin(struct keeld *a, const json_t *m)
{
    char *keel_launch = keeld_own_path("keel-launch");
    struct start_plan plan = {.keel_launch = keel_launch};
    if (a->state < KEELD_RUNNING && plan_from_json(a, m, &plan))
        run(a, plan.summons.node, &plan, false);
    sodium_memzero(&plan, sizeof plan);
    free(keel_launch);
}

void keeld_starts_add(struct keeld *a, const struct start_plan *plan)
{
    run(a, plan->summons.node, plan, true);
}

void keeld_starts_added(struct keeld *a, int node, bool joined)
{
    for (struct keeld_start *s = a->starts; s; s = s->next)
        if (s->adds && s->hydra.node == node && !joined)
            hydra_signal(&s->hydra, SIGTERM);
        else if (s->adds && s->hydra.node == node)
            hydra_settled(&s->hydra);
}

void keeld_starts_settled(struct keeld *a)
{
    for (struct keeld_start *s = a->starts; s; s = s->next)
        hydra_settled(&s->hydra);
}

void keeld_starts_signal(struct keeld *a, int signal)
{
    for (struct keeld_start *s = a->starts; s; s = s->next)
        hydra_signal(&s->hydra, signal);
}

bool keeld_starts_has(const struct keeld *a, pid_t pid)
{
    for (const struct keeld_start *s = a->starts; s; s = s->next)
        if (hydra_has(&s->hydra, pid))
            return true;
    return false;
}
