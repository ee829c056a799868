/* Connect data of every connection to an agent. mac covers all before it under the job's secret. A sender counts its
 * attempts to reach a node, and the receiver takes each number once, in rising order: a recorded hello opens nothing
 * (docs/adr/0024-hellos-and-sealed-connections.md). */
#ifndef KEEL_NET_HELLO_H
#define KEEL_NET_HELLO_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/net/transport.h"

#define HELLO_MAGIC 0x6b65656c68690004ull
struct hello {
    uint64_t magic;
    uint64_t job;
    uint64_t incarnation; /* of the agent, or of the rank */
    int32_t node;         /* from */
    int32_t rank;         /* -1: an agent */
    int32_t to_node;
    uint32_t pad;
    uint64_t to_incarnation;
    uint64_t attempt; /* from 1, of this sender to this node */
    uint8_t mac[32];
};
static_assert(sizeof(struct hello) <= TP_HELLO_MAX, "fits the connect data");

/* Fill magic and mac. The secret has 32 bytes. */
void hello_sign(struct hello *hello, const uint8_t secret[32]);
/* Whoever made it knows the secret and meant this incarnation of this agent; out then holds it. */
bool hello_open(const void *data, size_t len, const uint8_t secret[32], uint64_t job, int self, uint64_t incarnation,
                struct hello *out);
/* False for a number that was there before, or is older. last: the sender's newest, 0 at first. */
bool hello_is_new(const struct hello *hello, uint64_t *last);
#endif
