#include "runtime/view/plan.h"
#include "runtime/view/policy.h"
#include "runtime/view/view_int.h"

/* What has no second copy goes behind its slot: what processes store into it is noticed by nobody, and a copy that was
 * filled before they have left would lack it. */
static int target(const struct view *v, int copyset)
{
    return copyset_class(copyset) ? plan_slot_target(v, copyset_slot(copyset)) : -1;
}

void follow_slot(struct view *v, int slot, int node)
{
    if (v->home[slot] == node)
        return;
    v->home[slot] = node;
    for (unsigned c = 0; c < CLASSES && node >= 0; c++) {
        struct view_copyset *g = &v->copyset[copyset_of(slot, c)];
        if (g->copies > 0 && view_copy_at(g, node) > 0)
            copyset_set_mode(v, g, COPYSET_REPAIR);
    }
}

/* The copy that is missed least, of those that are whole, or of those that are not; -1: none may go. The primary stays,
 * and what is where the slot is or goes. */
static int least(const struct view *v, int copyset, bool whole)
{
    const struct view_copyset *g = &v->copyset[copyset];
    int home = view_slot_node(v, copyset_slot(copyset)), to = target(v, copyset), worst = -1;
    for (int i = 1; i < g->copies; i++)
        if (g->copy[i].whole == whole && g->copy[i].node != home && g->copy[i].node != to &&
            (worst < 0 || policy_is_better(v, copyset, worst, i)))
            worst = i;
    return worst;
}

void follow_equal(struct view *v, int copyset)
{
    struct view_copyset *g = &v->copyset[copyset];
    if (g->copies <= LEGS_MAX)
        return;
    policy_look(v);
    int at = least(v, copyset, true);
    copyset_take_out(v, copyset, at < 0 ? g->copies - 1 : at);
}

/* While the slot is on its way there is one more. */
static int most(const struct view *v, int copyset)
{
    int to = target(v, copyset);
    return (int)copyset_class(copyset) + 1 + (to >= 0 && view_copy_at(&v->copyset[copyset], to) >= 0);
}

void follow_trim(struct view *v, int copyset)
{
    struct view_copyset *g = &v->copyset[copyset];
    while (g->copies > most(v, copyset)) {
        int at = least(v, copyset, false);
        if (at < 0 && g->mode == COPYSET_DIRECT)
            at = least(v, copyset, true);
        if (at < 0)
            return;
        copyset_take_out(v, copyset, at);
        copyset_set_mode(v, g, view_whole_copies(g) == g->copies ? g->mode : COPYSET_REPAIR);
    }
}

static void place(struct view *v, int copyset, int node)
{
    const struct view_copyset *g = &v->copyset[copyset];
    if (node >= 0 && g->copies > 0 && g->copies < COPIES_MAX && policy_can_have(v, copyset, node))
        copyset_add(v, copyset, node, false);
}

void follow_place(struct view *v, int copyset)
{
    place(v, copyset, view_slot_node(v, copyset_slot(copyset)));
    place(v, copyset, target(v, copyset));
}

bool view_slot_ready(const struct view *v, int slot)
{
    int to = plan_slot_target(v, slot);
    for (unsigned c = 1; c < CLASSES && to >= 0; c++) {
        const struct view_copyset *g = &v->copyset[copyset_of(slot, c)];
        int at = view_copy_at(g, to);
        if (at < 0 || !g->copy[at].whole)
            return false;
    }
    return true;
}
