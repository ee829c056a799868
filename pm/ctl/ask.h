/* Talking to an agent over its console, which is connected: blocking calls. */
#ifndef KEEL_PM_ASK_H
#define KEEL_PM_ASK_H

#include "pm/wire/session.h"

#include <jansson.h>

/* body is text. False: the agent does not take it. */
bool ask(int fd, uint8_t type, const char *body);
/* One read into the session; 0 at the end, -1 if nothing came in time. */
ssize_t ask_receive(struct session *s, int fd, int timeout_ms);
/* What the agent answers, which the caller drops; NULL if it does not (it is frozen, or just ended). body is text. */
json_t *ask_about(int fd, uint8_t question, const char *body, uint8_t wanted, int timeout_ms);
/* The same, of a question that says nothing more. */
json_t *ask_for(int fd, uint8_t question, uint8_t wanted, int timeout_ms);
/* MSG_STATUS, in no more than two seconds. */
json_t *ask_status(int fd);
/* Which process listens at the other end, 0: none. It may have ended since. */
long long ask_whom(int fd);
#endif
