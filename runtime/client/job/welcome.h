/* What a process does with its welcome (wire/control.h): it becomes the rank. */
#ifndef KEEL_CLIENT_JOB_WELCOME_H
#define KEEL_CLIENT_JOB_WELCOME_H

#include <keel/status.h>

struct control_welcome;

/* fds [CHANNEL_FDS] stay the caller's. errors    KEEL_ERR_LIMIT: addresses are taken, which was told. */
keel_status welcome_accept(const struct control_welcome *w, const int *fds);
#endif
