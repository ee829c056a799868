/* Is the program one of Keel's? It is as soon as one of its processes has called keel_init; keelrun tells all agents. A rank that dies
 * with its node before goes on elsewhere only if it is: others cannot know of their loss, and an MPI program would wait for it for
 * ever. How long a program may take to its keel_init nobody knows; after a loss it gets KIND_MS. */
#include "pm/keeld/keeld.h"

#include <signal.h>
#include <stdlib.h>

enum { KIND_MS = 5000 };

static void lost_for_good(struct keeld *a)
{
    keeld_own_why(a, "rank %d died with node %d before the program called keel_init, so it cannot be replaced",
                  a->lost_rank, a->lost_node);
}

static void release_held(struct keeld *a)
{
    struct life *held = a->held;
    int count = a->held_count;
    a->held = NULL;
    a->held_count = 0;
    for (int i = 0; i < count && a->state == KEELD_RUNNING; i++)
        keeld_ranks_respawn(a, held[i]);
    free(held);
}

/* Those that have ranks of the program know best; a spare without keelrun knows nothing, and lets its ranks run at last. */
static void kind_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    if (a->state != KEELD_RUNNING)
        return;
    if (a->launch.node >= a->job.settings.nodes) {
        a->is_keels = true;
        release_held(a);
        return;
    }
    lost_for_good(a);
    plane_stop_job(a->plane, 128 + SIGKILL, a->end.own_why);
}

void keeld_kind_init(struct keeld *a)
{
    a->lost_rank = -1;
    uv_timer_init(&a->loop, &a->kind);
    a->kind.data = a;
}

void keeld_kind_is_keels(struct keeld *a)
{
    a->is_keels = true;
    a->lost_rank = -1;
    uv_timer_stop(&a->kind);
    release_held(a);
}

static bool matters(const struct keeld *a)
{
    return !a->is_keels && settings_plain_death_ends(&a->job.settings);
}

void keeld_kind_view(struct keeld *a, const int *rank_node, const bool *node_alive)
{
    for (int r = 0; r < a->job.settings.ranks && matters(a) && a->lost_rank < 0; r++) {
        int was = a->view.rank_node[r];
        if (was < 0 || was == rank_node[r] || node_alive[was])
            continue; /* it had ended, or its node lives */
        a->lost_rank = r;
        a->lost_node = was;
        uv_timer_start(&a->kind, kind_passed, a->launch.node < a->job.settings.nodes ? KIND_MS : 2 * KIND_MS, 0);
    }
}

int keeld_kind_judge(struct keeld *a, int code)
{
    if (code != 0 || !matters(a) || a->lost_rank < 0 || a->launch.node >= a->job.settings.nodes)
        return code;
    lost_for_good(a);
    return 128 + SIGKILL;
}

bool keeld_kind_holds(struct keeld *a, struct life life)
{
    if (!matters(a) || a->launch.node < a->job.settings.nodes)
        return false;
    a->held = realloc(a->held, ((size_t)a->held_count + 1) * sizeof *a->held);
    if (!a->held)
        abort();
    a->held[a->held_count++] = life;
    return true;
}
