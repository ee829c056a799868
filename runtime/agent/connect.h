/* Who may connect to this agent: ranks and agents of the job that nobody has declared dead. */
#ifndef KEEL_AGENT_CONNECT_H
#define KEEL_AGENT_CONNECT_H

#include "runtime/agent/agent.h"

/* TP_CONNREQ: remember it. */
void connect_asked(struct agent *a, const struct tp_event *e);
/* Accept or reject all that have asked. Everything that has arrived was handled before: who connects again may have written over
 * its old connection, which ends here, what it had announced there. */
void connect_all(struct agent *a);
#endif
