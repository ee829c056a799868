/* Who may connect to this agent: ranks and agents of the job that nobody has declared dead. */
#ifndef KEEL_AGENT_CONNECT_H
#define KEEL_AGENT_CONNECT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/net/transport.h"

struct agent;

/* Somebody wants to connect. */
struct newcomer {
    struct newcomer *next;
    struct tp_connreq *req;
    size_t len;
    uint8_t hello[];
};

struct newcomers {
    struct newcomer *first;
    uint64_t refused; /* connections, so far */
};

/* TP_CONNREQ: remember it. */
void connect_asked(struct agent *a, const struct tp_event *e);
/* Accept or reject all that have asked. Everything that has arrived was handled before: who connects again may have
 * written over its old connection, which ends here, what it had announced there. */
void connect_all(struct agent *a);
#endif
