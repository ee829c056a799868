#include <stdlib.h>
#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/repair_int.h"
#include "runtime/agent/scrub.h"
#include "runtime/agent/segments.h"
#include "runtime/base/clock.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"

enum { BURST = 8 }; /* messages per round of the loop, so that requests are served in between */

/* The one place where a phase changes. */
static void set_phase(struct repair *r, enum phase phase)
{
    static const unsigned char from[] = {[PHASE_IDLE] = 0x1f,
                                         [PHASE_GATHER] = 1 << PHASE_IDLE,
                                         [PHASE_FETCH] = 1 << PHASE_GATHER,
                                         [PHASE_SPREAD] = 1 << PHASE_FETCH,
                                         [PHASE_DONE] = 1 << PHASE_SPREAD};
    assert(from[phase] >> r->phase & 1);
    r->phase = phase;
    r->at = r->claims;
    r->at_offset = 0;
}

/* ---- the primary ---- */

static void claim_own(struct agent *a, int copyset, struct life writer, const struct patch *patch, bool living)
{
    claim_add(a, &a->repairs.of[copyset], 0, writer, patch, living);
}

static void gather(struct agent *a, int copyset)
{
    struct repair *r = &a->repairs.of[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    set_phase(r, PHASE_GATHER);
    doubt_for_each(a, copyset, claim_own);
    doubt_for_each_stored(a, copyset, claim_own);
    for (const struct claim *c = r->claims; c && repair_is_one_filled(g) && view_whole_copies(g) > 1; c = c->next)
        r->torn = r->torn || c->living;
}

static bool all_told(const struct repair *r, const struct view_copyset *g)
{
    for (int i = 1; i < g->copies; i++)
        if (g->copy[i].whole && !r->told_by[i])
            return false;
    return true;
}

static bool all_acked(const struct agent *a, int copyset)
{
    struct chain_mark mark;
    chain_mark(a, copyset, &mark);
    return chain_reached(a, &mark);
}

static void finish(struct agent *a, int copyset)
{
    struct repair *r = &a->repairs.of[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    for (int i = 1; i < g->copies; i++)
        if (!g->copy[i].whole && segments_use(&a->store, copyset_class(copyset)))
            agent_say(a, "copied", J_INT("slot", copyset_slot(copyset)), J_UINT("redundancy", copyset_class(copyset)),
                      J_INT("to", g->copy[i].node), J_UINT("bytes", r->fill[i].bytes),
                      J_REAL("ms", (double)(a->now - r->fill[i].started_at) / KEEL_NS_PER_MS, 3));
    scrub_spread(a, copyset);
    set_phase(r, PHASE_DONE);
    int home = view_slot_node(&a->view, copyset_slot(copyset));
    r->handover = home != a->self && home >= 0 && view_copy_at(g, home) > 0;
    struct view_event e = {.type = VIEW_RESTORED, .a = (uint32_t)copyset, .d = g->generation};
    FAULT_POINT("push.restored_not_submitted");
    a->ops.submit(a->ops.user, &e);
    FAULT_POINT("push.restored_submitted");
}

/* All phases that can be gone through now. */
static bool copyset_step(struct agent *a, int copyset)
{
    struct repair *r = &a->repairs.of[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    bool moved = false;
    /* What this copy has executed is in those that it fetches from. */
    if (r->phase == PHASE_GATHER && all_told(r, g) && (!r->torn || all_acked(a, copyset)))
        r->gathered = true;
    if (r->phase == PHASE_GATHER && r->gathered && scrub_is_judged(a, copyset)) {
        set_phase(r, PHASE_FETCH);
        moved = true;
    }
    if (r->phase == PHASE_FETCH) {
        while (r->at && patch_fetch_some(a, copyset))
            moved = true;
        if (!r->at && r->fetches == 0) {
            set_phase(r, PHASE_SPREAD);
            moved = true;
            if (r->torn) {
                r->torn = false;
                execute_unstash(a);
            }
        }
    }
    if (r->phase == PHASE_SPREAD) {
        for (int i = 0; i < BURST && r->at && patch_spread_some(a, copyset); i++)
            moved = true;
        for (int i = 1; i < g->copies; i++)
            if (!g->copy[i].whole)
                moved |= fill_step(a, copyset, &r->fill[i]);
        if (!r->at && fill_all_here(r, g) && all_acked(a, copyset) && !a->broken) {
            finish(a, copyset);
            moved = true;
        }
    }
    return moved;
}

bool repair_step(struct agent *a)
{
    bool moved = false;
    if (a->recovery.frozen)
        return false; /* what is sent now would only be sent again */
    /* What ranks ask for waits for a round of the loop, so it has one block: after one that came none goes. Not twice
     * in a row: who is sent one each round would send none. */
    a->repairs.block_rests = a->repairs.block_came && !a->repairs.block_rests;
    a->repairs.block_came = false;
    for (int copyset = 0; copyset < agent_copysets(a); copyset++)
        if (a->repairs.of[copyset].phase != PHASE_IDLE && a->repairs.of[copyset].phase != PHASE_DONE)
            moved |= copyset_step(a, copyset);
    return moved;
}

bool repair_waits_for(const struct agent *a, int node)
{
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        const struct repair *r = &a->repairs.of[copyset];
        const struct view_copyset *g = &a->view.copyset[copyset];
        int place = r->torn ? view_copy_at(g, node) : -1;
        if (place > 0 && g->copy[place].whole && !(r->phase == PHASE_GATHER && r->told_by[place]))
            return true;
    }
    return false;
}

bool repair_goes_on_with(const struct agent *a, int node)
{
    for (int copyset = 0; copyset < agent_copysets(a) && node != a->self; copyset++) {
        const struct view_copyset *g = &a->view.copyset[copyset];
        if (g->mode == COPYSET_REPAIR && view_copy_at(g, a->self) >= 0 && view_copy_at(g, node) >= 0)
            return true;
    }
    return false;
}

bool repair_holds(const struct agent *a, int copyset)
{
    const struct repair *r = &a->repairs.of[copyset];
    return r->torn || (r->phase == PHASE_DONE && r->handover);
}

/* ---- views ---- */

void repair_view_committed(struct agent *a, const struct view_copyset *before)
{
    doubt_forget_settled(a);
    scrub_view_committed(a);
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        struct repair *r = &a->repairs.of[copyset];
        const struct view_copyset *g = &a->view.copyset[copyset];
        if (r->generation == g->generation)
            continue;
        claim_free_all(r);
        set_phase(r, PHASE_IDLE);
        r->generation = g->generation;
        r->told = r->handover = r->gathered = false;
        r->fetches = 0;
        memset(r->told_by, 0, sizeof r->told_by);
        fill_keep(r, g, repair_is_primary(a, &before[copyset]) && repair_is_primary(a, g));
        r->torn = repair_is_primary(a, g) && g->mode == COPYSET_REPAIR && g->copies > 1 &&
                  (doubt_has_torn(a, copyset) || scrub_holds(a, copyset));
        if (g->mode == COPYSET_DIRECT && view_copy_at(g, a->self) >= 0)
            doubt_forget_torn(a, copyset);
    }
}

void repair_view_settled(struct agent *a)
{
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        const struct view_copyset *g = &a->view.copyset[copyset];
        struct repair *r = &a->repairs.of[copyset];
        if (g->generation > a->recovery.settled || g->mode != COPYSET_REPAIR)
            continue;
        int place = view_copy_at(g, a->self);
        if (place > 0 && g->copy[place].whole && !r->told) {
            doubt_tell_all(a, copyset);
            r->told = true;
        }
        if (place == 0 && r->phase == PHASE_IDLE)
            gather(a, copyset);
    }
}

