#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *keeld_waits_json(const struct keeld *a)
{
    char now[64];
    if (!a->waits || a->stopped) /* all of them, as keelrun was told to */
        return json_object();
    snprintf(now, sizeof now, "{\"now_ns\":%llu,", (unsigned long long)clock_now_ns());
    size_t len = strlen(now) + strlen(a->waits) + 2;
    char *text = pm_alloc(len);
    snprintf(text, len, "%s%s}", now, a->waits);
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    return json ? json : json_object();
}

static void say(void *user, const char *line)
{
    const struct keeld *a = user;
    char text[WAITS_LINE + 32];
    snprintf(text, sizeof text, "node %d: %s", a->launch.node, line);
    keeld_join_say(a, text);
}

static void gather(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    uint64_t now = clock_now_ns(), next = a->state == KEELD_RUNNING ? waits_tick(a->gathered, now) : UINT64_MAX;
    if (next != UINT64_MAX)
        uv_timer_start(timer, gather, next > now ? (next - now) / KEEL_NS_PER_MS + 1 : 1, 0);
}

/* There is no keelrun: each node says for its own ranks what it knows. */
static void gather_here(struct keeld *a)
{
    if (!a->gathered) {
        a->gathered = pm_alloc(sizeof *a->gathered);
        waits_init(a->gathered, settings_ids(&a->job.settings), a->job.settings.ranks, a->view_rank_node, say, a);
    }
    json_t *report = keeld_waits_json(a);
    waits_view(a->gathered, a->view_rank_node, a->view_alive);
    waits_report(a->gathered, a->launch.node, report, clock_now_ns());
    json_decref(report);
    gather(&a->gathering);
}

void keeld_waits_changed(struct keeld *a, const char *members)
{
    free(a->waits);
    a->waits = members ? pm_strdup(members) : NULL;
    if (a->state != KEELD_RUNNING)
        return;
    if (a->launch.join)
        gather_here(a);
    else
        keeld_link_send_json(a, MSG_WAITS, keeld_waits_json(a));
}

void keeld_waits_init(struct keeld *a)
{
    uv_timer_init(&a->loop, &a->gathering);
    a->gathering.data = a;
}

void keeld_waits_free(struct keeld *a)
{
    if (a->gathered)
        waits_fini(a->gathered);
    free(a->gathered);
    free(a->waits);
    a->gathered = NULL;
    a->waits = NULL;
}
