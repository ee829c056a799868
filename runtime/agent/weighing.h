/* What the method `auto` weighs (topo/auto.h), as far as this agent knows it, and what is told of its choices.
 *
 * Each agent says what it alone knows: the bytes of the slot that is here, the rate at which it filled a copy, the time
 * that a rank of it took to go. Of the program's pattern one speaks, the *speaker*, on whose node the lowest of the
 * ranks that run is: ranks of a program do the same, and its own ranks' word, or count, is taken for all. If it dies
 * the next one speaks; what was ordered before holds (view/plan.h), so the plan of its death is the same everywhere.
 *
 * A figure is said anew when it has become twice as much or half: a job of T seconds has had log2(T) views for its
 * horizon, and a choice knows it within a factor of two. */
#ifndef KEEL_AGENT_WEIGHING_H
#define KEEL_AGENT_WEIGHING_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/view/view.h"

struct agent;

struct weighing {
    uint64_t began;   /* this agent; */
    uint64_t look_at; /* when it looks next */
    uint64_t changed; /* the last view with something else than figures */
    bool due;         /* nobody has looked since then whether slots should stand elsewhere */
    struct {
        uint64_t since, bytes; /* what the ranks here had moved when the speaker's count began */
    } count;
};

void weighing_init(struct agent *a);
/* Timers; each round of the owner's loop. */
void weighing_step(struct agent *a);
uint64_t weighing_deadline(const struct agent *a);
/* A copy of so many bytes was filled in that time; a rank of this node took that long to go. */
void weighing_filled(struct agent *a, uint64_t bytes, uint64_t ns);
void weighing_left(struct agent *a, uint64_t ns);
/* A view has been applied: what auto has chosen in it is told, and who has asked is answered. */
void weighing_committed(struct agent *a, const struct view_event *events, int n);
/* Should slots that live stand elsewhere, if that is to pay within so many seconds (0: as many as the job has run)?
 * ops.rebalanced follows, with this id. */
void weighing_ask(struct agent *a, uint64_t id, uint32_t seconds);
#endif
