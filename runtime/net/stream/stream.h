/* Messages over TCP sockets of our own, for sealed connections (sealed.h). libfabric's tcp provider believes its
 * stream: bytes that a stranger puts into it end the process. Here a frame is a length and bytes, and a senseless
 * length ends the connection; what the bytes are worth is the business of sealed.
 *
 *   connector   length 8, connect data     -->
 *               <--  verdict 8: 0 accepted, 1 rejected
 *   both        length 4, mark 4, message, padded to 8
 *
 * The mark is 0 until the keys are there, then SipHash of the message's number and length: a length that somebody made
 * up would let us wait for what never comes.
 * No remote writes and reads, no registered memory: those entries of the table give KEEL_ERR_ARG. */
#ifndef KEEL_NET_STREAM_STREAM_H
#define KEEL_NET_STREAM_STREAM_H

#include "runtime/net/transport.h"

extern const struct tp_table tp_stream;
#endif
