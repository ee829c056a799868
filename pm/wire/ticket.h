/* What an agent is started with (LAUNCH_ENV, pm/wire/message.h). */
#ifndef KEEL_PM_TICKET_H
#define KEEL_PM_TICKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* "KEEL_LAUNCH=..."; the caller frees it. from: the agent's local address, "-": any. */
char *ticket_variable(uint64_t job_id, const uint8_t *ticket, const char *host, int port, int node, const char *from);
/* Does this process belong to the start of a node: mpiexec, what it runs, an agent? The environment of these names the variable, that of ranks
 * and of what they leave behind does not. */
bool ticket_is_with(pid_t pid);
#endif
