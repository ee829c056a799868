/* Between the rooms of groups (coll.h). Lock held. */
#ifndef KEEL_CLIENT_GROUP_COLL_INT_H
#define KEEL_CLIENT_GROUP_COLL_INT_H

#include "runtime/client/group/coll.h"

/* By what is counted what groups are made of. */
enum {
    NUMBER_NODE = 1,
    NUMBER_CREATE = 2,
    NUMBER_AMONG = 3,
    NUMBER_SPLIT = 4,
    NUMBER_SHRINK = 5,
    NUMBER_LIVING = 6,
    NUMBER_SEGMENTS = 7
};

/* coll_group.c. The room, whose ranks are known, becomes a group. False (coll_start_engine): it is gone. */
bool coll_open_group(struct keel_group *g, uint64_t birth, bool creation);
/* All memory for a group of at most n members. NULL: there is not so much. */
struct keel_group *coll_room_new(struct client *c, int n);

/* coll_lives.c */
void coll_read_lives(struct client *c);
/* Who lives of the group, as of the last view that changed anything of its ranks. False: there is no memory for
 * those of the groups of whoever lives. */
bool coll_fill_roster(const struct keel_group *g, struct roster *room);

/* coll_stopped.c. Who is waited for for long: does its node live, does its process run? due: for as long again as
 * when that was asked last. */
void coll_ask_about(struct keel_group *g, bool due, uint64_t now);
/* The same of those to which calls that are complete have no room. */
void coll_look_after_receivers(struct client *c, uint64_t now);

/* coll_stray.c. Creations of that name that were done with, so many so far. */
uint64_t coll_made_number(const struct client *c, uint64_t id);
bool coll_remember_made(struct client *c, uint64_t id, uint64_t number);
/* What is kept for that group, which is known now. */
void coll_strays_of(struct client *c, struct keel_group *g, uint64_t now);
/* One creation fewer is under way. If it was the last, what is left is of groups that were freed here. */
void coll_created(struct client *c);

/* coll_create.c. A call on the creator has come to nothing on all members. Who has not heard may ask, until all have
 * begun one more. False: there is no memory for it. */
bool coll_close_creation(struct client *c, struct keel_group *creator);
#endif
