/* What ranks send to an agent, before anybody looks into it: is it a message, and is it what was sent? */
#ifndef KEEL_AGENT_RECEIVE_H
#define KEEL_AGENT_RECEIVE_H

struct agent;
struct conn;
struct tp_event;

/* A message has come on a rank's connection (TP_RECV). */
void receive_from_rank(struct agent *a, struct conn *c, const struct tp_event *e);
#endif
