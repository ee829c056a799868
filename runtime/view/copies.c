/* The copies of copysets: where they are at first, that nodes with copies die, decline and are suspected, and that what
 * is missing is placed. Pure. */
#include "runtime/view/view_int.h"

#include <assert.h>
#include <string.h>

#include "runtime/view/policy.h"

int view_copy_at(const struct view_copyset *g, int node)
{
    for (int i = 0; i < g->copies; i++)
        if (g->copy[i].node == node)
            return i;
    return -1;
}

int view_whole_copies(const struct view_copyset *g)
{
    int n = 0;
    for (int i = 0; i < g->copies; i++)
        n += g->copy[i].whole;
    return n;
}

void copyset_set_mode(const struct view *v, struct view_copyset *g, enum copyset_mode mode)
{
    assert(g->copies >= 1 && g->copy[0].whole);
    assert(mode == COPYSET_REPAIR || (view_whole_copies(g) == g->copies && g->copies <= LEGS_MAX));
    g->mode = mode;
    g->generation = v->epoch;
}

bool copyset_add(struct view *v, int copyset, int node, bool whole)
{
    struct view_copyset *g = &v->copyset[copyset];
    if (node < 0)
        return false;
    g->copy[g->copies++] = (struct view_copy){.node = node, .whole = whole, .placed = v->epoch};
    copyset_set_mode(v, g, whole ? COPYSET_DIRECT : COPYSET_REPAIR);
    policy_count(v, copyset, node);
    return true;
}

void copyset_take_out(struct view *v, int copyset, int at)
{
    struct view_copyset *g = &v->copyset[copyset];
    policy_uncount(v, copyset, g->copy[at].node);
    memmove(&g->copy[at], &g->copy[at + 1], (size_t)(g->copies - at - 1) * sizeof g->copy[0]);
    g->copies--;
}

static bool copyset_lacks(const struct view *v, int copyset)
{
    return v->copyset[copyset].copies <= (int)copyset_class(copyset);
}

void copysets_begin(struct view *v)
{
    for (int i = 0; i < view_copysets(v); i++) {
        v->copyset[i].copy[v->copyset[i].copies++] = (struct view_copy){.node = copyset_slot(i), .whole = true};
        copyset_set_mode(v, &v->copyset[i], COPYSET_DIRECT);
    }
    policy_begin(v);
    policy_look(v);
    for (int i = 0; i < view_copysets(v); i++)
        for (int k = 1; k <= (int)copyset_class(i); k++)
            copyset_add(v, i, policy_first_copy(v, i, k), true);
    policy_look(v);
    for (int i = 0; i < view_copysets(v); i++)
        while (copyset_lacks(v, i) && copyset_add(v, i, policy_copy(v, i), true))
            ;
}

/* Take dead nodes out of the copyset. The first whole copy that is left becomes the primary; if there is none nothing
 * is left. True if a copy died. */
static bool copyset_drop_dead(const struct view *v, struct view_copyset *g)
{
    int kept = 0, before = g->copies;
    for (int i = 0; i < before; i++)
        if (v->alive[g->copy[i].node])
            g->copy[kept++] = g->copy[i];
    if (kept == before)
        return false;
    g->copies = kept;
    for (int i = 0; i < kept; i++)
        if (g->copy[i].whole) {
            struct view_copy primary = g->copy[i];
            memmove(&g->copy[1], &g->copy[0], (size_t)i * sizeof primary);
            g->copy[0] = primary;
            return true;
        }
    g->copies = 0; /* what was being filled has nothing to be filled from */
    return true;
}

/* Nothing is left of the copyset: it starts again, and what it held is lost. */
static void copyset_start_again(struct view *v, int copyset)
{
    if (copyset_add(v, copyset, policy_copy(v, copyset), true)) /* else no node lives: nobody reads this */
        v->copyset[copyset].lost_at = v->epoch;
}

void copysets_lose_dead(struct view *v)
{
    for (int i = 0; i < view_copysets(v); i++) {
        struct view_copyset *g = &v->copyset[i];
        if (!copyset_drop_dead(v, g))
            continue;
        if (g->copies == 0)
            copyset_start_again(v, i);
        else
            copyset_set_mode(v, g, view_whole_copies(g) == g->copies ? g->mode : COPYSET_REPAIR);
    }
}

void copyset_fill(struct view *v, int copyset)
{
    while (v->copyset[copyset].copies >= 1 && copyset_lacks(v, copyset) &&
           copyset_add(v, copyset, policy_copy(v, copyset), false))
        ;
}

void copyset_restored(struct view *v, const struct view_event *e)
{
    if (e->a >= (uint32_t)view_copysets(v))
        return;
    struct view_copyset *g = &v->copyset[e->a];
    if (g->copies == 0 || g->mode != COPYSET_REPAIR || g->generation != e->d)
        return;
    for (int i = 0; i < g->copies; i++)
        g->copy[i].whole = true;
    int home = view_slot_node(v, copyset_slot((int)e->a)), at = home >= 0 ? view_copy_at(g, home) : -1;
    if (at > 0) {
        struct view_copy c = g->copy[at];
        memmove(&g->copy[1], &g->copy[0], (size_t)at * sizeof c);
        g->copy[0] = c;
    }
    follow_equal(v, (int)e->a);
    copyset_set_mode(v, g, COPYSET_DIRECT);
}

void copyset_suspected(const struct view *v, const struct view_event *e)
{
    struct view_copyset *g = e->a < (uint32_t)view_copysets(v) ? &v->copyset[e->a] : NULL;
    if (g && g->copies > 1 && g->mode == COPYSET_DIRECT && g->generation == e->d)
        copyset_set_mode(v, g, COPYSET_REPAIR);
}

void copysets_declined(struct view *v, const struct view_event *e)
{
    if (e->a >= (uint32_t)view_ids(v))
        return;
    v->full[e->a] = true;
    for (int i = 0; i < view_copysets(v); i++) {
        struct view_copyset *g = &v->copyset[i];
        int at = view_copy_at(g, (int)e->a);
        if (at < 0 || g->copy[at].whole)
            continue;
        copyset_take_out(v, i, at);
        copyset_set_mode(v, g, COPYSET_REPAIR);
    }
}

void copysets_doubt(struct view *v)
{
    for (int i = 0; i < view_copysets(v); i++) {
        struct view_copyset *g = &v->copyset[i];
        g->doubted_at = v->epoch;
        if (g->copies > 1)
            copyset_set_mode(v, g, COPYSET_REPAIR);
    }
}
