/* Who may connect to this agent: ranks and agents of the job that nobody has declared dead. */
#ifndef KEEL_AGENT_CONNECT_H
#define KEEL_AGENT_CONNECT_H

#include "runtime/agent/agent.h"

/* TP_CONNREQ: accept or reject it. */
void connect_request(struct agent *a, const struct tp_event *e);
#endif
