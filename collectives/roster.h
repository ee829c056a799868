/* Roster: which members of a group live, as of one view. Never changed once made, so that all who are in the same view
 * may share one. Two rosters of one group with the same epoch are equal: views come in the same order to everybody.
 *
 * Live members are also numbered 0..live-1 without gaps, in the group's order: their *place*. Algorithms run over
 * places.
 *
 * threads   counting references is the owner's to serialise */
#ifndef KEEL_COLLECTIVES_ROSTER_H
#define KEEL_COLLECTIVES_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

struct roster;

/* In steps, of which the first takes all memory, NULL if out of it, and gives one reference: who lives is to be added
 * to the bits, BITSET_WORDS(n) of them; then the room is the roster of at most so many members. epoch > 0. */
struct roster *roster_room(int n);
uint64_t *roster_room_bits(struct roster *room);
void roster_fill(struct roster *room, int n, uint64_t epoch);
/* Members may join while calls go on: after[n], copied, says how many calls were complete when each did. Before anybody
 * else has the roster. False if out of memory. */
bool roster_set_after(struct roster *r, const uint64_t *after);
uint64_t roster_last_after(const struct roster *r); /* the greatest of who lives */
/* Who takes part in call `number`: the roster itself, or a smaller one of the same epoch without those that joined
 * later; one reference more. NULL if out of memory. */
struct roster *roster_for(struct roster *r, uint64_t number);
struct roster *roster_ref(struct roster *r);
void roster_unref(struct roster *r); /* takes NULL */

uint64_t roster_epoch(const struct roster *r);
int roster_size(const struct roster *r); /* members, dead ones included */
int roster_live(const struct roster *r);
bool roster_has(const struct roster *r, int member);
int roster_place(const struct roster *r, int member); /* -1: dead */
int roster_member(const struct roster *r, int place); /* -1: there are not so many */
int roster_next(const struct roster *r, int from);    /* the first live member that is >= from, or -1 */
const uint64_t *roster_bits(const struct roster *r);
#endif
