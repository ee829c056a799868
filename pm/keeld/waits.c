#include "pm/keeld/keeld.h"

#include "pm/wire/codec.h"
#include "runtime/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *keeld_waits_json(const struct keeld *a)
{
    if (!a->waits.text || a->stopped) /* all of them, as keelrun was told to */
        return json_object();
    size_t size = strlen(a->waits.text) + 3;
    char *text = pm_alloc(size);
    snprintf(text, size, "{%s}", a->waits.text);
    json_t *json = json_loads(text, 0, NULL);
    if (json)
        json_object_set_new(json, "now_ns", json_integer((json_int_t)clock_now_ns()));
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
    uint64_t now = clock_now_ns(), next = a->state == KEELD_RUNNING ? waits_tick(a->waits.gathered, now) : UINT64_MAX;
    if (next != UINT64_MAX)
        uv_timer_start(timer, gather, next > now ? (next - now) / KEEL_NS_PER_MS + 1 : 1, 0);
}

/* There is no keelrun: each node says for its own ranks what it knows. */
static void gather_here(struct keeld *a)
{
    if (!a->waits.gathered) {
        a->waits.gathered = pm_alloc(sizeof *a->waits.gathered);
        waits_init(a->waits.gathered, settings_ids(&a->job.settings), a->job.settings.ranks, a->view.rank_node, say, a);
    }
    json_t *report = keeld_waits_json(a);
    waits_view(a->waits.gathered, a->view.rank_node, a->view.alive);
    waits_report(a->waits.gathered, a->launch.node, report, clock_now_ns());
    json_decref(report);
    gather(&a->waits.gathering);
}

void keeld_waits_changed(struct keeld *a, const char *members)
{
    free(a->waits.text);
    a->waits.text = members ? pm_strdup(members) : NULL;
    if (a->state != KEELD_RUNNING)
        return;
    if (a->launch.join)
        gather_here(a);
    else
        keeld_dialogue_send_json(a, MSG_WAITS, keeld_waits_json(a));
}

void keeld_waits_init(struct keeld *a)
{
    uv_timer_init(&a->loop, &a->waits.gathering);
    a->waits.gathering.data = a;
}

void keeld_waits_free(struct keeld *a)
{
    if (a->waits.gathered)
        waits_fini(a->waits.gathered);
    free(a->waits.gathered);
    free(a->waits.text);
    a->waits.gathered = NULL;
    a->waits.text = NULL;
}
