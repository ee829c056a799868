/* This process, or others, left by those who went on without waiting for them. Lock held. */
#ifndef KEEL_CLIENT_GROUP_BEHIND_H
#define KEEL_CLIENT_GROUP_BEHIND_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct keel_group;
struct roster;

/* This process leaves: those that are stopped, and not waited for, hear of it; waits for their agents. */
void behind_tell(struct client *c);
/* Was this process left so? What that means for groups. Before the view without the others is looked at. */
void behind_see(struct client *c, uint64_t now);
/* Such a call of data that all give: those who have left have given to it, and are not in its result. */
bool behind_lacks(const struct keel_group *g, uint64_t number, const struct roster *covered);
#endif
