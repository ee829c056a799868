/* Authenticated and encrypted connections over another transport (keelrun --secure;
 * docs/adr/0024-hellos-and-sealed-connections.md).
 *
 * Remote writes and reads become sealed messages here, in pieces of at most 16 KiB, and are carried out by the peer's
 * own poll: the transport below registers no memory, so nobody reaches ours without the connection's keys. A piece
 * takes effect whole or not at all. A frame that does not open (flipped, put in, left out, repeated, of another
 * connection) ends the connection, with a warning; its ops end as in any loss. */
#ifndef KEEL_NET_SEALED_SEALED_H
#define KEEL_NET_SEALED_SEALED_H

#include "runtime/net/transport.h"

/* Takes inner, which is closed with it or on error. The secret's 32 bytes are copied. */
keel_status tp_sealed_open(struct tp *inner, const uint8_t secret[32], struct tp **out);
/* Between nodes: tp_ofi if secret is NULL, else sealed over tp_stream. */
keel_status tp_net_open(const struct tp_config *config, const uint8_t *secret, struct tp **out);
#endif
