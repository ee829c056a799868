/* Between ranks.c, ranks_events.c, ranks_end.c and ranks_all.c. */
#ifndef KEEL_PM_KEELD_RANKS_PARTS_H
#define KEEL_PM_KEELD_RANKS_PARTS_H

#include "pm/keeld/keeld.h"

/* ranks.c: of each set there is one that has standard input. */
bool ranks_is_first(const struct keeld *a, int rank);
/* ranks_all.c: keelrun has ended, and this process of rank 0 lives. */
void ranks_input_is_cut(struct keeld *a, struct keeld_process *e);
/* ranks_events.c */
extern const struct process_events ranks_events;
/* ranks_end.c: keelrun hears of it; not of one that has ended with its set. */
void ranks_tell_ended(struct keeld *a, struct keeld_process *e);
#endif
