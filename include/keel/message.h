/* Small two-sided messages with tags, between ranks that live: what one-sided programs need now and then, and what the
 * armci_msg calls of Global Arrays are made of.
 *
 * Messages of one sender with one tag arrive in the order in which they were sent, once each. What was sent before the
 * sender's death and had not arrived is lost; what had arrived is received. A process that takes a dead rank's place
 * gets none of its messages.
 *  threads   any; who receives the same (rank, tag) in two threads gets one message in each.
 *  errors    KEEL_ERR_ARG; KEEL_ERR_STATE before keel_init; KEEL_ERR_RANK_DEAD: the rank is dead, or has called
 *            keel_finalize, and
 *            nothing of it waits here; KEEL_ERR_NOMEM: of keel_message_receive also that a message is on its way for
 *            which there is no
 *            memory here now, it is not lost; KEEL_ERR_FENCED, KEEL_ERR_AGENT_GONE. */
#ifndef KEEL_MESSAGE_H
#define KEEL_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <keel/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KEEL_MESSAGE_MAX = 65536, /* bytes */
    KEEL_ANY_RANK = -1
};

/* To a rank, the caller's own too. The bytes are copied; with KEEL_OK they are on their way, and arrive if neither
 * dies: keel_finalize waits for them.
 * blocks    while 1 MiB of the caller's messages to the rank, each with 64 bytes more, was not received. */
KEEL_MUST_CHECK keel_status keel_message_send(int rank, uint32_t tag, const void *data, size_t len);
/* The oldest message with the tag from the rank, or from any. *len (may be NULL): its bytes; *from (may be NULL): who
 * sent it.
 * blocks    until there is one.
 * errors    KEEL_ERR_LIMIT: it is longer than max; it stays, and *len says how long it is. */
KEEL_MUST_CHECK keel_status keel_message_receive(int rank, uint32_t tag, void *data, size_t max, size_t *len,
                                                 int *from);
/* Is there one? KEEL_OK: then *len and *from are its; else KEEL_IN_PROGRESS, or why none will come.
 * blocks    no. */
KEEL_MUST_CHECK keel_status keel_message_test(int rank, uint32_t tag, size_t *len, int *from);

#ifdef __cplusplus
}
#endif
#endif
