/* Notes of remote writes, which happen without the agent. */
#include "runtime/agent/execute.h"
#include "runtime/agent/execute_int.h"
#include "runtime/agent/repair.h"
#include "runtime/wire/intent.h"
#include "runtime/wire/reply.h"

/* Remote writes happen without us. */
static void mark_noted(const struct agent *a, const struct patch *p)
{
    const struct store_copy *copy = p->len ? store_copy(&a->store, p->seg, p->slot) : NULL;
    if (copy && in_range(copy, p->offset, p->len))
        mark(a, copy, p->offset, p->len, NULL);
}

/* Every copy has the bytes of the note: it is forgotten, and the writer hears so. */
static void intent_over(struct agent *a, struct conn *c, const struct msg_intent *m)
{
    struct wire reply;
    msg_reply_encode(&(struct msg_reply){.seq = m->seq, .forgot = m->note}, &reply);
    mark_noted(a, &c->note[m->note]);
    c->note[m->note].len = 0;
    repair_forget_doubt(&a->repairs, c->life, m);
    agent_answer(c, &reply, NULL);
}

/* A note of a remote write that follows on this connection, or that every copy has it. One of bytes that are not here
 * can be followed by no write, nor one of an older generation. */
void execute_intent(struct agent *a, struct conn *c, const struct wire *w)
{
    struct msg_intent m;
    msg_intent_decode(w, &m);
    if (m.note < 0 || m.note >= NOTES_MAX)
        return;
    if (m.bytes == 0) {
        intent_over(a, c, &m);
        return;
    }
    const struct store_segment *s = m.at.slot < a->view.nodes ? store_find(&a->store, m.at.seg) : NULL;
    const struct store_copy *copy = s ? store_copy(&a->store, m.at.seg, m.at.slot) : NULL;
    if (!copy || !in_range(copy, m.at.offset, m.bytes) ||
        m.generation < a->view.copyset[copyset_of(m.at.slot, s->redundancy)].generation)
        return;
    c->note[m.note] = (struct patch){.seg = m.at.seg,
                                     .slot = m.at.slot,
                                     .offset = m.at.offset,
                                     .len = m.bytes,
                                     .torn = true,
                                     .level = (uint8_t)(m.level < COPIES_MAX ? m.level : COPIES_MAX - 1),
                                     .put = m.put,
                                     .generation = m.generation,
                                     .came_at = a->now};
}
