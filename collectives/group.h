/* Groups: ordered sets of ranks without repetition, never changed once made. Pure; nothing here communicates.
 *
 * A member is a place 0..size-1 in a group, a rank its number in the job. A group whose ranks are first, first +
 * stride, ... holds no list, so that the world, rows and columns cost the same at any size; others hold 8 bytes per
 * member.
 *
 * Identity: 64 bits that every member computes alike from what all of them know - the ranks in order and a number
 * that tells apart groups of the same ranks made one after the other. Messages carry it.
 *
 * threads   a group is read by any number of threads; counting references is the owner's to serialise
 * memory    made with one reference; every function that returns a group gives its caller one */
#ifndef KEEL_COLLECTIVES_GROUP_H
#define KEEL_COLLECTIVES_GROUP_H

#include <stdbool.h>
#include <stdint.h>

struct group;

enum group_status { GROUP_OK, GROUP_BAD, GROUP_NOMEM }; /* BAD: a negative count, a rank out of range or twice */

/* Room for at most n members: all memory that a group needs. A function whose name ends with _in makes it a group,
 * once; with GROUP_BAD it is none, and is to be given back. At least as much room as a list has, or the group that
 * the new one is part of. NULL: out of memory. */
struct group *group_room(int n);
/* The listed ranks of a job of so many, in the order of the list; number tells apart groups of the same list. */
enum group_status group_list_in(struct group *room, int ranks, const int *list, int n, uint64_t number);
void group_unref(struct group *g); /* takes NULL */

int group_size(const struct group *g);
uint64_t group_id(const struct group *g);
int group_rank(const struct group *g, int member);    /* -1: no such member */
int group_member_of(const struct group *g, int rank); /* -1: the rank is not in the group */

/* The named members of g in the named order. */
enum group_status group_include_in(struct group *room, const struct group *g, const int *members, int n,
                                   uint64_t number);
/* The members in the set (bitset of the group's size): who lives, for a group that shrinks or is created. With the
 * view's epoch as number all who have the same set have the same identity. */
void group_keep_in(struct group *room, const struct group *g, const uint64_t *members, uint64_t number);
/* The members of the given colour, by key, those of equal keys in g's order. colour and key: one per member.
 * A member absent from the split (dead, or with no wish for a group) has a negative colour. */
void group_split_in(struct group *room, const struct group *g, const int *colour, const int *key, int mine,
                    uint64_t number);
#endif
