/* What libkeel's instance asks of its process (struct client_env): the clock, sleep, processors, mappings. */
#ifndef KEEL_CLIENT_JOB_ENVIRONMENT_H
#define KEEL_CLIENT_JOB_ENVIRONMENT_H

#include <stdbool.h>

#include "runtime/client/client.h"

extern struct client_env environment;

/* Who sleeps wakes for what comes over these transports. */
keel_status environment_open(void);
keel_status environment_watch(struct tp *tp);
void environment_close(void);
/* Addresses for segments: the range that the job was given, or a usual one. False: it is taken, which was told. */
bool environment_find_range(const struct control_welcome *w);
#endif
