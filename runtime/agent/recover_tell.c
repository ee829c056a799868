#include <stdio.h>

#include "runtime/agent/agent.h"
#include "runtime/agent/recover_int.h"
#include "runtime/agent/segments.h"
#include "runtime/base/racks.h"
#include "runtime/view/plan.h"
#include "runtime/view/policy.h"

void tell_changes(struct agent *a, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        if (events[i].type == VIEW_NODE_DEAD)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("dead_node", events[i].a));
        else if (events[i].type == VIEW_RANK_DEAD)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("dead_rank", events[i].a));
        else if (events[i].type == VIEW_RANK_MOVED)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("moved_rank", events[i].a),
                      J_UINT("complete", view_moved_complete(events[i].d)));
        else if (events[i].type == VIEW_NODE_BORN)
            agent_say(a, "view", J_UINT("epoch", a->view.epoch), J_UINT("born_node", events[i].a));
    }
}

static void tell_copyset(struct agent *a, int copyset, const struct view_copyset *old)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    unsigned redundancy = copyset_class(copyset);
    if (g->copies == 0 || g->copy[0].node != a->self || g->generation != a->view.epoch ||
        !segments_use(&a->store, redundancy))
        return;
    if (g->lost_at == a->view.epoch)
        agent_say(a, redundancy ? "data_lost" : "unreplicated_lost", J_INT("slot", copyset_slot(copyset)),
                  J_UINT("redundancy", redundancy), J_UINT("epoch", a->view.epoch));
    else if (old->copies && old->copy[0].node != a->self && !a->view.alive[old->copy[0].node])
        agent_say(a, "promotion", J_INT("slot", copyset_slot(copyset)), J_UINT("redundancy", redundancy),
                  J_INT("from", old->copy[0].node), J_UINT("epoch", a->view.epoch));
    if (g->mode == COPYSET_DIRECT && old->mode == COPYSET_REPAIR && g->copies > 1)
        agent_say(a, "restored", J_INT("slot", copyset_slot(copyset)), J_UINT("redundancy", redundancy),
                  J_INT("primary", g->copy[0].node), J_INT("shadow", g->copy[1].node));
}

/* Said where the slot is. */
static void tell_given_up(struct agent *a)
{
    for (int slot = 0, to; slot < a->view.nodes; slot++)
        if (view_slot_node(&a->view, slot) == a->self && plan_gave_up(&a->view, slot, &to) == a->view.epoch)
            agent_say(a, "move_given_up", J_INT("slot", slot), J_INT("from", a->self), J_INT("to", to),
                      J_UINT("epoch", a->view.epoch),
                      J_TEXT("why", a->view.full[to] ? "no memory there" : "who is there stays"));
}

void tell_copysets(struct agent *a, const struct view_copyset *before)
{
    for (int copyset = 0; copyset < agent_copysets(a); copyset++)
        tell_copyset(a, copyset, &before[copyset]);
    tell_given_up(a);
}

/* What is redundant now: copysets of classes that are in use which are being made equal, and those with bytes of the
 * program's that lack copies. */
struct redundancy {
    int repairing, reduced;
    int first_reduced; /* slot */
    int together;      /* of them have their copies, but all in one domain where others are told apart; */
    int level;         /* the highest one's level */
};

static void count_reduced(const struct agent *a, int copyset, struct redundancy *now)
{
    const struct view_copyset *g = &a->view.copyset[copyset];
    bool lacks = g->copies <= (int)copyset_class(copyset);
    int apart = lacks || g->copies < 2 ? a->view.copies.levels : policy_apart(&a->view, g);
    if (!lacks && apart == a->view.copies.levels)
        return;
    if (now->reduced++ == 0)
        now->first_reduced = copyset_slot(copyset);
    now->together += !lacks;
    if (!lacks && apart + 1 > now->level)
        now->level = apart + 1;
}

static struct redundancy redundancy_now(const struct agent *a)
{
    struct redundancy now = {0};
    bool used[CLASSES], holds[CLASSES];
    for (unsigned c = 0; c < CLASSES; c++) {
        used[c] = segments_use(&a->store, c);
        holds[c] = segments_hold(&a->store, c);
    }
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        const struct view_copyset *g = &a->view.copyset[copyset];
        if (!used[copyset_class(copyset)])
            continue;
        now.repairing += g->mode == COPYSET_REPAIR;
        if (holds[copyset_class(copyset)] && a->view.slot_ranks[copyset_slot(copyset)] > 0)
            count_reduced(a, copyset, &now);
    }
    return now;
}

bool tell_repairing(const struct agent *a)
{
    return redundancy_now(a).repairing > 0;
}

/* Why it is not what was asked for. */
static const char *reason(const struct agent *a, const struct redundancy *now, char *out, size_t size)
{
    const struct view *v = &a->view;
    int could = 0, full = 0;
    if (now->reduced == now->together) {
        snprintf(out, size, "all copies are in one %s", racks_level_name(&v->copies, now->level));
        return out;
    }
    for (int m = 0; m < a->members; m++) {
        could += v->alive[m];
        full += v->alive[m] && v->full[m];
    }
    snprintf(out, size, "%d nodes live, %d of them without memory for more copies", could, full);
    return out;
}

/* Once nothing is being made equal any more, the lowest live node says what there is: all copies, or what is
 * missing. */
void tell_redundancy(struct agent *a, bool was_whole)
{
    int lowest = 0;
    while (lowest < a->members - 1 && !a->view.alive[lowest])
        lowest++;
    struct redundancy now = redundancy_now(a);
    if (lowest != a->self || now.repairing || was_whole)
        return;
    char why[96];
    if (now.reduced)
        agent_say(a, "redundancy_reduced", J_UINT("epoch", a->view.epoch), J_INT("copysets", now.reduced),
                  J_INT("slot", now.first_reduced), J_TEXT("why", reason(a, &now, why, sizeof why)));
    else
        agent_say(a, "redundancy_restored", J_UINT("epoch", a->view.epoch), J_INT("slots", a->view.nodes));
}
