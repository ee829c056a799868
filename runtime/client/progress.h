/* What makes operations go on, and waiting for them. Lock held, but by client_lock. */
#ifndef KEEL_CLIENT_PROGRESS_H
#define KEEL_CLIENT_PROGRESS_H

#include <stdbool.h>

#include "runtime/client/waits.h"

struct client;

void client_progress(struct client *c);
/* Take the lock: a thread that looks for what is under way has it most of the time, and gives it to who wants it by this. */
void client_lock(struct client *c);
/* Wait until done(arg), with the lock given back in between; false if the process has lost the job. wait: what it is told to be, if it lasts. */
bool client_wait(struct client *c, bool (*done)(void *arg), void *arg, struct wait *wait);
#endif
