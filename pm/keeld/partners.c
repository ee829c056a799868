/* Where replicas do the part of the dead: what a process does that no replica can do for another, and libkeel does not
 * see (runtime/client/replica/acting.inc has the rest). The plane is told, and a set that loses a process is retired
 * from then on.
 *
 *   MPI     the set's MPI world has lost a process: said when one asks for PMI
 *
 * And who has written files: what several ranks write to one file is whole in a set that has all of them, and the
 * lowest such set is the one whose files count in the end; where there is none any more sets that lack somebody are
 * retired (view/sets.c). It is said when a set has lost a process, or when who has written ends: what a process says
 * before its end comes before it in the views. */
#include "pm/keeld/keeld.h"

#include "runtime/base/world_page.h"

#include <stddef.h>
#include <unistd.h>

enum { LOOK_MS = 100 };

void keeld_partners_need_all(struct keeld *a)
{
    if (a->partners.said || a->job.settings.on_death != DEATH_PARTNER)
        return;
    a->partners.said = true;
    plane_needs_sets(a->plane);
}

static bool has_written(const struct keeld_process *e)
{
    uint32_t len = 0;
    return e->world >= 0 && pread(e->world, &len, sizeof len, offsetof(struct world_page, written_len)) == sizeof len &&
           len > 0;
}

void keeld_partners_look_at(struct keeld *a, struct keeld_process *e)
{
    if (a->job.settings.on_death != DEATH_PARTNER || e->writes || !has_written(e))
        return;
    e->writes = true;
    plane_writes(a->plane, e->p->life);
}

static void look_at_all(struct keeld *a)
{
    for (int i = 0; i < a->process_count; i++)
        keeld_partners_look_at(a, &a->processes[i]);
}

static void look_again(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    if (a->state == KEELD_RUNNING)
        look_at_all(a);
    if (a->partners.said || a->state != KEELD_RUNNING)
        uv_timer_stop(timer);
}

void keeld_partners_view(struct keeld *a, const struct plane_view *v)
{
    if (a->partners.said || !v->nlost)
        return;
    look_at_all(a);
    if (!a->partners.said && !uv_is_active((uv_handle_t *)&a->partners.look))
        uv_timer_start(&a->partners.look, look_again, LOOK_MS, LOOK_MS);
}
