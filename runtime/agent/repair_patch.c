#include <string.h>

#include "runtime/agent/chain.h"
#include "runtime/agent/repair_int.h"
#include "runtime/agent/scrub.h"
#include "runtime/base/fault.h"
#include "runtime/base/words.h"

enum { WINDOW = 96 }; /* messages on their way to one copy */

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

static struct msg_patch_of of_copyset(const struct agent *a, int copyset, uint32_t seg, uint64_t offset, bool around)
{
    return (struct msg_patch_of){.at = {.seg = seg, .slot = (uint16_t)copyset_slot(copyset), .offset = offset},
                                 .class = copyset_class(copyset),
                                 .generation = a->view.copyset[copyset].generation,
                                 .around = around};
}

/* Ask for some of the bytes of the claim at r->at; false when the window is full. */
bool patch_fetch_some(struct agent *a, int copyset)
{
    struct repair *r = &a->repairs.of[copyset];
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
        struct wire w;
        msg_fetch_encode(
            &(struct msg_fetch){.of = of_copyset(a, copyset, patch.seg, patch.offset + r->at_offset, r->at->around),
                                .bytes = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX)},
            &w);
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
    struct repair *r = &a->repairs.of[copyset];
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
        uint64_t at = patch.offset + r->at_offset;
        struct wire w;
        msg_patch_encode(&(struct msg_patch){.of = of_copyset(a, copyset, patch.seg, at, false),
                                             .len = (uint32_t)(left < WIRE_BODY_MAX ? left : WIRE_BODY_MAX)},
                         &w);
        struct chain_mark mark;
        chain_send(a, copyset, &w, copy->base + at, &mark);
    }
    r->at = r->at->next;
    r->at_offset = 0;
    return true;
}

/* The copyset of a message about bytes, if it is of this generation; else -1. */
static int copyset_of_message(const struct agent *a, const struct msg_patch_of *of)
{
    int copyset = repair_copyset_of(a, of->at.slot, of->class); /* also of a segment that was freed meanwhile */
    return copyset >= 0 && a->view.copyset[copyset].generation == of->generation ? copyset : -1;
}

void patch_answer(struct agent *a, int from, const struct wire *w)
{
    struct msg_fetch m;
    struct wire answer;
    msg_fetch_decode(w, &m);
    if (copyset_of_message(a, &m.of) < 0)
        return;
    const struct store_copy *copy = store_copy(&a->store, m.of.at.seg, m.of.at.slot);
    FAULT_POINT("push.patch_asked");
    bool here = m.bytes <= WIRE_BODY_MAX && repair_is_in_range(copy, m.of.at.offset, m.bytes);
    msg_patch_encode(&(struct msg_patch){.of = m.of, .len = here ? m.bytes : 0, .answer = true}, &answer);
    agent_tell(a, from, &answer, here ? copy->base + m.of.at.offset : NULL);
}

void patch_receive(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct msg_patch m;
    msg_patch_decode(w, &m);
    int copyset = copyset_of_message(a, &m.of);
    if (copyset < 0 || (m.answer && scrub_takes(a, from, &m, body)))
        return;
    struct repair *r = &a->repairs.of[copyset];
    const struct view_copyset *g = &a->view.copyset[copyset];
    if (m.answer ? r->phase != PHASE_FETCH || r->fetches == 0 || view_copy_at(g, from) < 1
                 : !chain_is_before(a, copyset, from))
        return;
    const struct store_copy *copy = store_copy(&a->store, m.of.at.seg, m.of.at.slot);
    FAULT_POINT("push.patch_received");
    if (m.answer && m.of.around && m.len)
        fill_around(a, copyset, &m, body);
    else if (repair_is_in_range(copy, m.of.at.offset, m.len))
        words_store(copy->base + m.of.at.offset, body, m.len);
    if (m.answer)
        r->fetches--;
    else
        chain_relay(a, copyset, from, w, body);
}
