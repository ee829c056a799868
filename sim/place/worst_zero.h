/* The worst case of 0D, by a search made for it.
 *
 * 0D moves one slot per failure, so a map is a list of (failed slot, spare). For 1, 2, ... failures in turn the search
 * follows the ordered sequences depth first and leaves out
 *   - maps met before (with the sides they remember);
 *   - orders that change nothing: when two failures in a row choose the same spares the other way round and share no
 * line whose side is remembered, only the order with the lower slot first is followed. This goes together with the
 * maps met before: what is left out of a map is below another map that lacks a higher slot, and so on, until one is
 * reached below which it is not left out;
 *   - mirror images, in each dimension without spares that can be turned round: at least as many failures in its upper
 * half as in its lower one. Of a set of failures and its image one qualifies. Nothing can be shifted, not even on a
 * torus: the stencils have no periodic boundary. No two dimensions can be exchanged: with one side of spares they
 * differ, with more the choice among equally near spares prefers the first side;
 *   - what cannot win. A link carries at most the messages between slots still at home, and for each substituted slot
 * what it brings: its messages that cross the link with the other end at home, and where both ends may be on spares a
 * share such that both shares make up the crossing. The i-th of the failures to come takes a spare that fewer than i of
 * the free ones are nearer than, and they take different spares: two sums of largest values, and the lower one counts.
 * A link for which it is too low can never win below this map and is not looked at again. A link load is counted
 * exactly only where all this says that the worst case so far is beaten. */
#ifndef KEEL_SIM_PLACE_WORST_ZERO_H
#define KEEL_SIM_PLACE_WORST_ZERO_H
#include "sim/place/worst_int.h"

struct zero;

/* Can it be used: 0D alone, one phase, a grid, tables of reasonable size? */
bool worst_zero_fits(const struct setup *s, const struct job *j, int32_t failures);
/* Bytes of what all threads share, or of what each has for itself. */
size_t zero_size(const struct job *j, int32_t failures, bool each);
/* The tables. NULL when out of memory; end takes NULL. */
struct zero *worst_zero(struct search *s);
void worst_zero_end(struct zero *z);
/* From now on the search is for this number of failures. returns false when out of memory. */
bool zero_stage(struct zero *z, int32_t failures);
/* One thread's part of the stage. NULL when out of memory; end takes NULL. */
struct zero *zero_branch(const struct zero *from, const atomic_bool *stop);
void zero_branch_end(struct zero *z);
/* All sequences that begin with this slot. */
void zero_follow(struct zero *z, int32_t slot);
/* Adds what was counted since the last call. */
void zero_counts(struct zero *z, int64_t *maps, int64_t *cannot);
#endif