/* ---- messages ---- */

void repair_receive(struct agent *a, int from, const struct wire *w, const void *body)
{
    switch (w->type) {
    case WIRE_DOUBT:
        claim_receive(a, from, w);
        break;
    case WIRE_FETCH:
        patch_answer(a, from, w);
        break;
    case WIRE_PATCH:
        patch_receive(a, from, w, body);
        break;
    case WIRE_SNAP_HERE:
        fill_receive_here(a, from, w);
        break;
    default:
        filled_receive(a, from, w, body);
        break;
    }
}

keel_status repair_init(struct agent *a)
{
    a->repairs.of = calloc((size_t)agent_copysets(a), sizeof *a->repairs.of);
    if (!a->repairs.of)
        return KEEL_ERR_NOMEM;
    for (int copyset = 0; copyset < agent_copysets(a); copyset++) {
        struct repair *r = &a->repairs.of[copyset];
        r->claims_tail = &r->claims;
        r->generation = a->view.copyset[copyset].generation;
        for (int i = 0; i < COPIES_MAX; i++)
            r->fill[i].node = -1;
    }
    return KEEL_OK;
}

void repair_fini(struct agent *a)
{
    for (int copyset = 0; a->repairs.of && copyset < agent_copysets(a); copyset++)
        claim_free_all(&a->repairs.of[copyset]);
    free(a->repairs.of);
    a->repairs.of = NULL;
    for (struct doubt *d = a->repairs.doubts, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    a->repairs.doubts = NULL;
}
