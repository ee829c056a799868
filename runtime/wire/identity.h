/* How an operation that counts once is recognised when it is repeated: by its number in a lane of its rank, and which
 * piece of it is sent, or as a step of a task. */
#ifndef KEEL_WIRE_IDENTITY_H
#define KEEL_WIRE_IDENTITY_H

#include "runtime/wire/header.h"

enum { IDENTITY_F_TASK = 4 };

struct msg_identity {
    bool of_task;
    uint32_t lane;   /* not of a task: of the rank, below LANES_MAX */
    uint64_t number; /* and the number in it */
    uint64_t task;   /* of a task: task_id.h */
    uint32_t round;  /* of the task */
    uint32_t step;   /* of the task; else the piece of an accumulate, from 1, or 0: it has but this one */
};

/* Into a message that has been begun. */
static inline void msg_identity_encode(const struct msg_identity *m, struct wire *wire)
{
    wire->flags |= m->of_task ? IDENTITY_F_TASK : 0;
    wire->raw.identity = m->of_task ? m->task : m->number;
    wire->raw.round = m->of_task ? m->round : m->lane;
    wire->raw.step = m->step;
}

static inline void msg_identity_decode(const struct wire *wire, struct msg_identity *m)
{
    m->of_task = wire->flags & IDENTITY_F_TASK;
    m->number = m->task = wire->raw.identity;
    m->lane = m->of_task ? 0 : wire->raw.round;
    m->round = wire->raw.round;
    m->step = wire->raw.step;
}
#endif
