/* Between the rooms of the scrubber:
 *   scrub.c        where it is, what it asks, what it makes of the answers while copies may be written
 *   scrub_look.c   what a copy says
 *   scrub_mend.c   what it finds out and mends in a repair
 *   scrub_judge.c  which copy is right, and the sums that are kept */
#ifndef KEEL_AGENT_SCRUB_INT_H
#define KEEL_AGENT_SCRUB_INT_H

#include "runtime/agent/agent.h"
#include "runtime/agent/scrub.h"
#include "runtime/wire/patch.h"

static const uint64_t SCRUB_ANSWER_NS = 2000000000u;

/* scrub.c. Ask all whole copies for the sums of the block, or blocks, where it is. */
void scrub_ask(struct agent *a, bool close);
/* All that were asked have answered, under the generation of the question, and have a copy. */
bool scrub_all_say(const struct scrub *s);
enum scrub_verdict scrub_verdict(const struct agent *a, unsigned *wrong);
/* Go on with the next block. */
void scrub_leave(struct agent *a);

/* scrub_look.c. The sums of the copy here. */
void scrub_look(const struct agent *a, const struct msg_scrub *m, struct scrub_answer *answer);
uint64_t scrub_sum(const void *bytes, size_t len);

/* scrub_mend.c. All have answered in JUDGE. */
void scrub_judged(struct agent *a);
/* It is over without an end: a view, a silence. */
void scrub_drop(struct agent *a);
bool scrub_was_told(struct scrub *s);
#endif
