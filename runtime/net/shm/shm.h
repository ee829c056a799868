/* Same-node messages between a rank and its agent: a `struct tp` whose connections are pairs of single-producer,
 * single-consumer rings in shared memory, with a doorbell (eventfd) that is rung only when the other side sleeps.
 * No write, no read, no listen: segments are mapped and accessed by plain loads and stores.
 * A side that dies in the middle of producing leaves nothing visible: a record's header is stored last. A ring is never
 * a lock. There is no TP_CONNECTED, and the other side's end is not seen here: who owns the process knows (pidfd).
 * TP_CLOSED follows tp_disconnect, a queue past its bound, or nonsense in the ring. */
#ifndef KEEL_NET_SHM_SHM_H
#define KEEL_NET_SHM_SHM_H

#include "runtime/net/transport.h"

enum {
    TP_SHM_FDS = 3, /* memfd with both rings, doorbell of the agent's side, doorbell of the rank's side */
    /* bytes of one message, header included: what was cut for another node may have to go to this one */
    TP_SHM_MAX = TP_BULK_MAX,
};

keel_status tp_shm_open(struct tp **out);
/* Agent's side: create the rings of one connection. fds are the caller's to pass to the rank (SCM_RIGHTS) and then to
 * close; the ep keeps its own duplicates. The ep is connected at once. All eps of one agent tp share its doorbell. */
keel_status tp_shm_create(struct tp *base, void *user, int fds[TP_SHM_FDS], struct tp_ep **out);
/* Rank's side: attach to what the agent passed. Takes no ownership of fds. */
keel_status tp_shm_attach(struct tp *base, const int fds[TP_SHM_FDS], void *user, struct tp_ep **out);
#endif
