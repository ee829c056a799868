/* How is a rank's process? An agent to that of its node, and back (agent/health.h). */
#ifndef KEEL_WIRE_RANK_ASK_H
#define KEEL_WIRE_RANK_ASK_H

#include "runtime/wire/header.h"

struct msg_rank_ask {
    struct life life;
    uint64_t asked;           /* when */
    bool behind;              /* and somebody leaves without it (note.h: struct behind), */
    uint64_t group;           /* a member of that group, */
    uint64_t returned, begun; /* whose calls these were */
};

static inline void msg_rank_ask_encode(const struct msg_rank_ask *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_RANK_ASK,
                          .raw.offset = m->begun,
                          .raw.count = m->behind,
                          .raw.a = (int64_t)m->asked,
                          .raw.b = (int64_t)m->returned,
                          .raw.identity = m->group,
                          .raw.rank = (uint32_t)m->life.rank,
                          .raw.incarnation = m->life.incarnation};
}

static inline void msg_rank_ask_decode(const struct wire *wire, struct msg_rank_ask *m)
{
    m->life = wire_life(wire);
    m->asked = (uint64_t)wire->raw.a;
    m->behind = wire->raw.count != 0;
    m->group = wire->raw.identity;
    m->returned = (uint64_t)wire->raw.b;
    m->begun = wire->raw.offset;
}

struct msg_rank_says {
    struct life life;
    uint32_t process; /* enum page_process */
    uint64_t ticks;   /* processor time it has used */
    uint64_t asked;   /* as asked; 0: nobody has */
};

static inline void msg_rank_says_encode(const struct msg_rank_says *m, struct wire *wire)
{
    *wire = (struct wire){.type = WIRE_RANK_SAYS,
                          .raw.count = m->process,
                          .raw.a = (int64_t)m->asked,
                          .raw.identity = m->ticks,
                          .raw.rank = (uint32_t)m->life.rank,
                          .raw.incarnation = m->life.incarnation};
}

static inline void msg_rank_says_decode(const struct wire *wire, struct msg_rank_says *m)
{
    m->life = wire_life(wire);
    m->process = wire->raw.count;
    m->ticks = wire->raw.identity;
    m->asked = (uint64_t)wire->raw.a;
}
#endif
