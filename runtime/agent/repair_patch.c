#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/repair_int.h"
#include "runtime/base/fault.h"
#include "runtime/base/words.h"

enum {
    WINDOW = 96,      /* messages on their way to one copy */
    PATCH_ANSWER = 1, /* WIRE_PATCH count: answers a WIRE_FETCH */
};

static bool window_is_open(const struct agent *a, int node)
{
    const struct peer *peer = &a->peers.peer[node];
    return peer->next - 1 - peer->acked < WINDOW;
}

static bool fills_are_open(const struct agent *a, const struct view_copyset *g)
{
    for (int i = 1; i < g->copies; i++)
        if (!g->copy[i].whole && !window_is_open(a, g->copy[i].node))
            return false;
    return true;
}

/* Ask for some of the bytes of the claim at r->at; false when the window is full. */
bool patch_fetch_some(struct agent *a, int copyset)
{
    struct repair *r = &a->repair[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    struct patch patch;
    int from = claim_copy_around(r, g, r->at, &patch);
    r->at->around = from > 0;
    if (!r->at->around && claim_must_fetch(r, r->at))
        from = claim_whole_copy(r, g, r->at, &patch);
    if (from == 0)
        r->at_offset = patch.len;
    for (int i = 1; i < g->copies && r->at->around; i++)
        if (!g->copy[i].whole && !r->fill[i].begun)
            fill_begin(a, copyset, &r->fill[i]);
    for (; r->at_offset < patch.len; r->at_offset += WIRE_BODY_MAX) {
        if (!window_is_open(a, g->copy[from].node) || r->fetches >= WINDOW || (r->at->around && !fills_are_open(a, g)))
            return false;
        uint64_t left = patch.len - r->at_offset;
        struct wire w = {.type = WIRE_FETCH,
                         .flags = r->at->around ? WIRE_F_LIVING : 0,
                         .slot = (uint16_t)copyset_slot(copyset),
                         .seg = patch.seg,
                         .offset = patch.offset + r->at_offset,
                         .count = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX),
                         .step = copyset_class(copyset),
                         .identity = g->generation};
        agent_tell(a, g->copy[from].node, &w, NULL);
        r->fetches++;
    }
    r->at = r->at->next;
    r->at_offset = 0;
    return true;
}

/* Send some of the primary's bytes of the claim at r->at to all other copies; false when a window is full. */
bool patch_spread_some(struct agent *a, int copyset)
{
    struct repair *r = &a->repair[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    const struct patch patch = claim_to_spread(r, r->at);
    const struct store_copy *copy = store_copy(&a->store, patch.seg, patch.slot);
    if (r->at->living || !copy || !copy->base || patch.len > copy->bytes || patch.offset > copy->bytes - patch.len)
        r->at_offset = patch.len; /* nothing to send, or freed meanwhile */
    for (; r->at_offset < patch.len; r->at_offset += WIRE_BODY_MAX) {
        for (int i = 1; i < g->copies; i++)
            if (!window_is_open(a, g->copy[i].node))
                return false;
        uint64_t left = patch.len - r->at_offset;
        struct wire w = {.type = WIRE_PATCH,
                         .slot = (uint16_t)copyset_slot(copyset),
                         .seg = patch.seg,
                         .offset = patch.offset + r->at_offset,
                         .len = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX),
                         .step = copyset_class(copyset),
                         .identity = g->generation};
        struct chain_mark mark;
        chain_send(a, copyset, &w, copy->base + w.offset, &mark);
    }
    r->at = r->at->next;
    r->at_offset = 0;
    return true;
}

/* The copyset of a message about bytes, if it is of this generation; else -1. */
static int copyset_of_message(const struct agent *a, const struct wire *w)
{
    int copyset =
        w->step < CLASSES ? copyset_of(w->slot, w->step) : -1; /* also of a segment that was freed meanwhile */
    return copyset >= 0 && a->view.copyset[copyset].generation == w->identity ? copyset : -1;
}

void patch_answer(struct agent *a, int from, const struct wire *w)
{
    struct wire answer = {.type = WIRE_PATCH,
                          .flags = w->flags & WIRE_F_LIVING,
                          .slot = w->slot,
                          .seg = w->seg,
                          .offset = w->offset,
                          .count = PATCH_ANSWER,
                          .step = w->step,
                          .identity = w->identity};
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    const void *body = NULL;
    if (copyset_of_message(a, w) < 0)
        return;
    FAULT_POINT("push.patch_asked");
    if (w->count <= WIRE_BODY_MAX && repair_is_in_range(copy, w->offset, w->count)) {
        answer.len = w->count;
        body = copy->base + w->offset;
    }
    agent_tell(a, from, &answer, body);
}

void patch_receive(struct agent *a, int from, const struct wire *w, const void *body)
{
    int copyset = copyset_of_message(a, w);
    if (copyset < 0)
        return;
    struct repair *r = &a->repair[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    bool answer = w->count == PATCH_ANSWER;
    if (answer ? r->phase != PHASE_FETCH || r->fetches == 0 || view_copy_at(g, from) < 1
               : !chain_is_before(a, copyset, from))
        return;
    const struct store_copy *copy = store_copy(&a->store, w->seg, w->slot);
    FAULT_POINT("push.patch_received");
    if (answer && w->flags & WIRE_F_LIVING && w->len)
        fill_around(a, copyset, w, body);
    else if (repair_is_in_range(copy, w->offset, w->len))
        words_store(copy->base + w->offset, body, w->len);
    if (answer)
        r->fetches--;
    else
        chain_relay(a, copyset, from, w, body);
}
