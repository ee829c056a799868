/* What the files of execute.h share: what a copy holds, that it was written to, and what is remembered of operations
 * that count once. Inline, as requests and forwards are what an agent does most. Nothing but runtime/agent/execute.c
 * and its sisters includes this. */
#ifndef KEEL_AGENT_EXECUTE_INT_H
#define KEEL_AGENT_EXECUTE_INT_H

#include "runtime/agent/agent.h"
#include "runtime/wire/identity.h"
#include "runtime/wire/marks.h"
#include "runtime/wire/pack.h"

static inline bool in_range(const struct store_copy *copy, uint64_t offset, uint64_t len)
{
    return len <= copy->bytes && offset <= copy->bytes - len;
}

/* It was written to. Of pieces each one by itself: what lies between them may be much. */
static inline void mark(const struct agent *a, const struct store_copy *copy, uint64_t offset, uint64_t len,
                        const struct pack *pieces)
{
    if (!marks_wanted(a->page))
        return;
    if (!pieces)
        marks_set(copy->base, copy->bytes, offset, len);
    for (uint32_t i = 0; pieces && i < pieces->runs; i++)
        marks_set(copy->base, copy->bytes, offset + pack_run(pieces, i).at, pack_run(pieces, i).len);
}

/* Whose names an operation's is one of. Replicas that do each other's part give the same ones: the life of all is that
 * of the first set's. In what belongs to all sets each counts for itself. */
static inline struct life named_by(const struct agent *a, struct life origin, uint32_t seg)
{
    if (!a->partners || seg < SEGMENT_GROUP_FIRST)
        return origin;
    return life_of(replica_native(a->partners, replica_of(a->partners, origin.rank).rank, 0), 0);
}

static inline bool reserve(struct dedup *d, struct life origin, const struct msg_identity *id)
{
    if (id->of_task)
        return dedup_task_reserve(d, id->task, id->round);
    return dedup_reserve(d, origin, id->lane);
}

static inline void record(struct dedup *d, struct life origin, const struct msg_identity *id, int64_t value)
{
    if (id->of_task)
        dedup_task_record(d, id->task, id->round, id->step);
    else
        dedup_record(d, origin, id->lane, id->number, value);
}

/* execute_wait.c: answer the waiter's connection when the other copies have what was sent to them; the waiter is theirs
 * from then on. */
void execute_reply_when_reached(struct agent *a, struct waiter *waiter);
/* Once more when the view is there, or what it waits for. */
void execute_stash(struct agent *a, struct conn *c, const struct wire *w, const void *body);
/* execute_intent.c: a note of a remote write. */
void execute_intent(struct agent *a, struct conn *c, const struct wire *w);
#endif
