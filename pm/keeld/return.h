/* The node was put out of the job, and lives: it comes back as another one. */
#ifndef KEEL_PM_KEELD_RETURN_H
#define KEEL_PM_KEELD_RETURN_H

#include <stdbool.h>
#include <stdint.h>

#include "pm/wire/conn.h"

struct keeld;
struct keeld_legacy;

/* There is somebody to ask, and room. */
bool keeld_return_may(const struct keeld *a);
/* Its processes are killed: when they have ended it begins anew. */
void keeld_return_begin(struct keeld *a);
void keeld_return_processes_gone(struct keeld *a);
/* What is left of it, in a descriptor. -1: that cannot be. */
int keeld_return_leave(struct keeld *a);
void keeld_return_exec(int legacy, uint64_t job_id);
/* At the beginning of the second life: standard input, read once. NULL: there is none. */
struct keeld_legacy *keeld_return_read(void);
void keeld_return_take(struct keeld *a);
/* MSG_RETURN, on a connection that is made as one that broke is. */
void keeld_return_ask(struct keeld *a, struct pm_conn *c);
/* MSG_START has come. */
void keeld_return_started(struct keeld *a);
#endif
