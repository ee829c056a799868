/* Is the program one of Keel's? It is as soon as one of its processes has called keel_init; keelrun tells all agents. A
 * rank that dies with its node before goes on elsewhere only if it is: others cannot know of their loss, and an MPI
 * program would wait for it for ever. How long a program may take to its keel_init nobody knows; after a loss it
 * gets KIND_MS. */
#include "pm/keeld/keeld.h"

#include <signal.h>
#include <stdlib.h>

enum { KIND_MS = 5000 };

static void lost_for_good(struct keeld *a)
{
    keeld_own_why(a, "rank %d died with node %d before the program called keel_init, so it cannot be replaced",
                  a->kind.lost_rank, a->kind.lost_node);
}

static void release_held(struct keeld *a)
{
    struct life *held = a->kind.held;
    int count = a->kind.held_count;
    a->kind.held = NULL;
    a->kind.held_count = 0;
    for (int i = 0; i < count && a->state == KEELD_RUNNING; i++)
        keeld_ranks_respawn(a, held[i]);
    free(held);
}

/* Those that have ranks of the program know best; a spare without keelrun knows nothing, and lets its ranks run at
 * last. */
static void kind_passed(uv_timer_t *timer)
{
    struct keeld *a = timer->data;
    if (a->state != KEELD_RUNNING)
        return;
    if (a->launch.node >= a->job.settings.nodes) {
        a->kind.is_keels = true;
        release_held(a);
        return;
    }
    lost_for_good(a);
    plane_stop_job(a->plane, 128 + SIGKILL, a->end.own_why);
}

void keeld_kind_init(struct keeld *a)
{
    a->kind.lost_rank = -1;
    uv_timer_init(&a->loop, &a->kind.timer);
    a->kind.timer.data = a;
}

void keeld_kind_is_keels(struct keeld *a)
{
    a->kind.is_keels = true;
    a->kind.lost_rank = -1;
    uv_timer_stop(&a->kind.timer);
    release_held(a);
}

static bool matters(const struct keeld *a)
{
    return !a->kind.is_keels && settings_plain_death_ends(&a->job.settings);
}

void keeld_kind_view(struct keeld *a, const int *rank_node, const bool *node_alive)
{
    for (int r = 0; r < a->job.settings.ranks && matters(a) && a->kind.lost_rank < 0; r++) {
        int was = a->view.rank_node[r];
        if (was < 0 || was == rank_node[r] || node_alive[was])
            continue; /* it had ended, or its node lives */
        a->kind.lost_rank = r;
        a->kind.lost_node = was;
        uv_timer_start(&a->kind.timer, kind_passed, a->launch.node < a->job.settings.nodes ? KIND_MS : 2 * KIND_MS, 0);
    }
}

int keeld_kind_judge(struct keeld *a, int code)
{
    if (code != 0 || !matters(a) || a->kind.lost_rank < 0 || a->launch.node >= a->job.settings.nodes)
        return code;
    lost_for_good(a);
    return 128 + SIGKILL;
}

bool keeld_kind_holds(struct keeld *a, struct life life)
{
    if (!matters(a) || a->launch.node < a->job.settings.nodes)
        return false;
    a->kind.held = realloc(a->kind.held, ((size_t)a->kind.held_count + 1) * sizeof *a->kind.held);
    if (!a->kind.held)
        abort();
    a->kind.held[a->kind.held_count++] = life;
    return true;
}
