/* Exactly once (guarantees G3, G4): what a copy of a copyset remembers of the operations it has seen. Pure.
 *
 * An operation outside a task is (origin's life, lane, number). A rank has at most one operation in flight in a lane,
 * and numbers them; so the last one of each lane, with the value it returned, decides every retry, however many lanes
 * (threads) go on meanwhile. A lower number can only be an echo: its origin has its answer, and it is never executed.
 * Where replicas of a rank do each other's part all of them have one life here (execute_int.h): who brings a name first
 * has it executed, and who is behind brings lower ones, which are done. An accumulate goes out in pieces, several of
 * them at a time, which are counted from 1: the next one is executed, a lower one is known, a higher one came too
 * early. What it returns is how many are executed. So an operation has one number however it is cut, and a lane's
 * record is as small for a long one.
 *
 * An operation in a task is (task, round, step), whatever process runs it. The steps of a task towards one copyset are
 * counted from 0 without gaps; the next step is executed, a lower one is known, a higher one came too early (its
 * predecessor was lost on the way) and must be sent again. A task's record is kept until its pool is a round further
 * and forgotten with the pool. */
#ifndef KEEL_AGENT_DEDUP_H
#define KEEL_AGENT_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/life.h"
#include "runtime/wire/limits.h"

struct dedup_lane {
    uint64_t number; /* the last one seen, 0: none */
    int64_t result;  /* of an accumulate: its last piece seen */
};

/* As other nodes read it (WIRE_SNAP_ORIGIN). */
struct dedup_origin {
    uint32_t rank;
    uint32_t incarnation;
    uint32_t lanes; /* places in lane[] */
    uint32_t pad;
    struct dedup_lane lane[];
};

struct dedup_task {
    uint64_t task;
    uint32_t round;
    uint32_t steps; /* seen; 0: the place is empty */
};

struct dedup {
    int ranks;
    struct dedup_origin **origin; /* [ranks], NULL until first seen */
    struct dedup_task *task;      /* open addressing */
    size_t task_capacity;         /* power of two, or 0 */
    size_t task_count;
};

enum dedup_verdict {
    DEDUP_NEW,  /* execute it */
    DEDUP_SEEN, /* it took effect; its result is known */
    DEDUP_ECHO, /* an old message come again, or from a process that is dead: nobody waits for an answer */
    DEDUP_EARLY /* a piece or step before it has not come: to be sent again */
};

bool dedup_init(struct dedup *d, int ranks);
void dedup_fini(struct dedup *d);

/* *result gets the value returned if it is DEDUP_SEEN. piece: of an accumulate, from 1; 0 of what has but one, and
 * returns a value. */
enum dedup_verdict dedup_look(const struct dedup *d, struct life origin, uint32_t lane, uint64_t number, uint32_t piece,
                              int64_t *result);
/* Make room, so that the record cannot fail after the operation took effect. False when out of memory. */
bool dedup_reserve(struct dedup *d, struct life origin, uint32_t lane);
/* After dedup_reserve for the same origin and lane. result: of an accumulate its piece. */
void dedup_record(struct dedup *d, struct life origin, uint32_t lane, uint64_t number, int64_t result);

enum dedup_verdict dedup_task_look(const struct dedup *d, uint64_t task, uint32_t round, uint32_t step);
bool dedup_task_reserve(struct dedup *d, uint64_t task, uint32_t round);
void dedup_task_record(struct dedup *d, uint64_t task, uint32_t round, uint32_t step);
/* The pool was freed. */
void dedup_pool_forget(struct dedup *d, uint32_t pool);

/* For filling a copy: take over what is known of an origin. False when out of memory or malformed. */
bool dedup_origin_load(struct dedup *d, const void *record, size_t len);
static inline size_t dedup_origin_bytes(const struct dedup_origin *o)
{
    return sizeof *o + o->lanes * sizeof o->lane[0];
}
static_assert(sizeof(struct dedup_origin) + LANES_MAX * sizeof(struct dedup_lane) <= WIRE_BODY_MAX,
              "an origin's record fits one message");
#endif
