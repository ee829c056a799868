/* Inside an instance: what engine_call.c, engine_event.c, engine_move.c, engine_meeting.c and engine_instance.c ask of
 * one another. */
#ifndef KEEL_COLLECTIVES_ENGINE_INSTANCE_H
#define KEEL_COLLECTIVES_ENGINE_INSTANCE_H

#include <assert.h>

#include "collectives/engine_int.h"

static inline void instance_set_state(struct instance *i, enum instance_state to)
{
    assert(i->state != INSTANCE_COMPLETE);
    i->state = to;
}

/* engine_call.c: the view of an epoch as it concerns this call, or NULL; and the present one */
struct roster *instance_roster_at(const struct engine *e, const struct instance *i, uint64_t epoch);
struct roster *instance_roster(const struct engine *e, const struct instance *i);

/* engine_instance.c: what the first meeting of an agreement came to is what this member brings to the second, which
 * makes sure that all have it */
void instance_bind(struct instance *i, const struct vote *v);
/* Somebody asks: who lingers meets again. */
void instance_rejoin(struct engine *e, struct instance *i);

/* engine_move.c: the schedule of a new attempt; false: no memory. Nothing of the last one may be under way. */
bool instance_build(const struct engine *e, struct instance *i);
enum outcome { STEP_DONE, STEP_WAITS, STEP_FAILED };
enum outcome instance_take_step(struct engine *e, struct instance *i, const struct schedule_step *s);

/* engine_meeting.c */
void instance_set_timer(struct engine *e, struct instance *i);
/* Take out the letter that fits, if it is here. */
struct letter *instance_take(struct instance *i, enum message_kind kind, int from, uint32_t tag, uint64_t epoch);
void instance_enter_meeting(struct engine *e, struct instance *i);
/* The attempt cannot be finished, and others may not know: they are told, and tell others, so that all meet soon. */
void instance_flush(struct engine *e, struct instance *i);
/* As far as it goes with the letters that are here. True: it is over, and this is what it decided. */
bool instance_meet(struct engine *e, struct instance *i, struct decision *d);
/* They decided in a view in which this member did not live yet. The letter that says so, or NULL. */
const struct letter *instance_late_letter(const struct engine *e, const struct instance *i);
/* What the others got. */
enum engine_status instance_late_result(const struct engine *e, struct instance *i, const struct letter *l);
/* The others are in a later attempt: so are we, without a result, if a letter says so. True: it did. */
bool instance_skip(struct engine *e, struct instance *i);
#endif
