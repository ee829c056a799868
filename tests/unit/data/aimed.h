/* A client, rank 3 on node 3, beside the agents of agents.h in one process: all driven by the test. */
#ifndef KEEL_TEST_AIMED_H
#define KEEL_TEST_AIMED_H

#include "agents.h"
#include "runtime/client/client.h"

extern struct client c;
extern struct tp *shm, *net;
extern struct intent_page intents;
extern struct keel_segment *triple, *shadow;
extern bool tell_fails, map_fails; /* what the client asks of its process */
extern int told;                   /* doubts, to the agent */
extern int asked[NODES_MAX + 1];   /* how often the agent was asked whether a node lives */
extern int gone_in;                /* so many looks until the agent is gone, 0: it stays */

extern void (*on_sleep)(void); /* what happens while it sleeps; NULL: the agents turn */

/* The client of a world that is open. */
void client_open(void);
/* Agents turn, without the world's ranks: the client has the transport of rank 3. */
void turns(int n);
void change(const struct view_event *e, int n);
void restore(void);

/* cmocka's: a world of four nodes; with client_close the client's operations end with it. */
int setup(void **state);
int teardown(void **state);
int client_close(void **state);
#endif
