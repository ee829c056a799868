/* How a process becomes a rank: it asks for that over KEEL_FD (wire/control.h). */
#ifndef KEEL_CLIENT_JOB_ENTER_H
#define KEEL_CLIENT_JOB_ENTER_H

#include <keel/status.h>

/* Where the program has a standard descriptor closed, something stands that refuses reading and writing as a closed one
 * does (EBADF): else a socket of ours gets its number, and what the program prints. */
void enter_hold_standard(void);
/* *control_fd is the rank's control socket then, this process's alone. Blocks until the agent answers.
 * errors    KEEL_ERR_NOT_LAUNCHED with a line on standard error: another process is or was this rank;
 *           KEEL_ERR_AGENT_GONE; KEEL_ERR_SYSTEM:
 *           no descriptors. */
keel_status enter_job(int keel_fd, int *control_fd);
#endif
