/* Two engines of the same members, whose calls come in one order (engine_pair). A question says how many calls of the
 * other engine its sender had completed.
 *
 * Asked for call m of one, which is not begun here, while call n of the other is under way here, of which the sender
 * has completed n-1: it waits for us in m, and cannot begin n before; we wait for it in n, and cannot begin m. That
 * stays so, however late the question is. */
#include "collectives/engine_int.h"

void engine_pair(struct engine *a, struct engine *b)
{
    a->pair = b;
    b->pair = a;
}

uint32_t engine_pair_behind(const struct engine *e)
{
    return e->pair ? (uint32_t)e->pair->stream[STREAM_ORDINARY].complete : 0;
}

bool engine_pair_disagrees(const struct engine *e, const struct message_head *h)
{
    const struct engine *other = e->pair;
    if (!other || seq_stream(h->seq) != STREAM_ORDINARY || seq_number(h->seq) != e->stream[STREAM_ORDINARY].started + 1)
        return false;
    uint64_t number = other->stream[STREAM_ORDINARY].started;
    const struct instance *i = engine_find(other, seq_make(number, STREAM_ORDINARY));
    return i && i->state != INSTANCE_COMPLETE && (uint32_t)(number - 1) == h->behind;
}
