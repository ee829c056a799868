/* What a primary has executed, at the other copies. */
#include "runtime/agent/chain.h"
#include "runtime/agent/execute.h"
#include "runtime/agent/execute_int.h"
#include "runtime/base/fault.h"
#include "runtime/base/log.h"
#include "runtime/base/words.h"
#include "runtime/wire/forward.h"
#include "runtime/wire/reply.h"

/* Its bytes are older than what is here: stored again, they would be all that is left if what follows them never
 * comes. */
static inline bool is_known(const struct agent *a, int copyset, const struct msg_forward *f)
{
    return f->again && (int32_t)(f->number - a->forwards[copyset]) <= 0;
}

/* False: it cannot be remembered. */
static inline bool store_forward(struct agent *a, int copyset, const struct store_copy *copy,
                                 const struct msg_forward *f, const void *body, const struct pack *pack)
{
    bool counts = f->operation != WIRE_PUT;
    struct life giver = named_by(a, f->origin, f->at.seg);
    if (counts && !reserve(&a->dedup[copyset], giver, &f->identity))
        return false;
    FAULT_POINT("replica.forward_received");
    if (pack)
        pack_scatter(pack, copy->base + f->at.offset);
    else
        words_store(copy->base + f->at.offset, body, f->len);
    mark(a, copy, f->at.offset, f->len, pack);
    FAULT_POINT("replica.forward_stored");
    if (counts)
        record(&a->dedup[copyset], giver, &f->identity, f->value);
    a->forwards[copyset] = f->number;
    return true;
}

/* This is the last copy, on the origin's node: all have it. */
static inline void answer_origin(const struct agent *a, const struct msg_forward *f)
{
    struct conn *c = a->ranks.conn[f->origin.rank];
    struct wire reply;
    msg_reply_encode(&(struct msg_reply){.seq = f->request, .value = f->value, .forgot = -1}, &reply);
    if (c && life_equal(c->life, f->origin))
        agent_answer(c, &reply, NULL);
}

static inline bool is_forward_in_range(const struct store_copy *copy, const struct msg_forward *f, const void *body,
                                       struct pack *pieces)
{
    if (!pieces)
        return in_range(copy, f->at.offset, f->len);
    return in_range(copy, f->at.offset, 0) && pack_open(pieces, body, f->len, true) &&
           pack_fits(pieces, copy->bytes - f->at.offset, 1, 1);
}

void execute_forwarded(struct agent *a, int from, const struct wire *w, const void *body)
{
    struct msg_forward f;
    msg_forward_decode(w, &f);
    const struct store_segment *s = f.at.slot < a->view.nodes ? store_find(&a->store, f.at.seg) : NULL;
    if (life_is_none(f.origin) || f.origin.rank >= a->view.ranks || f.identity.lane >= LANES_MAX)
        return;
    if (!s) { /* freed meanwhile */
        if (f.answer)
            answer_origin(a, &f);
        return;
    }
    int copyset = copyset_of(f.at.slot, s->redundancy);
    /* Who is not before this copy any more has told everybody before it stopped being so, or was declared dead. */
    if (!chain_is_before(a, copyset, from))
        return;
    /* A copy that is about to be filled is not there yet: it will bring what this forward did. */
    struct store_copy *copy = store_copy(&a->store, f.at.seg, f.at.slot);
    if (!copy || !copy->base)
        return;
    struct pack pack, *pieces = f.packed ? &pack : NULL;
    if (!is_forward_in_range(copy, &f, body, pieces)) {
        log_error("node %d forwards beyond segment %u", from, f.at.seg);
        return;
    }
    if (!is_known(a, copyset, &f) && !store_forward(a, copyset, copy, &f, body, pieces)) {
        agent_break(a, "out of memory for the records of operations");
        return;
    }
    chain_relay(a, copyset, from, w, body);
    if (f.answer && a->view.copyset[copyset].copy[a->view.copyset[copyset].copies - 1].node == a->self) {
        FAULT_POINT("replica.answering_for_primary");
        answer_origin(a, &f);
        if (!a->recovery.frozen) /* else a view waits for it */
            peer_unhurried(&a->peers, from);
    }
}
