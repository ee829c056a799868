/* Between procs.c, procs_control.c and procs_welcome.c. All on the data thread. */
#ifndef KEEL_PLANE_PROCS_INT_H
#define KEEL_PLANE_PROCS_INT_H

#include "runtime/net/shm/shm.h"
#include "runtime/plane/plane_int.h"

enum { PROCS_WELCOME_FDS = 4 + TP_SHM_FDS };

/* NULL: it is forgotten. */
struct process *procs_of(struct plane *p, const struct proc *proc);
/* A rank that does not read its socket (256 packets behind) is not waited for. */
void procs_send_packet(struct process *k, const void *data, size_t len, const int *fds, int nfds);
/* Tell the process who it is and hand it what it needs. False, with errno: there is not enough for that, and it knows
 * nothing. */
bool procs_welcome(struct plane *p, struct process *k, struct life life);
#endif
